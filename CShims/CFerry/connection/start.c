/* start.c - brings a transfer from its submit to its engine: into the queue,
 * then to the names that it needs. */
#include "connection/host.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- Admission ----------------------------------------------------------- */

static ferry__fault find_proxy(ferry_loop *loop, ferry__transfer *t) {
  ferry__fault fault = {0, 0};
  const char *origin = t->extras->proxy_origin;
  t->host->held++; /* must not be evicted by the other */
  t->extras->via = ferry__host_find(loop, origin, strlen(origin), &fault);
  t->host->held--;
  if (t->extras->via)
    t->extras->via->held++;
  return fault.code == FERRY_E_INVALID_URL
             ? (ferry__fault){FERRY_E_INVALID_REQUEST, FERRY_D_NONE}
             : fault;
}

void ferry__accept(ferry_loop *loop, ferry__transfer *t) {
  ferry__fault fault = {0, 0};
  ferry__count(&loop->counters.submitted, 1);
  t->submitted_ms = ferry__now(loop);
  t->next = t->prev = NULL;
  if (!ferry__table_insert(&loop->table, t))
    fault.code = FERRY_E_MEMORY;
  else
    t->host = ferry__host_find(loop, t->origin, t->origin_length, &fault);
  t->secure = t->host && t->host->secure;
  if (!fault.code && t->extras && t->extras->proxy)
    fault = ferry__local(loop, t->host)
                ? (ferry__fault){FERRY_E_INVALID_REQUEST, FERRY_D_NONE}
                : find_proxy(loop, t);
  if (fault.code) {
    t->fault = fault;
    ferry__finish(loop, t);
    return;
  }
  ferry__enqueue(loop, t);
  ferry__origin_awaited(t);
  if (t->deadline_ms)
    ferry__wheel_set(loop, t, t->submitted_ms + t->deadline_ms);
}

void ferry__give_place(ferry_loop *loop, ferry__transfer *t) {
  t->host->large = t->result.body_length > FERRY__LONG_BODY;
  ferry__leave(loop, t->host);
}

void ferry__let_go(ferry__transfer *t) {
  if (t->extras && t->extras->via)
    t->extras->via->held--;
}

/* ---- Addresses ----------------------------------------------------------- */

static bool looks_up_here(const ferry__extras *x) {
  return x->proxy_kind == FERRY_PROXY_SOCKS5 ||
         x->proxy_kind == FERRY_PROXY_SOCKS4;
}

/* Chooses the first allowed address of a list "1.2.3.4,[::1]", in libcurl's
 * form for CONNECT_TO: "::1.2.3.4:". */
static ferry__fault choose(ferry__extras *x, const char *list,
                           bool public_only) {
  bool unknown = false;
  while (*list) {
    char one[64] = "";
    size_t n = strcspn(list, ",");
    if (n < sizeof one)
      memcpy(one, list, n);
    list += n + (list[n] == ',');
    if (public_only && ferry_address_is_public(one) != 1)
      continue;
    if (one[0] == '[' && x->proxy_kind == FERRY_PROXY_SOCKS4) {
      unknown = true; /* SOCKS 4 has no IPv6 */
      continue;
    }
    snprintf(x->choice, sizeof x->choice, "::%s:", one);
    x->chosen.data = x->choice;
    return (ferry__fault){FERRY_OK, 0};
  }
  return unknown ? (ferry__fault){FERRY_E_PROXY, FERRY_D_PROXY_HANDSHAKE}
                 : (ferry__fault){FERRY_E_ADDRESS_FORBIDDEN, 0};
}

ferry__host *ferry__dialled(const ferry__transfer *t) {
  return t->extras && t->extras->via ? t->extras->via : t->host;
}

static ferry__fault choose_route(ferry__transfer *t) {
  ferry__extras *x = t->extras;
  const ferry__host *host = t->host;
  bool public_only = t->flags & FERRY_PUBLIC_ONLY;
  if (!x->proxy)
    return (ferry__fault){FERRY_OK, 0};
  if (public_only && (host->literal ? ferry_address_is_public(host->name) != 1
                                    : ferry__is_under(host->name, "localhost")))
    return (ferry__fault){FERRY_E_ADDRESS_FORBIDDEN, 0};
  if (looks_up_here(x) && (!host->literal || host->fixed))
    return choose(x, host->addresses, public_only);
  return (ferry__fault){FERRY_OK, 0};
}

