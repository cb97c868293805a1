/* idle_guard.c - checks a connection before a request is sent on it, and reads
 * bytes from a socket that no transfer waits for. */
#include "curl/compat.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

SSL *ferry__tls_of(CURL *easy) {
  struct curl_tlssessioninfo *tls = NULL;
  return !curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &tls) && tls &&
                 tls->backend == CURLSSLBACKEND_OPENSSL
             ? tls->internals
             : NULL;
}

static bool tls_pending(CURL *easy) {
  SSL *tls = ferry__tls_of(easy);
  return tls && SSL_has_pending(tls);
}

static int transfer_index = -1;
static pthread_once_t index_once = PTHREAD_ONCE_INIT;
static void make_index(void) {
  transfer_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
}

static void on_alert(const SSL *tls, int where, int alert) {
  if (where == SSL_CB_READ_ALERT && (alert & 0xff) == SSL_AD_CLOSE_NOTIFY) {
    ferry__transfer *t = SSL_get_ex_data(tls, transfer_index);
    t->curl.close_notified = true;
  }
}

/* The connection ends with this transfer, so neither outlives the other. */
void ferry__watch_close_notify(ferry__transfer *t) {
  SSL *tls = ferry__tls_of(t->handle->easy);
  pthread_once(&index_once, make_index);
  t->curl.close_notified =
      !tls || (SSL_get_shutdown(tls) & SSL_RECEIVED_SHUTDOWN) ||
      !SSL_set_ex_data(tls, transfer_index, t);
  if (!t->curl.close_notified)
    SSL_set_info_callback(tls, on_alert);
}

void ferry__end_idle(ferry_loop *loop, ferry__socket *s) {
  char drain[4096];
  ssize_t n, total = 0;
  while ((n = recv(s->fd, drain, sizeof drain, MSG_DONTWAIT)) > 0 &&
         total < 1 << 20)
    total += n;
  shutdown(s->fd, SHUT_RDWR);
  if (total)
    ferry__count(&loop->counters.guarded, 1);
}

/* Applies to the next attempt: if one kept connection was bad, all may be, and
 * attempts are limited. The handle is discarded afterwards. */
static void take_new_connection(ferry__handle *handle) {
  curl_easy_setopt(handle->easy, CURLOPT_FRESH_CONNECT, 1L);
}

/* Whether another transfer uses the connection, of HTTP/1.1
 * (ferry__offers_busy). One that libcurl is done with has left it, although its
 * end is still to be collected. */
static bool is_busy(ferry_loop *loop, const ferry__socket *s,
                    const ferry__transfer *t) {
  if (!s || s->http2 || loop->options.http2 == FERRY_HTTP2_NEVER)
    return false;
  const ferry__transfer *user = ferry__socket_user(loop, s);
  return user && user != t && user->state == FERRY__RUNNING &&
         !user->handle->left;
}

/* The connection that libcurl offers is not suitable: the request is sent by
 * another handle on a new one. With credentials for a challenge libcurl does
 * not look for a new one, so the offer may come again. */
static void leave_connection(ferry__transfer *t, bool answers) {
  if (!answers)
    t->handle->attempts--;
  else if (t->pulled || !ferry__may_attempt(t)) {
    ferry__refuse_attempt(t);
    return;
  }
  t->curl.again = t->fresh = true;
}

/* Whether a kept connection is suitable for this transfer. */
static bool may_use(const ferry__transfer *t, const ferry__socket *s,
                    const char *peer) {
  const ferry__extras *x = t->extras;
  if ((x ? x->identity : 0) != (s ? s->identity : 0))
    return false;
  return !(t->flags & FERRY_PUBLIC_ONLY) || (x && x->proxy) ||
         ferry_address_is_public(peer) == 1;
}

/* A kept connection has ended before any byte of a response: an idempotent
 * request may be sent again (RFC 9110, 9.2.2). libcurl does so by itself only
 * if its first write or the response fails. */
bool ferry__may_repeat(const ferry__transfer *t) {
  long connects = 0;
  curl_easy_getinfo(t->handle->easy, CURLINFO_NUM_CONNECTS, &connects);
  return !connects && !t->pulled && !t->head->received &&
         (t->flags & FERRY_IDEMPOTENT) && ferry__may_attempt(t);
}

/* After a 417 there is one more: nothing has been processed. */
static unsigned most_attempts(const ferry__transfer *t) {
  return FERRY__MAX_ATTEMPTS + (unsigned)t->unexpecting;
}

bool ferry__may_attempt(const ferry__transfer *t) {
  return t->earlier + (unsigned)t->handle->attempts < most_attempts(t);
}

/* No further attempt is started. */
void ferry__refuse_attempt(ferry__transfer *t) {
  t->curl.untouched = t->curl.untouched || ferry__was_refused(t->handle);
  t->fault = t->curl.untouched ? (ferry__fault){FERRY_E_HTTP2_STREAM,
                                           FERRY_D_HTTP2_REFUSED}
                          : (ferry__fault){FERRY_E_CONNECTION_CLOSED, 0};
  t->phase = FERRY_PHASE_WAIT_HEAD;
}

