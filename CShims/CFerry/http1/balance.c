/* balance.c - the requests of a host with several addresses, spread over
 * them. */
#include "http1/http1.h"

void ferry__connection_charge(ferry__connection *c) {
  if (!c->backend || c->charged)
    return;
  c->charged = true;
  c->backend->active++;
  c->backend->requests++;
}

void ferry__connection_discharge(ferry__connection *c, bool undone) {
  if (!c->charged)
    return;
  c->charged = false;
  c->backend->active--;
  if (undone && c->backend->requests)
    c->backend->requests--;
}

void ferry__connection_moves(ferry__connection *c, ferry__backend *backend) {
  bool charged = c->charged;
  if (backend == c->backend)
    return;
  ferry__backend_hold(backend);
  ferry__connection_discharge(c, true);
  ferry__backend_release(c->backend);
  c->backend = backend;
  if (charged)
    ferry__connection_charge(c);
}

ferry__connection *ferry__route_idle_at(const ferry__route *route,
                                        const ferry__backend *backend) {
  ferry__connection *c = route->idle;
  while (c && backend && c->backend != backend)
    c = c->next;
  return c;
}

bool ferry__connection_is_balanced(const ferry__connection *c) {
  return c->backend &&
         c->loop->options.selection != FERRY_ADDRESSES_ORDERED;
}

bool ferry__connection_has_others(const ferry__connection *c) {
  const ferry__host *host = ferry__route_dialled(c->route);
  return ferry__connection_is_balanced(c) &&
         ferry__backends_have_other(c->loop, host->backends, c->backend);
}
