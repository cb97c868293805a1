/* exchange.c - one request and its response on a connection: start and end.
 *
 * Sending (send.c) and receiving (receive.c) are independent: a response may
 * arrive before its request has been sent, and is read first. Bytes that the
 * receiver does not take wait in the connection, and the socket is not read
 * meanwhile. */
#include "http1/http1.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const ferry__fault none = {FERRY_OK, 0};

char *ferry__http1_buffer(ferry_loop *loop) {
  if (!loop->http1->buffer)
    loop->http1->buffer = malloc(FERRY__HTTP1_BUFFER);
  return loop->http1->buffer;
}

/* ---- The end of an exchange ---------------------------------------------- */

static uint64_t body_sent(const ferry__connection *c,
                          const ferry__transfer *t) {
  if (c->sent <= c->head_size)
    return 0;
  if (c->chunked) {
    uint64_t pulled = c->http2 && t->body_kind == FERRY_BODY_BYTES
                          ? c->body_at
                          : ferry__pulled(t);
    uint64_t left = c->out_length - c->out_at;
    return pulled > left ? pulled - left : 0; /* without the chunked framing */
  }
  return c->sent - c->head_size;
}

/* The connection and the bytes sent so far, available from the head on. */
void ferry__exchange_so_far(const ferry__transfer *t, ferry_result *r) {
  const ferry__connection *c = t->connection;
  r->attempts = t->earlier;
  if (!c || c->state != FERRY__BUSY)
    return;
  r->head_sent = c->sent < c->head_size ? c->sent : c->head_size;
  r->body_sent = body_sent(c, t);
  if (c->sent)
    r->flags |= FERRY_RESULT_PROCESSED;
  if (ferry__connection_is_kept(c)) {
    r->flags |= FERRY_RESULT_REUSED;
    r->metrics.connect = r->metrics.tls = 0;
    return;
  }
  r->flags &= ~(uint32_t)FERRY_RESULT_REUSED;
  r->metrics.connect = ferry__us(t->started_ns, c->connected_ns);
  r->metrics.tls =
      c->secured_ns ? ferry__us(t->started_ns, c->secured_ns) : 0;
}

/* The transfer leaves its connection. */
static ferry__transfer *detach(ferry__connection *c) {
  ferry__transfer *t = c->transfer;
  ferry__exchange_so_far(t, &t->result);
  c->transfer = NULL;
  t->connection = NULL;
  ferry__connection_discharge(c, false);
  c->served++;
  return t;
}

void ferry__exchange_fail(ferry__connection *c, ferry__fault fault) {
  ferry_loop *loop = c->loop;
  ferry__transfer *t = detach(c);
  if (fault.code == FERRY_E_TLS) { /* the server has not processed the
                                    * request */
    t->phase = FERRY_PHASE_TLS;
    t->result.flags &= ~(uint32_t)FERRY_RESULT_PROCESSED;
  }
  ferry__connection_close(c);
  ferry__transfer_left(loop, t, fault);
}

/* What follows a response: bytes that belong to no request, or the end of the
 * connection. A TLS ticket is neither. */
enum after { NOTHING, BYTES, END };

static enum after look_after(ferry__connection *c, bool excess) {
  char byte;
  if (excess)
    return BYTES;
  if (!c->tls || c->fd < 0 || c->http2 || !SSL_has_pending(c->tls))
    return NOTHING; /* without a socket its number may be another's */
  ssize_t n = ferry__connection_read(c, &byte, 1);
  if (n > 0 || SSL_has_pending(c->tls))
    return BYTES;
  return n == -EAGAIN ? NOTHING : END;
}

/* The response is complete. */
void ferry__exchange_answered(ferry__connection *c, bool excess) {
  ferry_loop *loop = c->loop;
  ferry__transfer *t = c->transfer;
  enum after after = look_after(c, excess);
  if (c->sending != FERRY__SEND_DONE && c->sending != FERRY__SEND_STOPPED &&
      after == NOTHING && c->response.persistent) {
    /* Now the rest of the request is sent, unless the server closes. */
    t->receiving = FERRY__RECEIVE_COMPLETE;
    if (ferry__is_cut(t)) {
      ferry__exchange_fail(c, (ferry__fault){FERRY_E_CONTENT_DECODING,
                                             FERRY_D_DECODING_TRUNCATED});
      return;
    }
    ferry__connection_watch(c, true, c->wants_out);
    ferry__tell_answered(loop, t);
    return;
  }
  bool ends = !c->response.persistent || after == END;
  bool kept = !ends && after == NOTHING && !c->closing && !c->broken &&
              c->sending == FERRY__SEND_DONE;
  c->why = after == BYTES ? FERRY_CLOSED_POISONED
           : c->closing   ? FERRY_CLOSED_REQUEST
           : ends         ? FERRY_CLOSED_SERVER
           : kept         ? FERRY_CLOSED_SHUTDOWN
                          : FERRY_CLOSED_ERROR;
  if (after == BYTES)
    ferry__count(&loop->counters.guarded, 1);
  detach(c);
  ferry__transfer_left(loop, t, none);
  if (kept && !loop->closing)
    ferry__route_offer(c);
  else
    ferry__connection_close(c);
}

