/* error.c - what a CURLcode means. It depends on how far the transfer had got
 * and on libcurl's message: 56 is a reset or a bad chunk, a head that is too
 * long is «out of memory», a response of HTTP/0.9 is an unknown protocol. */
#include "curl/compat.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>

static ferry__fault fault(int code, int detail) {
  return (ferry__fault){code, detail};
}

static bool is_proxied(const ferry__transfer *t) {
  return t->extras && t->extras->proxy;
}

/* SOCKS: libcurl's code is vague; CURLINFO_PROXY_ERROR has the cause. */
static ferry__fault socks_fault(const ferry__transfer *t) {
  long error = 0;
  if (t->handle)
    curl_easy_getinfo(t->handle->easy, CURLINFO_PROXY_ERROR, &error);
  if (error == CURLPX_NO_AUTH || error == CURLPX_USER_REJECTED)
    return fault(FERRY_E_PROXY, FERRY_D_PROXY_AUTH_REQUIRED);
  return fault(FERRY_E_PROXY, FERRY_D_PROXY_HANDSHAKE);
}

/* CONNECT was not successful. */
static ferry__fault tunnel_fault(const ferry__transfer *t, const char *words) {
  long status = 0;
  if (ferry__says_too_large(words))
    return fault(FERRY_E_HEAD_TOO_LARGE, FERRY_D_HEAD_BYTES);
  curl_easy_getinfo(t->handle->easy, CURLINFO_HTTP_CONNECTCODE, &status);
  if (status == 407)
    return fault(FERRY_E_PROXY, FERRY_D_PROXY_AUTH_REQUIRED);
  return fault(FERRY_E_PROXY, status && status / 100 != 2
                                  ? FERRY_D_PROXY_REFUSED
                                  : FERRY_D_PROXY_HANDSHAKE);
}

static ferry__fault connect_fault(const ferry__transfer *t) {
  if (!is_proxied(t) && t->curl.forbidden && t->handle &&
      !t->handle->opened_count)
    return fault(FERRY_E_ADDRESS_FORBIDDEN, 0);
  return ferry__connect_fault(is_proxied(t), t->result.os_errno);
}

static ferry__fault verify_fault(const ferry__transfer *t, const char *words) {
  long verdict = 0;
  if (t->handle)
    curl_easy_getinfo(t->handle->easy, CURLINFO_SSL_VERIFYRESULT, &verdict);
  if (ferry__says_hostname(words))
    return fault(FERRY_E_TLS, FERRY_D_TLS_HOSTNAME);
  /* X509_V_ERR_CERT_NOT_YET_VALID, …_HAS_EXPIRED */
  if (verdict == 9 || verdict == 10 || ferry__says_expired(words))
    return fault(FERRY_E_TLS, FERRY_D_TLS_EXPIRED);
  return fault(FERRY_E_TLS, FERRY_D_TLS_UNTRUSTED);
}

/* 52, 55, 56 and similar codes: the connection broke. */
static ferry__fault broken(const ferry__transfer *t, bool reset) {
  if (reset)
    return fault(FERRY_E_CONNECTION_RESET, 0);
  if (t->phase == FERRY_PHASE_BODY ||
      t->head->complete)
    return fault(FERRY_E_INCOMPLETE_BODY, 0);
  return fault(FERRY_E_CONNECTION_CLOSED, 0);
}

/* With TLS 1.3 the server checks our certificate after our side of the
 * handshake. Its alert arrives in place of the response. */
static bool is_late_alert(const ferry__transfer *t, const char *words) {
  return t->phase < FERRY_PHASE_HEAD && ferry__says_alert(words);
}

static ferry__fault receive_fault(const ferry__transfer *t,
                                  const char *words) {
  if (is_late_alert(t, words))
    return fault(FERRY_E_TLS, FERRY_D_TLS_HANDSHAKE);
  bool starved = t->handle && t->handle->loop->starved;
  switch (ferry__received_words(words)) {
  case FERRY__WORDS_HTTP2:
    return fault(FERRY_E_HTTP2_STREAM, FERRY_D_HTTP2_OTHER);
  case FERRY__WORDS_CHUNK_MEMORY: /* also for a trailer of more than 4 KB */
    return starved ? fault(FERRY_E_MEMORY, 0)
                   : fault(FERRY_E_MALFORMED_RESPONSE, FERRY_D_CHUNK);
  case FERRY__WORDS_CHUNK:
    return fault(FERRY_E_MALFORMED_RESPONSE, FERRY_D_CHUNK);
  case FERRY__WORDS_HEAD_TOO_LARGE:
    return fault(FERRY_E_HEAD_TOO_LARGE, FERRY_D_HEAD_BYTES);
  case FERRY__WORDS_CLOSED:
    return broken(t, false);
  default:
    return broken(t, true);
  }
}

