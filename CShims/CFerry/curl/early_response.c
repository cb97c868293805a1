/* early_response.c - responses that arrive while their request is being sent.
 *
 * A server may respond before it has read everything, for example to refuse an
 * upload, or to accept it. libcurl stops sending at a status of 300 and above,
 * and if the connection is to be closed. But this does not end its pause: if
 * the source has no bytes at the moment, libcurl would wait for ever, although
 * it has the response. And what libcurl holds of a paused response is lost when
 * writing to the connection fails.
 *
 * libcurl 8 reads and writes in the same call. When the write fails, it does
 * not say whether the response that it has just read is complete. The head
 * tells, unless the body is chunked. */
#include "curl/compat.h"
#include "http1/response.h"

#include <stdlib.h>
#include <string.h>

bool ferry__is_sending(const ferry__transfer *t) {
  curl_off_t sent = 0;
  if (t->body_kind == FERRY_BODY_NONE)
    return false;
  if (t->body_kind == FERRY_BODY_PULL &&
      ferry__pulled(t) < t->body_length)
    return true;
  curl_easy_getinfo(t->handle->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
  return (uint64_t)sent < t->body_length;
}

bool ferry__is_answered(const ferry__transfer *t) {
  const ferry__head *head = t->head;
  if (!head->complete || t->curl.head_held || t->curl.withheld)
    return false;
  return t->receiving == FERRY__RECEIVE_COMPLETE || !ferry__has_body(t) ||
         t->curl.last_chunk ||
         (head->content_length > 0 &&
          t->result.body_received == (uint64_t)head->content_length);
}

/* libcurl checks the length of a response only when its request has ended, too.
 * A server that closes in the middle ends the reading as well. */
void ferry__check_length(ferry__transfer *t) {
  const ferry__head *head = t->head;
  bool cut = head->complete && ferry__has_body(t) &&
             (head->chunked ? t->curl.chunks && !t->curl.last_chunk
                            : head->content_length > 0 &&
                                  t->result.body_received !=
                                      (uint64_t)head->content_length);
  if (cut && !t->fault.code)
    t->fault = (ferry__fault){FERRY_E_INCOMPLETE_BODY, 0};
}

/* ---- The last chunk ------------------------------------------------------ */

struct ferry__chunks {
  ferry__response response;
  ferry__head head; /* for `response`; the transfer has its own */
};

void ferry__chunks_take(ferry__transfer *t, const char *bytes, size_t length) {
  const char *end = bytes + length, *piece;
  size_t size;
  if (!t->curl.chunks)
    return;
  enum ferry__event event;
  do
    event = ferry__response_next(&t->curl.chunks->response, &bytes, end, false,
                                 &piece, &size);
  while (event == FERRY__EVENT_HEAD || event == FERRY__EVENT_BODY);
  t->curl.last_chunk = event == FERRY__EVENT_END;
}

void ferry__chunks_forget(ferry__transfer *t) {
  t->curl.last_chunk = false;
  if (!t->curl.chunks)
    return;
  ferry__response_free(&t->curl.chunks->response);
  ferry__head_free(&t->curl.chunks->head);
  free(t->curl.chunks);
  t->curl.chunks = NULL;
}

/* libcurl shows the bytes that it reads only to its debug function. */
static void watch_chunks(ferry__transfer *t) {
  static const char head[] =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  CURL *e = t->handle->easy;
  ferry__chunks_forget(t);
  struct ferry__chunks *chunks = calloc(1, sizeof *chunks);
  if (!chunks)
    return;
  ferry__head_begin(&chunks->head, t->max_head);
  ferry__response_begin(&chunks->response, &chunks->head, false);
  t->curl.chunks = chunks;
  ferry__chunks_take(t, head, sizeof head - 1);
  t->handle->unusual = 1;
  curl_easy_setopt(e, CURLOPT_DEBUGFUNCTION, ferry__on_line);
  curl_easy_setopt(e, CURLOPT_DEBUGDATA, t->handle);
  curl_easy_setopt(e, CURLOPT_VERBOSE, 1L);
}

/* ---- Responses that libcurl holds back ----------------------------------- */

/* In the wheel's next turn, because libcurl cannot be called from its own
 * callbacks. */
static void look_soon(ferry__transfer *t) {
  ferry_loop *loop = t->handle->loop;
  t->curl.nudged = true;
  ferry__wheel_set(loop, t, ferry__now(loop));
}

void ferry__reading_ended(ferry__transfer *t) {
  /* A pause is not the end, and an informational response is not the last. */
  if (t->receiving == FERRY__RECEIVE_COMPLETE || t->curl.withheld ||
      !t->head->complete)
    return;
  t->receiving = FERRY__RECEIVE_COMPLETE;
  if (t->source == FERRY__SOURCE_PAUSED)
    look_soon(t);
}

void ferry__head_ended(ferry__transfer *t) {
  if (t->head->chunked && ferry__has_body(t) && ferry__is_sending(t))
    watch_chunks(t);
  if (t->source == FERRY__SOURCE_PAUSED && t->head->status >= 300)
    look_soon(t);
}

/* If libcurl has stopped sending, it ends now, or when the response does.
 * Otherwise it asks for more bytes, and pauses again: the source is not asked,
 * because it reports new bytes by itself (ferry__on_read). */
void ferry__nudge(ferry__transfer *t) {
  t->curl.nudged = false;
  if (t->source != FERRY__SOURCE_PAUSED || t->state != FERRY__RUNNING)
    return;
  t->source = FERRY__SOURCE_DRY;
  curl_easy_pause(t->handle->easy,
                  t->curl.withheld ? CURLPAUSE_RECV : CURLPAUSE_CONT);
  t->handle->shard->due = 1;
  ferry__shard_touch(t->handle->shard);
}

void ferry__leave_unsent(ferry_loop *loop, ferry__transfer *t) {
  t->source = FERRY__SOURCE_LEFT;
  ferry__check_length(t);
  ferry__transfer_completed(loop, t, CURLE_OK);
}

/* ---- Paused responses ---------------------------------------------------- */

bool ferry__keep(ferry__transfer *t, const char *bytes, size_t length) {
  /* In the order of arrival: after what is kept already. Bytes that were in the
   * socket at its end are kept in full, as libcurl can no longer hold them. More
   * than usual are kept in a short rest. */
  size_t usual = t->paused == FERRY__PAUSED_BY_TURN ? 16 * FERRY__LATE
                                                   : FERRY__LATE;
  size_t most = t->curl.late ? SIZE_MAX : usual;
  if (t->curl.withheld || t->curl.kept_length + length > most ||
      (!t->curl.late && !ferry__is_sending(t)))
    return false;
  char *kept = realloc(t->curl.kept, t->curl.kept_length + length);
  if (!kept)
    return false;
  memcpy(kept + t->curl.kept_length, bytes, length);
  t->curl.kept = kept;
  t->curl.kept_length += (uint32_t)length;
  t->result.body_received += length;
  return true;
}

bool ferry__kept_drain(ferry_loop *loop, ferry__transfer *t) {
  while (t->curl.kept && !t->paused) {
    size_t left = t->curl.kept_length - t->curl.kept_from;
    size_t n = left < CURL_MAX_WRITE_SIZE ? left : CURL_MAX_WRITE_SIZE;
    char *bytes = t->curl.kept + t->curl.kept_from;
    if (t->max_rate && !ferry__pace_take(loop, t, n))
      return true;
    t->curl.kept_from += (uint32_t)n;
    if (!(t->decoder ? ferry__decode_write(loop, t, bytes, n)
                     : ferry__body_deliver(loop, t, bytes, n)))
      return false;
    if (t->curl.kept_from == t->curl.kept_length) {
      free(t->curl.kept);
      t->curl.kept = NULL;
      t->curl.kept_length = t->curl.kept_from = 0;
    }
  }
  return true;
}
