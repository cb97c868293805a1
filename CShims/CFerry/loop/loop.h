/* loop.h - the loop, its sockets and its timers, and the ways into it. */
#ifndef FERRY_LOOP_H
#define FERRY_LOOP_H

#include "loop/base.h"

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
/* [any thread] FERRY_OK, or FERRY_E_SHUTDOWN: then it is still the caller's. */
int ferry__mailbox_put(ferry_loop *loop, ferry__transfer *transfer);
/* [any thread] */
void ferry__mailbox_command(ferry_loop *loop, ferry__command command);
void ferry__mailbox_call(ferry_loop *loop);
/* Closes it for ever and returns what was left. */
ferry__transfer *ferry__mailbox_close(ferry_loop *loop);
bool ferry__mailbox_is_empty(const ferry_loop *loop);
/* From here on whoever puts something in wakes the loop. False when there is
 * something already: then the loop must not wait. */
bool ferry__mailbox_sleep(ferry_loop *loop);
void ferry__mailbox_submits(ferry_loop *loop);
void ferry__mailbox_commands(ferry_loop *loop);
/* on_call, where it was asked for. */
void ferry__mailbox_calls(ferry_loop *loop);

/* ---- Sockets (sockets.c) ------------------------------------------------- */

/* Beside CURL_POLL_…: the other side has closed. */
enum { FERRY__POLL_END = 8 };

/* Whoever has opened it. */
typedef struct ferry__socket_owner {
  void (*on_event)(ferry_loop *loop, ferry__socket *socket,
                   unsigned events); /* EPOLL… */
  /* Its number is another socket's now; NULL = nothing to do. */
  void (*forget)(ferry_loop *loop, ferry__socket *socket);
} ferry__socket_owner;

struct ferry__socket {
  int fd;
  unsigned have; /* CURL_POLL_… bits that are registered */
  const ferry__socket_owner *owner;
  uint64_t serial; /* another number for each socket that is opened */
  ferry__connection *native; /* the native engine's */
  /* libcurl's engine's (curl/socket.c), like all that follow. */
  unsigned want; /* likewise, wanted */
  ferry__shard *shard;
  /* Who used it last: a paused owner keeps it from being idle. By number, as
   * libcurl may close it without telling, and its user may be freed. */
  uint64_t user, lease;
  struct ferry__socket *port_next; /* chain of one local port's bucket */
  uint64_t identity;               /* ferry__extras.identity of its opener */
  uint16_t local_port, peer_port;  /* 0 = not in a bucket */
  char peer[46];
  ferry__host *origin; /* whose figures it is in; NULL = those of the past */
  bool http2;
  bool ours; /* opened by ferry__on_open(), and not closed since */
};

typedef struct ferry__sockets {
  int epoll;
  uv_poll_t poll;
  ferry__socket **by_fd;
  int capacity;
} ferry__sockets;

int ferry__sockets_open(ferry_loop *loop);
/* The entry of a descriptor; NULL where there is no memory. */
ferry__socket *ferry__socket_of(ferry_loop *loop, int fd);
/* The same for a descriptor that has just been opened. */
ferry__socket *ferry__socket_renew(ferry_loop *loop, int fd,
                                   const ferry__socket_owner *owner);
/* Has the system ask whether the other side is still there, by the options. */
void ferry__socket_keep_alive(const ferry_loop *loop, int fd);
/* Registers what is waited for (CURL_POLL_…). False, with errno, where the
 * system refuses it: what stands then stands. */
bool ferry__socket_watch(ferry_loop *loop, ferry__socket *socket,
                         unsigned want);
void ferry__sockets_free(ferry_loop *loop);

/* ---- The wheel (wheel.c) ------------------------------------------------- */

enum { FERRY__SLOTS = 512, FERRY__SLOT_MS = 8 };

typedef struct ferry__wheel {
  ferry__transfer *slot[FERRY__SLOTS];
  uint64_t used[FERRY__SLOTS / 64]; /* a bit for each slot with something */
  uint64_t turned; /* the slot number up to which all is done */
  unsigned count;
  bool is_turning;
} ferry__wheel;

void ferry__wheel_set(ferry_loop *loop, ferry__transfer *transfer, uint64_t at);
void ferry__wheel_remove(ferry_loop *loop, ferry__transfer *transfer);
void ferry__wheel_turn(ferry_loop *loop);
uint64_t ferry__wheel_next(const ferry_loop *loop);

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

/* ---- The loop (loop.c) --------------------------------------------------- */

/* What the loop, and transfers, have others do who know more (core.c). */
typedef struct ferry__hooks {
  /* A transfer, or a command, has come. */
  void (*accept)(ferry_loop *loop, ferry__transfer *transfer);
  void (*apply)(ferry_loop *loop, ferry__transfer *transfer,
                const ferry__command *command);
  /* A part of a turn; true when there is more to do at once. */
  bool (*work)(ferry_loop *loop);
  bool (*has_work)(const ferry_loop *loop);
  void (*gauge)(ferry_loop *loop);
  /* One of its limits may have passed. */
  void (*expire)(ferry_loop *loop, ferry__transfer *transfer);
  /* What else is due by now; returns when to look again, 0 = no need to. */
  uint64_t (*look)(ferry_loop *loop, uint64_t now);
  void (*stop)(ferry_loop *loop);
  void (*free)(ferry_loop *loop);
  /* A transfer that waits for its place, or for a name, does so no longer. */
  void (*withdraw)(ferry_loop *loop, ferry__transfer *transfer);
  /* A place has become free. */
  void (*leave)(ferry_loop *loop, ferry__host *host);
  /* What is to carry it. */
  const struct ferry__engine *(*choose)(const ferry_loop *loop,
                                        const ferry__transfer *transfer);
  /* A host leaves the table. */
  void (*forget)(ferry_loop *loop, ferry__host *host);
} ferry__hooks;

typedef struct ferry__counters {
  _Atomic uint64_t waiting, resolving, running, sockets, handles, hosts,
      kept_bytes, submitted, finished, connections, lookups,
      refresh_faults, guarded, turns,
      longest_turn_us, trust_renewals, trust_faults;
} ferry__counters;

/* The loop of this thread, NULL elsewhere. */
extern _Thread_local ferry_loop *ferry__current;

/* [any thread] libcurl, once (memory.c). */
void ferry__initialise(void);
void ferry__arm(ferry_loop *loop, uint64_t at);
/* libuv's handles, then the thread; 0, or a negative errno. */
int ferry__loop_open(ferry_loop *loop);
void ferry__loop_close(ferry_loop *loop); /* without ferry__loop_run */
int ferry__loop_run(ferry_loop *loop);
/* Not the timer, which ends the last writes. */
void ferry__loop_close_handles(ferry_loop *loop);

/* ---- The alarm (alarm.c) ------------------------------------------------- */

/* One time of high resolution. The loop's thread. */
typedef struct ferry__alarm {
  int fd;         /* timerfd; -1 before the first alarm, -2 without one */
  uint64_t at;    /* ns; 0 = none */
  uint64_t armed; /* what the system's timer was set to */
} ferry__alarm;

/* Calls on_alarm when it is due. */
void ferry__alarm_look(ferry_loop *loop);
/* The loop is about to wait for its sockets. */
void ferry__alarm_arm(ferry_loop *loop);

#endif
