/* buffers.c - libcurl's receive buffers, in an address range of their own.
 *
 * libcurl allocates a 16 KB buffer when a transfer starts, long before there is
 * anything to receive. On the heap, between small blocks in use, such a block
 * costs a page although nobody has written to it. Here it costs none: a
 * transfer that waits for its response takes 4 KB less.
 *
 * The range belongs to the process, so any thread that frees a buffer can tell
 * that it is not malloc's.
 */
#include "loop/loop.h"

#include <sys/mman.h>

enum {
  STRIDE = FERRY__STRIDE, /* 16 KB, one more byte for libcurl, in whole pages */
  LINE = 64,
  LINES = (STRIDE - FERRY__BUFFER - LINE) / LINE,
  MOST = FERRY__BUFFERS, /* 1.3 GB of addresses; further buffers come from
                          * malloc */
  STEP = 64,             /* how many are made accessible at once */
};

static struct {
  pthread_mutex_t lock;
  uint32_t free[MOST], free_count; /* their numbers, as a stack */
  uint32_t used, usable;
} buffers = {.lock = PTHREAD_MUTEX_INITIALIZER};

char *ferry__buffers_base;

void ferry__buffers_initialise(void) {
  void *base = mmap(NULL, (size_t)MOST * STRIDE, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return;
  /* A huge page would use memory for everything that it spans. */
  madvise(base, (size_t)MOST * STRIDE, MADV_NOHUGEPAGE);
  ferry__buffers_base = base;
}

/* Whether there is a buffer that was never used. */
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

/* Buffers start on different cache lines than their neighbours. */
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
