/* loop.h - the loop, its sockets, timers and mailbox. */
#ifndef FERRY_LOOP_H
#define FERRY_LOOP_H

#include "loop/base.h"

/* The part of a transfer that the loop knows. Each transfer begins with one.
 * The rest belongs to the layers above (transfer/transfer.h). */
typedef struct ferry__entry {
  uint64_t id;
  ferry__transfer *next; /* in the inbox */
  ferry__transfer *timer_next, *timer_prev;
  uint64_t timer_at; /* the slot's number; 0 = not in the wheel */
} ferry__entry;

static inline ferry__entry *ferry__entry_of(ferry__transfer *transfer) {
  return (ferry__entry *)transfer;
}

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
  int32_t fd;      /* for FERRY__WRITE_TO, like the next two */
  int64_t offset;
  uint64_t most;
} ferry__command;

enum { FERRY__SPARE_COMMANDS = 64 };

typedef struct ferry__mailbox {
  _Atomic(ferry__transfer *) inbox;
  _Atomic(ferry__command *) commands;
  /* Used when memory runs out: a lost cancel would leave a run that never
   * ends. */
  ferry__command spares[FERRY__SPARE_COMMANDS];
  atomic_bool spent[FERRY__SPARE_COMMANDS];
  atomic_bool called;
  /* For the loop's thread: commands taken out, but not yet executed. */
  ferry__command *first, **last;
} ferry__mailbox;

void ferry__mailbox_open(ferry_loop *loop);
void ferry__wake(ferry_loop *loop); /* [any thread] */
/* [any thread] FERRY_OK, or FERRY_E_SHUTDOWN: then the caller keeps the
 * transfer. */
int ferry__mailbox_put(ferry_loop *loop, ferry__transfer *transfer);
/* [any thread] */
void ferry__mailbox_command(ferry_loop *loop, ferry__command command);
void ferry__mailbox_call(ferry_loop *loop);
/* Closes it for ever. Returns the transfers that it still held. */
ferry__transfer *ferry__mailbox_close(ferry_loop *loop);
bool ferry__mailbox_is_empty(const ferry_loop *loop);
/* From now on, every thread that adds something wakes the loop. Returns false
 * if the mailbox is not empty. Then the loop must not wait. */
bool ferry__mailbox_sleep(ferry_loop *loop);
void ferry__mailbox_submits(ferry_loop *loop);
void ferry__mailbox_commands(ferry_loop *loop);
/* Calls on_call if it was requested. */
void ferry__mailbox_calls(ferry_loop *loop);

/* ---- Sockets (sockets.c) ------------------------------------------------- */

/* In addition to CURL_POLL_…: the peer has closed. */
enum { FERRY__POLL_END = 8 };

/* The engine or part that opened a socket. */
typedef struct ferry__socket_owner {
  void (*on_event)(ferry_loop *loop, ferry__socket *socket,
                   unsigned events); /* EPOLL… */
  /* The number now belongs to another socket; NULL = nothing to do. */
  void (*forget)(ferry_loop *loop, ferry__socket *socket);
} ferry__socket_owner;

struct ferry__socket {
  int fd;
  unsigned have; /* CURL_POLL_… bits that are registered */
  const ferry__socket_owner *owner;
  uint64_t serial; /* a new number for each opened socket */
  ferry__connection *native; /* the native engine's connection */
  /* The rest is for libcurl's engine (curl/socket.c). */
  unsigned want; /* CURL_POLL_… bits that are wanted */
  ferry__shard *shard;
  /* The last user and its lease. While the user is paused, the socket does not
   * count as idle. These are numbers and not pointers, because libcurl may
   * close the socket silently, and the user may be freed. */
  uint64_t user, lease;
  struct ferry__socket *port_next; /* next in the bucket of its local port */
  uint64_t identity;               /* ferry__extras.identity of the transfer
                                    * that opened it */
  uint16_t local_port, peer_port;  /* 0 = not in a bucket */
  char peer[46];
  ferry__host *origin; /* its figures count the socket; NULL = those of
                        * forgotten origins */
  bool http2;
  bool ours; /* opened by ferry__on_open() and still open */
};

