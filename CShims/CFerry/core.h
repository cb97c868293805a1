/* core.h - what the files of the core share, lowest layer first, and the loop
 * that they form. Everything here belongs to the loop's thread, except where
 * marked [any thread]. */
#ifndef FERRY_CORE_H
#define FERRY_CORE_H

#include "loop/loop.h"
#include "transfer/transfer.h"
#include "connection/host.h"
#include "curl/libcurl.h"
#include "curl/compat.h"
#include "http1/engine.h"

struct ferry_loop {
  ferry__mailbox mailbox; /* [any thread], as are the three after it */
  int wake;               /* eventfd; open until the loop is freed */
  atomic_bool stopping;
  atomic_bool asleep; /* or about to be: it must be woken */
  ferry__counters counters;

  ferry_options options;
  char *ca_file, *pinned_keys, *user_agent, *encodings;
  char *client_certificate, *client_key, *client_key_password;
  char *unix_socket;
  ferry_override *overrides;
  pthread_t thread;
  bool freed_by_itself;
  bool closing;
  bool jar_held; /* the lock of its cookies is held (cookies.c) */
  const void *piece_space; /* `space` of the current pull, if it takes a
                            * piece */
  bool starved; /* libcurl ran out of memory, in this turn of a shard
                 * or before it */

  uv_loop_t uv;
  uv_timer_t timer;
  uv_check_t check;
  uv_prepare_t prepare;
  uv_idle_t idle;
  uint64_t timer_at; /* ms; 0 = not armed */

  const ferry__hooks *hooks;
  ferry__sockets sockets;
  ferry__socket *ports[FERRY__BUCKETS]; /* by local port (curl/socket.c) */
  uint64_t leases, connections; /* numbers handed out so far */
  ferry__http1 http1;
  ferry__shard *shards, *touched;
  unsigned shard_count, per_shard, first_free;
  ferry__admission admission;
  ferry__hosts hosts;
  ferry__table table;
  ferry__wheel wheel;
  ferry__pool pool;
  ferry__shelf shelves[FERRY__SHELVES];
  ferry__port *port;
  ferry__jobs jobs;
  ferry__alarm alarm;
  ferry__spares decoders[2]; /* for zlib and for libzstd */
  unsigned sink_count;
  unsigned char *scratch; /* output buffer of the decoders */
  ferry__transfer *running; /* RUNNING and DRAINING, doubly linked */
  ferry_result *finished, **finished_last;
  size_t finished_count;
  uint64_t now_ns; /* updated once a round */
  uint64_t polled; /* ms; when the loop last polled the sockets */
  uint64_t held_from, held_until; /* ms; the last time they were not polled */
};

static inline uint64_t ferry__now(const ferry_loop *loop) {
  return uv_now(&loop->uv);
}
static inline void ferry__count(_Atomic uint64_t *counter, int64_t by) {
  /* There is only one writer, so a plain load and store are enough, and need no
   * locked instruction. */
  uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);
  atomic_store_explicit(counter, now + (uint64_t)by, memory_order_relaxed);
}
static inline uint64_t ferry__us(uint64_t from_ns, uint64_t to_ns) {
  return to_ns > from_ns ? (to_ns - from_ns) / 1000 : 0;
}

/* Called when libcurl has returned, or calls something that may wait for
 * others: the jar's lock must not stay held. */
/* The lifetime of one connection in ms: the option, give or take a tenth. */
static inline uint64_t ferry__lifetime(const ferry_loop *loop,
                                       uint64_t serial) {
  uint64_t tenth = loop->options.lifetime_ms / 10;
  return loop->options.lifetime_ms - tenth +
         serial * 0x9e3779b97f4a7c15u % (2 * tenth + 1);
}

static inline void ferry__jar_release(ferry_loop *loop) {
  if (loop->jar_held)
    ferry__jar_unlock(loop);
}

#endif
