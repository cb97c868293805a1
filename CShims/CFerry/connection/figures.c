/* figures.c - the figures of each origin, which other threads can read. */
#include "connection/host.h"

#include <stdlib.h>
#include <string.h>

static uint64_t read_one(const _Atomic uint64_t *counter) {
  return atomic_load_explicit(counter, memory_order_relaxed);
}

static void move(_Atomic uint64_t *to, _Atomic uint64_t *from) {
  ferry__count(to, (int64_t)read_one(from));
  atomic_store_explicit(from, 0, memory_order_relaxed);
}

void ferry__origin_fold(ferry__origin *to, ferry__origin *from) {
  move(&to->open, &from->open);
  move(&to->idle, &from->idle);
  move(&to->pending, &from->pending);
  move(&to->opened, &from->opened);
  move(&to->reused, &from->reused);
  move(&to->failed, &from->failed);
  move(&to->waited_us, &from->waited_us);
  for (int i = 0; i < FERRY_CLOSED_REASONS; i++)
    move(&to->closed[i], &from->closed[i]);
}

void ferry__origin_awaited(ferry__transfer *t) {
  t->pending = true;
  ferry__count(&t->host->figures.pending, 1);
}

void ferry__origin_served(ferry__transfer *t) {
  if (t->pending)
    ferry__count(&t->host->figures.pending, -1);
  t->pending = false;
}

/* ---- Reading ------------------------------------------------------------- */

static void take(ferry_origin_figures *to, const ferry__origin *from) {
  to->open = read_one(&from->open);
  to->idle = read_one(&from->idle);
  to->pending = read_one(&from->pending);
  to->opened = read_one(&from->opened);
  to->reused = read_one(&from->reused);
  to->failed = read_one(&from->failed);
  to->waited_us = read_one(&from->waited_us);
  for (int i = 0; i < FERRY_CLOSED_REASONS; i++)
    to->closed[i] = read_one(&from->closed[i]);
}

/* A host that is a proxy only, or was forgotten, has none. */
static bool has_figures(const ferry__host *host) {
  const ferry__origin *f = &host->figures;
  return read_one(&f->pending) || read_one(&f->opened) || read_one(&f->open) ||
         read_one(&f->failed) || read_one(&f->reused);
}

int ferry_loop_origins(ferry_loop *loop, ferry_origin_figures **out,
                       size_t *count) {
  ferry__hosts *hosts = loop->hosts;
  size_t most = 1, text = 1;
  *out = NULL;
  *count = 0;
  pthread_mutex_lock(&hosts->lock);
  for (unsigned i = 0; i < hosts->capacity; i++)
    for (ferry__host *h = hosts->buckets[i]; h; h = h->hash_next) {
      most++;
      text += h->origin_length + 1;
    }
  ferry_origin_figures *list = malloc(most * sizeof *list + text);
  if (list) {
    char *name = (char *)(list + most);
    *name = 0;
    list[0].origin = name++;
    take(&list[0], &hosts->past);
    *count = 1;
    for (unsigned i = 0; i < hosts->capacity; i++)
      for (ferry__host *h = hosts->buckets[i]; h; h = h->hash_next) {
        if (!has_figures(h))
          continue;
        ferry_origin_figures *one = &list[(*count)++];
        memcpy(name, h->origin, h->origin_length);
        name[h->origin_length] = 0;
        one->origin = name;
        name += h->origin_length + 1;
        take(one, &h->figures);
      }
  }
  pthread_mutex_unlock(&hosts->lock);
  *out = list;
  return list ? FERRY_OK : FERRY_E_MEMORY;
}

void ferry_origins_free(ferry_origin_figures *figures) { free(figures); }
