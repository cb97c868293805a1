/* http2.c - exchanges over HTTP/2 (RFC 9113), one at a time on a connection;
 * libnghttp2 makes and reads the frames.
 *
 * libcurl carries all other requests over HTTP/2. It cannot carry an exchange,
 * because it does not report the end of a response before that of the request.
 *
 * nghttp2's callbacks (http2_response.c, http2_request.c) take note of what
 * ends an exchange, and ferry__http2_settle() acts on it. The socket is always
 * read, so that windows and pings arrive while the receiver is paused. What the
 * receiver does not take is bounded by the window. */
#include "http1/http2.h"

#include <stdlib.h>
#include <string.h>

enum {
  READS = 8,        /* reads for one event; then other sockets get theirs */
  IDLE_READS = 64,  /* the same between exchanges; a record has few frames */
  IDLE_TLS = 16384, /* bytes of TLS without data that are read for one event */
};

static const ferry__fault malformed = {FERRY_E_MALFORMED_RESPONSE, 0};

void ferry__http2_note(ferry__http2 *h, ferry__fault fault) {
  if (!h->fault.code)
    h->fault = fault;
}


/* ---- What has been noted ------------------------------------------------- */

/* A rule of the protocol was broken: nghttp2 has said so to the server, and
 * takes nothing more. */
static bool is_over(const ferry__http2 *h) {
  return !nghttp2_session_want_read(h->session) &&
         !nghttp2_session_want_write(h->session);
}

/* The stream was closed before the response was complete. */
static void stream_failed(ferry__connection *c) {
  ferry__http2 *h = c->http2;
  ferry__transfer *t = c->transfer;
  ferry__fault fault = {FERRY_E_HTTP2_STREAM, ferry__http2_detail(h->code)};
  bool untouched = ferry__response_is_untouched(&c->response);
  if (h->code == NGHTTP2_REFUSED_STREAM && !untouched) {
    fault.detail = FERRY_D_HTTP2_OTHER; /* it was processed */
  } else if (h->code == NGHTTP2_REFUSED_STREAM) {
    c->sent = 0; /* none of it was processed */
    if (!t->pulled && t->earlier < FERRY__MAX_ATTEMPTS) {
      ferry__exchange_repeat(c, FERRY_CLOSED_SERVER);
      return;
    }
    t->phase = FERRY_PHASE_WAIT_HEAD;
  } else if (h->code == NGHTTP2_PROTOCOL_ERROR) {
    /* nghttp2's, for a length that does not match the body, for example. */
    fault = malformed;
  }
  ferry__exchange_fail(c, fault);
}

static bool is_sending(const ferry__connection *c) {
  return c->sending != FERRY__SEND_DONE && c->sending != FERRY__SEND_STOPPED;
}

/* Whether the source waits for the server, which reads nothing more once the
 * stream is closed. */
static bool is_blocked(const ferry__connection *c) {
  return is_sending(c) && c->transfer->source != FERRY__SOURCE_PAUSED;
}

/* Ends the exchange if it has failed. If the receiver does not have all that
 * came before, and nobody else waits, that is later. Returns false if it is
 * over; the connection may be gone then. */
static bool check(ferry__connection *c) {
  ferry__http2 *h = c->http2;
  if (h->fault.code)
    ferry__exchange_fail(c, h->fault);
  else if (h->refused)
    ferry__exchange_repeat_plainly(c);
  else if (h->ended || (c->held_length && !is_blocked(c)))
    return true;
  else if (h->closed)
    stream_failed(c);
  else if (is_over(h))
    ferry__exchange_fail(c, malformed);
  else
    return true;
  return false;
}

/* ---- The PING behind a request ------------------------------------------- */

/* Its content (RFC 9113, 6.7): a word, and the stream. */
static uint64_t ping_content(const ferry__http2 *h) {
  static const uint64_t word = 0x66657272; /* "ferr" */
  return word << 32 | (uint32_t)h->stream;
}

/* Asks the server whether it has read the whole request. Until it says so, the
 * socket must not be closed: with a reset the system would discard the rest.
 * nghttp2 neither sends a PING after a GOAWAY, nor reads the reply. Returns
 * false if the exchange is over. */
