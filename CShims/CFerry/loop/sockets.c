/* sockets.c - an epoll set of our own, which the uv loop watches as one
 * descriptor. Each socket in it has an owner that receives its events. */
#include "loop/loop.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

ferry__socket *ferry__socket_of(ferry_loop *loop, int fd) {
  ferry__sockets *sockets = &loop->sockets;
  if (fd >= sockets->capacity) {
    int capacity = sockets->capacity ? sockets->capacity : 256;
    while (capacity <= fd)
      capacity *= 2;
    ferry__socket **by_fd =
        realloc(sockets->by_fd, (size_t)capacity * sizeof *by_fd);
    if (!by_fd)
      return NULL;
    memset(by_fd + sockets->capacity, 0,
           (size_t)(capacity - sockets->capacity) * sizeof *by_fd);
    sockets->by_fd = by_fd;
    sockets->capacity = capacity;
  }
  if (!sockets->by_fd[fd]) {
    ferry__socket *s = calloc(1, sizeof *s);
    if (!s)
      return NULL;
    s->fd = fd;
    sockets->by_fd[fd] = s;
  }
  return sockets->by_fd[fd];
}

bool ferry__socket_watch(ferry_loop *loop, ferry__socket *s, unsigned want) {
  struct epoll_event event = {
      .events = ((want & CURL_POLL_IN) ? EPOLLIN : 0u) |
                ((want & CURL_POLL_OUT) ? EPOLLOUT : 0u) |
                ((want & FERRY__POLL_END) ? EPOLLRDHUP : 0u),
      .data.ptr = s};
  int operation = !want     ? EPOLL_CTL_DEL
                  : s->have ? EPOLL_CTL_MOD
                            : EPOLL_CTL_ADD;
  int code = epoll_ctl(loop->sockets.epoll, operation, s->fd, &event);
  /* libcurl before 8.2 closes some of the sockets that we opened for it without
   * telling us. The number then belongs to another socket, perhaps of this
   * process, whose events must not be handled here. */
  if (code && want && errno == ENOENT && s->ours) {
    s->have = 0;
    return false;
  }
  if (code && want && (errno == ENOENT || errno == EEXIST))
    code = epoll_ctl(loop->sockets.epoll,
                     errno == ENOENT ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, s->fd,
                     &event);
  if (code && want)
    return false;
  s->have = want;
  return true;
}

ferry__socket *ferry__socket_renew(ferry_loop *loop, int fd,
                                   const ferry__socket_owner *owner) {
  ferry__socket *s = ferry__socket_of(loop, fd);
  if (!s)
    return NULL;
  /* The owner of an earlier socket with this number, which was closed without a
   * report. */
  if (s->owner && s->owner->forget)
    s->owner->forget(loop, s);
  s->owner = owner;
  s->have = 0;
  s->native = NULL;
  s->serial = ++loop->sockets.opened;
  return s;
}

static void tell(ferry_loop *loop, ferry__socket *s, unsigned events) {
  if (s->have && s->owner) /* otherwise it was closed earlier in this batch */
    s->owner->on_event(loop, s, events);
}

static void on_events(uv_poll_t *poll, int status, int uv_events) {
  ferry_loop *loop = poll->data;
  struct epoll_event events[FERRY__EVENTS];
  (void)uv_events;
  if (status < 0)
    return; /* the set itself cannot fail; its sockets report their errors */
  /* Level-triggered: events that do not fit come in the next turn. */
  int count = epoll_wait(loop->sockets.epoll, events, FERRY__EVENTS, 0);
  loop->now_ns = loop->read_ns = uv_hrtime();
  for (int i = 0; i < count; i++)
    if (events[i].data.ptr) /* NULL is the wake: the turn itself does the
                             * work */
      tell(loop, events[i].data.ptr, events[i].events);
}

void ferry__socket_keep_alive(const ferry_loop *loop, int fd) {
  /* Linux accepts no more than MOST, in seconds; less than a second counts as
   * one. */
  enum { MOST = 32767, PROBES = 3 };
  uint32_t idle = loop->options.keep_alive_ms / 1000;
  if (!loop->options.keep_alive_ms)
    return;
  int after = idle < 1 ? 1 : idle > MOST ? MOST : (int)idle;
  int between = after / PROBES < 1 ? 1 : after / PROBES;
  int on = 1, probes = PROBES;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &after, sizeof after);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

int ferry__sockets_open(ferry_loop *loop) {
  ferry__sockets *sockets = &loop->sockets;
  struct epoll_event wake = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
  sockets->epoll = epoll_create1(EPOLL_CLOEXEC);
  loop->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (sockets->epoll < 0 || loop->wake < 0 ||
      epoll_ctl(sockets->epoll, EPOLL_CTL_ADD, loop->wake, &wake))
    return -errno;
  int code = uv_poll_init(&loop->uv, &sockets->poll, sockets->epoll);
  if (code)
    return code;
  sockets->poll.data = loop;
  return uv_poll_start(&sockets->poll, UV_READABLE, on_events);
}

void ferry__sockets_free(ferry_loop *loop) {
  if (loop->sockets.epoll >= 0)
    close(loop->sockets.epoll);
  if (loop->wake >= 0)
    close(loop->wake);
  if (loop->alarm.fd >= 0)
    close(loop->alarm.fd);
  for (int fd = 0; fd < loop->sockets.capacity; fd++)
    free(loop->sockets.by_fd[fd]);
  free(loop->sockets.by_fd);
}
