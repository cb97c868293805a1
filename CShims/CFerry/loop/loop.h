/* loop.h - the loop, and the ways into it. */
#ifndef FERRY_LOOP_H
#define FERRY_LOOP_H

#include "curl/libcurl.h"
#include "connection/host.h"

/* ---- Table of ids (table.c) ---------------------------------------------- */

typedef struct ferry__table {
  ferry__transfer **slots;
  size_t capacity, count;
} ferry__table;

bool ferry__table_insert(ferry__table *table, ferry__transfer *transfer);
ferry__transfer *ferry__table_find(const ferry__table *table, uint64_t id);
void ferry__table_remove(ferry__table *table, uint64_t id);

/* ---- Mailbox (mailbox.c) ------------------------------------------------- */

enum {
  FERRY__CANCEL,
  FERRY__RESUME,
  FERRY__RESUME_SENDING,
  FERRY__PRIORITY,
  FERRY__PAUSE,
  FERRY__WRITE_TO,
};

typedef struct ferry__command {
  struct ferry__command *next;
  uint64_t id;
  uint8_t kind, priority;
  int32_t fd;      /* of FERRY__WRITE_TO, like what follows */
  int64_t offset;
  uint64_t most;
} ferry__command;

enum { FERRY__SPARE_COMMANDS = 64 };

typedef struct ferry__mailbox {
  _Atomic(ferry__transfer *) inbox;
  _Atomic(ferry__command *) commands;
  /* For when there is no memory: a lost cancel would be a run that never
   * ends. */
  ferry__command spares[FERRY__SPARE_COMMANDS];
  atomic_bool spent[FERRY__SPARE_COMMANDS];
  atomic_bool called;
  /* The loop's thread: taken out, not yet done. */
  ferry__command *first, **last;
} ferry__mailbox;

void ferry__mailbox_open(ferry_loop *loop);
void ferry__wake(ferry_loop *loop); /* [any thread] */
/* Closes it for ever and returns what was left. */
ferry__transfer *ferry__mailbox_close(ferry_loop *loop);
bool ferry__mailbox_is_empty(const ferry_loop *loop);
void ferry__mailbox_submits(ferry_loop *loop);
void ferry__mailbox_commands(ferry_loop *loop);
void ferry__accept(ferry_loop *loop, ferry__transfer *transfer);

/* ---- Writers (writers.c) ------------------------------------------------- */

/* What may have to wait for a device, and is done by one of its threads. */
typedef struct ferry__job {
  struct ferry__job *next;
  ferry_loop *loop;
  uint64_t device, file;
  void (*work)(struct ferry__job *job); /* [a thread of the device's] */
  void (*done)(struct ferry__job *job); /* and then this, on the loop's .. */
  void (*drop)(struct ferry__job *job); /* .. or this, if it was left: there */
  int code; /* 0, or why it was not done: an errno */
  bool begun, back; /* the writers' lock is theirs */
} ferry__job;

typedef struct ferry__jobs {
  uv_async_t async;
  ferry__job *done, **last_done; /* the writers' lock is theirs, too */
  unsigned count;                /* put in, and not yet back */
} ferry__jobs;

int ferry__jobs_open(ferry_loop *loop);
/* The loop ends: now, or when the last of them is back. */
void ferry__jobs_close(ferry_loop *loop);
/* Whose threads are to do it: those of the device of this file. */
void ferry__job_device(ferry__job *job, int fd);
void ferry__job_put(ferry__job *job);
/* Nobody waits for it any more: it is not the loop's from here on, and dropped
 * by whoever works at it. What it needs for its work `strip` takes away where
 * it has not begun. False when it is done, and about to come back. */
bool ferry__job_leave(ferry__job *job, void (*strip)(ferry__job *job));

/* ---- The native HTTP/1.1 engine (http1/) --------------------------------- */

enum { FERRY__SPARE_HEADS = 64 };

