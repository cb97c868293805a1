/* balance.c - spreads the requests of a host over its addresses. */
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

/* ---- Addresses that do not respond --------------------------------------- */

enum { SHORT_MS = 1000 };

/* A limit of the whole run may leave a server too little time to respond. */
static bool had_time(const ferry__connection *c, uint64_t since,
                     ferry__fault fault) {
  return (fault.detail != FERRY_D_TIMEOUT_DEADLINE &&
          fault.detail != FERRY_D_TIMEOUT_TOTAL) ||
         ferry__now(c->loop) >= since + SHORT_MS;
}

void ferry__connection_is_silent(const ferry__connection *c,
                                 ferry__fault fault) {
  ferry__backend *b = c->backend;
  uint64_t since = c->connected_ns / 1000000;
  if (c->state == FERRY__DIALING)
    ferry__dial_timed_out(c);
  /* Behind a proxy, the cause may be elsewhere. */
  if (!b || c->route->via || c->state == FERRY__DIALING)
    return;
  if (c->state == FERRY__BUSY) {
    since = c->asked_at;
    /* A server cannot respond to a request that it has not received as a
     * whole. */
    if (!ferry__response_is_untouched(&c->response) ||
        (c->sending != FERRY__SEND_DONE &&
         fault.detail != FERRY_D_TIMEOUT_WRITE))
      return;
  }
  /* An address that responds to others meanwhile is only slow. */
  if (b->heard_at < since && had_time(c, since, fault))
    ferry__backend_mute(c->loop, b, since);
}

bool ferry__connection_gives_way(ferry__connection *c) {
  ferry_loop *loop = c->loop;
  ferry__transfer *t = c->transfer;
  ferry__route *route = c->route;
  if (route->via)
    return false;
  ferry__backend_mute(loop, c->backend, c->connected_ns / 1000000);
  if (!t || (t->flags & FERRY_CONNECT) || !ferry__connection_has_others(c))
    return false;
  c->transfer = NULL;
  t->connection = NULL;
  c->why = FERRY_CLOSED_SERVER;
  ferry__connection_close(c);
  t->last_ms = ferry__now(loop);
  ferry__fault fault = ferry__route_start(loop, t);
  if (fault.code) {
    ferry__origin_served(t);
    ferry__transfer_left(loop, t, fault);
  }
  return true;
}
