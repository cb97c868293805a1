/* admission.c - which transfer starts next: three priority queues, a limit in
 * total and per host.
 *
 * A transfer waits in the queue of its priority. If its host is at its limit
 * when its turn comes, it is parked with the host. As soon as the host has room
 * again, it is taken from there, before anything younger of its queue. So every
 * step is O(1), however many wait, and the order stays first in, first out.
 * Waiting transfers hold no handle and no buffer. */
#include "connection/host.h"

enum { PATIENCE = 16 }; /* a queue that was passed over this often is served
                         * next */

void ferry__fifo_push(ferry__fifo *fifo, ferry__transfer *t) {
  t->fifo = fifo;
  t->next = NULL;
  t->prev = fifo->tail;
  if (fifo->tail)
    fifo->tail->next = t;
  else
    fifo->head = t;
  fifo->tail = t;
}

void ferry__fifo_remove(ferry__fifo *fifo, ferry__transfer *t) {
  if (t->prev)
    t->prev->next = t->next;
  else
    fifo->head = t->next;
  if (t->next)
    t->next->prev = t->prev;
  else
    fifo->tail = t->prev;
  t->next = t->prev = NULL;
  t->fifo = NULL;
}

static bool has_room(const ferry_loop *loop, const ferry__host *host) {
  return host->running < loop->options.max_per_host;
}

static void open_last(ferry__admission *a, ferry__host *host, int ring) {
  host->open_next[ring] = NULL;
  host->open_prev[ring] = a->open_last[ring];
  if (a->open_last[ring])
    a->open_last[ring]->open_next[ring] = host;
  else
    a->open[ring] = host;
  a->open_last[ring] = host;
}

static void unlink_open(ferry__admission *a, ferry__host *host, int ring) {
  if (host->open_prev[ring])
    host->open_prev[ring]->open_next[ring] = host->open_next[ring];
  else
    a->open[ring] = host->open_next[ring];
  if (host->open_next[ring])
    host->open_next[ring]->open_prev[ring] = host->open_prev[ring];
  else
    a->open_last[ring] = host->open_prev[ring];
}

/* Keeps the host in the list of its queue exactly while it has room and a
 * parked transfer there. */
static void update_open(ferry_loop *loop, ferry__host *host, int ring) {
  bool open = host->parked[ring].head && has_room(loop, host);
  if (open == host->is_open[ring])
    return;
  host->is_open[ring] = open;
  if (open)
    open_last(loop->admission, host, ring);
  else
    unlink_open(loop->admission, host, ring);
}

/* Hosts with parked transfers take turns: one that never reaches its own limit
 * would take every place that becomes free. */
static void give_turn(ferry__admission *a, ferry__host *host, int ring) {
  if (!host->is_open[ring])
    return;
  unlink_open(a, host, ring);
  open_last(a, host, ring);
}

void ferry__enqueue(ferry_loop *loop, ferry__transfer *t) {
  t->state = FERRY__WAITING;
  loop->admission->waiting++;
  t->host->waiting++;
  ferry__fifo_push(t->flags & FERRY_UNLIMITED
                       ? &loop->admission->unlimited
                       : &loop->admission->ring[t->priority],
                   t);
}

void ferry__dequeue(ferry_loop *loop, ferry__transfer *t) {
  ferry__fifo_remove(t->fifo, t);
  loop->admission->waiting--;
  t->host->waiting--;
  update_open(loop, t->host, t->priority);
}

/* The next transfer of a queue that may start; parks those that may not. */
static ferry__transfer *candidate(ferry_loop *loop, int ring) {
  ferry__admission *a = loop->admission;
  if (a->open[ring])
    return a->open[ring]->parked[ring].head;
  while (a->ring[ring].head) {
    ferry__transfer *t = a->ring[ring].head;
    if (has_room(loop, t->host))
      return t;
    ferry__fifo_remove(&a->ring[ring], t);
    ferry__fifo_push(&t->host->parked[ring], t);
  }
  return NULL;
}

/* FERRY_UNLIMITED: libcurl has room for so many more than the limit. */
static bool has_unlimited(const ferry_loop *loop) {
  const ferry__admission *a = loop->admission;
  return a->unlimited.head &&
         a->running < (uint64_t)loop->options.max_transfers + FERRY__PER_SHARD;
}

static ferry__transfer *next(ferry_loop *loop) {
  ferry__admission *a = loop->admission;
  if (has_unlimited(loop))
    return a->unlimited.head;
  if (a->running >= loop->options.max_transfers)
    return NULL;
  /* A queue that was passed over for long enough is served before a higher
   * one. */
  for (int ring = 0; ring < FERRY_HIGH; ring++)
    if (a->passed[ring] >= PATIENCE) {
      a->passed[ring] = 0;
      ferry__transfer *t = candidate(loop, ring);
      if (t)
        return t;
    }
  for (int ring = FERRY_HIGH; ring >= 0; ring--) {
    ferry__transfer *t = candidate(loop, ring);
    if (!t)
      continue;
    for (int lower = ring - 1; lower >= 0; lower--)
      if (a->ring[lower].head || a->open[lower])
        a->passed[lower]++;
    return t;
  }
  return NULL;
}

bool ferry__admissible(const ferry_loop *loop) {
  const ferry__admission *a = loop->admission;
  if (has_unlimited(loop))
    return true;
  if (a->running >= loop->options.max_transfers)
    return false;
  for (int ring = 0; ring < FERRY__RINGS; ring++)
    if (a->ring[ring].head || a->open[ring])
      return true;
  return false;
}

void ferry__admit(ferry_loop *loop) {
  ferry__admission *a = loop->admission;
  for (int starts = 0; starts < FERRY__STARTS; starts++) {
    ferry__transfer *t = next(loop);
    if (!t)
      return;
    ferry__dequeue(loop, t);
    a->running++;
    t->host->running++;
    for (int ring = 0; ring < FERRY__RINGS; ring++)
      update_open(loop, t->host, ring);
    if (!(t->flags & FERRY_UNLIMITED)) /* it was not one of the parked */
      give_turn(a, t->host, t->priority);
    ferry__transfer_start(loop, t);
  }
}

void ferry__leave(ferry_loop *loop, ferry__host *host) {
  loop->admission->running--;
  host->running--;
  for (int ring = 0; ring < FERRY__RINGS; ring++)
    update_open(loop, host, ring);
}

void ferry__reprioritise(ferry_loop *loop, ferry__transfer *t,
                         int priority) {
  if (t->state != FERRY__WAITING || t->priority == priority)
    return;
  ferry__dequeue(loop, t);
  t->priority = (uint8_t)priority;
  ferry__enqueue(loop, t);
}
