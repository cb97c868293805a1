/* send.c - the request of an exchange: its head, its body, and the rest that is
 * not sent. */
#include "http1/http1.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>

enum {
  WRITES = 16,             /* writes for one event; then other sockets get
                            * theirs */
  AWAIT_MS = 1000,         /* for 100-continue (RFC 9110, 10.1.1) */
  PREFIX = 18, SUFFIX = 2, /* of a chunk: 16 digits and two line ends */
  PIECE = 1 << 20,         /* of a file, in one step */
};

/* Writing has failed. A server that does not want the rest of an upload
 * responds and closes: its response may still be readable. */
static void stop_sending(ferry__connection *c, int os_errno) {
  c->end_errno = os_errno;
  c->sending = FERRY__SEND_STOPPED;
  c->broken = true;
  c->out_length = c->out_at = 0;
  if (c->http2) {
    ferry__connection_watch(c, true, false);
    ferry__http2_readable(c);
    return;
  }
  unsigned paused = c->transfer->paused;
  if (paused == FERRY__PAUSED_BY_TURN ||
      (!c->held && (paused & FERRY__PAUSED_BY_TURN))) {
    ferry__connection_watch(c, false, false);
    return;
  }
  if (c->held) {
    ferry__exchange_hold_all(c);
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
    ferry__exchange_fail(c, (ferry__fault){FERRY_E_MEMORY, 0});
    return false;
  }
  memcpy(out, bytes, length);
  free(c->out);
  c->out = out;
  c->out_length = (uint32_t)length;
  c->out_at = 0;
  return true;
}

/* > 0: bytes sent; 0: not now; < 0: writing has failed, which was handled: the
 * exchange may be over. */
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
  if (!c->quiet)
    c->transfer->last_ms = ferry__now(c->loop);
  return n;
}

/* Sends bytes of the buffer and keeps the rest. False: as for send_some. */
bool ferry__exchange_send(ferry__connection *c, const char *bytes,
                        size_t length) {
  ssize_t n = send_some(c, bytes, length);
  if (n < 0)
    return false;
  return (size_t)n == length ||
         keep_unsent(c, bytes + n, length - (size_t)n);
}

static bool is_of_socket(int os_errno) {
  return os_errno == EPIPE || os_errno == ECONNRESET || os_errno == ETIMEDOUT ||
         os_errno == EHOSTUNREACH || os_errno == ENETUNREACH ||
         os_errno == ENETDOWN || os_errno == ENOTCONN;
}

/* Sends from the file to the socket, without a copy. */
static bool send_piece(ferry__connection *c) {
  ferry__transfer *t = c->transfer;
  off_t offset = t->piece.offset;
  size_t length = t->piece.length < PIECE ? (size_t)t->piece.length : PIECE;
  ssize_t n;
  do
    n = sendfile(c->fd, t->piece.fd, &offset, length);
  while (n < 0 && errno == EINTR);
  if (n < 0 && errno == EAGAIN)
    return false;
  if (n < 0 && is_of_socket(errno)) {
    stop_sending(c, errno);
    return false;
  }
  if (n < 0) { /* not for this file, or not now: copying it tells more */
    c->copies = true;
    return true;
  }
  if (n == 0) { /* the file has become shorter */
    t->result.os_errno = 0;
    ferry__exchange_fail(c, (ferry__fault){FERRY_E_UPLOAD_SOURCE, 0});
    return false;
  }
  c->sent += (uint64_t)n;
  t->last_ms = ferry__now(c->loop);
  ferry__piece_took(t, (uint64_t)n);
  if (t->pulled == t->body_length && !t->piece.length)
    c->sending = FERRY__SEND_LAST;
  return true;
}

/* The last chunk, and what follows it (RFC 9112, 7.1.2). */
static bool send_end(ferry__connection *c, char *buffer) {
  ferry__transfer *t = c->transfer;
  static const char last[] = "0\r\n";
  size_t length = sizeof last - 1;
  int64_t trailers = 0;
  memcpy(buffer, last, length);
  if (t->flags & FERRY_TRAILERS)
    trailers = ferry__trailers_ask(c->loop, t, buffer + length,
                                   FERRY__TRAILERS);
  if (trailers < 0) {
    ferry__exchange_fail(c, t->fault);
    return false;
  }
  length += (size_t)trailers;
  memcpy(buffer + length, "\r\n", SUFFIX);
  return ferry__exchange_send(c, buffer, length + SUFFIX);
}

