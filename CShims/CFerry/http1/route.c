/* route.c - the pool: connections that are idle, and those being dialed.
 *
 * A transfer is not tied to the connection that was dialed for it. The first
 * connection that becomes free takes the transfer that has waited longest; the
 * one that was dialed for it then serves the next, or is kept. */
#include "http1/http1.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

/* The only limit for a connection being dialed that no transfer waits for.
 * Without it, a server that does not respond would keep it for ever, and make
 * the next transfer wait for it. */
enum { NOBODYS_MS = 10000 };

/* For so long a connection that was read to its end is not read again. */
enum { MOMENT_NS = 1000000 };

/* ---- Lists --------------------------------------------------------------- */

static void link_dialing(ferry__connection *c) {
  ferry__route *route = c->route;
  ferry__http1 *http1 = c->loop->http1;
  c->idle_since = ferry__now(c->loop);
  c->next = NULL;
  c->prev = route->youngest;
  if (route->youngest)
    route->youngest->next = c;
  else
    route->dialing = c;
  route->youngest = c;
  c->newer = NULL;
  c->older = http1->dialing_last;
  if (c->older)
    c->older->newer = c;
  else
    http1->dialing = c;
  http1->dialing_last = c;
}

void ferry__route_remove_dialing(ferry__connection *c) {
  ferry__route *route = c->route;
  ferry__http1 *http1 = c->loop->http1;
  if (c->prev)
    c->prev->next = c->next;
  else
    route->dialing = c->next;
  if (c->next)
    c->next->prev = c->prev;
  else
    route->youngest = c->prev;
  if (c->older)
    c->older->newer = c->newer;
  else
    http1->dialing = c->newer;
  if (c->newer)
    c->newer->older = c->older;
  else
    http1->dialing_last = c->older;
  c->prev = c->next = c->older = c->newer = NULL;
  c->state = FERRY__BUSY;
}

static void link_idle(ferry__connection *c) {
  ferry__route *route = c->route;
  ferry__http1 *http1 = c->loop->http1;
  c->state = FERRY__IDLE;
  c->idle_since = ferry__now(c->loop);
  c->prev = NULL;
  c->next = route->idle;
  if (c->next)
    c->next->prev = c;
  route->idle = c;
  c->newer = NULL;
  c->older = http1->newest;
  if (c->older)
    c->older->newer = c;
  else
    http1->oldest = c;
  http1->newest = c;
  http1->idle_count++;
  route->idle_count++;
  if (c->retire_at && (!route->retire_at || c->retire_at < route->retire_at))
    route->retire_at = c->retire_at;
  ferry__count(&route->host->figures.idle, 1);
}

static void unlink_idle(ferry__connection *c) {
  ferry__http1 *http1 = c->loop->http1;
  if (c->prev)
    c->prev->next = c->next;
  else
    c->route->idle = c->next;
  if (c->next)
    c->next->prev = c->prev;
  if (c->older)
    c->older->newer = c->newer;
  else
    http1->oldest = c->newer;
  if (c->newer)
    c->newer->older = c->older;
  else
    http1->newest = c->older;
  http1->idle_count--;
  c->route->idle_count--;
  ferry__count(&c->route->host->figures.idle, -1);
  c->prev = c->next = c->older = c->newer = NULL;
  c->state = FERRY__BUSY;
}

void ferry__route_remove(ferry__connection *c) {
  if (c->state == FERRY__IDLE)
    unlink_idle(c);
  else if (c->state < FERRY__IDLE)
    ferry__route_remove_dialing(c);
  c->route->connections--;
}

/* ---- Taking and returning connections ------------------------------------ */

/* Whether what has arrived are tickets, which a server may send before the
 * client has finished the handshake (RFC 8446, 4.6.1). */
static bool has_only_tickets(ferry__connection *c) {
  char byte;
  ssize_t n = ferry__connection_read(c, &byte, 1);
  if (n == -EAGAIN && !SSL_has_pending(c->tls)) /* and no more has arrived */
    return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           errno == EAGAIN;
  if (n <= 0 && n != -EAGAIN)
    c->why = FERRY_CLOSED_SERVER;
  return false;
}

/* Whether everything available was read a moment ago, in this turn and after
 * the transfer was submitted. */
static bool was_just_read(const ferry__connection *c,
                          const ferry__transfer *t) {
  return c->turn == c->loop->waits && t->submitted_ns < c->loop->read_ns &&
         uv_hrtime() - c->loop->read_ns < MOMENT_NS;
}