/* A request may be sent again if a kept connection, or one of several servers,
 * turns out to be dead before any byte of a response (RFC 9110, 9.2.2). */
static bool may_repeat(const ferry__connection *c, const ferry__transfer *t,
                       bool is_refused) {
  bool other = !is_refused && ferry__connection_has_others(c);
  return (ferry__connection_is_kept(c) || other) &&
         ferry__response_is_untouched(&c->response) &&
         !t->pulled && t->earlier < FERRY__MAX_ATTEMPTS &&
         (!c->sent || (t->flags & FERRY_IDEMPOTENT));
}

/* The flags keep that the server may have seen this attempt; everything else is
 * reported for the last one. */
void ferry__exchange_repeat(ferry__connection *c, uint8_t why) {
  ferry_loop *loop = c->loop;
  ferry__transfer *t = detach(c);
  ferry_result *r = &t->result;
  c->why = why;
  ferry__connection_close(c);
  r->flags &= ~(uint32_t)FERRY_RESULT_REUSED;
  r->head_sent = r->body_sent = 0;
  r->metrics.connect = r->metrics.tls = 0;
  t->fresh = true;
  if (t->source == FERRY__SOURCE_PAUSED) /* it is asked again */
    t->source = FERRY__SOURCE_READY;
  t->repeated_ms = t->last_ms = ferry__now(loop);
  ferry__origin_awaited(t);
  ferry__fault fault = ferry__route_start(loop, t);
  if (fault.code) {
    ferry__origin_served(t);
    ferry__transfer_left(loop, t, fault);
  }
  /* The limit of connecting applies again, from now on. */
  if (t->state == FERRY__RUNNING)
    ferry__wheel_set(loop, t, ferry__now(loop));
}

/* If a server refuses the expectation (RFC 9110, 10.1.1), the request is sent
 * again without it. */
bool ferry__exchange_is_refused(const ferry__connection *c) {
  const ferry__transfer *t = c->transfer;
  return t->head->status == 417 && c->expects && !t->pulled &&
         t->earlier < FERRY__MAX_ATTEMPTS;
}

void ferry__exchange_repeat_plainly(ferry__connection *c) {
  ferry__transfer *t = c->transfer;
  t->unexpecting = true;
  t->phase = FERRY_PHASE_CONNECT;
  t->result.metrics.first_byte = 0;
  ferry__head_begin(t->head, t->max_head);
  ferry__exchange_repeat(c, FERRY_CLOSED_CANCELLED);
}

/* The connection has ended, or has broken (os_errno). */
void ferry__exchange_lost(ferry__connection *c, int os_errno) {
  ferry__transfer *t = c->transfer;
  const char *words = NULL;
  bool is_told = os_errno; /* also if OpenSSL's queue has an error */
  if (!os_errno && c->broken) /* the system reports a reset only once */
    os_errno = c->end_errno;
  if (!os_errno && c->sending == FERRY__SEND_BODY &&
      ferry__connection_is_reset(c))
    os_errno = ECONNRESET;
  if (t->receiving >= FERRY__RECEIVE_COMPLETE) {
    c->sending = FERRY__SEND_STOPPED;
    c->broken = true;
    ferry__exchange_answered(c, false);
    return;
  }
  bool refused = c->tls && os_errno == EPROTO; /* by a TLS alert */
  bool untouched = ferry__response_is_untouched(&c->response);
  if (!ferry__connection_is_kept(c) && !refused && !c->route->via &&
      untouched)
    ferry__backend_mute(c->loop, c->backend, c->connected_ns / 1000000);
  if (may_repeat(c, t, refused)) {
    /* If one kept connection was dead, all may be. */
    ferry__exchange_repeat(c, FERRY_CLOSED_SERVER);
    return;
  }
  bool kept_one = ferry__connection_is_kept(c) && untouched;
  ferry__fault fault = c->tls && is_told ? ferry__tls_alert(&words) : none;
  if (!untouched) /* a server that responds has processed the request */
    fault = none;
  if (!fault.code && os_errno && !kept_one) {
    t->result.os_errno = os_errno;
    fault.code = FERRY_E_CONNECTION_RESET;
  }
  if (!fault.code) {
    bool whole = !os_errno && !c->truncated;
    if (ferry__response_close(&c->response, whole) == FERRY__EVENT_END) {
      c->broken = true;
      ferry__exchange_answered(c, false);
      return;
    }
    fault = c->response.fault;
  }
  if (words && !t->words)
    t->words = strdup(words);
  ferry__exchange_fail(c, fault);
}