/* Sends the next bytes of the source, framed. False: as above, or paused. */
static bool send_pulled(ferry__connection *c) {
  ferry_loop *loop = c->loop;
  ferry__transfer *t = c->transfer;
  bool chunked = c->chunked;
  char *buffer = ferry__http1_buffer(loop);
  if (!buffer) {
    ferry__exchange_fail(c, (ferry__fault){FERRY_E_MEMORY, 0});
    return false;
  }
  char *data = buffer + PREFIX;
  const size_t room = FERRY__HTTP1_BUFFER - PREFIX - SUFFIX;
  int64_t n = chunked || c->tls || c->copies
                  ? ferry__source_pull(loop, t, data, room)
                  : ferry__source_pull_any(loop, t, data, room);
  if (n == FERRY_PAUSE)
    return false;
  if (n == FERRY_PIECE)
    return send_piece(c);
  if (n < 0) {
    ferry__exchange_fail(c, t->fault);
    return false;
  }
  if (t->pulled == t->body_length && !t->piece.length && !(chunked && n))
    c->sending = FERRY__SEND_LAST;
  if (!chunked)
    return n ? ferry__exchange_send(c, data, (size_t)n) : true;
  if (!n)
    return send_end(c, buffer);
  char prefix[PREFIX + 1];
  int size = snprintf(prefix, sizeof prefix, "%llx\r\n", (long long)n);
  memcpy(data - size, prefix, (size_t)size);
  memcpy(data + n, "\r\n", SUFFIX);
  return ferry__exchange_send(c, data - size, (size_t)(size + n + SUFFIX));
}

/* Takes one step. Returns false if there is nothing to do now, or if writing
 * has failed. */
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
  if (c->http2) {
    int sent = ferry__http2_send(c);
    if (sent)
      return sent > 0;
  }
  switch (c->sending) {
  case FERRY__SEND_HEAD:
    c->sending = t->body_kind == FERRY_BODY_NONE ? FERRY__SEND_DONE
                 : c->expects                    ? FERRY__SEND_AWAIT
                                                 : FERRY__SEND_BODY;
    if (c->sending == FERRY__SEND_AWAIT) {
      c->await_until = ferry__now(c->loop) + AWAIT_MS;
      if (!t->entry.timer_at ||
          t->entry.timer_at * FERRY__SLOT_MS > c->await_until)
        ferry__wheel_set(c->loop, t, c->await_until);
    }
    return true;
  case FERRY__SEND_BODY:
    if (c->http2)
      return false;
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

/* Whether a step is left. The last one, which sends nothing, counts too. */
static bool has_more(const ferry__connection *c, const ferry__transfer *t) {
  if (c->out_at < c->out_length || c->sending == FERRY__SEND_HEAD ||
      c->sending == FERRY__SEND_LAST)
    return true;
  return c->http2 ? ferry__http2_has_more(c)
                  : c->sending == FERRY__SEND_BODY &&
                        t->source != FERRY__SOURCE_PAUSED;
}

void ferry__exchange_writable(ferry__connection *c) {
  ferry_loop *loop = c->loop;
  ferry__transfer *t = c->transfer;
  ferry__mark mark = ferry__connection_mark(c);
  if (c->fd < 0)
    return;
  for (int i = 0; i < WRITES && send_step(c); i++)
    ;
  if (!ferry__connection_holds(loop, mark))
    return; /* it has ended */
  if (c->http2) {
    if (!ferry__http2_settle(c))
      return;
  } else if (c->sending == FERRY__SEND_DONE &&
             t->receiving == FERRY__RECEIVE_COMPLETE) {
    ferry__exchange_answered(c, false);
    return;
  }
  bool reads = c->http2 || !c->held;
  bool more = has_more(c, t) || (c->unread && reads);
  int code = ferry__connection_watch(c, reads, more);
  if (code) { /* its events would be lost */
    t->result.os_errno = -code;
    ferry__exchange_fail(c, (ferry__fault){FERRY_E_INTERNAL, 0});
  }
}

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
  ferry__connection_watch(c, c->http2 || !c->held, true);
  return 0;
}
