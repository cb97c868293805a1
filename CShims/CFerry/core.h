/* core.h - what the files of the core share. Everything here belongs to the
 * loop's thread, except what is marked [any thread]. */
#ifndef FERRY_CORE_H
#define FERRY_CORE_H

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
  FERRY__MAX_ROUNDS = 8,   /* of challenges answered */
  FERRY__MAX_ATTEMPTS = 3, /* of one transfer, libcurl's silent ones */
  /* libcurl's receive buffer, which it allocates and frees with every
   * transfer: above 16 KB glibc trims the heap each time (64 KB bodies: 22 us
   * with 16 KB, 28 with 32, 35 with 64), which only long bodies repay. */
  FERRY__BUFFER = 16384,
  FERRY__BIG_BUFFER = 131072,
  FERRY__LONG_BODY = 512 * 1024,
  FERRY__LATE = 65536, /* bytes of an answer that a reset overtook */
};

struct sockaddr;
typedef struct ferry__transfer ferry__transfer;
typedef struct ferry__handle ferry__handle;
typedef struct ferry__shard ferry__shard;
typedef struct ferry__host ferry__host;
typedef struct ferry__socket ferry__socket;
typedef struct ferry__block ferry__block;
typedef struct ferry__extras ferry__extras;

/* ---- Pool of blocks (pool.c) --------------------------------------------- */

enum { FERRY__CLASSES = 6 };

typedef struct ferry__pool {
  ferry__block *free[FERRY__CLASSES];
  uint32_t count[FERRY__CLASSES];
} ferry__pool;

/* A block of at least `size` bytes; *capacity is what it really holds. */
void *ferry__pool_take(ferry__pool *pool, size_t size, size_t *capacity);
/* Back to this loop's own list. */
void ferry__pool_give(ferry__pool *pool, void *bytes);
/* [any thread] Back to whichever loop needs it next; on a loop's thread to
 * that loop. */
void ferry__block_free(void *bytes);
void ferry__pool_close(ferry__pool *pool);

/* ---- Heads (head.c) ------------------------------------------------------ */

typedef struct ferry__head {
  char *bytes;
  ferry_field *fields;
  uint32_t length, capacity;
  uint32_t count, field_capacity;
  uint64_t received;      /* bytes of all heads and trailers */
  int64_t content_length; /* -1 = not announced */
  uint32_t limit;
  uint16_t status;
  uint16_t informational, trailers;
  uint8_t version;
  uint8_t coding;   /* FERRY__CODING_… */
  bool chunked, in_fields, complete;
} ferry__head;

enum {
  FERRY__CODING_NONE = 0,
  FERRY__CODING_GZIP,
  FERRY__CODING_DEFLATE,
  FERRY__CODING_OTHER, /* left as it is */
};

typedef struct ferry__fault {
  int32_t code, detail;
} ferry__fault;

/* Forgets all heads; keeps the memory. */
void ferry__head_begin(ferry__head *head, uint32_t limit);
/* The next line must be a status line: another answer follows. */
void ferry__head_expect_status(ferry__head *head);
/* One line with its CR LF. code 0 = taken. Sets complete at the final end. */
ferry__fault ferry__head_line(ferry__head *head, const char *line,
                              size_t length);
void ferry__head_free(ferry__head *head);

/* ---- Inflate (inflate.c) ------------------------------------------------- */

typedef struct ferry__inflate {
  struct ferry__inflate *next; /* in the loop's list of spare ones */
  z_stream stream;
  uint8_t coding;
  bool begun, ended;
  unsigned char first, first_length; /* a lone first byte of «deflate» */
  /* Input left over when the receiver paused inside of a piece. */
  unsigned char *held;
  size_t held_length;
} ferry__inflate;

/* ---- Transfers (transfer.c, request.c, body.c) --------------------------- */

enum ferry__state {
  FERRY__NEW,
  FERRY__WAITING,   /* in a ring, of the loop's or of its host's */
  FERRY__RESOLVING, /* has its place, waits for a name */
  FERRY__RUNNING,
  FERRY__DRAINING, /* libcurl is done, the receiver is not */
  FERRY__DONE,
};

