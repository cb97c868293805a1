/* extras.c - rarely used options of a request, set on a handle that is reset
 * afterwards. */
#include "curl/libcurl.h"

#define SET(option, value) curl_easy_setopt(e, option, value)

/* With a single scheme libcurl sends credentials without a challenge, and holds
 * back the body for it. So a scheme that no server asks for is added. Only if
 * the body cannot be sent twice should it be held back: then the best scheme is
 * set alone. */
static long schemes_of(unsigned schemes, bool holds) {
  static const struct {
    unsigned ours;
    unsigned long curls;
  } best_first[] = {
      {FERRY_SCHEME_NEGOTIATE, CURLAUTH_NEGOTIATE},
      {FERRY_SCHEME_DIGEST, CURLAUTH_DIGEST},
      {FERRY_SCHEME_NTLM, CURLAUTH_NTLM},
      {FERRY_SCHEME_BASIC, CURLAUTH_BASIC},
  };
  unsigned long all = CURLAUTH_AWS_SIGV4;
  for (size_t i = 0; i < sizeof best_first / sizeof *best_first; i++) {
    if (!(schemes & best_first[i].ours))
      continue;
    if (holds)
      return (long)best_first[i].curls;
    all |= best_first[i].curls;
  }
  return (long)all;
}

/* libcurl calls this for each byte that it reads of a response to CONNECT,
 * including the body of a 407, which it reads to the end in one call. */
static int on_progress(void *data, curl_off_t down, curl_off_t so_far,
                       curl_off_t up, curl_off_t sent) {
  ferry__handle *handle = data;
  (void)down, (void)so_far, (void)up, (void)sent;
  if (!handle->tunnelling || ++handle->tunnel_steps <= FERRY__MAX_TUNNEL)
    return 0;
  handle->transfer->fault =
      (ferry__fault){FERRY_E_HEAD_TOO_LARGE, FERRY_D_HEAD_BYTES};
  return 1;
}

static bool set_proxy(CURL *e, ferry__handle *handle,
                      const ferry__transfer *t) {
  static const long kinds[] = {
      [FERRY_PROXY_HTTP] = CURLPROXY_HTTP,
      [FERRY_PROXY_SOCKS5] = CURLPROXY_SOCKS5,
      [FERRY_PROXY_SOCKS5_NAMES] = CURLPROXY_SOCKS5_HOSTNAME,
      [FERRY_PROXY_SOCKS4] = CURLPROXY_SOCKS4,
      [FERRY_PROXY_SOCKS4_NAMES] = CURLPROXY_SOCKS4A,
  };
  const ferry__extras *x = t->extras;
  if (SET(CURLOPT_PROXY, x->proxy) ||
      SET(CURLOPT_PROXYTYPE, kinds[x->proxy_kind]))
    return false;
  /* Fields for the server are not sent to the proxy, nor the other way
   * round. */
  SET(CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
  SET(CURLOPT_PROXYHEADER, x->proxy_headers);
  long schemes = (long)CURLAUTH_BASIC;
  if (x->proxy_schemes) {
    /* The body is never sent before a tunnel is complete. */
    bool holds = t->body_kind == FERRY_BODY_PULL && !t->host->secure;
    schemes = schemes_of(x->proxy_schemes, holds);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, handle);
  }
  if (x->proxy_user) {
    if (SET(CURLOPT_PROXYUSERNAME, x->proxy_user) ||
        SET(CURLOPT_PROXYPASSWORD,
            x->proxy_password ? x->proxy_password : "") ||
        SET(CURLOPT_PROXYAUTH, schemes))
      return false;
    SET(CURLOPT_SOCKS5_AUTH, (long)CURLAUTH_BASIC);
  } else {
    SET(CURLOPT_SOCKS5_AUTH, (long)CURLAUTH_NONE);
  }
  /* The proxy is an address by now, so libcurl has nothing to look up. */
  return !x->chosen.data || !SET(CURLOPT_CONNECT_TO, &x->chosen);
}

static bool set_credentials(CURL *e, const ferry__transfer *t) {
  const ferry__extras *x = t->extras;
  bool holds = t->body_kind == FERRY_BODY_PULL;
  return !SET(CURLOPT_HTTPAUTH, schemes_of(x->schemes, holds)) &&
         !SET(CURLOPT_USERNAME, x->user) &&
         !SET(CURLOPT_PASSWORD, x->password);
}

bool ferry__extras_set(ferry__handle *handle, const ferry__transfer *t) {
  CURL *e = handle->easy;
  const ferry__extras *x = t->extras;
  handle->unusual = 1;
  if (x->proxy && !set_proxy(e, handle, t))
    return false;
  if (x->schemes && !set_credentials(e, t))
    return false;
  if (x->encodings_kind == FERRY_ENCODINGS_NONE)
    return !SET(CURLOPT_ACCEPT_ENCODING, NULL);
  if (x->encodings_kind == FERRY_ENCODINGS_THESE)
    /* For libcurl an empty text means all encodings that it knows. */
    return !SET(CURLOPT_ACCEPT_ENCODING, *x->encodings ? x->encodings : NULL);
  return true;
}
