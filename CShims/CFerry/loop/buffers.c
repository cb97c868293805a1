/* buffers.c - libcurl's receive buffers, in addresses of their own.
 *
 * libcurl allocates one of 16 KB as a transfer starts, long before there is
 * anything to receive. On the heap, between small blocks that are in use, such
 * a block costs a page although nobody has written to it. Here it costs none:
 * a transfer that waits for its answer takes 4 KB less.
 *
 * The addresses are the process's, so that whatever thread frees one finds out
 * that it is not malloc's.
 */
#include "core.h"

#include <sys/mman.h>

enum {
  STRIDE = FERRY__STRIDE, /* 16 KB, libcurl's byte more, and whole pages */
  LINE = 64,
  LINES = (STRIDE - FERRY__BUFFER - LINE) / LINE,
  MOST = FERRY__BUFFERS, /* 1.3 GB of addresses; others are malloc's */
  STEP = 64,             /* of them made memory at once */
};

static struct {
  pthread_mutex_t lock;
  uint32_t free[MOST], free_count; /* their numbers, the last one on top */
  uint32_t used, usable;
} buffers = {.lock = PTHREAD_MUTEX_INITIALIZER};

char *ferry__buffers_base;

void ferry__buffers_initialise(void) {
  void *base = mmap(NULL, (size_t)MOST * STRIDE, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return;
  /* A huge page would be memory for all that it spans. */
  madvise(base, (size_t)MOST * STRIDE, MADV_NOHUGEPAGE);
  ferry__buffers_base = base;
}

/* Whether there is one that nobody has had yet. */
static bool has_next(void) {
  if (buffers.used < buffers.usable)
    return true;
  if (!ferry__buffers_base || buffers.usable == MOST)
    return false;
  char *step = ferry__buffers_base + (size_t)buffers.usable * STRIDE;
  if (mprotect(step, (size_t)STEP * STRIDE, PROT_READ | PROT_WRITE))
    return false;
  buffers.usable += STEP;
  return true;
}

/* Each begins on another line of the cache than its neighbours. */
static void *place(uint32_t i) {
  return ferry__buffers_base + (size_t)i * STRIDE + i % LINES * LINE;
}

void *ferry__buffers_take(void) {
  void *buffer = NULL;
  pthread_mutex_lock(&buffers.lock);
  if (buffers.free_count)
    buffer = place(buffers.free[--buffers.free_count]);
  else if (has_next())
    buffer = place(buffers.used++);
  pthread_mutex_unlock(&buffers.lock);
  return buffer;
}

void ferry__buffers_give(void *buffer) {
  size_t offset = (size_t)((char *)buffer - ferry__buffers_base);
  uint32_t i = (uint32_t)(offset / STRIDE);
  madvise(ferry__buffers_base + offset / STRIDE * STRIDE, STRIDE,
          MADV_DONTNEED);
  pthread_mutex_lock(&buffers.lock);
  buffers.free[buffers.free_count++] = i;
  pthread_mutex_unlock(&buffers.lock);
}