typedef struct ferry__fifo {
  ferry__transfer *head, *tail;
} ferry__fifo;

struct ferry__transfer {
  ferry_result result; /* first: handed over as it is */
  ferry__transfer *next, *prev; /* inbox, ring, host's list, running list */
  ferry__fifo *fifo;            /* the ring it stands in while WAITING */
  ferry__transfer *timer_next, *timer_prev;
  uint64_t timer_at; /* ms; 0 = not in the wheel */
  uint64_t submitted_ns, started_ns;
  uint64_t submitted_ms, started_ms, last_ms, window_ms;
  uint64_t window_bytes, uploaded;
  uint8_t earlier; /* attempts with handles before this one */
  ferry__host *host;
  ferry__host *asked; /* whose name it waits for while RESOLVING */
  ferry__handle *handle;
  ferry__extras *extras; /* in the arena; NULL = none */
  const void *body; /* in the arena */
  uint64_t body_length, pulled;
  struct curl_slist *headers; /* in the arena */
  const char *origin, *target, *method; /* in the arena */
  uint32_t origin_length;
  uint32_t connect_ms, idle_ms, total_ms, deadline_ms;
  uint32_t low_speed_bytes, low_speed_ms, max_head;
  uint64_t max_body;
  int32_t fd;
  uint32_t flags;
  uint8_t state, priority, body_kind, response_kind, method_kind;
  bool receive_paused, send_paused, close_notified;
  bool head_held; /* a challenge, which libcurl may answer by itself */
  bool forbidden; /* an address was, and so not connected to */
  bool untouched; /* the server has not looked at its stream */
  bool again;     /* nothing was sent: to be begun anew, .. */
  bool fresh;     /* .. on a connection of its own */
  /* While it runs. */
  ferry__fault fault; /* ours, told before libcurl's */
  int phase;
  char *bytes; /* the body being collected, a block */
  size_t capacity;
  char *packed; /* the result's fields, head and perhaps body, a block */
  char *words;  /* behind result.message */
  char *late; /* what was left in the socket when it was closed */
  uint32_t late_length;
  ferry__inflate *inflate;
  char arena[];
};

enum { FERRY__GET, FERRY__HEAD, FERRY__POST, FERRY__OTHER };

/* The end of every list that has no Accept of its own. */
extern struct curl_slist ferry__no_accept;
/* [any thread] Checks and copies a request; *out is NULL when refused. */
ferry__fault ferry__transfer_make(const ferry_request *request,
                                  ferry__transfer **out);
void ferry__transfer_start(ferry_loop *loop, ferry__transfer *transfer);
/* Ends a transfer in any state. */
void ferry__transfer_end(ferry_loop *loop, ferry__transfer *transfer,
                         ferry__fault fault);
/* libcurl is done with it. */
void ferry__transfer_completed(ferry_loop *loop, ferry__transfer *transfer,
                               CURLcode code);
void ferry__transfer_resume(ferry_loop *loop, ferry__transfer *transfer);
/* The name it waited for is known, or is not to be had. */
void ferry__transfer_named(ferry_loop *loop, ferry__transfer *transfer,
                           ferry__fault fault);
/* Head and body leave the handle and become the result's (result.c). */
void ferry__result_pack(ferry_loop *loop, ferry__transfer *transfer);

/* The head is the last one: what the body will be, and on_head. False sets
 * transfer->fault. */
bool ferry__head_final(ferry_loop *loop, ferry__transfer *transfer);

/* libcurl's callbacks. */
size_t ferry__on_header(char *line, size_t size, size_t count, void *handle);
size_t ferry__on_write(char *bytes, size_t size, size_t count, void *handle);
size_t ferry__on_read(char *space, size_t size, size_t count, void *handle);

/* The end of the head: what the body will be. False sets transfer->fault. */
bool ferry__body_begin(ferry_loop *loop, ferry__transfer *transfer);
/* Decoded bytes. False sets transfer->fault. */
bool ferry__body_deliver(ferry_loop *loop, ferry__transfer *transfer,
                         const char *bytes, size_t length);

