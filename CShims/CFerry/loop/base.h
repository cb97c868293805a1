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
  FERRY__PER_SHARD = 64,   /* libcurl is O(n) in the transfers of a multi */
  FERRY__NAMES = 1024,     /* in the life of a shard, if it can be helped */
  FERRY__STREAMS = 100,    /* likewise in a loop with HTTP/2, and of a host:
                            * beyond that libcurl connects for each anew */
  FERRY__SPARE = 64,       /* readable bytes behind a collected body */
  FERRY__ROUNDS = 4,       /* of work a turn, then sockets get theirs */
  FERRY__CANCELS = 128,    /* of running transfers a round: each closes one */
  FERRY__STARTS = 64,      /* a round: each may open a connection (90 us) */
  FERRY__EVENTS = 512,     /* socket events a turn */
  FERRY__MAX_HEAD = 65536, /* bytes, unless the request says otherwise */
  FERRY__MAX_FIELDS = 1000,
  FERRY__MAX_1XX = 32,
  FERRY__MAX_TUNNEL = 1 << 20, /* bytes of all answers to CONNECT */
  FERRY__ADDRESSES = 16,   /* of one name */
  FERRY__LOOKUPS = 8,      /* threads for names, while lookups come back */
  FERRY__MAX_ROUNDS = 8,   /* of challenges answered */
  FERRY__MAX_ATTEMPTS = 3, /* of one transfer, libcurl's silent ones */
  /* libcurl's receive buffer, which it allocates and frees with every
   * transfer: above 16 KB glibc trims the heap each time (64 KB bodies: 22 us
   * with 16 KB, 28 with 32, 35 with 64), which only long bodies repay. Some of
   * both sizes are kept (buffers.c, memory.c). */
  FERRY__BUFFER = 16384,
  FERRY__BIG_BUFFER = 131072,
  FERRY__LONG_BODY = 512 * 1024,
  FERRY__LATE = 65536, /* bytes of an answer that a reset overtook */
  FERRY__TRAILERS = 16384, /* bytes of a request's trailers */
  FERRY__ROUSE_MS = 20, /* between two looks at a stream of HTTP/2 */
  FERRY__HELD_MS = 10, /* a turn that takes longer holds the loop */
  FERRY__GRACE_MS = 200, /* after it, for a deadline that passed meanwhile */
  FERRY__WRITE_MS = 100, /* for a write that is under way, at the end */
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
typedef struct ferry__connection ferry__connection; /* of our own */
typedef struct ferry__route ferry__route;

uint64_t ferry__hash(const char *text, size_t length); /* table.c */

/* ---- Pool of blocks (pool.c) --------------------------------------------- */

enum { FERRY__CLASSES = 7 };

typedef struct ferry__pool {
  ferry__block *free[FERRY__CLASSES];
  uint32_t count[FERRY__CLASSES];
} ferry__pool;

/* A block of at least `size` bytes; *capacity is what it really holds. */
void *ferry__pool_take(ferry__pool *pool, size_t size, size_t *capacity);
/* Back to this loop's own list. */
void ferry__pool_give(ferry__pool *pool, void *bytes);
/* [any thread] Likewise, on a loop's thread from that loop. Others leave the
 * blocks that the process keeps to the loops. */
void *ferry__block_make(size_t size, size_t *capacity);
/* [any thread] Back to whichever loop needs it next; on a loop's thread to
 * that loop. */
void ferry__block_free(void *bytes);
void ferry__pool_close(ferry__pool *pool);
/* The bytes that it keeps. */
size_t ferry__pool_kept(const ferry__pool *pool);

/* ---- Threads (thread.c) -------------------------------------------------- */

/* Starts one that nobody joins and that takes no signal. A stack of 0 bytes is
 * one of the usual size. */
bool ferry__thread_start(void *(*run)(void *), void *data, size_t stack);

/* ---- libcurl's receive buffers (buffers.c) ------------------------------- */

enum { FERRY__STRIDE = 5 * 4096, FERRY__BUFFERS = 65536 };

/* All of them lie from here on; NULL where there was no room. */
extern char *ferry__buffers_base;

/* [any thread] */
void ferry__buffers_initialise(void);
/* One of FERRY__BUFFER bytes and 16 more, or NULL when there is none left. */
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
  void **first; /* each block begins with the place of the next */
  uint32_t count;
} ferry__shelf;

/* curl_global_init with the functions of memory.c. They are not taken where
 * the application has initialised libcurl before, and all else is the same. */
CURLcode ferry__memory_initialise(void);
void ferry__shelves_clear(ferry__shelf *shelves);

#endif
