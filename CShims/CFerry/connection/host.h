/* host.h - origins: their addresses, and who of those that want to go there
 * goes next. */
#ifndef FERRY_HOST_H
#define FERRY_HOST_H

#include "transfer/transfer.h"

/* ---- Figures (figures.c) ------------------------------------------------- */

/* As of ferry_origin_figures. The loop's thread alone writes. */
typedef struct ferry__origin {
  _Atomic uint64_t open, idle, pending, opened, reused, failed, waited_us;
  _Atomic uint64_t closed[FERRY_CLOSED_REASONS];
} ferry__origin;

/* Adds what `from` has to `to`, and leaves nothing. */
void ferry__origin_fold(ferry__origin *to, ferry__origin *from);
/* The transfer waits for a connection; it does so no longer. */
void ferry__origin_awaited(ferry__transfer *transfer);
void ferry__origin_served(ferry__transfer *transfer);

/* ---- Backends (backend.c) ------------------------------------------------ */

/* One of several addresses of a host. Connections to it may outlive its place
 * in the list. */
typedef struct ferry__backend {
  struct ferry__backend *next;
  unsigned references;
  unsigned active;   /* requests at it, or for which it is connected to */
  uint64_t requests; /* that were given to it */
  uint64_t avoid_until, failed_at, heard_at; /* ms */
  uint32_t backoff_ms; /* 0 = nothing speaks against it */
  bool mute; /* it takes connections and answers nothing */
  bool listed;
  bool behind; /* it takes its turn from here on */
  char address[48]; /* "1.2.3.4", "[::1]" */
} ferry__backend;

/* Those of a host, in the order of its addresses; NULL where there is one. */
ferry__backend *ferry__backends_of(ferry__host *host);
ferry__backend *ferry__backend_find(const ferry__host *host, const char *text,
                                    size_t length);
void ferry__backends_free(ferry__host *host);
/* Of all that follow the backend may be NULL. */
void ferry__backend_hold(ferry__backend *backend);
void ferry__backend_release(ferry__backend *backend);
bool ferry__backend_is_avoided(const ferry_loop *loop,
                               const ferry__backend *backend);
/* Not avoided, and allowed. */
bool ferry__backend_is_well(const ferry_loop *loop,
                            const ferry__backend *backend, bool public_only);
/* It is connected to, .. */
void ferry__backend_tried(const ferry_loop *loop, ferry__backend *backend);
/* .. which has failed, having begun then (ms), or has come about. */
void ferry__backend_failed(const ferry_loop *loop, ferry__backend *backend,
                           uint64_t begun);
void ferry__backend_connected(ferry__backend *backend);
/* It has taken a connection, or a request, then (ms), and nothing came of it;
 * a byte of a response has come. */
void ferry__backend_mute(const ferry_loop *loop, ferry__backend *backend,
                         uint64_t begun);
void ferry__backend_heard(const ferry_loop *loop, ferry__backend *backend);
/* Whether the list has another one that is not avoided. */
bool ferry__backends_have_other(const ferry_loop *loop,
                                const ferry__backend *list,
                                const ferry__backend *than);
/* Where the next request goes; NULL where that does not matter. */
ferry__backend *ferry__backend_choose(const ferry_loop *loop,
                                      ferry__host *host, bool public_only);

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
  char *local; /* of http+unix: the path of its socket */
  bool literal; /* its name is an address */
  bool fixed;   /* its addresses were given, or it needs none (override.c) */
  uint32_t zone; /* of such a one of IPv6: the interface; 0 = none */
  bool secure;
  bool large;   /* its last body was long */
  uint16_t port;
  unsigned running, waiting;
  unsigned held; /* transfers that go through it as their proxy */
  ferry__shard *home; /* the last one that it was given a connection in */
  uint64_t shards;    /* of the first 64, those that have one */
  ferry__fifo parked[FERRY__RINGS];
  ferry__host *open_prev[FERRY__RINGS], *open_next[FERRY__RINGS];
  bool is_open[FERRY__RINGS];
  /* Its addresses. */
  ferry__fifo resolving;
  bool looking_up;
  uint64_t fresh_until, usable_until; /* ms */
  uint32_t answer;                    /* one more with each change; 0 = none */
  char *addresses;
  char *authority; /* of the Host field: "name", "name:port" */
  size_t authority_length;
  ferry__route *routes; /* of the native engine's connections */
  uint32_t *fed; /* by shard: the answer it knows; of a literal, that it may */
  ferry__backend *backends; /* of several addresses (backend.c) */
  uint32_t backends_of;     /* the answer that they are of */
  uint64_t used_at; /* ms: when it was last asked for */
  ferry__origin figures;
};