/* An answer that lay in the socket when writing to it failed (late.c). True
 * when it was whole, and has been delivered. */
bool ferry__late_answer(ferry__transfer *transfer);

ferry__inflate *ferry__inflate_take(ferry_loop *loop, uint8_t coding);
void ferry__inflate_give(ferry_loop *loop, ferry__inflate *inflate);
/* Decodes and delivers; stops where the receiver pauses and holds the rest.
 * False sets transfer->fault. */
bool ferry__inflate_write(ferry_loop *loop, ferry__transfer *transfer,
                          const char *bytes, size_t length);
bool ferry__inflate_drain(ferry_loop *loop, ferry__transfer *transfer);

/* What libcurl's code means, given how far the transfer had come (error.c). */
ferry__fault ferry__fault_of(const ferry__transfer *transfer, CURLcode code,
                             const char *words);
ferry__fault ferry__dns_fault(int eai);

/* ---- HTTP/2 (http2.c) ---------------------------------------------------- */

typedef struct ssl_st SSL;
void ferry__http2_constants(ferry__handle *handle);
void ferry__http2_prepare(ferry__handle *handle, ferry__transfer *transfer);
/* Whether the connection that its request goes out on speaks it. */
bool ferry__is_http2(const ferry__handle *handle, SSL *tls);
/* The stream that is sent again was certainly not looked at. */
bool ferry__was_refused(const ferry__handle *handle);
/* What a code of HTTP/2 and libcurl's words mean. */
ferry__fault ferry__stream_fault(const ferry__transfer *transfer,
                                 const char *words);
/* The field that libcurl would add by itself over HTTP/1.1. */
extern char ferry__chunked[];

/* ---- Cookies (cookies.c) ------------------------------------------------- */

ferry_jar *ferry__jar_hold(ferry_jar *jar);
void ferry__jar_constants(ferry__handle *handle);
void ferry__jar_reset(ferry__handle *handle);
void ferry__jar_prepare(ferry__handle *handle, ferry__transfer *transfer);

/* ---- What few requests say (extras.c) ------------------------------------ */

/* In the arena, but for `via`. */
struct ferry__extras {
  const char *proxy_origin, *proxy; /* "http://name:port", "name:port" */
  const char *proxy_user, *proxy_password;
  const char *user, *password;
  const char *encodings;
  struct curl_slist *proxy_headers;
  ferry__host *via; /* the proxy's name */
  uint64_t identity; /* who its connection is; 0 = anybody */
  uint8_t proxy_kind, schemes, targets, encodings_kind;
  char choice[64];
  struct curl_slist chosen; /* for CURLOPT_CONNECT_TO; data NULL = none */
};

/* [any thread] *size is what copying takes. */
ferry__fault ferry__extras_check(const ferry_extras *extras, size_t *size);
/* [any thread] The texts go to `text`; returns what follows them. */
char *ferry__extras_copy(const ferry_extras *extras, ferry__extras *to,
                         char *text);
/* All names are known: may it go there, and to which address? */
ferry__fault ferry__extras_route(ferry__transfer *transfer);
/* Whose address it connects to. */
ferry__host *ferry__dialled(const ferry__transfer *transfer);
bool ferry__extras_set(ferry__handle *handle, const ferry__transfer *transfer);

/* ---- Easy handles (handle.c) --------------------------------------------- */

enum { FERRY__OPENED = 8 };

