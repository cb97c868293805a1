/* exchange.c - one request and its response on a connection.
 *
 * Sending and receiving go on independently: a response may come before its
 * request has left, and is read first. What the receiver does not take now
 * waits in the connection, and the socket is left unread meanwhile. */
#include "http1/http1.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  PACED = 16384,          /* bytes a read, where there is a rate */
  READS = 8,              /* of one event, then others get theirs */
  WRITES = 16,            /* likewise */
  DIRECT = 4096,          /* what is left of a body is read into its place */
  FIRST_RESERVE = 1 << 20, /* an announced length is not trusted further */
  AWAIT_MS = 1000,        /* for 100-continue (RFC 9110, 10.1.1) */
  PREFIX = 18, SUFFIX = 2, /* of a chunk: 16 digits and two line ends */
};

static const ferry__fault none = {FERRY_OK, 0};

static char *buffer_of(ferry_loop *loop) {
  if (!loop->http1.buffer)
    loop->http1.buffer = malloc(FERRY__HTTP1_BUFFER);
  return loop->http1.buffer;
}

/* ---- The end of an exchange ---------------------------------------------- */

static uint64_t body_sent(const ferry__connection *c,
                          const ferry__transfer *t) {
  if (c->sent <= c->head_size)
    return 0;
  if (t->body_kind == FERRY_BODY_PULL &&
      (c->chunked || t->body_length == FERRY_UNKNOWN_LENGTH)) {
    uint64_t left = c->out_length - c->out_at;
    return t->pulled > left ? t->pulled - left : 0; /* without the framing */
  }
  return c->sent - c->head_size;
}

