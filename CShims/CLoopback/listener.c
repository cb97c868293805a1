/* listener.c - the listening socket, or one that deliberately does not
 * accept. */
#include "internal.h"

#include <errno.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 4096

static void on_connection(uv_stream_t *listener, int status) {
  lb_server *s = listener->data;
  if (atomic_load(&s->pending)) lb__commands_run(s);
  if (status == 0 && !s->stopping) lb__conn_open(s, listener);
}

static int parse_address(const char *text, uint16_t port,
                         struct sockaddr_storage *out, socklen_t *length) {
  if (!uv_ip4_addr(text, port, (struct sockaddr_in *)out)) {
    *length = sizeof(struct sockaddr_in);
    return 0;
  }
  *length = sizeof(struct sockaddr_in6);
  return uv_ip6_addr(text, port, (struct sockaddr_in6 *)out);
}

static uint16_t port_of(const struct sockaddr_storage *address) {
  return ntohs(address->ss_family == AF_INET6
                   ? ((const struct sockaddr_in6 *)address)->sin6_port
                   : ((const struct sockaddr_in *)address)->sin_port);
}

/* Makes a socket outside libuv: bound, and either not listening, or listening
 * with a minimal backlog that we fill ourselves. Further SYNs get no reply. */
static int listen_by_hand(lb_server *s, struct sockaddr_storage *address,
                          socklen_t length) {
  s->bound = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (s->bound < 0) return -errno;
  if (bind(s->bound, (struct sockaddr *)address, length) ||
      getsockname(s->bound, (struct sockaddr *)address, &length))
    return -errno;
  s->port = port_of(address);
  if (s->options.accept == LOOPBACK_REFUSE) return 0;
  if (listen(s->bound, 0)) return -errno;
  for (size_t i = 0; i < sizeof(s->filler) / sizeof(*s->filler); i++) {
    s->filler[i] = socket(address->ss_family,
                          SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->filler[i] < 0) return -errno;
    if (connect(s->filler[i], (struct sockaddr *)address, length) &&
        errno != EINPROGRESS)
      return -errno;
  }
  return 0;
}

/* A path: a Unix socket, in a libuv handle made for TCP, which reads and writes
 * it just as well. */
static int listen_at_path(lb_server *s) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  size_t length = strlen(s->options.address);
  int fd, result;
  if (length >= sizeof(address.sun_path)) return -ENAMETOOLONG;
  memcpy(address.sun_path, s->options.address, length);
  result = uv_tcp_init(&s->loop, &s->listener);
  if (result) return result;
  s->listener.data = s;
  fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -errno;
  if (bind(fd, (struct sockaddr *)&address, sizeof(address))) result = -errno;
  else result = uv_tcp_open(&s->listener, fd);
  if (result) {
    close(fd);
    return result;
  }
  return uv_listen((uv_stream_t *)&s->listener, BACKLOG, on_connection);
}

int lb__listen(lb_server *s) {
  struct sockaddr_storage address = {0};
  socklen_t length;
  int named = sizeof(address);
  int result;
  if (s->options.address[0] == '/') return listen_at_path(s);
  result =
      parse_address(s->options.address, s->options.port, &address, &length);
  if (result) return result;
  if (s->options.accept != LOOPBACK_ACCEPT_ALL)
    return listen_by_hand(s, &address, length);
  result = uv_tcp_init(&s->loop, &s->listener);
  if (result) return result;
  s->listener.data = s;
  result = uv_tcp_bind(&s->listener, (struct sockaddr *)&address, 0);
  if (!result)
    result = uv_listen((uv_stream_t *)&s->listener, BACKLOG, on_connection);
  if (!result)
    result = uv_tcp_getsockname(&s->listener, (struct sockaddr *)&address,
                                &named);
  if (!result) s->port = port_of(&address);
  return result;
}