struct ferry__handle {
  ferry__handle *next; /* in its shard's pool */
  CURL *easy;
  ferry_loop *loop;
  ferry__shard *shard;
  ferry__transfer *transfer; /* NULL while idle */
  uint64_t host_serial;      /* whose CURLU is set */
  uint32_t answer;           /* of its host, that has_resolve stands for */
  uint32_t generation;       /* one more with each transfer */
  unsigned unusual : 1;      /* options beyond target and headers are set */
  unsigned has_headers : 1, has_resolve : 1, big : 1;
  unsigned tunnelling : 1; /* what comes answers our CONNECT */
  unsigned tunnel_granted : 1, tunnelled : 1; /* its status, and its end */
  unsigned refused : 1; /* the last stream was, with no look at it */
  unsigned left_in : 1; /* the server goes away, but not before this stream */
  uint32_t tunnel_bytes, tunnel_steps;
  uint32_t stream;        /* of HTTP/2; 0 = none yet */
  ferry__socket *socket;  /* that its request went out on; only to compare */
  char target[64]; /* the one that is set, if it is short */
  unsigned attempts, rounds;
  unsigned opened_count;     /* sockets opened since the last request */
  int opened[FERRY__OPENED];
  ferry__head head;
  char words[CURL_ERROR_SIZE];
};

ferry__handle *ferry__handle_take(ferry_loop *loop, ferry__shard *shard);
/* Back into the pool, or thrown away after a fault. */
void ferry__handle_give(ferry__handle *handle, bool healthy);
/* libcurl's part of it goes. */
void ferry__handle_close(ferry__handle *handle);
void ferry__handle_free(ferry__handle *handle);
/* Options of this one transfer. False when libcurl refuses. */
bool ferry__handle_prepare(ferry__handle *handle, ferry__transfer *transfer);

/* ---- Shards (shard.c) ---------------------------------------------------- */

struct ferry__shard {
  ferry_loop *loop;
  CURLM *multi; /* made when first used */
  ferry__shard *touched_next;
  ferry__handle *pool;
  uint64_t due; /* ms; 0 = none, 1 = in this turn */
  uint64_t idle_since; /* ms; when its last transfer left */
  unsigned running, index;
  unsigned unheard; /* connects that go on without a socket to wait for */
  bool touched;
};

bool ferry__shard_open(ferry__shard *shard);
void ferry__shard_close(ferry__shard *shard);
/* Closed when nothing has run in it for the life of a kept connection;
 * returns when to look again, 0 = there is no need. */
uint64_t ferry__shard_rest(ferry__shard *shard, uint64_t now);
void ferry__shard_touch(ferry__shard *shard);
/* What is due, then what is finished. */
void ferry__shard_turn(ferry__shard *shard);
ferry__shard *ferry__shard_for(ferry_loop *loop, ferry__host *host);

/* ---- Sockets (socket.c) -------------------------------------------------- */

struct ferry__socket {
  int fd;
  unsigned want, have; /* CURL_POLL_… bits: wanted, registered */
  ferry__shard *shard;
  ferry__handle *handle; /* who used it last, and with which generation: a */
  uint32_t generation;   /* paused owner keeps it from being «idle» */
  struct ferry__socket *port_next; /* chain of one local port's bucket */
  uint64_t identity;               /* ferry__extras.identity of its opener */
  uint16_t local_port, peer_port;  /* 0 = not in a bucket */
  char peer[46];
  bool http2;
};

enum { FERRY__BUCKETS = 1024 };

typedef struct ferry__sockets {
  int epoll;
  uv_poll_t poll;
  ferry__socket **by_fd;
  int capacity;
  ferry__socket *by_port[FERRY__BUCKETS];
} ferry__sockets;

int ferry__sockets_open(ferry_loop *loop);
void ferry__sockets_free(ferry_loop *loop);
int ferry__on_socket(CURL *easy, curl_socket_t fd, int what, void *shard,
                     void *socket);
curl_socket_t ferry__on_open(void *handle, curlsocktype purpose,
                             struct curl_sockaddr *address);
int ferry__on_close(void *loop, curl_socket_t fd);
/* Notes in close_notified how a body under TLS that has no length ends:
 * libcurl takes a bare FIN for an end too, and whoever can cut the line could
 * cut the body. */
void ferry__watch_close_notify(ferry__transfer *transfer);
/* True when a socket that this handle opened has its peer. */
bool ferry__is_connected(const ferry__handle *handle);
int ferry__on_request(void *handle, char *peer, char *local, int peer_port,
                      int local_port);

