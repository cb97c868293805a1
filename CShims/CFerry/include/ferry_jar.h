/* ferry_jar.h - cookies (RFC 6265). */
#ifndef CFERRY_JAR_H
#define CFERRY_JAR_H

#include "ferry_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A jar of cookies (RFC 6265) that several loops may share. Its size is
 * bounded. Of more than 120 cookies of one domain, those that were set first
 * are removed; of more than 3,000 in all, those of the domains that have not
 * been requested for the longest time. The limits may be exceeded by up to 30
 * cookies for a while. */
typedef struct ferry_jar ferry_jar;

/* [any thread] Makes an empty jar, which belongs to the caller. Returns
 * FERRY_OK or FERRY_E_MEMORY. */
int ferry_jar_make(ferry_jar *_Nullable *_Nonnull out);

/* [any thread] Gives up the caller's share. The jar is freed when no loop uses
 * it any more. */
void ferry_jar_free(ferry_jar *_Nonnull jar);

/* [any thread] Sets a cookie from a line in the form of ferry_jar_list(), or
 * from "Set-Cookie: …". It replaces a cookie with the same name, domain and
 * path. A line that is no cookie is ignored. A line with CR or LF is
 * FERRY_E_INVALID_REQUEST. */
int ferry_jar_set(ferry_jar *_Nonnull jar, const char *_Nonnull line);

/* [any thread] Removes all cookies. */
int ferry_jar_clear(ferry_jar *_Nonnull jar);

/* [any thread] Returns 1 if there is a cookie that has not expired, 0 if there
 * is none, or FERRY_E_MEMORY. The cost does not depend on the number of
 * cookies, except in the first call after the cookie that the jar remembers has
 * expired, was set again, or was removed. */
int ferry_jar_filled(ferry_jar *_Nonnull jar);

/* [any thread] Returns a number that grows with each cookie that is set: if it
 * is the same as before, none was set since. */
uint64_t ferry_jar_additions(ferry_jar *_Nonnull jar);

/* [any thread] Calls `visit`, on this thread, for each cookie that has not
 * expired. The line has seven fields with tabs between them: domain (with the
 * prefix "#HttpOnly_" if the cookie is), TRUE if subdomains get it too, path,
 * TRUE if it needs TLS, expiry in seconds since 1970 or 0, name, value. */
int ferry_jar_list(ferry_jar *_Nonnull jar, void *_Nullable context,
                   void (*_Nonnull visit)(void *_Nullable context,
                                          const char *_Nonnull line));

#ifdef __cplusplus
}
#endif
#endif
