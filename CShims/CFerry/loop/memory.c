/* memory.c - keeps libcurl's memory blocks instead of freeing them.
 *
 * libcurl allocates about thirty blocks a transfer: copies of a URL's parts,
 * the record of a connection (1.5 KB) even when it reuses one, a receive buffer
 * (16 KB). glibc caches seven blocks of a size for each thread, and none above
 * 1 KB (malloc(3), tcache). Where many transfers end in one turn, most blocks
 * go back to the heap, and each larger one makes it coalesce the small ones.
 * That was 14 % of a small request's time in user mode; with shelves for each
 * loop the whole takes 4 to 6 % less. The buffer for long bodies (128 KB) was
 * unmapped and faulted in again each time, 8 % of the time for downloading a
 * 100 KB file.
 *
 * malloc_usable_size(3) tells which shelf a block belongs on, except for the
 * receive buffers, which have an address range of their own (buffers.c).
 * Threads that do not run a loop take blocks from malloc, and can give back any
 * block.
 */
#include "loop/loop.h"

#include <malloc.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#if __has_feature(address_sanitizer)
enum { KEEPS = 0 }; /* so that the sanitizer sees the end of each block */
#else
enum { KEEPS = 1 };
#endif

/* Shelf i holds blocks of i * GRAIN bytes or a little more. The last two hold
 * receive buffers. */
enum {
  GRAIN = 16,
  BIG = FERRY__SHELVES - 1,
  SMALL = FERRY__SHELVES - 2,
  MOST = (SMALL - 1) * GRAIN,
  BUFFER = FERRY__BUFFER + GRAIN,
  BIG_BUFFER = FERRY__BIG_BUFFER + GRAIN,
  PAGES = 8192,     /* by which a mapped block may be larger */
  KEPT = 64 * 1024, /* bytes on each shelf, except the buffers' */
  BIG_KEPT = 8,     /* passed from a loop that ends to the next that starts */
};

static inline int shelf_for(size_t size) {
  if (size <= MOST)
    return (int)((size + GRAIN - 1) / GRAIN);
  if (size > FERRY__BUFFER && size <= BUFFER)
    return SMALL;
  return size > FERRY__BIG_BUFFER && size <= BIG_BUFFER ? BIG : -1;
}

static inline size_t size_of(int i) {
  return i == BIG ? BIG_BUFFER : i == SMALL ? BUFFER : (size_t)i * GRAIN;
}

static inline int shelf_of(void *block) {
  if (ferry__buffers_hold(block))
    return SMALL;
  size_t usable = malloc_usable_size(block);
  if (usable < MOST + GRAIN)
    return (int)(usable / GRAIN);
  return usable >= BIG_BUFFER && usable < BIG_BUFFER + PAGES ? BIG : -1;
}

static inline bool has_room(const ferry__shelf *shelf, int i) {
  if (i >= SMALL)
    return shelf->count < (i == SMALL ? FERRY__STARTS : BIG_KEPT);
  return shelf->count * (unsigned)i < KEPT / GRAIN;
}

static void *make(int i) {
  void *buffer = i == SMALL ? ferry__buffers_take() : NULL;
  return buffer ? buffer : malloc(size_of(i));
}

static void drop(void *block) {
  if (ferry__buffers_hold(block))
    ferry__buffers_give(block);
  else
    free(block);
}

/* libcurl's codes do not distinguish a lack of memory from other errors. */
static void *noted(void *block) {
  if (!block && ferry__current)
    ferry__current->starved = true;
  return block;
}

static void *take(size_t size) {
  ferry_loop *loop = ferry__current;
  int i = loop && KEEPS ? shelf_for(size) : -1;
  if (i < 0)
    return noted(malloc(size));
  ferry__shelf *shelf = &loop->shelves[i];
  void **block = shelf->first;
  if (!block)
    return noted(make(i));
  shelf->first = *block;
  shelf->count--;
  return block;
}

static void give(void *block) {
  ferry_loop *loop = ferry__current;
  int i = loop && KEEPS ? shelf_of(block) : -1;
  if (i > 0 && has_room(&loop->shelves[i], i)) {
    *(void **)block = loop->shelves[i].first;
    loop->shelves[i].first = block;
    loop->shelves[i].count++;
    return;
  }
  drop(block);
}

static void *take_more(void *block, size_t size) {
  if (!ferry__buffers_hold(block))
    return noted(realloc(block, size));
  void *more = noted(malloc(size));
  if (more) {
    memcpy(more, block, size < BUFFER ? size : BUFFER);
    drop(block);
  }
  return more;
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
  if (KEEPS)
    ferry__buffers_initialise();
  return curl_global_init_mem(CURL_GLOBAL_DEFAULT, take, give, take_more,
                              take_copy, take_cleared);
}

void ferry__shelves_clear(ferry__shelf *shelves) {
  for (int i = 0; i < FERRY__SHELVES; i++)
    while (shelves[i].first) {
      void **block = shelves[i].first;
      shelves[i].first = *block;
      drop(block);
    }
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void initialise(void) {
  /* Threads of loops may still run, or end, while the process exits. OpenSSL's
   * exit handler would free what all threads share, and a thread that ends
   * would free it again. No effect if the application has initialised OpenSSL
   * before. */
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
  ferry__memory_initialise();
}
void ferry__initialise(void) { pthread_once(&once, initialise); }
