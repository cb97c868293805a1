/* socket.c - sockets between libcurl and the loop's epoll set.
 *
 * libcurl registers and removes its socket at every request, even on a kept
 * connection. Here a removal only clears the wanted events, and the
 * registration stays: 12 us a request instead of 21. So an idle connection
 * stays watched. Bytes that arrive on it belong to no request, and the next
 * request would take them for its response. Such a connection is drained and
 * shut down, and libcurl opens another. */
#include "curl/compat.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

void ferry__socket_use(ferry__socket *s, const ferry__transfer *t) {
  s->user = t ? t->result.id : 0;
  s->lease = t ? t->curl.lease : 0;
}

/* NULL once its user has left libcurl, or uses another handle. */
ferry__transfer *ferry__socket_user(ferry_loop *loop, const ferry__socket *s) {
  ferry__transfer *t =
      s->user ? ferry__table_find(&loop->table, s->user) : NULL;
  return t && t->curl.lease == s->lease && t->handle && t->handle->transfer == t
             ? t
             : NULL;
}

/* The system cannot watch the socket (ENOMEM, ENOSPC), so its events would be
 * lost. Its user must end, but not here, within libcurl. */
static void leave_unwatched(ferry_loop *loop, ferry__socket *s, int code) {
  const ferry__transfer *used_by = ferry__socket_user(loop, s);
  for (ferry__transfer *t = loop->transfers->running; t; t = t->next)
    if (t->handle &&
        (t == used_by ||
         (s->serial && t->handle->connection == s->serial))) {
      t->curl.unwatched = code;
      ferry__wheel_set(loop, t, ferry__now(loop));
    }
}

/* It was opened, and is still counted; but whoever gets the number next, it is
 * no longer this handle's. */
static void forget_opened(ferry__handle *handle, int fd) {
  for (unsigned i = 0; i < handle->opened_count; i++)
    if (handle->opened[i] == fd)
      handle->opened[i] = -1;
}

static const ferry__socket_owner libcurl;

int ferry__on_socket(CURL *easy, curl_socket_t fd, int what, void *data,
                     void *assigned) {
  ferry__shard *shard = data;
  ferry__socket *s = assigned ? assigned : ferry__socket_of(shard->loop, fd);
  if (!s)
    return -1;
  s->owner = &libcurl;
  if (what == CURL_POLL_REMOVE) {
    ferry__transfer *t = ferry__socket_user(shard->loop, s);
    s->want = 0;
    if (!s->ours && s->have) /* libcurl closes its own silently */
      ferry__socket_watch(shard->loop, s, 0);
    /* libcurl 8 may connect, send and receive in one call, and never ask for
     * more than the connect. From here on the socket is watched for reading. */
    if (s->ours && s->have == CURL_POLL_OUT && t &&
        t->source != FERRY__SOURCE_PAUSED && t->phase >= FERRY_PHASE_SEND)
      ferry__socket_watch(shard->loop, s, CURL_POLL_IN);
    if (t && t->phase == FERRY_PHASE_CONNECT) {
      shard->unheard++; /* then comes the next address */
      if (ferry__closed_silently(fd))
        forget_opened(t->handle, fd);
    }
    /* Not if it is closed after an error, which comes while it sends. */
    if (t && t->source == FERRY__SOURCE_PAUSED && !s->http2)
      ferry__reading_ended(t);
    return 0;
  }
  if (!assigned) {
    curl_multi_assign(shard->multi, fd, s);
    if (shard->unheard)
      shard->unheard--;
  }
  s->shard = shard;
  s->want = (unsigned)what;
  ferry__transfer *t = ferry__transfer_of(easy);
  ferry__socket_use(s, t);
  if (!t)
    ferry__used_by_libcurl(s, what);
  if (what == CURL_POLL_OUT && !s->http2 && t)
    ferry__reading_ended(t);
  if ((s->have != s->want || !s->ours) &&
      !ferry__socket_watch(shard->loop, s, s->want))
    leave_unwatched(shard->loop, s, errno);
  return 0;
}

/* ---- The connection of a request ----------------------------------------- */

static ferry__socket **bucket(ferry_loop *loop, int port) {
  return &loop->curl->ports[(unsigned)port % FERRY__BUCKETS];
}

static ferry__origin *figures_of(ferry_loop *loop, const ferry__socket *s) {
  return s->origin ? &s->origin->figures : &loop->hosts->past;
}

void ferry__sockets_forget(ferry_loop *loop, const ferry__host *host) {
  for (int i = 0; host->figures.open && i < loop->sockets.capacity; i++)
    if (loop->sockets.by_fd[i] && loop->sockets.by_fd[i]->origin == host)
      loop->sockets.by_fd[i]->origin = NULL;
}

static void forget_port(ferry_loop *loop, ferry__socket *s) {
  if (!s->local_port)
    return;
  ferry__socket **at = bucket(loop, s->local_port);
  while (*at != s)
    at = &(*at)->port_next;
  *at = s->port_next;
  s->local_port = 0;
  ferry__count(&loop->counters.sockets, -1);
  ferry__origin *figures = figures_of(loop, s);
  ferry__count(&figures->open, -1);
  ferry__count(&figures->closed[FERRY_CLOSED_UNKNOWN], 1);
  s->origin = NULL;
}