/* ---- Addresses (address.c) ----------------------------------------------- */

bool ferry__is_public(const struct sockaddr *address);

/* ---- Hosts (host.c) and names (name.c) ----------------------------------- */

struct ferry__host {
  ferry__host *hash_next;
  ferry__host *older, *newer; /* least recently used first */
  uint64_t serial;
  uint64_t hash;
  char *origin; /* "http://name:port", lower case */
  size_t origin_length;
  CURLU *url;
  char *name; /* as libcurl's cache knows it */
  bool literal; /* an address: nothing to look up */
  bool secure;
  bool large;   /* its last body was long */
  uint16_t port;
  unsigned running, waiting;
  unsigned held; /* transfers that go through it as their proxy */
  ferry__shard *home;
  ferry__fifo parked[FERRY__RINGS];
  ferry__host *open_prev[FERRY__RINGS], *open_next[FERRY__RINGS];
  bool is_open[FERRY__RINGS];
  /* Its addresses. */
  ferry__fifo resolving;
  bool looking_up;
  uint64_t fresh_until, usable_until; /* ms */
  uint32_t answer;                    /* one more with each change; 0 = none */
  char *addresses;
  struct curl_slist *resolve;  /* for CURLOPT_RESOLVE */
  struct curl_slist *outdated; /* freed when nothing runs */
  uint32_t *fed;               /* by shard: the answer it knows */
};

typedef struct ferry__hosts {
  ferry__host **buckets;
  unsigned capacity, count;
  uint64_t serials;
  ferry__host *oldest, *newest;
} ferry__hosts;

uint64_t ferry__hash(const char *text, size_t length);
/* The host of an origin; NULL sets *fault. */
ferry__host *ferry__host_find(ferry_loop *loop, const char *origin,
                              size_t length, ferry__fault *fault);
void ferry__hosts_free(ferry_loop *loop);
/* The shard is closed, and with it what it knew. */
void ferry__hosts_forget(ferry_loop *loop, const ferry__shard *shard);
/* One of its transfers has ended. */
void ferry__host_rest(ferry_loop *loop, ferry__host *host);

/* True when its addresses are known; else a lookup is under way. */
bool ferry__name_known(ferry_loop *loop, ferry__host *host);
/* The list for CURLOPT_RESOLVE, NULL when the shard knows the answer. */
struct curl_slist *ferry__name_feed(ferry__host *host, ferry__shard *shard);
void ferry__name_fed(ferry__host *host, ferry__shard *shard, uint32_t answer);

/* Lookups (lookup.c): a bounded set of threads, one lookup a name at a time,
 * for all loops of the process. */
typedef struct ferry__answer {
  struct ferry__answer *next;
  uint64_t serial;  /* of the host that asked */
  int eai;
  char *addresses; /* "1.2.3.4,[::1]" */
} ferry__answer;

typedef struct ferry__port ferry__port; /* outlives the loop if it must */
ferry__port *ferry__port_make(ferry_loop *loop);
void ferry__port_close(ferry__port *port);
int ferry__lookup(ferry__port *port, uint64_t serial, const char *name,
                  int (*lookup)(const char *, struct addrinfo **));
ferry__answer *ferry__port_answers(ferry__port *port);
void ferry__name_answered(ferry_loop *loop, ferry__answer *answer);

/* ---- Admission (admission.c) --------------------------------------------- */

typedef struct ferry__admission {
  ferry__fifo ring[FERRY__RINGS];
  ferry__host *open[FERRY__RINGS]; /* hosts with room and parked transfers */
  ferry__host *open_last[FERRY__RINGS];
  unsigned passed[FERRY__RINGS]; /* times a ring was passed over */
  unsigned waiting, running;
} ferry__admission;

void ferry__fifo_push(ferry__fifo *fifo, ferry__transfer *transfer);
void ferry__fifo_remove(ferry__fifo *fifo, ferry__transfer *transfer);
void ferry__enqueue(ferry_loop *loop, ferry__transfer *transfer);
void ferry__dequeue(ferry_loop *loop, ferry__transfer *transfer);
void ferry__admit(ferry_loop *loop);
bool ferry__admissible(const ferry_loop *loop);
/* A place has become free. */
void ferry__leave(ferry_loop *loop, ferry__host *host);
void ferry__reprioritise(ferry_loop *loop, ferry__transfer *transfer,
                         int priority);

