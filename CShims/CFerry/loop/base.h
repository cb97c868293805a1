/* base.h - limits, the names of the core's types, and its memory. */
#ifndef FERRY_BASE_H
#define FERRY_BASE_H

#include "CFerry.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>
#include <zlib.h>

enum {
  FERRY__RINGS = 3,
  FERRY__PER_SHARD = 64,   /* because libcurl is O(n) in the transfers of a
                            * multi handle */
  FERRY__NAMES = 1024,     /* the most names that a shard should see in its
                            * life */
  FERRY__STREAMS = 100,    /* transfers of a shard in a loop with HTTP/2, and
                            * streams of one host: beyond that libcurl opens a
                            * connection for each */
  FERRY__SPARE = 64,       /* readable bytes after a collected body */
  FERRY__ROUNDS = 4,       /* rounds of work in a turn, before the sockets are
                            * polled */
  FERRY__CANCELS = 128,    /* of running transfers in a round: each closes a
                            * connection */
  FERRY__STARTS = 64,      /* in a round: each may open a connection (90 us) */
  FERRY__EVENTS = 512,     /* socket events in a turn */
  FERRY__MAX_HEAD = 65536, /* bytes, unless the request says otherwise */
  FERRY__MOST_HEAD = 1 << 30, /* what a request may say: sizes are 32 bits */
  FERRY__MAX_FIELDS = 1000,
  FERRY__MAX_1XX = 32,
  FERRY__MAX_TUNNEL = 1 << 20, /* bytes of all responses to CONNECT */
  FERRY__ADDRESSES = 16,   /* of one name */
  FERRY__LOOKUPS = 8,      /* lookup threads; more only if all of them hang */
  FERRY__MAX_ROUNDS = 8,   /* of authentication challenges */
  FERRY__MAX_ATTEMPTS = 3, /* of one transfer, including libcurl's silent
                            * ones */
  /* libcurl's receive buffer, which it allocates and frees with every transfer.
   * Above 16 KB glibc trims the heap each time, which only pays for long bodies
   * (64 KB bodies: 22 us with 16 KB, 28 with 32, 35 with 64). Some buffers of
   * both sizes are kept (buffers.c, memory.c). */
  FERRY__BUFFER = 16384,
  FERRY__BIG_BUFFER = 131072,
  FERRY__LONG_BODY = 512 * 1024,
  FERRY__LATE = 65536, /* bytes of a response that are read after a reset */
  FERRY__TRAILERS = 16384, /* bytes of a request's trailers */
  FERRY__HELD_MS = 10, /* after a longer turn the loop counts as held */
  FERRY__GRACE_MS = 200, /* after a held turn, for a deadline that has passed
                          * during that turn */
  FERRY__WRITE_MS = 100, /* how long the end waits for a write that has begun */
};

struct sockaddr;
typedef struct ferry__transfer ferry__transfer;
typedef struct ferry__handle ferry__handle;
typedef struct ferry__shard ferry__shard;
typedef struct ferry__host ferry__host;
typedef struct ferry__socket ferry__socket;
typedef struct ferry__block ferry__block;
typedef struct ferry__extras ferry__extras;
typedef struct ferry__sink ferry__sink;
typedef struct ferry__connection ferry__connection; /* of the native engine */
typedef struct ferry__route ferry__route;
/* The state that each layer above keeps in a loop. */
typedef struct ferry__transfers ferry__transfers;
typedef struct ferry__hosts ferry__hosts;
typedef struct ferry__admission ferry__admission;
typedef struct ferry__port ferry__port;
typedef struct ferry__curl ferry__curl;
typedef struct ferry__http1 ferry__http1;

uint64_t ferry__hash(const char *text, size_t length); /* table.c */

/* ---- Pool of blocks (pool.c) --------------------------------------------- */

enum { FERRY__CLASSES = 7 };

typedef struct ferry__pool {
  ferry__block *free[FERRY__CLASSES];
  uint32_t count[FERRY__CLASSES];
} ferry__pool;

/* Takes a block of at least `size` bytes; *capacity is its real size. */
void *ferry__pool_take(ferry__pool *pool, size_t size, size_t *capacity);
/* Gives a block back to this loop's own list. */
void ferry__pool_give(ferry__pool *pool, void *bytes);
/* Returns a larger block with the first `used` bytes of another one, which is
 * given back; `bytes` may be null. For a large block the system may move the
 * pages instead of copying them. On failure the other block is unchanged. */
void *ferry__pool_grow(ferry__pool *pool, void *bytes, size_t used,
                       size_t size, size_t *capacity);
/* [any thread] Takes a block of at least `size` bytes. On a loop's thread it
 * comes from that loop. Other threads do not take the blocks that the process
 * keeps for loops. */
void *ferry__block_make(size_t size, size_t *capacity);
/* [any thread] Gives a block to whichever loop needs it next; on a loop's
 * thread to that loop. */
void ferry__block_free(void *bytes);
void ferry__pool_close(ferry__pool *pool);
/* The number of bytes that the pool keeps. */
size_t ferry__pool_kept(const ferry__pool *pool);

/* ---- Threads (thread.c) -------------------------------------------------- */

/* Starts a detached thread that handles no signals. A `stack` of 0 is the
 * default size. */
bool ferry__thread_start(void *(*run)(void *), void *data, size_t stack);

/* ---- libcurl's receive buffers (buffers.c) ------------------------------- */

enum { FERRY__STRIDE = 5 * 4096, FERRY__BUFFERS = 65536 };

/* The start of the address range of all buffers; NULL if it could not be
 * reserved. */
extern char *ferry__buffers_base;

/* [any thread] */
void ferry__buffers_initialise(void);
/* Takes a buffer of FERRY__BUFFER + 16 bytes; NULL when none is left. */
void *ferry__buffers_take(void);
void ferry__buffers_give(void *buffer);

static inline bool ferry__buffers_hold(const void *block) {
  return ferry__buffers_base &&
         (uintptr_t)block - (uintptr_t)ferry__buffers_base <
             (size_t)FERRY__BUFFERS * FERRY__STRIDE;
}

/* ---- libcurl's memory (memory.c) ----------------------------------------- */

enum { FERRY__SHELVES = 131 };

typedef struct ferry__shelf {
  void **first; /* each block begins with the pointer to the next */
  uint32_t count;
} ferry__shelf;

/* Calls curl_global_init with the functions of memory.c. If the application has
 * already initialised libcurl, the functions are not used, and nothing else
 * changes. */
CURLcode ferry__memory_initialise(void);
void ferry__shelves_clear(ferry__shelf *shelves);

#endif
