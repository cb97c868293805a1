/* dial.c - connects to one of a host's addresses, by Happy Eyeballs (RFC 8305).
 *
 * The addresses are in the resolver's order (RFC 6724), and the families
 * alternate. The next address is tried when one has failed, or has not
 * connected after 200 ms. The first connection wins. The address that the
 * connection is meant for comes first, and addresses that failed recently come
 * last (backend.c). */
#include "http1/http1.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { DELAY_MS = 200, FULL_MS = 5 };

typedef union address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
  struct sockaddr_un un;
} address;

struct ferry__dial {
  uint64_t next_at; /* ms: when the next address is tried; 0 = none is left */
  int os_errno;     /* of the last failure */
  bool forbidden;   /* an address was skipped, as it is not public */
  bool full;        /* the server of a local socket has a full backlog */
  uint8_t count, tried, open;
  uint8_t well;       /* how many of the first are not avoided */
  sa_family_t family; /* of the last attempt */
  bool used[FERRY__ADDRESSES];
  uint64_t begun[FERRY__ADDRESSES]; /* ms */
  ferry__backend *backend[FERRY__ADDRESSES]; /* a reference is held */
  int fds[FERRY__ADDRESSES]; /* -1 = not open */
  address to[];
};

/* "1.2.3.4", "[::1]" */
static bool parse_one(const char *text, size_t n, uint16_t port, address *a) {
  char copy[INET6_ADDRSTRLEN];
  memset(a, 0, sizeof *a);
  if (n > 2 && text[0] == '[') {
    text++;
    n -= 2;
    a->v6.sin6_family = AF_INET6;
    a->v6.sin6_port = htons(port);
  } else {
    a->v4.sin_family = AF_INET;
    a->v4.sin_port = htons(port);
  }
  if (n >= sizeof copy)
    return false;
  memcpy(copy, text, n);
  copy[n] = 0;
  return inet_pton(a->any.sa_family, copy,
                   a->any.sa_family == AF_INET6 ? (void *)&a->v6.sin6_addr
                                                : (void *)&a->v4.sin_addr) == 1;
}

static const char *local(const ferry__connection *c) {
  return ferry__local(c->loop, ferry__route_dialled(c->route));
}

static ferry__dial *make_local(const ferry__connection *c) {
  ferry__dial *dial = calloc(1, sizeof *dial + sizeof *dial->to);
  bool fits = ferry__local_fits(local(c));
  if (!dial)
    return NULL;
  dial->to->un.sun_family = AF_UNIX;
  strncpy(dial->to->un.sun_path, local(c), sizeof dial->to->un.sun_path - 1);
  dial->forbidden = c->route->public_only;
  dial->os_errno = fits || dial->forbidden ? 0 : ENAMETOOLONG;
  dial->count = fits && !dial->forbidden;
  dial->fds[0] = -1;
  return dial;
}

enum { MEANT, WELL, AVOIDED };

static int rank_of(const ferry__connection *c, const ferry__backend *b) {
  if (b && b == c->backend)
    return MEANT;
  return ferry__backend_is_avoided(c->loop, b) ? AVOIDED : WELL;
}

/* Adds the addresses of one rank. */
static void add(ferry__dial *dial, const ferry__connection *c, int rank,
                const char *list, size_t most) {
  const ferry__route *route = c->route;
  const ferry__host *host = ferry__route_dialled(route);
  for (size_t n; *list && dial->count < most; list += n + (list[n] == ',')) {
    n = strcspn(list, ",");
    address *a = &dial->to[dial->count];
    ferry__backend *b = ferry__backend_find(host, list, n);
    if (rank_of(c, b) != rank || !parse_one(list, n, host->port, a))
      continue;
    if (host->zone && host->literal)
      a->v6.sin6_scope_id = host->zone;
    if (route->public_only && !route->via && !ferry__is_public(&a->any)) {
      dial->forbidden = true;
      continue;
    }
    ferry__backend_hold(b);
    dial->backend[dial->count] = b;
    dial->fds[dial->count++] = -1;
  }
}

static ferry__dial *make(const ferry__connection *c) {
  ferry__host *host = ferry__route_dialled(c->route);
  const char *list =
      host->literal && !host->fixed ? host->name : host->addresses;
  size_t most = 1;
  ferry__backends_of(host);
  for (const char *p = list; *p; p++)
    most += *p == ',';
  if (most > FERRY__ADDRESSES)
    most = FERRY__ADDRESSES;
  ferry__dial *dial = calloc(1, sizeof *dial + most * sizeof *dial->to);
  if (!dial)
    return NULL;
  add(dial, c, MEANT, list, most);
  add(dial, c, WELL, list, most);
  dial->well = dial->count;
  add(dial, c, AVOIDED, list, most);
  return dial;
}

