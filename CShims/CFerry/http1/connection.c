/* connection.c - a connection of the native engine: its bytes, events and
 * end. */
#include "http1/http1.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- Bytes --------------------------------------------------------------- */

/* The meaning of an SSL_read or SSL_write that moved no bytes. */
static ssize_t tls_trouble(ferry__connection *c, int code) {
  int os_errno = errno;
  switch (SSL_get_error(c->tls, code)) {
  case SSL_ERROR_WANT_READ:
    return -EAGAIN;
  case SSL_ERROR_WANT_WRITE:
    return -EAGAIN;
  case SSL_ERROR_ZERO_RETURN:
    return 0;
  case SSL_ERROR_SYSCALL:
    c->truncated = true;
    return os_errno ? -os_errno : 0;
  default:
    c->truncated = true;
    if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
      return 0;
    return -EPROTO;
  }
}

ssize_t ferry__connection_read(ferry__connection *c, char *bytes,
                               size_t size) {
  ssize_t n;
  if (c->tls) {
    ERR_clear_error();
    errno = 0;
    ferry__tls_begin_turn(c);
    int count = SSL_read(c->tls, bytes, size > INT32_MAX ? INT32_MAX
                                                         : (int)size);
    if (count > 0) {
      c->useful_at = ferry__tls_arrived(c);
      return count;
    }
    if (ferry__tls_is_flooded(c)) {
      c->truncated = true;
      return -EPROTO;
    }
    /* A reply to a handshake message must be sent first. */
    if (SSL_want_write(c->tls))
      c->unread = true;
    return tls_trouble(c, count);
  }
  do
    n = recv(c->fd, bytes, size, 0);
  while (n < 0 && errno == EINTR);
  return n < 0 ? -errno : n;
}

ssize_t ferry__connection_write(ferry__connection *c, const char *bytes,
                                size_t length) {
  ssize_t n;
  if (c->tls) {
    ERR_clear_error();
    errno = 0;
    int count = SSL_write(c->tls, bytes, length > INT32_MAX ? INT32_MAX
                                                            : (int)length);
    if (count > 0)
      return count;
    bool truncated = c->truncated;
    n = tls_trouble(c, count);
    c->truncated = truncated; /* this concerns reading */
    return n ? n : -EPIPE;
  }
  do
    n = send(c->fd, bytes, length, MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  return n < 0 ? -errno : n;
}

bool ferry__connection_is_reset(const ferry__connection *c) {
  struct tcp_info info = {0};
  socklen_t size = sizeof info;
  return !getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &size) &&
         info.tcpi_state == TCP_CLOSE;
}

int ferry__connection_watch(ferry__connection *c, bool in, bool out) {
  if (c->fd < 0)
    return 0;
  unsigned want = (in ? CURL_POLL_IN : 0u) | (out ? CURL_POLL_OUT : 0u);
  ferry__socket *s = ferry__socket_of(c->loop, c->fd);
  c->wants_out = out;
  if (!s)
    return -ENOMEM;
  if (s->have == want || ferry__socket_watch(c->loop, s, want))
    return 0;
  int code = -errno;
  if (c->state == FERRY__BUSY && c->transfer) {
    c->watch_errno = -code;
    ferry__wheel_set(c->loop, c->transfer, ferry__now(c->loop));
  }
  return code;
}

ferry__mark ferry__connection_mark(const ferry__connection *c) {
  return (ferry__mark){
      .serial = c->serial, .fd = c->fd, .served = c->served};
}

bool ferry__connection_holds(ferry_loop *loop, ferry__mark mark) {
  if (mark.fd < 0)
    return false;
  const ferry__socket *s = ferry__socket_of(loop, mark.fd);
  return s && s->native && s->serial == mark.serial &&
         s->native->served == mark.served && s->native->transfer;
}

/* ---- Events -------------------------------------------------------------- */

/* No response is expected: bytes that arrive are the end, or belong to no
 * request. A late TLS ticket is neither. */
static void look_at_idle(ferry__connection *c) {
  char byte;
  if (c->http2) {
    if (!ferry__http2_is_usable(c))
      ferry__connection_close(c);
    return;
  }
  ssize_t n = c->tls ? ferry__connection_read(c, &byte, 1)
                     : recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  /* A part of a record may belong to such bytes. */
  bool part = c->tls && SSL_has_pending(c->tls);
  if (!part && (c->tls ? n == -EAGAIN : n < 0 && errno == EAGAIN))
    return;
  if (n > 0 || part)
    ferry__count(&c->loop->counters.guarded, 1);
  c->why = n > 0 || part ? FERRY_CLOSED_POISONED : FERRY_CLOSED_SERVER;
  ferry__connection_close(c);
}

