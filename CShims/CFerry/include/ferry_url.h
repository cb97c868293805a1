/* ferry_url.h - URLs, as libcurl parses them. */
#ifndef CFERRY_URL_H
#define CFERRY_URL_H

#include "ferry_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A URL, parsed by libcurl: its host is the host that libcurl connects to.
 * `host` points into `text`; neither ends with a NUL. */
typedef struct ferry_url {
  const char *_Nonnull text; /* the whole URL, without user, password and
                              * default port */
  size_t text_length;
  const char *_Nonnull host; /* lower case, punycode, decimal addresses; IPv6 in
                              * brackets */
  size_t host_length;
  uint16_t port;        /* the scheme's default if the URL has none */
  uint8_t is_secure;    /* 1 for https, 0 for http */
  uint8_t is_local;     /* http+unix, https+unix: `host` is the escaped path of
                         * a socket, normalised */
  uint8_t has_userinfo; /* the URL had a user or a password; for checks */
} ferry_url;

/* [any thread] Parses an absolute URL. Errors: FERRY_E_INVALID_URL,
 * FERRY_E_UNSUPPORTED_SCHEME (also if there is none), FERRY_E_MEMORY. The
 * caller frees it with ferry_url_free(). */
int ferry_url_parts(const char *_Nonnull url, size_t length,
                    ferry_url *_Nullable *_Nonnull out);

/* [any thread] Resolves a reference against an absolute base (RFC 3986, section
 * 5), like a Location (RFC 9110, 10.2.2): a fragment is inherited. Spaces and
 * bytes beyond ASCII are escaped. Control characters are refused, and so is
 * anything that parsers interpret differently. Errors as above; `has_userinfo`
 * is about the reference alone. */
int ferry_url_resolve(const char *_Nonnull base, size_t base_length,
                      const char *_Nonnull reference, size_t reference_length,
                      ferry_url *_Nullable *_Nonnull out);

/* [any thread] Frees a URL; NULL is allowed. */
void ferry_url_free(ferry_url *_Nullable url);

#ifdef __cplusplus
}
#endif
#endif