static bool send_ping(ferry__connection *c) {
  ferry__transfer *t = c->transfer;
  char ping[] = {0, 0, 8, NGHTTP2_PING, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  uint64_t content = ping_content(c->http2);
  uint64_t until = ferry__now(c->loop) + FERRY__PING_MS;
  for (size_t i = sizeof ping; i-- > sizeof ping - 8; content >>= 8)
    ping[i] = (char)content;
  t->receiving = FERRY__RECEIVE_PING;
  if (ferry__is_cut(t)) {
    ferry__exchange_fail(c, (ferry__fault){FERRY_E_CONTENT_DECODING,
                                           FERRY_D_DECODING_TRUNCATED});
    return false;
  }
  t->last_ms = ferry__now(c->loop);
  if (!t->entry.timer_at || t->entry.timer_at * FERRY__SLOT_MS > until)
    ferry__wheel_set(c->loop, t, until);
  ferry__tell_answered(c->loop, t);
  c->quiet = true;
  return ferry__exchange_send(c, ping, sizeof ping);
}

/* The response is complete, so only frames of the connection follow: the
 * content of the reply is enough to know it. */
static void look_for_reply(ferry__http2 *h, const char *bytes,
                           size_t length) {
  for (size_t i = 0; i < length && !h->received; i++) {
    h->last = h->last << 8 | (unsigned char)bytes[i];
    h->received = h->last == ping_content(h);
  }
}

void ferry__http2_stop_waiting(ferry__connection *c) {
  c->http2->received = true;
  ferry__http2_settle(c);
}

/* Whether the connection will be closed, or the response ended before the
 * request: then the server may still be reading it. */
static bool needs_ping(const ferry__connection *c, bool kept) {
  const ferry__transfer *t = c->transfer;
  return c->sending == FERRY__SEND_DONE && !c->http2->received &&
         c->fd >= 0 && !c->broken && t->body_kind != FERRY_BODY_NONE &&
         (!kept || t->receiving >= FERRY__RECEIVE_COMPLETE);
}

bool ferry__http2_settle(ferry__connection *c) {
  ferry_loop *loop = c->loop;
  ferry__http2 *h = c->http2;
  if (!check(c))
    return false;
  if (!h->ended || c->held_length)
    return true;
  bool over = is_over(h);
  /* nghttp2 closes a stream whose last frame is still to be sent. */
  if (is_sending(c) && c->sending != FERRY__SEND_LAST && (h->closed || over))
    c->sending = FERRY__SEND_STOPPED;
  if (c->transfer->receiving == FERRY__RECEIVE_COMPLETE && is_sending(c))
    return true; /* the end was reported */
  bool drained = c->out_at == c->out_length;
  bool kept = !over && !c->closing &&
              nghttp2_session_check_request_allowed(h->session);
  if (needs_ping(c, kept))
    return !drained || c->transfer->receiving == FERRY__RECEIVE_PING ||
           send_ping(c);
  ferry__mark mark = ferry__connection_mark(c);
  c->response.persistent = is_sending(c) || (kept && drained);
  ferry__exchange_answered(c, false);
  return ferry__connection_holds(loop, mark);
}

/* ---- Receiving ----------------------------------------------------------- */

/* The connection has ended, or has broken (os_errno). */
static void lose(ferry__connection *c, int os_errno) {
  if (c->held_length) { /* the receiver may take them much later */
    if (os_errno)
      c->end_errno = os_errno;
    c->sending = FERRY__SEND_STOPPED;
    c->broken = true;
    ferry__connection_drop_socket(c);
    return;
  }
  if (c->http2->closed && !c->http2->ended) {
    stream_failed(c);
    return;
  }
  if (c->http2->ended)
    c->transfer->receiving = FERRY__RECEIVE_COMPLETE;
  ferry__exchange_lost(c, os_errno);
}

/* Takes bytes as received, and sends what they cause. Returns false if the
 * exchange is over. */
static bool take(ferry__connection *c, const char *bytes, size_t length) {
  ferry_loop *loop = c->loop;
  ferry__http2 *h = c->http2;
  ferry__mark mark = ferry__connection_mark(c);
  if (c->transfer->receiving == FERRY__RECEIVE_PING)
    look_for_reply(h, bytes, length);
  ssize_t n = nghttp2_session_mem_recv(h->session, (const uint8_t *)bytes,
                                       length);
  if (n < 0 && h->ended) { /* the session is of no use any more */
    lose(c, 0);
    return false;
  }
  if (n < 0) {
    ferry__http2_note(h, n == NGHTTP2_ERR_NOMEM
                             ? (ferry__fault){FERRY_E_MEMORY, 0}
                             : malformed);
  }
  if (!check(c))
    return false;
  if (c->broken)
    return ferry__http2_settle(c);
  ferry__exchange_writable(c);
  return ferry__connection_holds(loop, mark);
}

void ferry__http2_readable(ferry__connection *c) {
  ferry_loop *loop = c->loop;
  char *buffer = ferry__http1_buffer(loop);
  uint32_t from = c->tls ? ferry__tls_arrived(c) : 0;
  size_t taken = 0;
  if (!buffer) {
    ferry__exchange_fail(c, (ferry__fault){FERRY_E_MEMORY, 0});
    return;
  }
  c->unread = false;
  for (int i = 0; i < READS; i++) {
    /* Messages of TLS without data cost as much as data. */
    if (c->tls && ferry__tls_arrived(c) - from > IDLE_TLS + 2 * taken)
      break;
    ssize_t n = ferry__connection_read(c, buffer, FERRY__HTTP1_BUFFER);
    if (n == -EAGAIN) {
      if (c->tls)
        ferry__exchange_note_part(c);
      if (c->end_errno && ferry__tls_has_more(c))
        continue;
      if (c->unread)
        ferry__connection_watch(c, true, true);
      else if (c->end_errno) /* writing has failed: nothing more will come */
        lose(c, 0);
      return;
    }
    if (n <= 0) {
      lose(c, (int)-n);
      return;
    }
    taken += (size_t)n;
    if (c->tls)
      c->arrived = ferry__tls_arrived(c); /* a frame need not be progress */
    ferry__backend_heard(loop, c->backend);
    bool drained = c->tls ? !SSL_has_pending(c->tls)
                          : (size_t)n < FERRY__HTTP1_BUFFER;
    if (!take(c, buffer, (size_t)n))
      return;
    if (drained && !c->end_errno)
      return;
  }
  if (c->tls && SSL_has_pending(c->tls)) {
    c->unread = true; /* which raises no event */
    ferry__connection_watch(c, true, true);
  }
}

void ferry__http2_resume(ferry__connection *c) {
  ferry_loop *loop = c->loop;
  ferry__http2 *h = c->http2;
  ferry__mark mark = ferry__connection_mark(c);
  if (!ferry__http2_deliver_held(c)) {
    ferry__exchange_fail(c, h->fault);
    return;
  }
  if (c->fd < 0) {
    if (!c->held_length)
      lose(c, 0);
    return;
  }
  ferry__source_ready(c->transfer);
  if (!ferry__http2_settle(c) || !ferry__connection_holds(loop, mark))
    return;
  if (c->broken)
    ferry__http2_readable(c);
  else
    ferry__exchange_writable(c); /* the window, too */
}

/* ---- The session --------------------------------------------------------- */

static bool is_chosen(const ferry__connection *c) {
  const unsigned char *protocol = NULL;
  unsigned length = 0;
  if (c->loop->options.http2 == FERRY_HTTP2_PRIOR_KNOWLEDGE)
    return true;
  SSL_get0_alpn_selected(c->tls, &protocol, &length);
  return length == 2 && !memcmp(protocol, "h2", 2);
}

bool ferry__http2_wanted(const ferry_loop *loop, const ferry__transfer *t) {
  uint8_t http2 = loop->options.http2;
  return (t->flags & FERRY_DUPLEX) && http2 != FERRY_HTTP2_NEVER &&
         !t->host->local &&
         (t->host->secure || http2 == FERRY_HTTP2_PRIOR_KNOWLEDGE);
}

bool ferry__http2_offer(ferry__connection *c) {
  static const unsigned char both[] = "\x02h2\x08http/1.1";
  bool alone = c->loop->options.http2 == FERRY_HTTP2_PRIOR_KNOWLEDGE;
  return !c->route->http2 ||
         !SSL_set_alpn_protos(c->tls, both, alone ? 3 : sizeof both - 1);
}

bool ferry__http2_open(ferry__connection *c) {
  if (!c->route->http2 || !is_chosen(c))
    return true;
  c->http2 = calloc(1, sizeof *c->http2);
  return c->http2 && !ferry__http2_make_session(c, c->http2);
}

void ferry__http2_free(ferry__connection *c) {
  if (!c->http2)
    return;
  nghttp2_session_del(c->http2->session);
  free(c->http2);
  c->http2 = NULL;
}

void ferry__http2_begin(ferry__connection *c) {
  ferry__http2 *h = c->http2;
  ferry__transfer *t = c->transfer;
  *h = (ferry__http2){.session = h->session};
  c->chunked = true; /* the length of the body does not matter */
  if (t->head == ferry__no_head && !ferry__head_take(c->loop, t)) {
    ferry__exchange_fail(c, (ferry__fault){FERRY_E_MEMORY, 0});
    return;
  }
  c->response.head = t->head;
  t->head->http2 = true;
  h->stream = ferry__http2_submit(c);
  if (h->stream <= 0) {
    h->stream = 0;
    ferry__exchange_fail(c, (ferry__fault){FERRY_E_MEMORY, 0});
    return;
  }
  ferry__exchange_writable(c);
}

/* Sends what nghttp2 has to say between two exchanges. */
static bool reply(ferry__connection *c, char *buffer) {
  ssize_t length = ferry__http2_compose(c->http2, buffer);
  return length >= 0 &&
         (!length || ferry__connection_write(c, buffer, (size_t)length) ==
                         length);
}

bool ferry__http2_is_usable(ferry__connection *c) {
  ferry__http2 *h = c->http2;
  char *buffer = ferry__http1_buffer(c->loop);
  c->why = FERRY_CLOSED_POISONED;
  for (int i = 0; buffer && i < IDLE_READS; i++) {
    ssize_t n = ferry__connection_read(c, buffer, FERRY__HTTP1_BUFFER);
    if (n == -EAGAIN) {
      c->why = FERRY_CLOSED_SERVER;
      return nghttp2_session_check_request_allowed(h->session) &&
             nghttp2_session_get_remote_settings(
                 h->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS) &&
             !is_over(h);
    }
    if (n <= 0) {
      c->why = FERRY_CLOSED_SERVER;
      return false;
    }
    if (nghttp2_session_mem_recv(h->session, (const uint8_t *)buffer,
                                 (size_t)n) < 0 ||
        !reply(c, buffer))
      return false;
  }
  return false;
}
