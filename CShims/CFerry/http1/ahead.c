/* ahead.c - connections that are opened before they are needed: because a
 * transfer asks for them (FERRY_CONNECT), or to keep some ready
 * (ferry_options.minimum_idle). */
#include "http1/http1.h"

#include <string.h>

static const ferry__fault none = {FERRY_OK, 0};

/* Those that may hang do not count. */
static unsigned unused(const ferry__route *route, bool with_waited_for) {
  unsigned count = route->idle_count;
  for (const ferry__connection *c = route->dialing; c; c = c->next)
    count += c->transfer
                 ? with_waited_for && (c->transfer->flags & FERRY_CONNECT)
                 : !ferry__connection_is_slow(c);
  return count;
}

static unsigned hanging(const ferry__route *route) {
  unsigned count = 0;
  for (const ferry__connection *c = route->dialing; c; c = c->next)
    count += !c->transfer && ferry__connection_is_slow(c);
  return count;
}

ferry__fault ferry__route_connect(ferry_loop *loop, ferry__route *route,
                                  ferry__backend *backend,
                                  ferry__transfer *t) {
  ferry__route_retire(loop, route);
  if (!t->connections || unused(route, true) < t->connections)
    return ferry__route_dial(loop, route, backend, t);
  ferry__origin_served(t);
  ferry__transfer_left(loop, t, none);
  return none;
}

void ferry__ahead_ready(ferry__connection *c) {
  ferry_loop *loop = c->loop;
  ferry__transfer *t = c->transfer;
  ferry__exchange_so_far(t, &t->result);
  t->result.metrics.connect = ferry__us(t->started_ns, c->connected_ns);
  t->result.metrics.tls =
      c->secured_ns ? ferry__us(t->started_ns, c->secured_ns) : 0;
  t->result.flags = 0;
  t->result.peer_port = c->peer_port;
  memcpy(t->result.peer, c->peer, sizeof c->peer);
  ferry__origin_served(t);
  ferry__connection_discharge(c, true);
  c->transfer = NULL;
  t->connection = NULL;
  ferry__transfer_left(loop, t, none);
  ferry__route_offer(c);
}

static unsigned unused_at(const ferry__route *route, const ferry__backend *b) {
  unsigned count = 0;
  for (const ferry__connection *c = route->idle; c; c = c->next)
    count += c->backend == b;
  for (const ferry__connection *c = route->dialing; c; c = c->next)
    count += !c->transfer && c->backend == b;
  return count;
}

/* Of several addresses the one with the fewest unused connections. Avoided
 * addresses are left to requests, which probe them. */
static ferry__backend *fewest_unused(ferry_loop *loop,
                                     const ferry__route *route) {
  ferry__backend *best = NULL, *b = ferry__backends_of(route->host);
  unsigned least = 0;
  if (loop->options.selection == FERRY_ADDRESSES_ORDERED)
    return NULL;
  for (; b; b = b->next) {
    unsigned count = unused_at(route, b);
    if (b->backoff_ms ||
        !ferry__backend_is_well(loop, b, route->public_only) ||
        (best && count >= least))
      continue;
    best = b;
    least = count;
  }
  return best;
}

/* Not through a proxy, which may need data that only a transfer has, and not
 * for exchanges over HTTP/2, which are rare. */
void ferry__route_keep_ready(ferry_loop *loop, ferry__route *route) {
  unsigned least = loop->options.minimum_idle;
  ferry__route_retire(loop, route);
  if (route->idle_count >= least || route->via || route->http2 ||
      loop->closing)
    return;
  /* Those that hang are replaced, but never by more than as many. */
  uint64_t hang = hanging(route), most = 2 * (uint64_t)least;
  for (uint64_t n = unused(route, false); n < least && n + hang < most; n++)
    if (ferry__route_dial(loop, route, fewest_unused(loop, route), NULL).code)
      return;
}

bool ferry__connection_is_kept_ready(const ferry__connection *c) {
  const ferry_options *o = &c->loop->options;
  return o->minimum_idle && !c->route->via && !c->route->http2 &&
         c->route->idle_count <= o->minimum_idle &&
         c->route->host->used_at + o->idle_ms > ferry__now(c->loop);
}