/* ---- Timeouts (wheel.c) -------------------------------------------------- */

enum { FERRY__SLOTS = 512, FERRY__SLOT_MS = 8 };

typedef struct ferry__wheel {
  ferry__transfer *slot[FERRY__SLOTS];
  uint64_t used[FERRY__SLOTS / 64]; /* a bit for each slot with something */
  uint64_t turned; /* the slot number up to which all is done */
  unsigned count;
} ferry__wheel;

void ferry__wheel_set(ferry_loop *loop, ferry__transfer *transfer, uint64_t at);
void ferry__wheel_remove(ferry_loop *loop, ferry__transfer *transfer);
void ferry__wheel_turn(ferry_loop *loop);
uint64_t ferry__wheel_next(const ferry_loop *loop);
/* libcurl has no callback for «TCP is connected, TLS begins», and none for
 * «the body has left». */
void ferry__look_at_phase(ferry__transfer *transfer);
/* The next moment at which something of this transfer may expire; 0 = none.
 * *fault is set when it has (timeout.c). */
uint64_t ferry__timeout_check(ferry_loop *loop, ferry__transfer *transfer,
                              ferry__fault *fault);

/* ---- Table of ids (table.c) ---------------------------------------------- */

typedef struct ferry__table {
  ferry__transfer **slots;
  size_t capacity, count;
} ferry__table;

bool ferry__table_insert(ferry__table *table, ferry__transfer *transfer);
ferry__transfer *ferry__table_find(const ferry__table *table, uint64_t id);
void ferry__table_remove(ferry__table *table, uint64_t id);

/* ---- Mailbox (mailbox.c) ------------------------------------------------- */

enum { FERRY__CANCEL, FERRY__RESUME, FERRY__PRIORITY };

typedef struct ferry__command {
  struct ferry__command *next;
  uint64_t id;
  uint8_t kind, priority;
} ferry__command;

typedef struct ferry__mailbox {
  _Atomic(ferry__transfer *) inbox;
  _Atomic(ferry__command *) commands;
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

/* ---- The loop (loop.c) --------------------------------------------------- */

typedef struct ferry__counters {
  _Atomic uint64_t waiting, resolving, running, sockets, handles, submitted,
      finished, connections, lookups, guarded, turns, longest_turn_us;
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

  uv_loop_t uv;
  uv_timer_t timer;
  uv_check_t check;
  uv_prepare_t prepare;
  uv_idle_t idle;
  uint64_t timer_at; /* ms; 0 = not armed */

  ferry__sockets sockets;
  ferry__shard *shards, *touched;
  unsigned shard_count, per_shard, first_free;
  ferry__admission admission;
  ferry__hosts hosts;
  ferry__table table;
  ferry__wheel wheel;
  ferry__pool pool;
  ferry__port *port;
  ferry__inflate *inflates;
  unsigned inflate_count;
  unsigned char *scratch; /* inflate's output */
  ferry__transfer *running; /* RUNNING and DRAINING, doubly linked */
  ferry_result *finished, **finished_last;
  size_t finished_count;
  uint64_t now_ns; /* refreshed once a round */
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
static inline uint32_t ferry__us(uint64_t from_ns, uint64_t to_ns) {
  uint64_t us = to_ns > from_ns ? (to_ns - from_ns) / 1000 : 0;
  return us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

/* [any thread] libcurl, once. */
void ferry__initialise(void);
void ferry__arm(ferry_loop *loop, uint64_t at);
/* Puts a result into this turn's list. */
void ferry__finish(ferry_loop *loop, ferry__transfer *transfer);
/* The host whose serial this is, or NULL. */
ferry__host *ferry__host_by_serial(ferry_loop *loop, uint64_t serial);

#endif
