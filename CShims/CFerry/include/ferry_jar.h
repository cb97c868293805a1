/* ferry_jar.h - cookies (RFC 6265). */
#ifndef CFERRY_JAR_H
#define CFERRY_JAR_H

#include "ferry_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A cookie jar (RFC 6265) that loops may share. It is bounded: beyond 120
 * cookies per domain the oldest are removed, and beyond 3,000 in total those
 * of the domain that was not used for the longest time. Up to 30 more may be
 * present in between. */
typedef struct ferry_jar ferry_jar;

/* [any thread] */
int ferry_jar_make(ferry_jar *_Nullable *_Nonnull out);

/* [any thread] The last of the creator and the loops that use it frees the
 * jar. */
void ferry_jar_free(ferry_jar *_Nonnull jar);

/* [any thread] Adds a cookie: a line in the format of ferry_jar_list(), or
 * "Set-Cookie: …". It replaces one with the same name, domain and path. An
 * invalid line is ignored. */
int ferry_jar_set(ferry_jar *_Nonnull jar, const char *_Nonnull line);

/* [any thread] */
int ferry_jar_clear(ferry_jar *_Nonnull jar);

/* [any thread] 1 if there is a cookie that has not expired, 0 if there is
 * none, or FERRY_E_MEMORY. The cost does not depend on the number of
 * cookies, except for the first call after the remembered cookie has
 * expired, was replaced, or was removed. */
int ferry_jar_filled(ferry_jar *_Nonnull jar);

/* [any thread] Visits all cookies that have not expired, on this thread,
 * each as seven tab-separated texts: domain (after "#HttpOnly_" for an
 * HttpOnly one), TRUE if subdomains get it too, path, TRUE if it requires
 * TLS, seconds since 1970 or 0, name, value. */
int ferry_jar_list(ferry_jar *_Nonnull jar, void *_Nullable context,
                   void (*_Nonnull visit)(void *_Nullable context,
                                          const char *_Nonnull line));

#ifdef __cplusplus
}
#endif
#endif
