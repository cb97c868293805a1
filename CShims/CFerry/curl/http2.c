/* http2.c - what differs with HTTP/2: a connection carries many transfers at
 * once, and a stream may end without having been processed.
 *
 * libcurl 7.88 does not report which streams those are: a GOAWAY (RFC 9113,
 * 6.8) ends as «error in the HTTP/2 framing layer». Only its verbose lines
 * tell, so loops with HTTP/2 read these (compat.c). */
#include "curl/compat.h"

#include <openssl/ssl.h>
#include <string.h>

#define SET(option, value) curl_easy_setopt(e, option, value)

void ferry__http2_constants(ferry__handle *handle) {
  CURL *e = handle->easy;
  if (handle->loop->options.http2 == FERRY_HTTP2_NEVER) {
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    return;
  }
  SET(CURLOPT_HTTP_VERSION,
      handle->loop->options.http2 == FERRY_HTTP2_NEGOTIATED
          ? (long)CURL_HTTP_VERSION_2TLS
          : (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
  SET(CURLOPT_PIPEWAIT, 1L);
  SET(CURLOPT_VERBOSE, 1L);
  SET(CURLOPT_DEBUGFUNCTION, ferry__on_line);
  SET(CURLOPT_DEBUGDATA, handle);
}

void ferry__http2_prepare(ferry__handle *handle, ferry__transfer *t) {
  handle->connection = 0;
  handle->stream = handle->stream_error = 0;
  handle->refused = handle->left_in = 0;
  if (handle->loop->options.http2 == FERRY_HTTP2_NEVER)
    return;
  /* HTTP/2 has no chunks; for HTTP/1.1 libcurl adds the field itself. */
  for (struct curl_slist **at = &t->headers; *at; at = &(*at)->next)
    if (!strcmp((*at)->data, ferry__chunked)) {
      *at = (*at)->next;
      break;
    }
  static const long weights[] = {[FERRY_LOW] = 8, [FERRY_HIGH] = 64};
  if (t->priority != FERRY_NORMAL &&
      ferry__weighs_streams()) {
    curl_easy_setopt(handle->easy, CURLOPT_STREAM_WEIGHT,
                     weights[t->priority]);
    handle->unusual = 1;
  }
  if (handle->loop->options.http2 == FERRY_HTTP2_PRIOR_KNOWLEDGE &&
      !t->host->secure && ferry__begins_http2_anew()) {
    curl_easy_setopt(handle->easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(handle->easy, CURLOPT_FORBID_REUSE, 1L);
    handle->unusual = 1;
  }
}

bool ferry__is_http2(const ferry__handle *handle, SSL *tls) {
  const ferry__transfer *t = handle->transfer;
  const unsigned char *protocol = NULL;
  unsigned length = 0;
  if (handle->loop->options.http2 == FERRY_HTTP2_NEVER || t->host->local)
    return false;
  if (t->host->secure) {
    if (tls)
      SSL_get0_alpn_selected(tls, &protocol, &length);
    return length == 2 && !memcmp(protocol, "h2", 2);
  }
  return handle->loop->options.http2 == FERRY_HTTP2_PRIOR_KNOWLEDGE &&
         !(t->extras && t->extras->proxy_kind == FERRY_PROXY_HTTP);
}

ferry__fault ferry__stream_fault(const ferry__transfer *t, const char *words) {
  bool headed = t->head->complete;
  int code = t->handle ? (int)t->handle->stream_error : 0;
  if (t->curl.untouched)
    return (ferry__fault){FERRY_E_HTTP2_STREAM, FERRY_D_HTTP2_REFUSED};
  int detail = code > 0 ? ferry__http2_detail((unsigned)code)
                        : FERRY_D_HTTP2_OTHER;
  if (detail != FERRY_D_HTTP2_OTHER)
    return (ferry__fault){FERRY_E_HTTP2_STREAM, detail};
  /* nghttp2 ends a stream that breaks the rules with PROTOCOL_ERROR: a length
   * that does not match the body, control bytes in a field. libcurl 8.14
   * reports nghttp2's own code for it, which is negative. */
  if (code == 1 || code < 0)
    return (ferry__fault){FERRY_E_MALFORMED_RESPONSE, FERRY_D_NONE};
  if (ferry__says_stream_end(words))
    return (ferry__fault){
        headed ? FERRY_E_INCOMPLETE_BODY : FERRY_E_CONNECTION_CLOSED, 0};
  if (ferry__says_no_head(words))
    return (ferry__fault){FERRY_E_MALFORMED_RESPONSE, FERRY_D_STATUS_LINE};
  return (ferry__fault){FERRY_E_HTTP2_STREAM, FERRY_D_HTTP2_OTHER};
}
