/* pool.c - keeps blocks for bodies and results instead of freeing them.
 *
 * Freeing a large buffer at every request makes glibc return its pages and
 * fault them in again: 43 us a request instead of 15 for bodies of 64 KB.
 * Blocks are taken on a loop's thread and often given back on another one.
 * Those go onto one list for the process, and a loop without blocks takes that
 * list whole. Taking whole lists only, never single nodes, keeps the lock-free
 * stack free of the ABA problem. */
#include "loop/loop.h"

#include <stdlib.h>
#include <string.h>

struct ferry__block {
  ferry__block *next;
  uint32_t class;
  uint32_t unused;
};

enum { UNPOOLED = FERRY__CLASSES };

static const struct {
  size_t size;   /* including the header */
  uint32_t most; /* kept on a list: 4 to 8 MB of each class */
} classes[FERRY__CLASSES] = {
    {1024, 4096}, {4096, 1024}, {16384 + 256, 256}, {65536 + 256, 64},
    {131072 + 256, 32}, {262144 + 256, 16}, {1048576 + 256, 8},
};

static struct {
  _Atomic(ferry__block *) list;
  atomic_uint count;
} shared[FERRY__CLASSES];

void *ferry__pool_take(ferry__pool *pool, size_t size, size_t *capacity) {
  size += sizeof(ferry__block);
  uint32_t class = 0;
  while (class < FERRY__CLASSES && classes[class].size < size)
    class++;
  ferry__block *block = NULL;
  size_t whole = size;
  if (class < FERRY__CLASSES) {
    whole = classes[class].size;
    if (!pool->free[class] &&
        atomic_load_explicit(&shared[class].list, memory_order_relaxed)) {
      atomic_store_explicit(&shared[class].count, 0, memory_order_relaxed);
      pool->free[class] = atomic_exchange_explicit(&shared[class].list, NULL,
                                                   memory_order_acquire);
    }
    block = pool->free[class];
    if (block) {
      pool->free[class] = block->next;
      pool->count[class] -= pool->count[class] > 0;
    }
  }
  if (!block && !(block = malloc(whole)))
    return NULL;
  block->class = class;
  *capacity = whole - sizeof(ferry__block);
  return block + 1;
}

void *ferry__block_make(size_t size, size_t *capacity) {
  if (ferry__current)
    return ferry__pool_take(&ferry__current->pool, size, capacity);
  ferry__block *block = malloc(size + sizeof *block);
  if (!block)
    return NULL;
  block->class = UNPOOLED;
  *capacity = size;
  return block + 1;
}

/* Puts a block onto the process's list. */
static void share(ferry__block *block) {
  uint32_t class = block->class;
  /* The counts are hints: they ignore lists that were taken whole. A block too
   * many or too few does not matter. */
  if (class == UNPOOLED ||
      atomic_fetch_add_explicit(&shared[class].count, 1,
                                memory_order_relaxed) >= classes[class].most) {
    free(block);
    return;
  }
  ferry__block *old =
      atomic_load_explicit(&shared[class].list, memory_order_relaxed);
  do
    block->next = old;
  while (!atomic_compare_exchange_weak_explicit(&shared[class].list, &old,
                                                block, memory_order_release,
                                                memory_order_relaxed));
}

/* A loop keeps as many blocks as the process does. So a burst of bodies that
 * fail, or that grow from class to class, leaves no more behind. */
void ferry__pool_give(ferry__pool *pool, void *bytes) {
  ferry__block *block = (ferry__block *)bytes - 1;
  uint32_t class = block->class;
  if (class == UNPOOLED || pool->count[class] >= classes[class].most) {
    share(block);
    return;
  }
  block->next = pool->free[class];
  pool->free[class] = block;
  pool->count[class]++;
}

void *ferry__pool_grow(ferry__pool *pool, void *bytes, size_t used,
                       size_t size, size_t *capacity) {
  ferry__block *block = bytes ? (ferry__block *)bytes - 1 : NULL;
  if (block && block->class == UNPOOLED) {
    block = realloc(block, size + sizeof *block);
    if (!block)
      return NULL;
    *capacity = size;
    return block + 1;
  }
  void *larger = ferry__pool_take(pool, size, capacity);
  if (larger && block) {
    memcpy(larger, bytes, used);
    ferry__pool_give(pool, bytes);
  }
  return larger;
}

void ferry__block_free(void *bytes) {
  if (ferry__current)
    ferry__pool_give(&ferry__current->pool, bytes);
  else
    share((ferry__block *)bytes - 1);
}

size_t ferry__pool_kept(const ferry__pool *pool) {
  size_t bytes = 0;
  for (int class = 0; class < FERRY__CLASSES; class++)
    bytes += pool->count[class] * classes[class].size;
  return bytes;
}

void ferry__pool_close(ferry__pool *pool) {
  for (int class = 0; class < FERRY__CLASSES; class++)
    while (pool->free[class]) {
      ferry__block *block = pool->free[class];
      pool->free[class] = block->next;
      free(block);
    }
}