typedef struct ferry__sockets {
  uint64_t opened; /* sockets opened so far */
  int epoll;
  uv_poll_t poll;
  ferry__socket **by_fd;
  int capacity;
} ferry__sockets;

int ferry__sockets_open(ferry_loop *loop);
/* The entry of a descriptor; NULL without memory. */
ferry__socket *ferry__socket_of(ferry_loop *loop, int fd);
/* The entry of a descriptor that was just opened, with all values reset. */
ferry__socket *ferry__socket_renew(ferry_loop *loop, int fd,
                                   const ferry__socket_owner *owner);
/* Enables TCP keep-alive probes as the options say. */
void ferry__socket_keep_alive(const ferry_loop *loop, int fd);
/* Registers the events to wait for (CURL_POLL_…). Returns false, with errno, if
 * the system refuses; the registration is unchanged then. */
bool ferry__socket_watch(ferry_loop *loop, ferry__socket *socket,
                         unsigned want);
void ferry__sockets_free(ferry_loop *loop);

/* ---- The wheel (wheel.c) ------------------------------------------------- */

enum { FERRY__SLOTS = 512, FERRY__SLOT_MS = 8 };

typedef struct ferry__wheel {
  ferry__transfer *slot[FERRY__SLOTS];
  uint64_t used[FERRY__SLOTS / 64]; /* a bit for each slot that is not empty */
  uint64_t turned; /* number of the last processed slot */
  unsigned count;
  bool is_turning;
} ferry__wheel;

void ferry__wheel_set(ferry_loop *loop, ferry__transfer *transfer, uint64_t at);
void ferry__wheel_remove(ferry_loop *loop, ferry__transfer *transfer);
void ferry__wheel_turn(ferry_loop *loop);
uint64_t ferry__wheel_next(const ferry_loop *loop);

/* ---- Writers (writers.c) ------------------------------------------------- */

/* Work that may block on a device. One of the device's threads does it. */
typedef struct ferry__job {
  struct ferry__job *next;
  ferry_loop *loop;
  uint64_t device, file;
  void (*work)(struct ferry__job *job); /* [a thread of the device] */
  void (*done)(struct ferry__job *job); /* afterwards, on the loop's thread */
  void (*drop)(struct ferry__job *job); /* instead, if it was abandoned: on the
                                         * device's thread */
  int code; /* 0, or the errno of the failure */
  bool begun, back; /* guarded by the writers' lock */
} ferry__job;

typedef struct ferry__jobs {
  uv_async_t async;
  ferry__job *done, **last_done; /* guarded by the writers' lock, too */
  unsigned count;                /* jobs put in and not yet returned */
} ferry__jobs;

int ferry__jobs_open(ferry_loop *loop);
/* The loop ends: free this now, or when the last job returns. */
void ferry__jobs_close(ferry_loop *loop);
/* Whether there is a regular file: opening a FIFO would block the loop. */
bool ferry__is_file(const char *path);
/* Chooses the threads for the job: those of this file's device. */
void ferry__job_device(ferry__job *job, int fd);
void ferry__job_put(ferry__job *job);
/* Abandons a job: the thread that works on it drops it. If the work has not
 * begun, `strip` removes what the work needs. Returns false if the job is done
 * and about to return. */
bool ferry__job_leave(ferry__job *job, void (*strip)(ferry__job *job));

/* ---- The loop (loop.c) --------------------------------------------------- */