/* What is known of the way and of what was sent, from the head on. */
void ferry__exchange_so_far(const ferry__transfer *t, ferry_result *r) {
  const ferry__connection *c = t->connection;
  r->attempts = t->earlier;
  if (!c || c->state != FERRY__BUSY)
    return;
  r->head_sent = c->sent < c->head_size ? c->sent : c->head_size;
  r->body_sent = body_sent(c, t);
  if (c->sent)
    r->flags |= FERRY_RESULT_PROCESSED;
  if (c->served) {
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
  c->served++;
  return t;
}

static void end_with(ferry__connection *c, ferry__fault fault) {
  ferry_loop *loop = c->loop;
  ferry__transfer *t = detach(c);
  if (fault.code == FERRY_E_TLS) { /* it has looked at no request */
    t->phase = FERRY_PHASE_TLS;
    t->result.flags &= ~(uint32_t)FERRY_RESULT_PROCESSED;
  }
  ferry__connection_close(c);
  ferry__transfer_left(loop, t, fault);
}

/* Bytes behind the response are an answer to nothing. */
static bool has_excess(ferry__connection *c, bool excess) {
  return excess || (c->tls && SSL_has_pending(c->tls));
}

/* The response is complete. */
static void answered(ferry__connection *c, bool excess) {
  ferry_loop *loop = c->loop;
  ferry__transfer *t = c->transfer;
  excess = has_excess(c, excess);
  if (c->sending != FERRY__SEND_DONE && c->sending != FERRY__SEND_STOPPED &&
      !excess) {
    /* And now the rest of the request. */
    t->receiving = FERRY__RECEIVE_COMPLETE;
    ferry__connection_watch(c, true, c->wants_out);
    return;
  }
  bool kept = c->response.persistent && !excess && !c->closing &&
              !c->broken && c->sending == FERRY__SEND_DONE;
  if (excess)
    ferry__count(&loop->counters.guarded, 1);
  detach(c);
  ferry__transfer_left(loop, t, none);
  if (kept && !loop->closing)
    ferry__route_offer(c);
  else
    ferry__connection_close(c);
}

/* May be sent once more: a kept connection has turned out to be dead before
 * any byte of a response (RFC 9110, 9.2.2). */
static bool may_repeat(const ferry__connection *c, const ferry__transfer *t) {
  return c->served && ferry__response_is_untouched(&c->response) &&
         !t->pulled && t->earlier < FERRY__MAX_ATTEMPTS &&
         (!c->sent || (t->flags & FERRY_IDEMPOTENT));
}

/* The connection has ended, or has broken (os_errno). */
static void lost(ferry__connection *c, int os_errno) {
  ferry_loop *loop = c->loop;
  ferry__transfer *t = c->transfer;
  const char *words = NULL;
  bool is_told = os_errno; /* and by OpenSSL's queue, too */
  if (!os_errno && c->broken) /* the system tells of a reset once */
    os_errno = c->end_errno;
  if (t->receiving == FERRY__RECEIVE_COMPLETE) {
    c->sending = FERRY__SEND_STOPPED;
    c->broken = true;
    answered(c, false);
    return;
  }
  if (may_repeat(c, t)) {
    detach(c);
    ferry__connection_close(c);
    t->fresh = true; /* where one kept connection was dead, all may be */
    ferry__fault fault = ferry__route_start(loop, t);
    if (fault.code)
      ferry__transfer_left(loop, t, fault);
    return;
  }
  bool kept_one = c->served && ferry__response_is_untouched(&c->response);
  ferry__fault fault = c->tls && is_told ? ferry__tls_alert(&words) : none;
  if (!fault.code && os_errno && !kept_one) {
    t->result.os_errno = os_errno;
    fault.code = FERRY_E_CONNECTION_RESET;
  }
  if (!fault.code) {
    bool whole = !os_errno && !c->truncated;
    if (ferry__response_close(&c->response, whole) == FERRY__EVENT_END) {
      c->broken = true;
      answered(c, false);
      return;
    }
    fault = c->response.fault;
  }
  if (words && !t->words)
    t->words = strdup(words);
  end_with(c, fault);
}

/* ---- Receiving ----------------------------------------------------------- */

/* What lies in the socket of a broken connection joins what is held, and the
 * socket goes: the receiver may come back much later. */
static void take_out_held(ferry__connection *c) {
  ssize_t n = -ENOMEM;
  char *held = realloc(c->held, c->held_length + FERRY__LATE);
  if (held) {
    uint32_t most = c->held_length + FERRY__LATE;
    c->held = held;
    while (c->held_length < most &&
           (n = ferry__connection_read(c, held + c->held_length,
                                       most - c->held_length)) > 0)
      c->held_length += (uint32_t)n;
  }
  ferry__connection_drop_socket(c);
}

/* Takes what the receiver does not: the socket is left unread for it. */
static bool hold_rest(ferry__connection *c, const char *at, const char *end) {
  size_t length = (size_t)(end - at);
  char *held = malloc(length ? length : 1);
  if (!held) {
    end_with(c, (ferry__fault){FERRY_E_MEMORY, 0});
    return false;
  }
  memcpy(held, at, length);
  free(c->held);
  c->held = held;
  c->held_length = (uint32_t)length;
  if (c->broken && c->fd >= 0)
    take_out_held(c);
  else
    ferry__connection_watch(c, false, c->wants_out);
  return true;
}

static bool take_head(ferry__connection *c) {
  ferry_loop *loop = c->loop;
  ferry__transfer *t = c->transfer;
  t->phase = FERRY_PHASE_BODY;
  /* It will not have the rest, or will not read it. */
  if (c->sending != FERRY__SEND_DONE &&
      (t->head->status >= 300 || !c->response.persistent ||
       c->sending == FERRY__SEND_AWAIT)) {
    c->sending = FERRY__SEND_STOPPED;
    t->source = FERRY__SOURCE_LEFT;
    ferry__connection_watch(c, true, false);
  }
  if (ferry__head_final(loop, t))
    return true;
  end_with(c, t->fault);
  return false;
}

/* Bytes as they come. False: the exchange is over, and the connection may be
 * gone. */
static bool take(ferry__connection *c, const char *at, const char *end) {
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
        t->phase = FERRY_PHASE_HEAD; /* not by informational ones */
      return true;
    case FERRY__EVENT_HELD:
      return hold_rest(c, at, end);
    case FERRY__EVENT_INFORMATIONAL:
      t->phase = FERRY_PHASE_WAIT_HEAD;
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
        end_with(c, t->fault);
        return false;
      }
      break;
    case FERRY__EVENT_END:
      answered(c, at < end);
      return false;
    case FERRY__EVENT_FAULT:
      /* What is no status line is not of a head either. */
      if (t->phase < FERRY_PHASE_HEAD &&
          c->response.fault.detail != FERRY_D_STATUS_LINE)
        t->phase = FERRY_PHASE_HEAD;
      end_with(c, c->response.fault);
      return false;
    }
  }
}