/* Whether nothing, not even its end, has arrived since its last exchange. A
 * connection that was just read is not checked again. But a read that takes the
 * last bytes does not show an end after them: for a request that must not be
 * sent twice it is checked. */
static bool is_usable(ferry__connection *c, const ferry__transfer *t) {
  char byte;
  if (c->http2)
    return ferry__http2_is_usable(c);
  if ((t->flags & FERRY_IDEMPOTENT) && t->body_kind != FERRY_BODY_PULL &&
      was_just_read(c, t))
    return true;
  c->why = FERRY_CLOSED_POISONED;
  if (c->tls && SSL_has_pending(c->tls) && !has_only_tickets(c))
    return false;
  ssize_t n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n < 0 && errno == EAGAIN)
    return true;
  if (n > 0 && c->tls)
    return has_only_tickets(c);
  if (n <= 0)
    c->why = FERRY_CLOSED_SERVER;
  return false;
}

static bool is_retired(const ferry__connection *c) {
  return c->retire_at && ferry__now(c->loop) >= c->retire_at;
}

void ferry__route_retire(ferry_loop *loop, ferry__route *route) {
  uint64_t next = 0;
  if (!route->retire_at || ferry__now(loop) < route->retire_at)
    return;
  for (ferry__connection *c = route->idle, *older; c; c = older) {
    older = c->next;
    if (is_retired(c))
      ferry__close(c, FERRY_CLOSED_LIFETIME);
    else if (c->retire_at && (!next || c->retire_at < next))
      next = c->retire_at;
  }
  route->retire_at = next;
}

ferry__fault ferry__route_dial(ferry_loop *loop, ferry__route *route,
                               ferry__backend *backend, ferry__transfer *t) {
  ferry__connection *c = calloc(1, sizeof *c);
  if (!c)
    return (ferry__fault){FERRY_E_MEMORY, 0};
  c->loop = loop;
  c->route = route;
  c->fd = -1;
  c->transfer = t;
  c->ahead = !t || (t->flags & FERRY_CONNECT);
  if (t) {
    t->phase = FERRY_PHASE_CONNECT;
    t->connection = c;
  }
  route->connections++;
  link_dialing(c);
  ferry__connection_moves(c, backend);
  if (t)
    ferry__connection_charge(c);
  else
    ferry__arm(loop, c->idle_since + NOBODYS_MS);
  ferry__dial_begin(c);
  return (ferry__fault){FERRY_OK, 0};
}

/* Closes the oldest one that may hang and that no transfer waits for. So those
 * that hang do not take a route beyond the host's limit. */
static void make_room(ferry_loop *loop, ferry__route *route) {
  ferry__connection *c = route->dialing;
  if (route->connections < loop->options.max_per_host)
    return;
  while (c && (c->transfer || !ferry__connection_is_slow(c)))
    c = c->next;
  if (c)
    ferry__close(c, FERRY_CLOSED_EVICTED);
}

/* Waits for a connection whose transfer has been served by another one, or
 * dials one. */
static ferry__fault wait_for(ferry_loop *loop, ferry__route *route,
                             ferry__backend *backend, ferry__transfer *t) {
  ferry__connection *c = route->dialing;
  while (c && (c->transfer || ferry__connection_is_slow(c) ||
               (backend && c->backend != backend)))
    c = c->next;
  if (!c) {
    make_room(loop, route);
    return ferry__route_dial(loop, route, backend, t);
  }
  c->transfer = t;
  c->ahead = false;
  t->connection = c;
  t->phase = c->state == FERRY__HANDSHAKING ? FERRY_PHASE_TLS
                                            : FERRY_PHASE_CONNECT;
  ferry__connection_charge(c);
  return (ferry__fault){FERRY_OK, 0};
}

static ferry__fault start(ferry_loop *loop, ferry__route *route,
                          ferry__transfer *t) {
  ferry__backend *backend = ferry__backend_choose(
      loop, ferry__route_dialled(route), route->public_only && !route->via);
  ferry__connection *c;
  bool asks = backend && backend->backoff_ms; /* whether it has recovered */
  if (asks)
    ferry__backend_tried(loop, backend);
  if (t->flags & FERRY_CONNECT)
    return ferry__route_connect(loop, route, backend, t);
  while (!t->fresh && !asks && (c = ferry__route_idle_at(route, backend))) {
    if (is_retired(c)) {
      ferry__close(c, FERRY_CLOSED_LIFETIME);
      continue;
    }
    if (is_usable(c, t)) {
      unlink_idle(c);
      ferry__exchange_begin(c, t);
      return (ferry__fault){FERRY_OK, 0};
    }
    ferry__count(&loop->counters.guarded, 1);
    ferry__connection_close(c);
  }
  return wait_for(loop, route, backend, t);
}