void ferry__dial_end(ferry__connection *c) {
  ferry__dial *dial = c->dial;
  for (int i = 0; i < dial->count; i++) {
    if (dial->fds[i] >= 0)
      ferry__connection_release_fd(c->loop, dial->fds[i]);
    ferry__backend_release(dial->backend[i]);
  }
  free(dial);
  c->dial = NULL;
}

void ferry__dial_timed_out(const ferry__connection *c) {
  const ferry__dial *dial = c->dial;
  uint64_t now = ferry__now(c->loop);
  for (int i = 0; dial && i < dial->count; i++)
    if (dial->fds[i] >= 0 && dial->begun[i] + DELAY_MS <= now)
      ferry__backend_failed(c->loop, dial->backend[i], dial->begun[i]);
}

static void give_up(ferry__connection *c) {
  const ferry__dial *dial = c->dial;
  int os_errno = dial->os_errno;
  ferry__fault fault =
      dial->forbidden && !dial->tried
          ? (ferry__fault){FERRY_E_ADDRESS_FORBIDDEN, 0}
          : ferry__connect_fault(c->route->via != NULL, os_errno);
  const ferry__host *host = ferry__route_dialled(c->route);
  char words[512];
  if (local(c))
    snprintf(words, sizeof words, "Failed to connect to %s: %s", local(c),
             strerror(os_errno));
  else
    snprintf(words, sizeof words, "Failed to connect to %s port %u: %s",
             host->name, host->port, strerror(os_errno));
  ferry__connection_failed(c, fault, os_errno, os_errno ? words : NULL);
}

static void note_peer(ferry__connection *c) {
  address peer;
  socklen_t length = sizeof peer;
  if (getpeername(c->fd, &peer.any, &length) ||
      peer.any.sa_family == AF_UNIX)
    return;
  bool v6 = peer.any.sa_family == AF_INET6;
  inet_ntop(peer.any.sa_family,
            v6 ? (void *)&peer.v6.sin6_addr : (void *)&peer.v4.sin_addr,
            c->peer, sizeof c->peer);
  c->peer_port = ntohs(v6 ? peer.v6.sin6_port : peer.v4.sin_port);
}

static void connected(ferry__connection *c, int i) {
  int one = 1;
  ferry_loop *loop = c->loop;
  ferry__dial *dial = c->dial;
  /* Addresses tried before this one have not connected in time. */
  for (int j = 0; j < dial->count; j++)
    if (dial->fds[j] >= 0 && dial->begun[j] < dial->begun[i])
      ferry__backend_failed(loop, dial->backend[j], dial->begun[j]);
  ferry__backend_connected(dial->backend[i]);
  ferry__connection_moves(c, dial->backend[i]);
  c->fd = dial->fds[i];
  c->serial = ferry__socket_of(loop, c->fd)->serial;
  dial->fds[i] = -1;
  ferry__dial_end(c);
  c->connected_ns = uv_hrtime();
  if (loop->options.lifetime_ms)
    c->retire_at = ferry__now(loop) + ferry__lifetime(loop, c->serial);
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  ferry__socket_keep_alive(loop, c->fd);
  note_peer(c);
  ferry__count(&loop->counters.sockets, 1);
  ferry__count(&loop->counters.connections, 1);
  ferry__count(&c->route->host->figures.open, 1);
  ferry__count(&c->route->host->figures.opened, 1);
  if (c->route->proxy_kind > FERRY_PROXY_HTTP)
    ferry__socks_begin(c);
  else if (c->route->host->secure && c->route->via)
    ferry__tunnel_begin(c);
  else if (c->route->host->secure)
    ferry__tls_begin(c);
  else
    ferry__connection_ready(c);
}

/* The next address: of the other family than the last one, if there is any. An
 * avoided one only if no other is left. */
static int choose(const ferry__dial *dial) {
  int first = -1;
  for (int i = 0; i < dial->count; i++) {
    if (i == dial->well && first >= 0)
      break;
    if (dial->used[i])
      continue;
    if (dial->to[i].any.sa_family != dial->family)
      return i;
    if (first < 0)
      first = i;
  }
  return first;
}

/* If the process has no more file descriptors, an idle connection is closed for
 * a transfer that has no other attempt. */
