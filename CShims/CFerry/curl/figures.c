/* figures.c - how far a transfer has got, and its figures, read from its
 * handle. */
#include "curl/compat.h"

static uint64_t microseconds(CURL *easy, CURLINFO info) {
  curl_off_t us = 0;
  curl_easy_getinfo(easy, info, &us);
  return us < 0 ? 0 : (uint64_t)us;
}

void ferry__read_so_far(const ferry__transfer *t, ferry_result *r) {
  r->attempts = (uint8_t)(t->earlier + t->handle->attempts);
  CURL *easy = t->handle->easy;
  uint64_t name = r->metrics.name;
  long connects = 0;
  curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connects);
  /* Another attempt could not connect: the figures are of that one. */
  bool anew = t->fault.code == FERRY_E_CONNECT;
  if (!anew)
    ferry__read_sent(t, r);
  /* A request that a proxy refuses with 407 never reached the server. */
  if (t->curl.reached ||
      (t->handle->reached && t->fault.code != FERRY_E_TLS &&
       t->fault.code != FERRY_E_PROXY && !t->curl.untouched))
    r->flags |= FERRY_RESULT_PROCESSED;
  if (r->attempts && !connects && !anew)
    r->flags |= FERRY_RESULT_REUSED;
  /* libcurl's clock starts when our lookup is done. */
  if (connects) {
    /* 0 for a phase that did not end. If TLS failed, libcurl does not tell when
     * TCP was connected, either. */
    uint64_t connected = microseconds(easy, CURLINFO_CONNECT_TIME_T);
    uint64_t secured = microseconds(easy, CURLINFO_APPCONNECT_TIME_T);
    if (connected)
      r->metrics.connect = name + connected;
    if (secured && t->host->secure)
      r->metrics.tls = name + secured;
  }
}

void ferry__read_figures(ferry__transfer *t) {
  ferry_result *r = &t->result;
  const ferry__head *head = t->head;
  long os_errno = 0;
  if (!t->handle)
    return;
  CURL *easy = t->handle->easy;
  r->attempts = (uint8_t)(t->earlier + t->handle->attempts);
  if (t->fault.code == FERRY_E_PROXY && !r->status) {
    long answered = 0;
    curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &answered);
    r->status = (uint16_t)answered;
  }
  if (!r->attempts && !t->fault.code)
    return;
  ferry__read_so_far(t, r);
  if (head->received)
    r->metrics.first_byte =
        r->metrics.name + microseconds(easy, CURLINFO_STARTTRANSFER_TIME_T);
  if (t->fault.code && !r->os_errno) {
    curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os_errno);
    r->os_errno = (int32_t)os_errno;
  }
}

void ferry__look_at_phase(ferry__transfer *t) {
  curl_off_t sent = 0;
  if (!t->handle)
    return;
  if (t->phase == FERRY_PHASE_CONNECT && t->host->secure &&
      (t->extras && t->extras->proxy ? t->handle->tunnelled
                                     : ferry__is_connected(t->handle)))
    t->phase = FERRY_PHASE_TLS;
  if (t->phase == FERRY_PHASE_SEND && t->body_length != FERRY_UNKNOWN_LENGTH) {
    curl_easy_getinfo(t->handle->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    if ((uint64_t)sent >= t->body_length)
      t->phase = FERRY_PHASE_WAIT_HEAD;
  }
}