/* Callbacks from the loop and transfers to the layers above (core.c). */
typedef struct ferry__hooks {
  /* A transfer or a command has arrived. */
  void (*accept)(ferry_loop *loop, ferry__transfer *transfer);
  /* Returns whether the command cancels a running transfer. */
  bool (*apply)(ferry_loop *loop, ferry__transfer *transfer,
                const ferry__command *command);
  /* A part of a turn; returns true if there is more to do at once. */
  bool (*work)(ferry_loop *loop);
  bool (*has_work)(const ferry_loop *loop);
  /* Whether there are results that were not delivered yet. */
  bool (*has_results)(const ferry_loop *loop);
  void (*gauge)(ferry_loop *loop);
  /* One of the transfer's limits may have passed. */
  void (*expire)(ferry_loop *loop, ferry__transfer *transfer);
  /* Handles whatever else is due; returns when to look again, 0 = never. */
  uint64_t (*look)(ferry_loop *loop, uint64_t now);
  void (*stop)(ferry_loop *loop);
  void (*free)(ferry_loop *loop);
  /* A transfer stops waiting for admission or for a name. */
  void (*withdraw)(ferry_loop *loop, ferry__transfer *transfer);
  /* A running transfer has ended: its slot is free. */
  void (*give_place)(ferry_loop *loop, ferry__transfer *transfer);
  /* A transfer is finished: the layers above release what they hold for it. */
  void (*let_go)(ferry__transfer *transfer);
  /* Chooses the engine for a transfer. */
  const struct ferry__engine *(*choose)(const ferry_loop *loop,
                                        const ferry__transfer *transfer);
  /* A host is about to leave the table. */
  void (*forget)(ferry_loop *loop, ferry__host *host);
} ferry__hooks;

typedef struct ferry__counters {
  _Atomic uint64_t waiting, resolving, running, sockets, handles, hosts,
      kept_bytes, submitted, finished, connections, lookups,
      refresh_faults, guarded, turns,
      longest_turn_us, trust_renewals, trust_faults;
} ferry__counters;

/* The loop of this thread; NULL on other threads. */
extern _Thread_local ferry_loop *ferry__current;

/* [any thread] Initialises libcurl, once (memory.c). */
void ferry__initialise(void);
void ferry__arm(ferry_loop *loop, uint64_t at);
/* Opens libuv's handles, then starts the thread. 0, or a negative errno. */
int ferry__loop_open(ferry_loop *loop);
void ferry__loop_close(ferry_loop *loop); /* if ferry__loop_run was never
                                           * called */
int ferry__loop_run(ferry_loop *loop);
/* Closes all handles except the timer, which ends the last writes. */
void ferry__loop_close_handles(ferry_loop *loop);

/* ---- The alarm (alarm.c) ------------------------------------------------- */

/* One timer with high resolution. For the loop's thread. */
typedef struct ferry__alarm {
  int fd;         /* timerfd; -1 before the first alarm, -2 if none is
                   * available */
  uint64_t at;    /* ns; 0 = none */
  uint64_t armed; /* ns; the time to which the system's timer is set */
} ferry__alarm;

/* Calls on_alarm if it is due. */
void ferry__alarm_look(ferry_loop *loop);
/* Called when the loop is about to wait for its sockets. */
void ferry__alarm_arm(ferry_loop *loop);

/* ---- The whole ----------------------------------------------------------- */

/* Everything here belongs to the loop's thread, except where marked [any
 * thread]. The layers above keep their state in parts of their own, which
 * core.c puts together. */
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
  ferry__table table;
  ferry__wheel wheel;
  ferry__pool pool;
  ferry__shelf shelves[FERRY__SHELVES];
  ferry__jobs jobs;
  ferry__alarm alarm;
  uint64_t waits;   /* incremented each time the loop is about to wait */
  uint64_t now_ns;  /* updated once a round */
  uint64_t read_ns; /* before the sockets of this turn were read */
  uint64_t polled;  /* ms; when the loop last polled the sockets */
  uint64_t held_from, held_until; /* ms; the last time they were not polled */

  ferry__transfers *transfers; /* transfer/transfer.h */
  ferry__hosts *hosts;         /* connection/host.h, as are the next two */
  ferry__admission *admission;
  ferry__port *port;
  ferry__curl *curl;   /* curl/libcurl.h */
  ferry__http1 *http1; /* http1/engine.h */
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
/* The lifetime of one connection in ms: the option, give or take a tenth. */
static inline uint64_t ferry__lifetime(const ferry_loop *loop,
                                       uint64_t serial) {
  uint64_t tenth = loop->options.lifetime_ms / 10;
  return loop->options.lifetime_ms - tenth +
         serial * 0x9e3779b97f4a7c15u % (2 * tenth + 1);
}

#endif
