/* backend.c - a host with several addresses: which of them are healthy, and
 * which one the next request goes to. */
#include "connection/host.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
  FIRST_MS = 1000, /* how long a failed address is avoided; then twice as long
                    * each time */
  MOST_MS = 60000,
};

/* ---- The list ------------------------------------------------------------ */

static void let_go(ferry__backend *b) {
  b->listed = false;
  if (!b->references)
    free(b);
}

void ferry__backend_hold(ferry__backend *b) {
  if (b)
    b->references++;
}

void ferry__backend_release(ferry__backend *b) {
  if (b && !--b->references && !b->listed)
    free(b);
}

void ferry__backends_free(ferry__host *host) {
  while (host->backends) {
    ferry__backend *b = host->backends;
    host->backends = b->next;
    let_go(b);
  }
}

ferry__backend *ferry__backend_find(const ferry__host *host, const char *text,
                                    size_t length) {
  ferry__backend *b = host->backends;
  while (b && (strncmp(b->address, text, length) || b->address[length]))
    b = b->next;
  return b;
}

static ferry__backend *make(const char *text, size_t length) {
  ferry__backend *b = calloc(1, sizeof *b);
  if (!b)
    return NULL;
  memcpy(b->address, text, length);
  b->listed = b->behind = true;
  return b;
}

/* Takes a backend out of a list. */
static ferry__backend *take(ferry__backend **list, const char *text,
                            size_t length) {
  for (; *list; list = &(*list)->next) {
    ferry__backend *b = *list;
    if (strncmp(b->address, text, length) || b->address[length])
      continue;
    *list = b->next;
    return b;
  }
  return NULL;
}

/* Rebuilds the list in the order of the lookup's result. Addresses that remain
 * keep their state. Without memory some are missing until the next lookup. */
static void list_anew(ferry__host *host) {
  ferry__backend *old = host->backends, **last = &host->backends;
  const char *list = host->addresses;
  unsigned count = 0;
  host->backends = NULL;
  while (*list && count < FERRY__ADDRESSES) {
    size_t n = strcspn(list, ",");
    ferry__backend *b = NULL;
    if (n && n < sizeof b->address && !ferry__backend_find(host, list, n) &&
        ((b = take(&old, list, n)) || (b = make(list, n)))) {
      b->next = NULL;
      *last = b;
      last = &b->next;
      count++;
    }
    list += n + (list[n] == ',');
  }
  while (old) {
    ferry__backend *b = old;
    old = b->next;
    let_go(b);
  }
  host->backends_of = host->answer;
}

ferry__backend *ferry__backends_of(ferry__host *host) {
  if (!host->addresses || host->backends_of == host->answer)
    return host->backends;
  if (host->backends || strchr(host->addresses, ','))
    list_anew(host);
  else
    host->backends_of = host->answer; /* a single address needs no list */
  return host->backends;
}

/* ---- Health -------------------------------------------------------------- */

bool ferry__backend_is_avoided(const ferry_loop *loop,
                               const ferry__backend *b) {
  return b && ferry__now(loop) < b->avoid_until;
}

static void back_off(ferry__backend *b, uint64_t now) {
  b->backoff_ms = !b->backoff_ms               ? FIRST_MS
                  : b->backoff_ms * 2 < MOST_MS ? b->backoff_ms * 2
                                                : MOST_MS;
  b->failed_at = now;
  b->avoid_until = now + b->backoff_ms;
  b->behind = true;
}

/* The time of avoidance is over: one request probes the address, the others
 * wait. An address that accepted connections without a response may take long
 * to fail again, and every request sent meanwhile would be lost. So it counts
 * as failed until it responds, and attempts that start until then belong to the
 * same failure. */
void ferry__backend_tried(const ferry_loop *loop, ferry__backend *b) {
  if (!b || !b->backoff_ms || ferry__backend_is_avoided(loop, b))
    return;
  if (!b->mute) {
    b->avoid_until = ferry__now(loop) + FIRST_MS;
    return;
  }
  back_off(b, ferry__now(loop));
  b->failed_at = b->avoid_until;
}

void ferry__backend_failed(const ferry_loop *loop, ferry__backend *b,
                           uint64_t begun) {
  uint64_t now = ferry__now(loop);
  if (!b || (b->backoff_ms && begun <= b->failed_at))
    return; /* several at once count as one failure */
  back_off(b, now);
}

static void recover(ferry__backend *b) {
  b->backoff_ms = 0;
  b->avoid_until = 0;
  b->mute = false;
}

void ferry__backend_connected(ferry__backend *b) {
  if (b && !b->mute)
    recover(b);
}

void ferry__backend_mute(const ferry_loop *loop, ferry__backend *b,
                         uint64_t begun) {
  if (!b)
    return;
  b->mute = true;
  ferry__backend_failed(loop, b, begun);
}

void ferry__backend_heard(const ferry_loop *loop, ferry__backend *b) {
  if (!b)
    return;
  b->heard_at = ferry__now(loop);
  if (b->mute)
    recover(b);
}

/* ---- The next one -------------------------------------------------------- */

bool ferry__backend_is_well(const ferry_loop *loop, const ferry__backend *b,
                            bool public_only) {
  return !ferry__backend_is_avoided(loop, b) &&
         !(public_only && ferry_address_is_public(b->address) != 1);
}

bool ferry__backends_have_other(const ferry_loop *loop,
                                const ferry__backend *list,
                                const ferry__backend *than) {
  for (; list; list = list->next)
    if (list != than && !ferry__backend_is_avoided(loop, list))
      return true;
  return false;
}

/* A backend that is new or has recovered need not catch up on past requests. */
static uint64_t least_requests(const ferry_loop *loop,
                               const ferry__backend *list, bool public_only) {
  uint64_t least = UINT64_MAX;
  for (const ferry__backend *b = list; b; b = b->next)
    if (!b->behind && ferry__backend_is_well(loop, b, public_only) &&
        b->requests < least)
      least = b->requests;
  return least == UINT64_MAX ? 0 : least;
}

/* A backend with up to this many requests may be chosen. Equal servers differ
 * by chance, which is no reason to pass one over. */
static unsigned most_active(const ferry_loop *loop, const ferry__backend *list,
                            bool public_only) {
  unsigned least = UINT_MAX;
  if (loop->options.selection != FERRY_ADDRESSES_LEAST)
    return UINT_MAX;
  for (const ferry__backend *b = list; b; b = b->next)
    if (ferry__backend_is_well(loop, b, public_only) && b->active < least)
      least = b->active;
  return least == UINT_MAX ? least : least + 2 + least / 2;
}

ferry__backend *ferry__backend_choose(const ferry_loop *loop,
                                      ferry__host *host, bool public_only) {
  ferry__backend *best = NULL, *list = ferry__backends_of(host);
  if (!list || loop->options.selection == FERRY_ADDRESSES_ORDERED)
    return NULL;
  uint64_t least = least_requests(loop, list, public_only);
  unsigned most = most_active(loop, list, public_only);
  for (ferry__backend *b = list; b; b = b->next) {
    if (!ferry__backend_is_well(loop, b, public_only))
      continue;
    if (b->backoff_ms) /* this request probes whether it has recovered */
      return b;
    if (b->behind && b->requests < least)
      b->requests = least;
    b->behind = false;
    if (b->active <= most && (!best || b->requests < best->requests))
      best = b;
  }
  return best;
}