typedef struct ferry__http1 {
  ferry__connection *oldest, *newest; /* idle */
  ferry__connection *dialing, *dialing_last;
  unsigned idle_count;
  uint64_t turn;  /* one more each time the loop goes to wait */
  uint64_t read_ns; /* before the sockets of this turn were read */
  char *buffer;   /* to receive into, and to compose requests in */
  struct ssl_ctx_st *tls; /* made when first used */
  ferry__head *heads[FERRY__SPARE_HEADS]; /* spare ones, with their memory */
  unsigned head_count;
} ferry__http1;

/* Whether the native engine carries it. */
bool ferry__http1_carries(const ferry_loop *loop,
                          const ferry__transfer *transfer);
extern const ferry__engine ferry__http1_engine;
/* Closes what has been idle for too long, and goes on dialing; returns when to
 * look again, 0 = no need to. */
uint64_t ferry__http1_look(ferry_loop *loop, uint64_t now);
void ferry__http1_close(ferry_loop *loop);
/* `events`: CURL_POLL_… */
void ferry__connection_event(ferry__connection *connection, int fd,
                             unsigned events);
/* What waits for a time (exchange.c). */
uint64_t ferry__exchange_look(ferry__connection *connection, uint64_t now);
bool ferry__head_take(ferry_loop *loop, ferry__transfer *transfer);
void ferry__head_give(ferry_loop *loop, ferry__transfer *transfer);

/* ---- The loop (loop.c) --------------------------------------------------- */

typedef struct ferry__counters {
  _Atomic uint64_t waiting, resolving, running, sockets, handles, hosts,
      kept_bytes, submitted, finished, connections, lookups, guarded, turns,
      longest_turn_us;
} ferry__counters;

struct ferry_loop {
  ferry__mailbox mailbox; /* [any thread], as are the three after it */
  int wake;               /* eventfd; open until the loop is freed */
  atomic_bool stopping;
  ferry__counters counters;

  ferry_options options;
  char *ca_file, *pinned_keys, *user_agent, *encodings;
  char *client_certificate, *client_key, *client_key_password;
  pthread_t thread;
  bool freed_by_itself;
  bool closing;
  bool jar_held; /* its cookies are locked (cookies.c) */
  bool starved; /* libcurl was, in this turn of a shard or before it */

  uv_loop_t uv;
  uv_timer_t timer;
  uv_check_t check;
  uv_prepare_t prepare;
  uv_idle_t idle;
  uint64_t timer_at; /* ms; 0 = not armed */

  ferry__sockets sockets;
  uint64_t leases, connections; /* numbers that were given out */
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
  ferry__inflate *inflates;
  unsigned inflate_count, sink_count;
  unsigned char *scratch; /* inflate's output */
  ferry__transfer *running; /* RUNNING and DRAINING, doubly linked */
  ferry_result *finished, **finished_last;
  size_t finished_count;
  uint64_t now_ns; /* refreshed once a round */
  uint64_t polled; /* ms; when the sockets were last waited for */
  uint64_t held_from, held_until; /* ms; the last time that they were not */
};

/* The loop of this thread, NULL elsewhere. */
extern _Thread_local ferry_loop *ferry__current;

static inline uint64_t ferry__now(const ferry_loop *loop) {
  return uv_now(&loop->uv);
}
static inline void ferry__count(_Atomic uint64_t *counter, int64_t by) {
  /* One writer: a plain load and store will do, and cost no locked bus. */
  uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);
  atomic_store_explicit(counter, now + (uint64_t)by, memory_order_relaxed);
}
static inline uint64_t ferry__us(uint64_t from_ns, uint64_t to_ns) {
  return to_ns > from_ns ? (to_ns - from_ns) / 1000 : 0;
}

/* libcurl has returned, or calls what may wait for others: nothing of the jar
 * stays locked. */
static inline void ferry__jar_release(ferry_loop *loop) {
  if (loop->jar_held)
    ferry__jar_unlock(loop);
}

/* [any thread] libcurl, once. */
void ferry__initialise(void);
void ferry__arm(ferry_loop *loop, uint64_t at);
/* Hands over the results of this turn. */
void ferry__deliver(ferry_loop *loop);

#endif