ferry__fault ferry__route_start(ferry_loop *loop, ferry__transfer *t) {
  ferry__route *route = ferry__route_find(loop, t);
  if (!route)
    return (ferry__fault){FERRY_E_MEMORY, 0};
  ferry__fault fault = start(loop, route, t);
  if (loop->options.minimum_idle)
    ferry__route_keep_ready(loop, route);
  return fault;
}

/* Whether the waiting transfer may be served by another connection. Not if its
 * connection probes whether an address has recovered. */
static bool takes_another(const ferry__connection *waiting) {
  const ferry__transfer *t = waiting->transfer;
  return t && !t->fresh && !(t->flags & FERRY_CONNECT) &&
         !(waiting->backend && waiting->backend->mute);
}

void ferry__route_offer(ferry__connection *c) {
  ferry_loop *loop = c->loop;
  ferry__connection *waiting = c->route->dialing;
  if (is_retired(c)) { /* for a waiting transfer another one is dialed */
    ferry__close(c, FERRY_CLOSED_LIFETIME);
    return;
  }
  while (waiting && !takes_another(waiting))
    waiting = waiting->next;
  if (waiting) {
    ferry__transfer *t = waiting->transfer;
    if (!is_usable(c, t)) { /* its own connection is still being opened */
      ferry__count(&loop->counters.guarded, 1);
      ferry__connection_close(c);
      return;
    }
    waiting->transfer = NULL;
    waiting->ahead = true;
    ferry__connection_discharge(waiting, true);
    ferry__arm(loop, waiting->idle_since + NOBODYS_MS);
    ferry__exchange_begin(c, t);
    return;
  }
  if (ferry__connection_is_balanced(c) && !c->backend->listed) {
    ferry__close(c, FERRY_CLOSED_EVICTED); /* its address is no longer in
                                            * the list */
    return;
  }
  /* OpenSSL may have frames that raise no event. */
  if (c->http2 && !ferry__http2_is_usable(c)) {
    ferry__connection_close(c);
    return;
  }
  /* The socket may not be watched for reading, because its receiver was paused,
   * or may still be watched for writing. */
  if (ferry__connection_watch(c, true, false)) {
    ferry__close(c, FERRY_CLOSED_ERROR);
    return;
  }
  link_idle(c);
  ferry__arm(loop, c->idle_since + loop->options.idle_ms);
  if (loop->http1->idle_count > loop->options.max_transfers)
    ferry__close(loop->http1->oldest, FERRY_CLOSED_EVICTED);
}

uint64_t ferry__http1_look(ferry_loop *loop, uint64_t now) {
  ferry__http1 *http1 = loop->http1;
  uint64_t next = 0;
  while (http1->oldest &&
         http1->oldest->idle_since + loop->options.idle_ms <= now) {
    ferry__connection *c = http1->oldest;
    bool old = is_retired(c);
    if (old || !ferry__connection_is_kept_ready(c)) {
      ferry__close(c, old ? FERRY_CLOSED_LIFETIME : FERRY_CLOSED_IDLE);
      continue;
    }
    unlink_idle(c); /* its idle time starts again */
    link_idle(c);
  }
  if (http1->oldest)
    next = http1->oldest->idle_since + loop->options.idle_ms;
  /* All wait equally long for their next address, so the oldest is due
   * first. */
  for (ferry__connection *c = http1->dialing, *newer; c; c = newer) {
    newer = c->newer;
    if (!c->transfer && c->idle_since + NOBODYS_MS <= now) {
      ferry__connection_is_silent(c, (ferry__fault){FERRY_E_TIMEOUT, 0});
      ferry__connection_close(c);
      continue;
    }
    uint64_t at = c->transfer ? 0 : c->idle_since + NOBODYS_MS;
    if (at && (!next || at < next))
      next = at;
    at = c->state == FERRY__DIALING ? ferry__dial_look(c, now) : 0;
    if (at && (!next || at < next))
      next = at;
  }
  return next;
}
