/* routes.c - the routes to a host: direct, or through a proxy, for one of its
 * users. Each has connections of its own. */
#include "http1/http1.h"

#include <stdlib.h>

/* Above this number a host keeps only the routes that have connections. */
enum { MOST_ROUTES = 64 };

static void free_route(ferry__route *route) {
  if (route->via)
    route->via->held--;
  SSL_SESSION_free(route->session);
  free(route);
}

/* A host may be reached in any number of ways, for example with a password of
 * the proxy for each request. */
static void drop_unused(ferry__host *host) {
  ferry__route **place = &host->routes;
  while (*place) {
    ferry__route *route = *place;
    if (route->connections) {
      place = &route->next;
    } else {
      *place = route->next;
      free_route(route);
    }
  }
}

ferry__route *ferry__route_find(const ferry_loop *loop, ferry__transfer *t) {
  const ferry__extras *x = t->extras;
  ferry__host *via = x ? x->via : NULL;
  uint64_t identity = x ? x->identity : 0;
  uint8_t kind = via ? x->proxy_kind : 0;
  /* The addresses that an HTTP proxy connects to are unknown here. */
  bool public_only =
      (t->flags & FERRY_PUBLIC_ONLY) && kind != FERRY_PROXY_HTTP;
  bool http2 = ferry__http2_wanted(loop, t);
  ferry__route *route = t->host->routes;
  int count = 0;
  while (route && !(route->via == via && route->identity == identity &&
                    route->proxy_kind == kind &&
                    route->public_only == public_only &&
                    route->http2 == http2)) {
    route = route->next;
    count++;
  }
  if (route)
    return route;
  if (count >= MOST_ROUTES)
    drop_unused(t->host);
  if (!(route = calloc(1, sizeof *route)))
    return NULL;
  route->host = t->host;
  route->via = via;
  route->identity = identity;
  route->proxy_kind = kind;
  route->public_only = public_only;
  route->http2 = http2;
  route->next = t->host->routes;
  t->host->routes = route;
  if (via)
    via->held++; /* as long as connections may go through it */
  return route;
}

void ferry__routes_close(ferry__host *host, bool is_end) {
  uint8_t why = is_end ? FERRY_CLOSED_SHUTDOWN : FERRY_CLOSED_EVICTED;
  while (host->routes) {
    ferry__route *route = host->routes;
    while (route->idle)
      ferry__close(route->idle, why);
    while (route->dialing)
      ferry__close(route->dialing, why);
    host->routes = route->next;
    free_route(route);
  }
}