/* ---- Names and engine ---------------------------------------------------- */

/* The host whose name must be looked up before it can start; NULL if none. */
static ferry__host *unnamed(ferry_loop *loop, const ferry__transfer *t) {
  ferry__host *via = t->extras ? t->extras->via : NULL;
  if (via && !ferry__name_known(loop, via))
    return via;
  bool ours = !via || looks_up_here(t->extras);
  return ours && !ferry__name_known(loop, t->host) ? t->host : NULL;
}

/* An error of a proxy's name is reported as the proxy's. */
static ferry__fault name_fault(const ferry__transfer *t, const ferry__host *of,
                               ferry__fault fault) {
  if (fault.code == FERRY_E_DNS && t->extras && t->extras->via == of)
    return (ferry__fault){FERRY_E_PROXY, FERRY_D_PROXY_UNREACHABLE};
  return fault;
}

/* Ends a transfer that was admitted and has no engine yet. */
static void give_up(ferry_loop *loop, ferry__transfer *t, ferry__fault fault) {
  ferry__origin_served(t);
  ferry__leave(loop, t->host);
  t->fault = fault;
  ferry__finish(loop, t);
}

/* Waits for the names it needs, then starts it. */
static void go(ferry_loop *loop, ferry__transfer *t) {
  ferry__host *host = unnamed(loop, t);
  if (!host) {
    ferry__fault fault =
        t->extras ? choose_route(t) : (ferry__fault){FERRY_OK, 0};
    if (fault.code) {
      t->phase = FERRY_PHASE_CONNECT;
      give_up(loop, t, fault);
    } else {
      ferry__transfer_run(loop, t, loop->hooks->choose(loop, t));
    }
  } else if (!host->looking_up) {
    /* Neither known nor being looked up: nothing would resume it. */
    give_up(loop, t,
            name_fault(t, host,
                       (ferry__fault){FERRY_E_DNS, FERRY_D_DNS_FAILED}));
  } else {
    t->state = FERRY__RESOLVING;
    t->phase = FERRY_PHASE_DNS;
    t->asked = host;
    ferry__fifo_push(&host->resolving, t);
    ferry__count(&loop->counters.resolving, 1);
  }
  ferry__watch_limits(loop, t);
}

void ferry__transfer_start(ferry_loop *loop, ferry__transfer *t) {
  t->started_ns = loop->now_ns;
  t->started_ms = t->last_ms = ferry__now(loop);
  if ((t->flags & FERRY_NOTIFY_START) && loop->options.on_started)
    loop->options.on_started(loop->options.context, t->result.id);
  go(loop, t);
}

void ferry__transfer_named(ferry_loop *loop, ferry__transfer *t,
                           ferry__fault fault) {
  ferry__host *host = t->asked;
  ferry__fifo_remove(&host->resolving, t);
  ferry__count(&loop->counters.resolving, -1);
  t->state = FERRY__NEW;
  if (fault.code)
    give_up(loop, t, name_fault(t, host, fault));
  else
    go(loop, t);
}

void ferry__withdraw(ferry_loop *loop, ferry__transfer *t) {
  ferry__origin_served(t);
  if (t->state == FERRY__WAITING) {
    ferry__dequeue(loop, t);
    return;
  }
  ferry__fifo_remove(&t->asked->resolving, t);
  ferry__name_unwanted(loop, t->asked);
  ferry__count(&loop->counters.resolving, -1);
  ferry__leave(loop, t->host);
}

/* ---- Connection errors --------------------------------------------------- */

ferry__fault ferry__connect_fault(bool proxied, int os_errno) {
  if (proxied && os_errno != ETIMEDOUT)
    return (ferry__fault){FERRY_E_PROXY, FERRY_D_PROXY_UNREACHABLE};
  switch (os_errno) {
  case ECONNREFUSED:
    return (ferry__fault){FERRY_E_CONNECT, FERRY_D_CONNECT_REFUSED};
  case ENETUNREACH:
  case EHOSTUNREACH:
    return (ferry__fault){FERRY_E_CONNECT, FERRY_D_CONNECT_UNREACHABLE};
  case ETIMEDOUT:
    return (ferry__fault){FERRY_E_TIMEOUT, FERRY_D_TIMEOUT_CONNECT};
  default:
    return (ferry__fault){FERRY_E_CONNECT, FERRY_D_CONNECT_FAILED};
  }
}