static int local_port(int fd) {
  struct sockaddr_storage a;
  socklen_t length = sizeof a;
  if (getsockname(fd, (struct sockaddr *)&a, &length) ||
      (a.ss_family != AF_INET && a.ss_family != AF_INET6))
    return -1;
  return ntohs(a.ss_family == AF_INET6
                   ? ((struct sockaddr_in6 *)&a)->sin6_port
                   : ((struct sockaddr_in *)&a)->sin_port);
}

/* libcurl 7.88 reports the time of the connect only when TLS is done too. */
bool ferry__is_connected(const ferry__handle *handle) {
  for (unsigned i = 0; i < handle->opened_count; i++) {
    struct sockaddr_storage a;
    socklen_t length = sizeof a;
    if (!getpeername(handle->opened[i], (struct sockaddr *)&a, &length))
      return true;
  }
  return false;
}

/* Among the sockets that this transfer opened, finds the connected one. */
void ferry__remember_port(ferry__handle *handle, const char *peer,
                          int peer_port, int port) {
  ferry_loop *loop = handle->loop;
  for (unsigned i = 0; i < handle->opened_count && i < FERRY__OPENED; i++) {
    int fd = handle->opened[i];
    ferry__socket *s = fd < 0 ? NULL : ferry__socket_of(loop, fd);
    if (!s || s->local_port || local_port(fd) != port)
      continue;
    s->local_port = (uint16_t)port;
    s->http2 = ferry__is_http2(handle, ferry__tls_of(handle->easy));
    handle->connection = s->serial;
    s->identity = handle->transfer->extras
                      ? handle->transfer->extras->identity
                      : 0;
    s->peer_port = (uint16_t)peer_port;
    strncpy(s->peer, peer, sizeof s->peer - 1);
    s->peer[sizeof s->peer - 1] = 0;
    s->port_next = *bucket(loop, port);
    *bucket(loop, port) = s;
    ferry__count(&loop->counters.sockets, 1);
    ferry__count(&loop->counters.connections, 1);
    s->origin = handle->transfer->host;
    ferry__count(&s->origin->figures.open, 1);
    ferry__count(&s->origin->figures.opened, 1);
    break;
  }
  handle->opened_count = 0;
}

ferry__socket *ferry__find_port(ferry_loop *loop, const char *peer,
                                int peer_port, int port) {
  ferry__socket *s = *bucket(loop, port);
  while (s && !(s->local_port == port && s->peer_port == peer_port &&
                !strcmp(s->peer, peer)))
    s = s->port_next;
  return s;
}

/* ---- Opening, closing, events -------------------------------------------- */

/* 7.88.1 closes a socket that was never connected silently, so this entry may
 * describe an earlier one with the same number. */
static void forget(ferry_loop *loop, ferry__socket *s) {
  forget_port(loop, s);
  ferry__transfer *before = ferry__socket_user(loop, s);
  if (before)
    forget_opened(before->handle, s->fd);
  s->want = 0;
  ferry__socket_use(s, NULL);
  s->http2 = s->ours = false;
}

/* The limit of connecting applies again, from now on. */
void ferry__connects_again(ferry_loop *loop, ferry__transfer *t) {
  t->phase = FERRY_PHASE_CONNECT;
  t->repeated_ms = t->last_ms = ferry__now(loop);
  ferry__wheel_set(loop, t, t->repeated_ms);
}

curl_socket_t ferry__on_open(void *data, curlsocktype purpose,
                             struct curl_sockaddr *address) {
  ferry__handle *handle = data;
  ferry__transfer *t = handle->transfer;
  (void)purpose;
  handle->shard->unheard++;
  /* libcurl sends the request again; a pulled body cannot be sent again. */
  bool again = t->phase >= FERRY_PHASE_SEND;
  if ((!ferry__may_attempt(t) || (again && t->pulled)) && !t->curl.head_held) {
    ferry__refuse_attempt(t);
    return CURL_SOCKET_BAD;
  }
  /* If it must not be sent twice, ferry__on_request() refuses it. */
  if (again && (!handle->reached || (t->flags & FERRY_IDEMPOTENT)) &&
      ferry__leaves_handle(t))
    return CURL_SOCKET_BAD;
  handle->tunnelling = t->host->secure && t->extras &&
                       t->extras->proxy_kind == FERRY_PROXY_HTTP;
  handle->tunnelled = handle->tunnel_granted = 0;
  handle->tunnel_bytes = 0;
  if ((t->flags & FERRY_PUBLIC_ONLY) && !(t->extras && t->extras->proxy) &&
      !ferry__is_public(&address->addr)) {
    t->curl.forbidden = true;
    return CURL_SOCKET_BAD; /* libcurl tries the next one, if there is one */
  }
  int fd = socket(address->family,
                  address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                  address->protocol);
  if (fd < 0)
    return CURL_SOCKET_BAD;
  ferry__socket *s = ferry__socket_renew(handle->loop, fd, &libcurl);
  if (!s) {
    close(fd);
    return CURL_SOCKET_BAD;
  }
  ferry__socket_keep_alive(handle->loop, fd);
  forget_opened(handle, fd);
  s->ours = true;
  if (handle->opened_count == FERRY__OPENED) {
    memmove(handle->opened, handle->opened + 1,
            (FERRY__OPENED - 1) * sizeof *handle->opened);
    handle->opened_count--;
  }
  handle->opened[handle->opened_count++] = fd;
  if (again)
    ferry__connects_again(handle->loop, t);
  return fd;
}