ferry__fault ferry__fault_of(const ferry__transfer *t, CURLcode code,
                             const char *words) {
  bool headed = t->head->complete;
  bool starved = t->handle && t->handle->loop->starved;
  if (t->handle && t->handle->tunnelling && !t->handle->tunnelled &&
      code != CURLE_COULDNT_CONNECT && code != CURLE_OPERATION_TIMEDOUT &&
      code != CURLE_OUT_OF_MEMORY)
    return tunnel_fault(t, words);
  switch (code) {
  case CURLE_OK:
    return fault(FERRY_OK, 0);
  case CURLE_UNSUPPORTED_PROTOCOL:
    return t->phase >= FERRY_PHASE_SEND
               ? fault(FERRY_E_MALFORMED_RESPONSE, FERRY_D_STATUS_LINE)
               : fault(FERRY_E_UNSUPPORTED_SCHEME, 0);
  case CURLE_URL_MALFORMAT: /* also reported for a lack of memory, .. */
    return fault(starved ? FERRY_E_MEMORY : FERRY_E_INVALID_URL, 0);
  case CURLE_COULDNT_RESOLVE_PROXY:
    return fault(FERRY_E_PROXY, FERRY_D_PROXY_UNREACHABLE);
  case CURLE_COULDNT_RESOLVE_HOST: /* .. like this */
    return starved ? fault(FERRY_E_MEMORY, 0)
                   : fault(FERRY_E_DNS, FERRY_D_DNS_FAILED);
  case CURLE_COULDNT_CONNECT:
    return connect_fault(t);
  case CURLE_WEIRD_SERVER_REPLY:
    if (ferry__says_length(words))
      return fault(FERRY_E_MALFORMED_RESPONSE, FERRY_D_LENGTH);
    return fault(FERRY_E_MALFORMED_RESPONSE,
                 t->phase < FERRY_PHASE_HEAD ? FERRY_D_STATUS_LINE
                 : headed                    ? FERRY_D_TRAILER
                                             : FERRY_D_HEADER);
  case CURLE_PARTIAL_FILE:
    /* libcurl also reports this for a head that ends after its length or
     * coding. */
    return fault(t->head->complete ? FERRY_E_INCOMPLETE_BODY
                                   : FERRY_E_CONNECTION_CLOSED,
                 0);
  case CURLE_OUT_OF_MEMORY:
    /* 7.88.1 reports this for a field longer than 100 KB. */
    return t->phase >= FERRY_PHASE_SEND && !headed && !starved
               ? fault(FERRY_E_HEAD_TOO_LARGE, FERRY_D_HEAD_BYTES)
               : fault(FERRY_E_MEMORY, 0);
  case CURLE_OPERATION_TIMEDOUT:
    return fault(FERRY_E_TIMEOUT, FERRY_D_TIMEOUT_CONNECT);
  case CURLE_SSL_CONNECT_ERROR:
    return fault(FERRY_E_TLS, FERRY_D_TLS_HANDSHAKE);
  case CURLE_PEER_FAILED_VERIFICATION:
    return verify_fault(t, words);
  case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    return fault(FERRY_E_TLS, FERRY_D_TLS_PIN_MISMATCH);
  case CURLE_SSL_CACERT_BADFILE:
  case CURLE_SSL_CERTPROBLEM:
  case CURLE_SSL_CIPHER:
  case CURLE_SSL_CRL_BADFILE:
  case CURLE_SSL_ENGINE_INITFAILED:
    return fault(FERRY_E_TLS, FERRY_D_TLS_CONFIGURATION);
  case CURLE_GOT_NOTHING:
    return broken(t, false);
  case CURLE_SEND_ERROR:
  case CURLE_SEND_FAIL_REWIND:
    if (is_late_alert(t, words))
      return fault(FERRY_E_TLS, FERRY_D_TLS_HANDSHAKE);
    if (t->curl.head_held && code == CURLE_SEND_FAIL_REWIND)
      return fault(FERRY_E_BODY_NOT_REPLAYABLE, 0);
    /* The connection was dead, and a pulled body cannot be sent again. */
    return broken(t, code == CURLE_SEND_ERROR);
  case CURLE_RECV_ERROR:
    return receive_fault(t, words);
  case CURLE_BAD_CONTENT_ENCODING: /* from 8.14; decode.c has its own */
    return fault(FERRY_E_MALFORMED_RESPONSE, FERRY_D_TRANSFER_ENCODING);
  case CURLE_BAD_FUNCTION_ARGUMENT: /* 43: a field without a colon */
    if (t->phase == FERRY_PHASE_BODY)
      return fault(FERRY_E_MALFORMED_RESPONSE, FERRY_D_TRAILER);
    return t->phase == FERRY_PHASE_HEAD
               ? fault(FERRY_E_MALFORMED_RESPONSE, FERRY_D_HEADER)
               : fault(FERRY_E_INTERNAL, 0);
  case CURLE_HTTP2:
  case CURLE_HTTP2_STREAM:
    return ferry__stream_fault(t, words);
  case CURLE_PROXY:
    return socks_fault(t);
  default:
    /* 100, CURLE_TOO_LARGE, is newer than the headers of 7.88. */
    return (int)code == 100 ? fault(FERRY_E_HEAD_TOO_LARGE, FERRY_D_HEAD_BYTES)
                            : fault(FERRY_E_INTERNAL, 0);
  }
}