/* Whether the socket has unread bytes, or has ended or broken. */
static bool is_spoiled(const ferry__transfer *t, const ferry__socket *s) {
  char byte;
  ssize_t n = recv(s->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n >= 0 || (errno != EAGAIN && errno != EINTR) ||
         (t->host->secure && tls_pending(t->handle->easy));
}

/* libcurl 7.88 does not forget that it has sent trailers. When it sends such a
 * request again, which it does if the body is empty, it writes the last chunk
 * to the bytes before its buffer. So another handle sends it. */
bool ferry__leaves_handle(ferry__transfer *t) {
  if (t->curl.ended)
    t->curl.again = t->fresh = true;
  return t->curl.ended;
}

/* libcurl calls this when a connection is ready and nothing of the request has
 * been sent. Retries, phases and the guard depend on it. */
int ferry__on_request(void *data, char *peer, char *local, int peer_port,
                      int port) {
  ferry__handle *handle = data;
  ferry__transfer *t = handle->transfer;
  ferry_loop *loop = handle->loop;
  (void)local;
  bool answers = t->curl.head_held && handle->rounds++ < FERRY__MAX_ROUNDS;
  if (answers) { /* credentials for a challenge, in the same attempt */
    t->curl.head_held = false;
    ferry__head_expect_status(&handle->head);
  } else {
    handle->attempts++;
    free(t->curl.late); /* bytes of another attempt, or of none */
    t->curl.late = NULL;
  }
  if (answers && t->curl.ended) {
    t->fault = (ferry__fault){FERRY_E_BODY_NOT_REPLAYABLE, 0};
    return CURL_PREREQFUNC_ABORT;
  }
  t->receiving = FERRY__RECEIVE_HEAD;
  handle->left = 0;
  ferry__chunks_forget(t);
  t->phase = t->body_kind == FERRY_BODY_NONE ? FERRY_PHASE_WAIT_HEAD
                                             : FERRY_PHASE_SEND;
  t->last_ms = t->window_ms = ferry__now(loop);
  if (!loop->unix_socket) { /* a local socket has no address */
    t->result.peer_port = (uint16_t)peer_port;
    strncpy(t->result.peer, peer, sizeof t->result.peer - 1);
  }
  if (handle->has_resolve)
    ferry__name_fed(ferry__dialled(t), handle->shard, handle->answer);
  handle->tunnelling = 0;
  /* Also for a connection that no request is sent on: over HTTP/2 libcurl keeps
   * it, and others need to know its protocol. */
  bool opened = handle->opened_count > 0;
  if (opened)
    ferry__remember_port(handle, peer, peer_port, port);
  if (handle->attempts > 1 && !answers) {
    /* libcurl is about to send again by itself, on a new connection. */
    bool refused = t->curl.untouched || ferry__was_refused(handle);
    bool safe =
        !handle->reached || refused || (t->flags & FERRY_IDEMPOTENT);
    if (!safe || t->pulled || /* a pulled body cannot be sent again */
        t->earlier + (unsigned)handle->attempts > most_attempts(t)) {
      handle->attempts--;
      ferry__refuse_attempt(t);
      return CURL_PREREQFUNC_ABORT;
    }
    if (ferry__leaves_handle(t)) {
      handle->attempts--;
      return CURL_PREREQFUNC_ABORT;
    }
    t->curl.reached |= handle->reached && !refused;
    t->curl.untouched = false;
    handle->reached = handle->refused = handle->left_in = 0;
    handle->stream = handle->stream_error = 0;
    ferry__head_expect_status(&handle->head);
    take_new_connection(handle);
  }
  ferry__socket *s = ferry__find_port(loop, peer, peer_port, port);
  if (opened) {
    handle->connection = s ? s->serial : 0;
    handle->head.http2 = s && s->http2;
    handle->reached = 1;
    return CURL_PREREQFUNC_OK;
  }
  if (is_busy(loop, s, t)) {
    t->curl.alone = true; /* where no connection in use is offered */
    leave_connection(t, answers);
    return CURL_PREREQFUNC_ABORT;
  }
  if (!may_use(t, s, peer)) {
    /* It belongs to another transfer, which may connect there, or has
     * authenticated there. */
    leave_connection(t, answers);
    return CURL_PREREQFUNC_ABORT;
  }
  /* A kept connection: bytes that are readable now are not a response to this
   * request. */
  handle->connection = s ? s->serial : 0;
  handle->head.http2 = s && s->http2;
  bool is_http1 = s && !s->http2; /* with HTTP/2 frames may come at any time */
  if (is_http1 && is_spoiled(t, s)) {
    /* Sending fails with 0 bytes, and libcurl tries again. */
    ferry__end_idle(loop, s);
    take_new_connection(handle);
    return CURL_PREREQFUNC_OK;
  }
  /* The server may have seen what libcurl sends from here on. libcurl's
   * counters differ between versions. */
  handle->reached = 1;
  if (is_http1) {
    /* Not only when libcurl asks for events: a transfer whose response comes at
     * once may be paused before libcurl ever does, and its socket would look
     * unused. */
    ferry__socket_use(s, t);
  }
  return CURL_PREREQFUNC_OK;
}

/* ---- Responses overtaken by a reset -------------------------------------- */

/* A server that does not want the rest of an upload responds, and then resets
 * the connection. A client that writes first meets the reset and never reads
 * the response. So under TLS, and if the reset is already there, bytes that can
 * be read are read first. Plain connections also have the function below. */
bool ferry__answer_waits(const ferry__transfer *t, int fd, bool broken) {
  char byte;
  return (broken || (t->phase == FERRY_PHASE_SEND && t->host->secure)) &&
         recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* The response is in the socket that is about to be closed. That happened to
 * every fourth upload of 50 MB to a server on the same machine. */
void ferry__keep_answer(ferry__transfer *t, int fd) {
  if (t->phase != FERRY_PHASE_SEND || t->host->secure || t->curl.late)
    return;
  t->curl.late = malloc(FERRY__LATE);
  ssize_t n, length = 0;
  while (t->curl.late && length < FERRY__LATE &&
         (n = recv(fd, t->curl.late + length, (size_t)(FERRY__LATE - length),
                   MSG_DONTWAIT)) > 0)
    length += n;
  t->curl.late_length = (uint32_t)length;
  if (!length) {
    free(t->curl.late);
    t->curl.late = NULL;
  }
}