static int open_socket(const ferry__connection *c, int family) {
  ferry_loop *loop = c->loop;
  bool needed = c->transfer && !c->dial->open;
  int kind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
  int fd = socket(family, kind, 0);
  if (fd >= 0 || (errno != EMFILE && errno != ENFILE) || !needed ||
      !loop->http1->oldest)
    return fd;
  ferry__close(loop->http1->oldest, FERRY_CLOSED_EVICTED);
  return socket(family, kind, 0);
}

/* Whether it may be possible in a moment. */
static bool is_short_of(int code) {
  return code == EMFILE || code == ENFILE || code == ENOBUFS ||
         code == ENOMEM;
}

/* Returns false if this attempt has failed already. */
static bool try_one(ferry__connection *c, int i) {
  ferry__dial *dial = c->dial;
  const address *to = &dial->to[i];
  socklen_t length = to->any.sa_family == AF_INET6  ? sizeof to->v6
                     : to->any.sa_family == AF_UNIX ? sizeof to->un
                                                    : sizeof to->v4;
  dial->used[i] = true;
  dial->tried++;
  dial->begun[i] = ferry__now(c->loop);
  ferry__backend_tried(c->loop, dial->backend[i]);
  dial->family = to->any.sa_family;
  int fd = open_socket(c, dial->family);
  ferry__socket *s = fd < 0 ? NULL
                            : ferry__socket_renew(c->loop, fd,
                                                  &ferry__connection_owner);
  if (!s) {
    dial->os_errno = fd < 0 ? errno : ENOMEM;
    if (fd >= 0)
      close(fd);
    /* There may be enough again before the other attempts have failed. */
    dial->full = dial->open && is_short_of(dial->os_errno);
    return false;
  }
  s->native = c;
  dial->fds[i] = fd;
  if ((connect(fd, &to->any, length) && errno != EINPROGRESS) ||
      !ferry__socket_watch(c->loop, s, CURL_POLL_OUT)) {
    dial->os_errno = errno;
    /* Unlike with TCP, a full backlog of a local socket is reported at once. */
    dial->full = dial->family == AF_UNIX && errno == EAGAIN;
    ferry__backend_failed(c->loop, dial->backend[i], dial->begun[i]);
    dial->fds[i] = -1;
    ferry__connection_release_fd(c->loop, fd);
    return false;
  }
  dial->open++;
  return true;
}

/* Returns false if no address is left and no attempt is open. The connection is
 * gone then. */
static bool try_next(ferry__connection *c) {
  ferry__dial *dial = c->dial;
  int i;
  while ((i = choose(dial)) >= 0 && !try_one(c, i) && !dial->full)
    ;
  if (dial->full) {
    dial->full = dial->used[i] = false;
    dial->tried--;
    dial->next_at = ferry__now(c->loop) +
                    (is_short_of(dial->os_errno) ? DELAY_MS : FULL_MS);
    ferry__arm(c->loop, dial->next_at);
    return true;
  }
  if (i < 0 && !dial->open) {
    give_up(c);
    return false;
  }
  dial->next_at = 0;
  if (choose(dial) >= 0) {
    dial->next_at = ferry__now(c->loop) + DELAY_MS;
    ferry__arm(c->loop, dial->next_at);
  }
  return true;
}

bool ferry__dial_begin(ferry__connection *c) {
  c->state = FERRY__DIALING;
  c->dial = local(c) ? make_local(c) : make(c);
  if (c->dial)
    return try_next(c);
  ferry__connection_failed(c, (ferry__fault){FERRY_E_MEMORY, 0}, 0, NULL);
  return false;
}

void ferry__dial_event(ferry__connection *c, int fd) {
  ferry__dial *dial = c->dial;
  int code = 0, i = 0;
  socklen_t length = sizeof code;
  while (i < dial->count && dial->fds[i] != fd)
    i++;
  if (i == dial->count)
    return;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length))
    code = errno;
  address peer;
  length = sizeof peer;
  if (!code && getpeername(fd, &peer.any, &length))
    return; /* an event of an earlier socket with this number */
  if (!code) {
    connected(c, i);
    return;
  }
  dial->os_errno = code;
  ferry__backend_failed(c->loop, dial->backend[i], dial->begun[i]);
  dial->fds[i] = -1;
  dial->open--;
  ferry__connection_release_fd(c->loop, fd);
  try_next(c);
}

uint64_t ferry__dial_look(ferry__connection *c, uint64_t now) {
  if (!c->dial->next_at || now < c->dial->next_at)
    return c->dial->next_at;
  return try_next(c) ? c->dial->next_at : 0;
}
