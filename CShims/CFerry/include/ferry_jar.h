/* ferry_jar.h - cookies (RFC 6265). */
#ifndef CFERRY_JAR_H
#define CFERRY_JAR_H

#include "ferry_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A jar of cookies (RFC 6265) that loops may share. It is bounded: beyond 120
 * cookies of one domain, and 3,000 in all, the ones that were set first go,
 * and those of the domain that has been asked for the longest time ago. Up to
 * 30 more are there in between. */
typedef struct ferry_jar ferry_jar;

/* [any thread] */
int ferry_jar_make(ferry_jar *_Nullable *_Nonnull out);

/* [any thread] The last of the maker and of the loops that use it frees it. */
void ferry_jar_free(ferry_jar *_Nonnull jar);

/* [any thread] Puts one in, as a line of the form that ferry_jar_list()
 * shows, or as "Set-Cookie: …", in the place of one with its name, domain and
 * path. What is none is left out without a word. */
int ferry_jar_set(ferry_jar *_Nonnull jar, const char *_Nonnull line);

/* [any thread] */
int ferry_jar_clear(ferry_jar *_Nonnull jar);

/* [any thread] 1 when there is a cookie that has not expired, 0 when there is
 * none, or FERRY_E_MEMORY. What it costs does not depend on how many there
 * are, except for the first call after the cookie that it remembers has
 * expired, was set again, or was removed. */
int ferry_jar_filled(ferry_jar *_Nonnull jar);

/* [any thread] Visits all that have not expired on this thread, each as seven
 * texts with tabs between them: domain (behind "#HttpOnly_" for one that is),
 * TRUE when its subdomains get it too, path, TRUE when it needs TLS, seconds
 * since 1970 or 0, name, value. */
int ferry_jar_list(ferry_jar *_Nonnull jar, void *_Nullable context,
                   void (*_Nonnull visit)(void *_Nullable context,
                                          const char *_Nonnull line));

#ifdef __cplusplus
}
#endif
#endif