int ferry__on_close(void *data, curl_socket_t fd) {
  ferry_loop *loop = data;
  ferry__socket *s =
      fd < loop->sockets.capacity ? loop->sockets.by_fd[fd] : NULL;
  if (s) {
    ferry__transfer *t = ferry__socket_user(loop, s);
    if (t && !s->http2)
      ferry__keep_answer(t, fd);
    if (t)
      forget_opened(t->handle, fd);
    if (s->have)
      /* close() alone does not, if a child process has the descriptor. */
      ferry__socket_watch(loop, s, 0);
    s->want = 0;
    s->ours = false;
    ferry__socket_use(s, NULL);
    forget_port(loop, s);
  }
  return close(fd);
}

/* The response is complete, and its source has no more bytes: a server that
 * closes now has all that it wants. Under TLS, bytes alone may be anything. */
static void on_answered(ferry_loop *loop, ferry__socket *s, ferry__transfer *t,
                        unsigned events) {
  if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
    ferry__leave_unsent(loop, t);
  else
    ferry__socket_watch(loop, s, FERRY__POLL_END);
}

/* The server has closed the connection without a response. libcurl has read the
 * end, waits for the source, and would not end before it has bytes. */
static bool is_left(const ferry__socket *s, const ferry__transfer *t) {
  char byte;
  return t->source == FERRY__SOURCE_PAUSED && t->state == FERRY__RUNNING &&
         !s->http2 && !t->head->complete &&
         recv(s->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void on_event(ferry_loop *loop, ferry__socket *s, unsigned events) {
  int bits = 0, running;
  ferry__transfer *t = ferry__socket_user(loop, s);
  if (!s->want && t && t->receiving == FERRY__RECEIVE_COMPLETE &&
      t->source == FERRY__SOURCE_PAUSED && !s->http2 &&
      t->state == FERRY__RUNNING) {
    on_answered(loop, s, t, events);
    return;
  }
  if (!s->want && t && is_left(s, t)) {
    if (ferry__may_repeat(t))
      t->curl.again = t->fresh = true;
    ferry__transfer_completed(loop, t, CURLE_GOT_NOTHING);
    return;
  }
  if (!s->want) {
    bool idle = !t && !s->http2;
    if (idle && !(events & ~(unsigned)EPOLLOUT) &&
        ferry__socket_watch(loop, s, CURL_POLL_IN))
      return;
    /* The socket of a paused transfer is unread on purpose; and with HTTP/2,
     * libcurl reads frames when it needs the connection again. */
    if (idle)
      ferry__end_idle(loop, s);
    ferry__socket_watch(loop, s, 0);
    return;
  }
  if (t && !s->http2) /* frames of others arrive there, too, and PINGs */
    t->last_ms = ferry__now(loop);
  if (events & EPOLLIN)
    bits |= CURL_CSELECT_IN;
  if (events & EPOLLOUT)
    bits |= CURL_CSELECT_OUT;
  if (events & (EPOLLERR | EPOLLHUP))
    bits |= CURL_CSELECT_IN | CURL_CSELECT_OUT;
  ferry__shard *shard = s->shard;
  bool both = t && !s->http2 && t->phase >= FERRY_PHASE_SEND &&
              bits == (CURL_CSELECT_IN | CURL_CSELECT_OUT) &&
              (s->want & CURL_POLL_IN);
  if (shard->broken)
    return; /* its turn comes, and ends them all */
  ferry__shard_check(shard, curl_multi_socket_action(
                               shard->multi, s->fd,
                               both ? CURL_CSELECT_IN : bits, &running));
  /* The readable bytes may be all that will come, so they are read first.
   * libcurl then says whether they were the end, before it meets a reset. */
  if (both && !shard->broken && ferry__socket_user(loop, s) == t &&
      s->local_port && (s->want & CURL_POLL_OUT) &&
      !ferry__answer_waits(t, s->fd, events & (EPOLLERR | EPOLLHUP)))
    ferry__shard_check(shard,
                      curl_multi_socket_action(shard->multi, s->fd,
                                               CURL_CSELECT_OUT, &running));
  ferry__jar_release(loop);
  ferry__shard_touch(shard);
}

static const ferry__socket_owner libcurl = {
    .on_event = on_event, .forget = forget};
