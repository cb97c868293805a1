/* ferry_url.h - URLs, as libcurl parses them. */
#ifndef CFERRY_URL_H
#define CFERRY_URL_H

#include "ferry_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A URL parsed by libcurl, which also makes the connection: its host is the
 * host. `host` points into `text`; neither ends with a NUL. */
typedef struct ferry_url {
  const char *_Nonnull text; /* the whole, without user and password and
                              * without a default port */
  size_t text_length;
  const char *_Nonnull host; /* lower case, punycode, decimal addresses; one
                              * of IPv6 in its brackets */
  size_t host_length;
  uint16_t port;        /* the scheme's own where none is written */
  uint8_t is_secure;    /* https, or else http */
  uint8_t is_local;     /* http+unix, https+unix: `host` is the escaped path of
                         * a socket, in one spelling */
  uint8_t has_userinfo; /* user or password stood in it; for tests */
} ferry_url;

/* [any thread] Parses an absolute URL. FERRY_E_INVALID_URL,
 * FERRY_E_UNSUPPORTED_SCHEME (also without a scheme), FERRY_E_MEMORY. */
int ferry_url_parts(const char *_Nonnull url, size_t length,
                    ferry_url *_Nullable *_Nonnull out);

/* [any thread] Resolves a reference against an absolute base (RFC 3986, 5),
 * like a Location (RFC 9110, 10.2.2): the fragment is inherited. Spaces and
 * bytes beyond ASCII are escaped. Control characters, and text that parsers
 * disagree about, are refused. Same codes as above; `has_userinfo` refers to
 * the reference only. */
int ferry_url_resolve(const char *_Nonnull base, size_t base_length,
                      const char *_Nonnull reference, size_t reference_length,
                      ferry_url *_Nullable *_Nonnull out);

/* [any thread] */
void ferry_url_free(ferry_url *_Nullable url);

#ifdef __cplusplus
}
#endif
#endif