typedef struct ferry__hosts {
  /* Of `buckets`, whatever hangs on them, and `past`, for those who read the
   * figures on other threads: hosts come and go under it. */
  pthread_mutex_t lock;
  ferry__origin past; /* of those that are forgotten */
  uint64_t look_at;   /* ms: when one may have to be; 0 = there is none */
  ferry__host **buckets;
  unsigned capacity, count;
  uint64_t serials;
  ferry__host *oldest, *newest;
} ferry__hosts;

/* The host of an origin; NULL sets *fault. */
ferry__host *ferry__host_find(ferry_loop *loop, const char *origin,
                              size_t length, ferry__fault *fault);
/* The host whose serial this is, or NULL. */
ferry__host *ferry__host_by_serial(ferry_loop *loop, uint64_t serial);
/* Forgets what has not been used for as long as a connection may be idle: the
 * figures at once, the rest when its addresses are too old to be of use.
 * Returns when to look again, 0 = no need to. */
uint64_t ferry__hosts_look(ferry_loop *loop, uint64_t now);
void ferry__hosts_free(ferry_loop *loop);

/* What takes the place of addresses (override.c). */
bool ferry__overrides_are_valid(const ferry_options *options);
bool ferry__overrides_copy(ferry_loop *loop, const ferry_options *options);
void ferry__overrides_free(ferry_loop *loop);
/* Gives a host the addresses that were given for it; false without memory. */
bool ferry__override(const ferry_loop *loop, ferry__host *host);
/* The path of the socket that the host's connections go to, or NULL. */
const char *ferry__local(const ferry_loop *loop, const ferry__host *host);
/* The system takes paths of 107 bytes. */
bool ferry__local_fits(const char *path);
/* True when its addresses are known; else a lookup is under way. */
bool ferry__name_known(ferry_loop *loop, ferry__host *host);
/* The last transfer that waited for its name has ended otherwise. */
void ferry__name_unwanted(ferry_loop *loop, ferry__host *host);

/* Lookups (lookup.c): a bounded set of threads, one lookup a name at a time,
 * for all loops of the process. */
typedef struct ferry__answer {
  struct ferry__answer *next;
  uint64_t serial;  /* of the host that asked */
  int eai;
  char *addresses; /* "1.2.3.4,[::1]"; NULL where there was no memory */
} ferry__answer;

void ferry__answer_free(ferry__answer *answer);
/* Whether a name is this one or below it, with root's dot or without. */
bool ferry__is_under(const char *name, const char *end);

typedef struct ferry__port ferry__port; /* outlives the loop if it must */
ferry__port *ferry__port_make(ferry_loop *loop);
void ferry__port_close(ferry__port *port);
/* An urgent one is of a name that is known, and goes before others. */
int ferry__lookup(ferry__port *port, uint64_t serial, const char *name,
                  int (*lookup)(const char *, struct addrinfo **),
                  bool urgent);
/* Nobody waits for it any more: true when it had not begun, and is not to come.
 * The other one drops all that the port waits for. */
bool ferry__lookup_drop(ferry__port *port, uint64_t serial, const char *name,
                        int (*lookup)(const char *, struct addrinfo **));
void ferry__lookups_drop(ferry__port *port);
ferry__answer *ferry__port_answers(ferry__port *port);
void ferry__name_answered(ferry_loop *loop, ferry__answer *answer);

/* ---- From the submit to the engine (start.c) ----------------------------- */

void ferry__accept(ferry_loop *loop, ferry__transfer *transfer);
void ferry__transfer_start(ferry_loop *loop, ferry__transfer *transfer);
/* The name it waited for is known, or is not to be had. */
void ferry__transfer_named(ferry_loop *loop, ferry__transfer *transfer,
                           ferry__fault fault);
/* It waits for its place, or for a name, no longer. */
void ferry__withdraw(ferry_loop *loop, ferry__transfer *transfer);
/* Whose address it connects to. */
ferry__host *ferry__dialled(const ferry__transfer *transfer);
ferry__fault ferry__connect_fault(bool proxied, int os_errno);

/* ---- Addresses (address.c) ----------------------------------------------- */

bool ferry__is_public(const struct sockaddr *address);

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

#endif
