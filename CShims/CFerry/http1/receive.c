/* receive.c - the response of an exchange: read, parsed and reported. */
#include "http1/http1.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
  PACED = 16384,          /* bytes a read, if the rate is limited */
  FIRST = 16384,          /* bytes a read before the head is complete: the
                           * rest of a large body is read without a copy */
  READS = 8,              /* reads for one event; then other sockets get
                           * theirs */
  DIRECT = 4096,          /* if this much of a body is left, it is read without
                           * a copy */
  FIRST_RESERVE = 1 << 20, /* an announced length is trusted up to this */
  TURN_OF_ONE = 1 << 20,   /* bytes read without a copy for one event */
  IDLE_TLS = 16384, /* bytes of TLS without data that are read for one event */
};

/* Reads what is left in the socket of a broken connection, adds it to the held
 * bytes, and closes the socket: the receiver may resume much later. */
void ferry__exchange_hold_all(ferry__connection *c) {
  ssize_t n = -ENOMEM;
  char *held = realloc(c->held, c->held_length + FERRY__LATE);
  if (held) {
    uint32_t most = c->held_length + FERRY__LATE;
    uint32_t from = c->tls ? ferry__tls_arrived(c) : 0;
    c->held = held;
    while (c->held_length < most &&
           (!c->tls || ferry__tls_arrived(c) - from < 4 * FERRY__LATE) &&
           ((n = ferry__connection_read(c, held + c->held_length,
                                        most - c->held_length)) > 0 ||
            (n == -EAGAIN && ferry__tls_has_more(c))))
      c->held_length += n > 0 ? (uint32_t)n : 0;
  }
  ferry__connection_drop_socket(c);
}

/* Holds the bytes that the receiver does not take; the socket is not read
 * meanwhile. */
static bool hold_rest(ferry__connection *c, const char *at, const char *end) {
  size_t length = (size_t)(end - at);
  char *held = malloc(length ? length : 1);
  if (!held) {
    ferry__exchange_fail(c, (ferry__fault){FERRY_E_MEMORY, 0});
    return false;
  }
  memcpy(held, at, length);
  free(c->held);
  c->held = held;
  c->held_length = (uint32_t)length;
  /* A receiver may resume much later. */
  if (c->broken && c->fd >= 0 &&
      c->transfer->paused != FERRY__PAUSED_BY_TURN)
    ferry__exchange_hold_all(c);
  else
    ferry__connection_watch(c, false, c->wants_out);
  return true;
}

void ferry__exchange_note_head(ferry__connection *c) {
  ferry__transfer *t = c->transfer;
  t->phase = FERRY_PHASE_BODY;
  /* A server that responds beside the body need not send a 100 first. */
  if (c->sending == FERRY__SEND_AWAIT && t->head->status < 300 &&
      (t->flags & FERRY_DUPLEX)) {
    c->sending = FERRY__SEND_BODY;
    ferry__connection_watch(c, true, true);
  }
  /* The server does not want the rest. But a server that closes the connection
   * after a success may still be reading, and its response may depend on it
   * (RFC 9112, 9.6). */
  if (c->sending != FERRY__SEND_DONE &&
      (t->head->status >= 300 || c->sending == FERRY__SEND_AWAIT)) {
    c->sending = FERRY__SEND_STOPPED;
    t->source = FERRY__SOURCE_LEFT;
    ferry__connection_watch(c, true, false);
  }
}

static bool take_head(ferry__connection *c) {
  ferry__transfer *t = c->transfer;
  if (ferry__exchange_is_refused(c)) {
    ferry__exchange_repeat_plainly(c);
    return false;
  }
  ferry__exchange_note_head(c);
  if (ferry__head_final(c->loop, t))
    return true;
  ferry__exchange_fail(c, t->fault);
  return false;
}

/* Takes bytes as received. Returns false if the exchange is over; the
 * connection may be gone then. */
bool ferry__exchange_take(ferry__connection *c, const char *at,
                          const char *end) {
  ferry_loop *loop = c->loop;
  ferry__transfer *t = c->transfer;
  const char *piece = NULL;
  size_t length = 0;
  for (;;) {
    bool hold = t->paused ||
                (t->max_rate && t->phase == FERRY_PHASE_BODY &&
                 !ferry__pace_take(loop, t, 0));
    switch (ferry__response_next(&c->response, &at, end, hold, &piece,
                                 &length)) {
    case FERRY__EVENT_MORE:
      if (t->phase < FERRY_PHASE_HEAD && t->head->in_fields)
        t->phase = FERRY_PHASE_HEAD; /* informational heads do not count */
      return true;
    case FERRY__EVENT_HELD:
      return hold_rest(c, at, end);
    case FERRY__EVENT_INFORMATIONAL:
      if (t->body_kind == FERRY_BODY_NONE || c->sending == FERRY__SEND_DONE)
        t->phase = FERRY_PHASE_WAIT_HEAD;
      else
        t->phase = FERRY_PHASE_SEND;
      ferry__head_informational(loop, t);
      if (c->sending == FERRY__SEND_AWAIT &&
          c->response.informational == 100) {
        c->sending = FERRY__SEND_BODY;
        ferry__connection_watch(c, true, true);
      }
      break;
    case FERRY__EVENT_HEAD:
      if (!take_head(c))
        return false;
      break;
    case FERRY__EVENT_BODY:
      if (t->max_rate)
        ferry__pace_take(loop, t, length);
      if (!ferry__receive(loop, t, piece, length)) {
        ferry__exchange_fail(c, t->fault);
        return false;
      }
      break;
    case FERRY__EVENT_END:
      ferry__exchange_answered(c, at < end);
      return false;
    case FERRY__EVENT_FAULT:
      /* A line that is no status line does not belong to a head. */
      if (t->phase < FERRY_PHASE_HEAD &&
          c->response.fault.detail != FERRY_D_STATUS_LINE)
        t->phase = FERRY_PHASE_HEAD;
      ferry__exchange_fail(c, c->response.fault);
      return false;
    }
  }
}