/* Into its place, without a copy: a collected body of which much is left. */
static bool is_direct(const ferry__connection *c, const ferry__transfer *t) {
  return c->response.state == FERRY__IN_BODY && c->response.left >= DIRECT &&
         t->response_kind == FERRY_COLLECT && !t->inflate && !t->max_rate &&
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

static void note_arrival(ferry_loop *loop, ferry__transfer *t) {
  t->last_ms = ferry__now(loop);
  if (!t->result.metrics.first_byte)
    t->result.metrics.first_byte = ferry__us(t->started_ns, loop->now_ns);
}

void ferry__exchange_readable(ferry__connection *c) {
  ferry_loop *loop = c->loop;
  ferry__transfer *t = c->transfer;
  char *buffer = buffer_of(loop);
  /* What comes at once is paid for at once. */
  size_t size = t->max_rate ? PACED : FERRY__HTTP1_BUFFER;
  if (!buffer || (t->head == ferry__no_head && !ferry__head_take(loop, t))) {
    end_with(c, (ferry__fault){FERRY_E_MEMORY, 0});
    return;
  }
  c->response.head = t->head;
  if (t->receiving == FERRY__RECEIVE_COMPLETE) {
    /* Whatever comes now is not its response. */
    if (ferry__connection_read(c, buffer, 1) != -EAGAIN)
      lost(c, 0);
    return;
  }
  c->unread = false;
  for (int i = 0; i < READS; i++) {
    if (c->held)
      return;
    bool direct = is_direct(c, t);
    ssize_t n = direct ? read_direct(c, t)
                       : ferry__connection_read(c, buffer, size);
    if (n == -EAGAIN) {
      if (c->unread)
        ferry__connection_watch(c, true, true);
      return;
    }
    if (n == -ENOMEM) {
      end_with(c, (ferry__fault){FERRY_E_MEMORY, 0});
      return;
    }
    if (n <= 0) {
      lost(c, (int)-n);
      return;
    }
    note_arrival(loop, t);
    bool drained = direct ? false
                   : c->tls ? !SSL_has_pending(c->tls)
                            : (size_t)n < size;
    /* Where OpenSSL's buffer ends says nothing of the socket. */
    c->turn = drained && !c->tls ? loop->http1.turn : 0;
    if (direct ? c->response.state == FERRY__AT_END && !take(c, buffer, buffer)
               : !take(c, buffer, buffer + n))
      return;
    if (drained)
      return;
  }
  if (c->tls && SSL_has_pending(c->tls)) { /* which raises no event */
    c->unread = true;
    ferry__connection_watch(c, true, true);
  }
}

/* ---- Sending ------------------------------------------------------------- */

/* Writing has failed. A server that has enough of an upload answers and
 * closes: its response may be there to be read. */
static void stop_sending(ferry__connection *c, int os_errno) {
  c->end_errno = os_errno;
  c->sending = FERRY__SEND_STOPPED;
  c->broken = true;
  c->out_length = c->out_at = 0;
  if (c->held) {
    take_out_held(c);
    return;
  }
  ferry__connection_watch(c, true, false);
  ferry__exchange_readable(c);
}

/* Keeps what could not be sent. */
static bool keep_unsent(ferry__connection *c, const char *bytes,
                        size_t length) {
  char *out = malloc(length);
  if (!out) {
    end_with(c, (ferry__fault){FERRY_E_MEMORY, 0});
    return false;
  }
  memcpy(out, bytes, length);
  free(c->out);
  c->out = out;
  c->out_length = (uint32_t)length;
  c->out_at = 0;
  return true;
}

/* > 0: so many were sent; 0: not now; < 0: the exchange has been dealt with. */
static ssize_t send_some(ferry__connection *c, const char *bytes,
                         size_t length) {
  ssize_t n = ferry__connection_write(c, bytes, length);
  if (n == -EAGAIN)
    return 0;
  if (n < 0) {
    stop_sending(c, (int)-n);
    return -1;
  }
  c->sent += (uint64_t)n;
  c->transfer->last_ms = ferry__now(c->loop);
  return n;
}

/* What stands in the buffer; the rest is kept. False: as of send_some. */
static bool send_buffer(ferry__connection *c, const char *bytes,
                        size_t length) {
  ssize_t n = send_some(c, bytes, length);
  if (n < 0)
    return false;
  return (size_t)n == length ||
         keep_unsent(c, bytes + n, length - (size_t)n);
}

/* The next piece of the source's, framed. False: as above, or paused. */
static bool send_pulled(ferry__connection *c) {
  ferry_loop *loop = c->loop;
  ferry__transfer *t = c->transfer;
  bool chunked = c->chunked;
  char *buffer = buffer_of(loop);
  if (!buffer) {
    end_with(c, (ferry__fault){FERRY_E_MEMORY, 0});
    return false;
  }
  char *data = buffer + PREFIX;
  int64_t n = ferry__source_pull(loop, t, data,
                                 FERRY__HTTP1_BUFFER - PREFIX - SUFFIX);
  if (n == FERRY_PAUSE)
    return false;
  if (n < 0) {
    end_with(c, t->fault);
    return false;
  }
  if (t->pulled == t->body_length && !(chunked && n))
    c->sending = FERRY__SEND_LAST;
  if (!chunked)
    return n ? send_buffer(c, data, (size_t)n) : true;
  if (!n)
    return send_buffer(c, "0\r\n\r\n", 5);
  char prefix[PREFIX + 1];
  int size = snprintf(prefix, sizeof prefix, "%llx\r\n", (long long)n);
  memcpy(data - size, prefix, (size_t)size);
  memcpy(data + n, "\r\n", SUFFIX);
  return send_buffer(c, data - size, (size_t)(size + n + SUFFIX));
}

/* One step; false when there is nothing to do now, or all is dealt with. */
static bool send_step(ferry__connection *c) {
  ferry__transfer *t = c->transfer;
  if (c->out_at < c->out_length) {
    ssize_t n = send_some(c, c->out + c->out_at, c->out_length - c->out_at);
    if (n <= 0)
      return false;
    c->out_at += (uint32_t)n;
    return true;
  }
  if (c->out) {
    free(c->out);
    c->out = NULL;
    c->out_length = c->out_at = 0;
  }
  switch (c->sending) {
  case FERRY__SEND_HEAD:
    c->sending = t->body_kind == FERRY_BODY_NONE ? FERRY__SEND_DONE
                 : c->expects                    ? FERRY__SEND_AWAIT
                                                 : FERRY__SEND_BODY;
    if (c->sending == FERRY__SEND_AWAIT) {
      c->await_until = ferry__now(c->loop) + AWAIT_MS;
      if (!t->timer_at || t->timer_at * FERRY__SLOT_MS > c->await_until)
        ferry__wheel_set(c->loop, t, c->await_until);
    }
    return true;
  case FERRY__SEND_BODY:
    if (t->body_kind == FERRY_BODY_PULL)
      return t->source != FERRY__SOURCE_PAUSED && send_pulled(c);
    if (c->body_at < t->body_length) {
      ssize_t n = send_some(c, (const char *)t->body + c->body_at,
                            t->body_length - c->body_at);
      if (n <= 0)
        return false;
      c->body_at += (uint64_t)n;
      return true;
    }
    c->sending = FERRY__SEND_LAST;
    return true;
  case FERRY__SEND_LAST:
    c->sending = FERRY__SEND_DONE;
    if (t->phase == FERRY_PHASE_SEND)
      t->phase = FERRY_PHASE_WAIT_HEAD;
    return true;
  default:
    return false;
  }
}

/* A step is left to be done: the last one, which sends nothing, counts too. */
static bool has_more(const ferry__connection *c, const ferry__transfer *t) {
  return c->out_at < c->out_length || c->sending == FERRY__SEND_HEAD ||
         c->sending == FERRY__SEND_LAST ||
         (c->sending == FERRY__SEND_BODY && t->source != FERRY__SOURCE_PAUSED);
}

void ferry__exchange_writable(ferry__connection *c) {
  ferry_loop *loop = c->loop;
  ferry__transfer *t = c->transfer;
  int fd = c->fd;
  if (fd < 0)
    return;
  for (int i = 0; i < WRITES && send_step(c); i++)
    ;
  ferry__socket *s = ferry__socket_of(loop, fd);
  if (!s || s->native != c || c->transfer != t)
    return; /* it has ended */
  if (c->fd < 0)
    return;
  if (c->sending == FERRY__SEND_DONE &&
      t->receiving == FERRY__RECEIVE_COMPLETE) {
    answered(c, false);
    return;
  }
  bool more = has_more(c, t) || (c->unread && !c->held);
  int code = ferry__connection_watch(c, !c->held, more);
  if (code) { /* nothing would ever be heard of it */
    t->result.os_errno = -code;
    end_with(c, (ferry__fault){FERRY_E_INTERNAL, 0});
  }
}

/* ---- The start ----------------------------------------------------------- */

static void reset(ferry__connection *c, ferry__transfer *t,
                  const ferry__request_head *head) {
  c->state = FERRY__BUSY;
  c->transfer = t;
  c->sending = FERRY__SEND_HEAD;
  c->closing = head->close;
  c->expects = head->expect;
  c->chunked = t->body_kind == FERRY_BODY_PULL &&
               t->body_length == FERRY_UNKNOWN_LENGTH;
  c->body_at = c->sent = 0;
  c->end_errno = 0;
  c->head_size = 0;
  c->turn = 0;
  c->unread = false;
  ferry__response_begin(&c->response, t->head,
                        t->method_kind == FERRY__HEAD);
}

static void greet(ferry__connection *c, ferry__transfer *t) {
  ferry_loop *loop = c->loop;
  t->connection = c;
  t->earlier++;
  t->fresh = false;
  t->phase = t->body_kind == FERRY_BODY_NONE ? FERRY_PHASE_WAIT_HEAD
                                             : FERRY_PHASE_SEND;
  t->last_ms = t->window_ms = ferry__now(loop);
  t->result.peer_port = c->peer_port;
  memcpy(t->result.peer, c->peer, sizeof c->peer);
}

void ferry__exchange_begin(ferry__connection *c, ferry__transfer *t) {
  ferry_loop *loop = c->loop;
  ferry__request_head head = ferry__request_survey(loop, t);
  bool large = head.size > FERRY__HTTP1_BUFFER;
  char *buffer = large ? malloc(head.size) : buffer_of(loop);
  reset(c, t, &head);
  greet(c, t);
  if (!buffer) {
    end_with(c, (ferry__fault){FERRY_E_MEMORY, 0});
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
  bool good = send_buffer(c, buffer, length);
  if (large)
    free(buffer);
  if (good)
    ferry__exchange_writable(c);
}

/* ---- Going on ------------------------------------------------------------ */

void ferry__exchange_resume_sending(ferry__connection *c) {
  if (c->state == FERRY__BUSY && c->sending == FERRY__SEND_BODY)
    ferry__exchange_writable(c);
}

uint64_t ferry__exchange_look(ferry__connection *c, uint64_t now) {
  if (c->state != FERRY__BUSY || c->sending != FERRY__SEND_AWAIT)
    return 0;
  if (now < c->await_until)
    return c->await_until;
  c->sending = FERRY__SEND_BODY; /* the server may never say 100 */
  ferry__connection_watch(c, !c->held, true);
  return 0;
}

void ferry__exchange_leave_unsent(ferry__connection *c) {
  c->sending = FERRY__SEND_STOPPED;
  c->broken = true;
  answered(c, false);
}

void ferry__exchange_resume(ferry__connection *c) {
  ferry_loop *loop = c->loop;
  ferry__transfer *t = c->transfer;
  int fd = c->fd;
  if (c->state != FERRY__BUSY)
    return;
  if (c->held && !t->paused) {
    char *held = c->held;
    uint32_t length = c->held_length;
    c->held = NULL; /* what is not taken is held anew, in a copy */
    bool on = take(c, held, held + length);
    free(held);
    if (!on)
      return;
  }
  if (fd < 0) {
    if (!c->held)
      lost(c, 0);
    return;
  }
  ferry__exchange_resume_sending(c);
  ferry__socket *s = ferry__socket_of(loop, fd);
  if (!s || s->native != c || c->transfer != t || c->held)
    return;
  ferry__connection_watch(c, true, c->wants_out);
  if (c->tls || c->broken) /* what is there already raises no event */
    ferry__exchange_readable(c);
}
