/* memory.c - libcurl's blocks, kept instead of freed.
 *
 * libcurl asks for some thirty blocks a transfer: copies of a URL's parts,
 * the record of a connection (1.5 KB) even where it goes on with one that
 * stands, a buffer to receive into (16 KB). glibc keeps seven of a size for a
 * thread, and none above 1 KB (malloc(3), tcache): where many transfers end
 * in one turn most of them go back to the heap, and each larger one has the
 * small ones joined again. That was 14 % of what a small request takes in
 * user mode; with shelves of a loop's own it takes 4 to 6 % less in all.
 *
 * A block on a shelf is one of malloc's like any other, so that whoever frees
 * it may do so with free(3); malloc_usable_size(3) says where one belongs.
 * Threads that are not a loop's meet plain malloc.
 */
#include "core.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#if __has_feature(address_sanitizer)
enum { KEEPS = 0 }; /* so that it sees each block's end */
#else
enum { KEEPS = 1 };
#endif

/* Shelf i has blocks that hold i * GRAIN bytes or a little more; the last is
 * for receive buffers. */
enum {
  GRAIN = 16,
  LAST = FERRY__SHELVES - 1,
  MOST = (LAST - 1) * GRAIN,
  BUFFER = FERRY__BUFFER + GRAIN,
  KEPT = 64 * 1024 /* bytes on a shelf; of buffers the transfers of a round */
};

static inline int shelf_for(size_t size) {
  if (size <= MOST)
    return (int)((size + GRAIN - 1) / GRAIN);
  return size > FERRY__BUFFER && size <= BUFFER ? LAST : -1;
}

static inline int shelf_of(size_t usable) {
  if (usable < MOST + GRAIN)
    return (int)(usable / GRAIN);
  return usable >= BUFFER && usable < BUFFER + 64 ? LAST : -1;
}

static inline bool has_room(const ferry__shelf *shelf, int i) {
  return i == LAST ? shelf->count < FERRY__STARTS
                   : shelf->count * (unsigned)i < KEPT / GRAIN;
}

static void *take(size_t size) {
  ferry_loop *loop = ferry__current;
  int i = loop && KEEPS ? shelf_for(size) : -1;
  if (i < 0)
    return malloc(size);
  ferry__shelf *shelf = &loop->shelves[i];
  void **block = shelf->first;
  if (!block)
    return malloc(i == LAST ? BUFFER : (size_t)i * GRAIN);
  shelf->first = *block;
  shelf->count--;
  return block;
}

static void give(void *block) {
  ferry_loop *loop = ferry__current;
  int i = loop && KEEPS ? shelf_of(malloc_usable_size(block)) : -1;
  if (i > 0 && has_room(&loop->shelves[i], i)) {
    *(void **)block = loop->shelves[i].first;
    loop->shelves[i].first = block;
    loop->shelves[i].count++;
    return;
  }
  free(block);
}

static char *take_copy(const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = take(size);
  return copy ? memcpy(copy, text, size) : NULL;
}

static void *take_cleared(size_t count, size_t size) {
  size_t all;
  if (__builtin_mul_overflow(count, size, &all))
    return NULL;
  void *block = take(all);
  return block ? memset(block, 0, all) : NULL;
}

CURLcode ferry__memory_initialise(void) {
  return curl_global_init_mem(CURL_GLOBAL_DEFAULT, take, give, realloc, take_copy,
                              take_cleared);
}

void ferry__shelves_clear(ferry__shelf *shelves) {
  for (int i = 0; i < FERRY__SHELVES; i++)
    while (shelves[i].first) {
      void **block = shelves[i].first;
      shelves[i].first = *block;
      free(block);
    }
}