static void on_event(ferry_loop *loop, ferry__socket *socket,
                     unsigned events) {
  ferry__connection *c = socket->native;
  int fd = socket->fd;
  ferry__transfer *t = c->transfer;
  bool writable = events & EPOLLOUT;
  bool readable = events & (EPOLLIN | EPOLLERR | EPOLLHUP);
  if (t && c->state < FERRY__IDLE)
    t->last_ms = ferry__now(loop);
  switch (c->state) {
  case FERRY__DIALING:
    ferry__dial_event(c, fd);
    return;
  case FERRY__TUNNELLING:
    if (c->socks)
      ferry__socks_event(c);
    else
      ferry__tunnel_event(c);
    return;
  case FERRY__HANDSHAKING:
    ferry__tls_step(c);
    return;
  case FERRY__IDLE:
    look_at_idle(c);
    return;
  }
  /* The readable bytes may be all that will come: they are read before writing
   * meets a reset. */
  ferry__mark mark = ferry__connection_mark(c);
  if (readable || c->unread)
    ferry__exchange_readable(c);
  if (writable && ferry__connection_holds(loop, mark))
    ferry__exchange_writable(c);
}

const ferry__socket_owner ferry__connection_owner = {.on_event = on_event};

/* ---- The end ------------------------------------------------------------- */

void ferry__connection_release_fd(ferry_loop *loop, int fd) {
  ferry__socket *s = ferry__socket_of(loop, fd);
  if (s) {
    if (s->have) /* close() alone does not, if a child process has the
                  * descriptor */
      ferry__socket_watch(loop, s, 0);
    s->native = NULL;
    s->owner = NULL;
  }
  close(fd);
}

void ferry__connection_drop_socket(ferry__connection *c) {
  ferry__connection_release_fd(c->loop, c->fd);
  ferry__count(&c->loop->counters.sockets, -1);
  c->fd = -1;
}

static void count_close(const ferry__connection *c) {
  ferry__origin *figures = &c->route->host->figures;
  if (c->connected_ns) {
    ferry__count(&figures->open, -1);
    ferry__count(&figures->closed[c->why], 1);
  } else if (c->why == FERRY_CLOSED_ERROR) {
    ferry__count(&figures->failed, 1);
  }
}

void ferry__connection_close(ferry__connection *c) {
  ferry__route_remove(c);
  count_close(c);
  if (c->dial)
    ferry__dial_end(c);
  ferry__tunnel_end(c);
  ferry__socks_end(c);
  ferry__http2_free(c);
  if (c->tls) {
    ERR_clear_error();
    if (c->secured_ns && c->fd >= 0 && !c->broken && !c->truncated)
      SSL_shutdown(c->tls); /* sends close_notify; the peer's is not awaited */
    SSL_free(c->tls);
  }
  if (c->fd >= 0)
    ferry__connection_drop_socket(c);
  ferry__connection_discharge(c, false);
  ferry__backend_release(c->backend);
  ferry__response_free(&c->response);
  free(c->out);
  free(c->held);
  free(c);
}

void ferry__connection_failed(ferry__connection *c, ferry__fault fault,
                              int os_errno, const char *words) {
  ferry_loop *loop = c->loop;
  ferry__transfer *t = c->transfer;
  c->transfer = NULL;
  if (t) {
    ferry__origin_served(t);
    t->connection = NULL;
    t->result.os_errno = os_errno;
    if (words && !t->words)
      t->words = strdup(words);
  }
  ferry__connection_close(c);
  if (t)
    ferry__transfer_left(loop, t, fault);
}

void ferry__connection_ready(ferry__connection *c) {
  ferry__transfer *t = c->transfer;
  ferry__route_remove_dialing(c);
  if (ferry__connection_watch(c, true, false)) {
    ferry__connection_failed(
        c, (ferry__fault){FERRY_E_CONNECT, FERRY_D_CONNECT_FAILED}, errno,
        NULL);
    return;
  }
  if (!ferry__http2_open(c)) {
    ferry__connection_failed(c, (ferry__fault){FERRY_E_MEMORY, 0}, 0, NULL);
    return;
  }
  c->transfer = NULL;
  if (!t) {
    ferry__route_offer(c);
  } else if (t->flags & FERRY_CONNECT) {
    c->transfer = t;
    ferry__ahead_ready(c);
  } else {
    ferry__exchange_begin(c, t);
  }
}
