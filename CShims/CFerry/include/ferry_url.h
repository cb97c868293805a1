/* ferry_url.h - URLs, as libcurl reads them. */
#ifndef CFERRY_URL_H
#define CFERRY_URL_H

#include "ferry_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A URL, taken apart by libcurl's parser: what it takes for the host is the
 * host. `host` points into `text`; neither ends in a NUL. */
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

/* [any thread] Takes an absolute URL apart. FERRY_E_INVALID_URL,
 * FERRY_E_UNSUPPORTED_SCHEME (also without any), FERRY_E_MEMORY. */
int ferry_url_parts(const char *_Nonnull url, size_t length,
                    ferry_url *_Nullable *_Nonnull out);

/* [any thread] Resolves a reference against an absolute base (RFC 3986, 5),
 * as a Location is (RFC 9110, 10.2.2): a fragment is inherited. Space and
 * bytes beyond ASCII are escaped, control characters are refused, and so is
 * what parsers disagree about. Codes as above; `has_userinfo` speaks of the
 * reference alone. */
int ferry_url_resolve(const char *_Nonnull base, size_t base_length,
                      const char *_Nonnull reference, size_t reference_length,
                      ferry_url *_Nullable *_Nonnull out);

/* [any thread] */
void ferry_url_free(ferry_url *_Nullable url);

#ifdef __cplusplus
}
#endif
#endif