/* ---- The start ----------------------------------------------------------- */

static void reset(ferry__connection *c, ferry__transfer *t,
                  const ferry__request_head *head) {
  c->state = FERRY__BUSY;
  c->transfer = t;
  c->sending = FERRY__SEND_HEAD;
  c->closing = head->close;
  c->expects = head->expect;
  c->copies = false;
  c->chunked = t->chunked;
  c->body_at = c->sent = 0;
  c->end_errno = 0;
  c->head_size = 0;
  c->turn = 0;
  c->unread = c->quiet = false;
  c->watch_errno = 0;
  c->why = FERRY_CLOSED_ERROR;
  ferry__response_begin(&c->response, t->head,
                        t->method_kind == FERRY__HEAD);
}

static void greet(ferry__connection *c, ferry__transfer *t) {
  ferry_loop *loop = c->loop;
  ferry__origin *figures = &c->route->host->figures;
  ferry__origin_served(t);
  ferry__connection_charge(c);
  ferry__count(&figures->waited_us,
               (int64_t)ferry__us(t->submitted_ns, loop->now_ns));
  if (ferry__connection_is_kept(c))
    ferry__count(&figures->reused, 1);
  t->connection = c;
  t->earlier++;
  t->fresh = false;
  t->phase = t->body_kind == FERRY_BODY_NONE ? FERRY_PHASE_WAIT_HEAD
                                             : FERRY_PHASE_SEND;
  t->last_ms = c->asked_at = ferry__now(loop);
  t->window_ms = 0; /* starts at the next look */
  t->result.peer_port = c->peer_port;
  memcpy(t->result.peer, c->peer, sizeof c->peer);
}

void ferry__exchange_begin(ferry__connection *c, ferry__transfer *t) {
  ferry_loop *loop = c->loop;
  ferry__request_head head = ferry__request_survey(loop, t);
  reset(c, t, &head);
  greet(c, t);
  if (c->http2) {
    ferry__http2_begin(c);
    return;
  }
  bool large = head.size > FERRY__HTTP1_BUFFER;
  char *buffer = large ? malloc(head.size) : ferry__http1_buffer(loop);
  if (!buffer) {
    ferry__exchange_fail(c, (ferry__fault){FERRY_E_MEMORY, 0});
    return;
  }
  size_t length =
      (size_t)(ferry__request_write(loop, t, &head, buffer) - buffer);
  c->head_size = length;
  if (t->body_kind == FERRY_BODY_BYTES && !large && !c->expects) {
    size_t room = FERRY__HTTP1_BUFFER - length;
    c->body_at = t->body_length < room ? t->body_length : room;
    memcpy(buffer + length, t->body, c->body_at);
    length += c->body_at;
  }
  bool good = ferry__exchange_send(c, buffer, length);
  if (large)
    free(buffer);
  if (good)
    ferry__exchange_writable(c);
}

/* ---- Resuming ------------------------------------------------------------ */

void ferry__exchange_leave_unsent(ferry__connection *c) {
  if (c->transfer->receiving == FERRY__RECEIVE_PING) {
    ferry__http2_stop_waiting(c);
    return;
  }
  c->sending = FERRY__SEND_STOPPED;
  c->broken = true;
  ferry__exchange_answered(c, false);
}

void ferry__exchange_resume(ferry__connection *c) {
  ferry_loop *loop = c->loop;
  ferry__transfer *t = c->transfer;
  ferry__mark mark = ferry__connection_mark(c);
  if (c->state != FERRY__BUSY)
    return;
  if (c->http2) {
    ferry__http2_resume(c);
    return;
  }
  if (c->held && !t->paused) {
    char *held = c->held;
    uint32_t length = c->held_length;
    c->held = NULL; /* bytes that are not taken are held again, in a copy */
    bool on = ferry__exchange_take(c, held, held + length);
    free(held);
    /* If the connection stays busy although everything was received, the
     * request is still being sent. */
    if (!on && (mark.fd < 0 || !ferry__connection_holds(loop, mark)))
      return;
  }
  if (mark.fd < 0) {
    if (!c->held)
      ferry__exchange_lost(c, 0);
    return;
  }
  ferry__source_ready(t);
  ferry__exchange_resume_sending(c);
  if (!ferry__connection_holds(loop, mark) || c->held)
    return;
  ferry__connection_watch(c, true, c->wants_out);
  if (c->tls || c->broken) /* bytes that are already there raise no event */
    ferry__exchange_readable(c);
}