/* Whether to read into a collected body, without a copy: if much of it is
 * left. */
static bool is_direct(const ferry__connection *c, const ferry__transfer *t) {
  return c->response.state == FERRY__IN_BODY && c->response.left >= DIRECT &&
         t->response_kind == FERRY_COLLECT && !t->decoder && !t->max_rate &&
         !t->paused;
}

static ssize_t read_direct(ferry__connection *c, ferry__transfer *t) {
  size_t want = c->response.left < FIRST_RESERVE ? (size_t)c->response.left
                                                 : (size_t)FIRST_RESERVE;
  if (!ferry__body_reserve(c->loop, t, want))
    return -ENOMEM;
  ssize_t n = ferry__connection_read(c, t->bytes + t->result.body_length, want);
  if (n <= 0)
    return n;
  t->result.body_received += (uint64_t)n;
  t->result.body_length += (uint64_t)n;
  c->response.left -= (uint64_t)n;
  if (!c->response.left)
    c->response.state = FERRY__AT_END;
  return n;
}

void ferry__exchange_note_arrival(ferry__connection *c) {
  ferry__transfer *t = c->transfer;
  t->last_ms = ferry__now(c->loop);
  if (!t->result.metrics.first_byte)
    t->result.metrics.first_byte = ferry__us(t->started_ns, c->loop->now_ns);
}

void ferry__exchange_note_part(ferry__connection *c) {
  uint32_t arrived = ferry__tls_arrived(c);
  if (arrived != c->arrived)
    c->transfer->last_ms = ferry__now(c->loop);
  c->arrived = arrived;
}

void ferry__exchange_readable(ferry__connection *c) {
  ferry_loop *loop = c->loop;
  ferry__transfer *t = c->transfer;
  if (c->http2) {
    ferry__http2_readable(c);
    return;
  }
  char *buffer = ferry__http1_buffer(loop);
  if (!buffer || (t->head == ferry__no_head && !ferry__head_take(loop, t))) {
    ferry__exchange_fail(c, (ferry__fault){FERRY_E_MEMORY, 0});
    return;
  }
  t->head->http2 = false; /* an earlier attempt may have used it */
  c->response.head = t->head;
  c->unread = false;
  if (t->receiving == FERRY__RECEIVE_COMPLETE) {
    /* Bytes that arrive now are not part of its response. */
    if (ferry__connection_read(c, buffer, 1) != -EAGAIN)
      ferry__exchange_lost(c, 0);
    return;
  }
  uint32_t from = c->tls ? ferry__tls_arrived(c) : 0;
  size_t taken = 0;
  for (int i = 0; i < READS; i++) {
    if (c->held)
      return;
    /* Messages without data cost as much as data. */
    if (c->tls && ferry__tls_arrived(c) - from > IDLE_TLS + 2 * taken)
      break;
    if (t->paused & FERRY__PAUSED_BY_TURN) {
      /* An end must not arrive before what is still to be decoded. */
      ferry__connection_watch(c, false, c->wants_out);
      return;
    }
    bool direct = is_direct(c, t);
    size_t size = t->phase < FERRY_PHASE_BODY ? FIRST : FERRY__HTTP1_BUFFER;
    if (t->max_rate)
      size = PACED; /* bytes read at once are paid for at once */
    ssize_t n = direct ? read_direct(c, t)
                       : ferry__connection_read(c, buffer, size);
    if (n == -EAGAIN) {
      if (c->tls)
        ferry__exchange_note_part(c);
      if (c->end_errno && ferry__tls_has_more(c))
        continue; /* ends as a flood at the latest */
      if (c->unread)
        ferry__connection_watch(c, true, true);
      else if (c->end_errno) /* writing has failed: nothing more will come */
        ferry__exchange_lost(c, 0);
      return;
    }
    if (n == -ENOMEM) {
      ferry__exchange_fail(c, (ferry__fault){FERRY_E_MEMORY, 0});
      return;
    }
    if (n <= 0) {
      ferry__exchange_lost(c, (int)-n);
      return;
    }
    taken += (size_t)n;
    ferry__exchange_note_arrival(c);
    ferry__backend_heard(loop, c->backend);
    bool drained = direct ? false
                   : c->tls ? !SSL_has_pending(c->tls)
                            : (size_t)n < size;
    /* The end of OpenSSL's buffer says nothing about the socket. */
    c->turn = drained && !c->tls ? loop->waits : 0;
    if (direct && c->response.state != FERRY__AT_END) {
      if (!c->tls && taken >= TURN_OF_ONE)
        return; /* the rest raises another event */
      continue;
    }
    if (!ferry__exchange_take(c, buffer, direct ? buffer : buffer + n))
      return;
    if (drained)
      return;
  }
  if (c->tls && !c->held && SSL_has_pending(c->tls)) {
    c->unread = true; /* which raises no event */
    ferry__connection_watch(c, true, true);
  }
}
