/* host.h - origins: their addresses, and which of their transfers starts
 * next. */
#ifndef FERRY_HOST_H
#define FERRY_HOST_H

#include "transfer/transfer.h"

/* ---- Figures (figures.c) ------------------------------------------------- */

/* As in ferry_origin_figures. Only the loop's thread writes it. */
typedef struct ferry__origin {
  _Atomic uint64_t open, idle, pending, opened, reused, failed, waited_us;
  _Atomic uint64_t closed[FERRY_CLOSED_REASONS];
} ferry__origin;

/* Adds the figures of `from` to `to`, and clears `from`. */
void ferry__origin_fold(ferry__origin *to, ferry__origin *from);
/* The transfer starts to wait for a connection, or stops. */
void ferry__origin_awaited(ferry__transfer *transfer);
void ferry__origin_served(ferry__transfer *transfer);

/* ---- Backends (backend.c) ------------------------------------------------ */

/* One of several addresses of a host. Connections to it may outlive its entry
 * in the list. */
typedef struct ferry__backend {
  struct ferry__backend *next;
  unsigned references;
  unsigned active;   /* requests running there, or waiting for a connection to
                      * it */
  uint64_t requests; /* all requests that were sent there */
  uint64_t avoid_until, failed_at, heard_at; /* ms */
  uint32_t backoff_ms; /* 0 = healthy */
  bool mute; /* it accepts connections but does not respond */
  bool listed;
  bool behind; /* `requests` is to catch up before it is chosen */
  char address[48]; /* "1.2.3.4", "[::1]" */
} ferry__backend;

/* The backends of a host, in the order of its addresses; NULL if it has one
 * address. */
ferry__backend *ferry__backends_of(ferry__host *host);
ferry__backend *ferry__backend_find(const ferry__host *host, const char *text,
                                    size_t length);
void ferry__backends_free(ferry__host *host);
/* In all functions below the backend may be NULL. */
void ferry__backend_hold(ferry__backend *backend);
void ferry__backend_release(ferry__backend *backend);
bool ferry__backend_is_avoided(const ferry_loop *loop,
                               const ferry__backend *backend);
/* Whether it is allowed and not avoided. */
bool ferry__backend_is_well(const ferry_loop *loop,
                            const ferry__backend *backend, bool public_only);
/* A connection to it is being opened; .. */
void ferry__backend_tried(const ferry_loop *loop, ferry__backend *backend);
/* .. the attempt that began at this time (ms) has failed, or has succeeded. */
void ferry__backend_failed(const ferry_loop *loop, ferry__backend *backend,
                           uint64_t begun);
void ferry__backend_connected(ferry__backend *backend);
/* It accepted a connection or a request at this time (ms) and never responded;
 * or the first byte of a response has arrived. */
void ferry__backend_mute(const ferry_loop *loop, ferry__backend *backend,
                         uint64_t begun);
void ferry__backend_heard(const ferry_loop *loop, ferry__backend *backend);
/* Whether the list has another backend that is not avoided. */
bool ferry__backends_have_other(const ferry_loop *loop,
                                const ferry__backend *list,
                                const ferry__backend *than);
/* Chooses the backend of the next request; NULL if any will do. */
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
  char *name; /* its name in libcurl's cache */
  char *local; /* for http+unix: the path of its socket */
  bool literal; /* its name is an address */
  bool fixed;   /* its addresses were configured, or it needs none
                 * (override.c) */
  uint32_t zone; /* of a literal IPv6 address: the interface; 0 = none */
  bool secure;
  bool large;   /* its last body was long */
  uint16_t port;
  unsigned running, waiting;
  unsigned held; /* transfers that use it as their proxy */
  ferry__shard *home; /* the shard of its last connection */
  uint64_t shards;    /* the first 64 shards: bits of those with a connection to
                       * it */
  ferry__fifo parked[FERRY__RINGS];
  ferry__host *open_prev[FERRY__RINGS], *open_next[FERRY__RINGS];
  bool is_open[FERRY__RINGS];
  /* Its addresses. */
  ferry__fifo resolving;
  bool looking_up;
  uint64_t fresh_until, usable_until; /* ms */
  uint32_t answer;                    /* incremented with each change; 0 = no
                                       * addresses */
  char *addresses;
  char *authority; /* for the Host field: "name", "name:port" */
  size_t authority_length;
  ferry__route *routes; /* for the native engine's connections */
  uint32_t *fed; /* per shard: the `answer` it was given; of a literal, that it
                  * may use it */
  ferry__backend *backends; /* if it has several addresses (backend.c) */
  uint32_t backends_of;     /* the `answer` that they come from */
  uint64_t used_at; /* ms: when it was last used */
  ferry__origin figures;
};

struct ferry__hosts {
  /* Guards `buckets`, everything linked from them, and `past`, for threads that
   * read the figures: hosts come and go meanwhile. */
  pthread_mutex_t lock;
  ferry__origin past; /* the sums of forgotten origins */
  uint64_t look_at;   /* ms: when a host may have to be forgotten; 0 = no
                       * host */
  ferry__host **buckets;
  unsigned capacity, count;
  uint64_t serials;
  unsigned feeds; /* the size of `fed` in each host */
  ferry__host *oldest, *newest;
};

/* Finds or makes the host of an origin; NULL sets *fault. */
ferry__host *ferry__host_find(ferry_loop *loop, const char *origin,
                              size_t length, ferry__fault *fault);
/* The host with this serial, or NULL. */
ferry__host *ferry__host_by_serial(ferry_loop *loop, uint64_t serial);
/* Forgets hosts that were unused for as long as a connection may be idle: their
 * figures at once, the rest when their addresses are too old to use. Returns
 * when to look again, 0 = never. */
uint64_t ferry__hosts_look(ferry_loop *loop, uint64_t now);
void ferry__hosts_free(ferry_loop *loop);

/* Configured replacements for addresses (override.c). */
bool ferry__overrides_are_valid(const ferry_options *options);
bool ferry__overrides_copy(ferry_loop *loop, const ferry_options *options);
void ferry__overrides_free(ferry_loop *loop);
/* Gives a host its configured addresses; false without memory. */
bool ferry__override(const ferry_loop *loop, ferry__host *host);
/* The path of the socket that the host's connections go to, or NULL. */
const char *ferry__local(const ferry_loop *loop, const ferry__host *host);
/* The system accepts paths of up to 107 bytes. */
bool ferry__local_fits(const char *path);
/* Returns true if its addresses are known; otherwise a lookup is under way. */
bool ferry__name_known(ferry_loop *loop, ferry__host *host);
/* The last transfer that waited for its name has ended for another reason. */
void ferry__name_unwanted(ferry_loop *loop, ferry__host *host);

/* Lookups (lookup.c): a bounded set of threads for all loops of the process,
 * with one lookup at a time for a name. */
typedef struct ferry__answer {
  struct ferry__answer *next;
  uint64_t serial;  /* of the host that asked */
  int eai;
  char *addresses; /* "1.2.3.4,[::1]"; NULL if memory ran out */
} ferry__answer;

void ferry__answer_free(ferry__answer *answer);
/* Whether a name equals `end` or is below it, with or without the root's
 * dot. */
bool ferry__is_under(const char *name, const char *end);

typedef struct ferry__port ferry__port; /* may outlive the loop */
ferry__port *ferry__port_make(ferry_loop *loop);
void ferry__port_close(ferry__port *port);
/* An urgent lookup is for a name that is known, and goes before others. */
int ferry__lookup(ferry__port *port, uint64_t serial, const char *name,
                  int (*lookup)(const char *, struct addrinfo **),
                  bool urgent);
/* Cancels a lookup. Returns true if it had not begun: then no result comes. The
 * other function cancels all lookups of the port. */
bool ferry__lookup_drop(ferry__port *port, uint64_t serial, const char *name,
                        int (*lookup)(const char *, struct addrinfo **));
void ferry__lookups_drop(ferry__port *port);
ferry__answer *ferry__port_answers(ferry__port *port);
void ferry__name_answered(ferry_loop *loop, ferry__answer *answer);

/* ---- From submit to engine (start.c) ------------------------------------- */

void ferry__accept(ferry_loop *loop, ferry__transfer *transfer);
void ferry__transfer_start(ferry_loop *loop, ferry__transfer *transfer);
/* The name that it waited for is known, or could not be resolved. */
void ferry__transfer_named(ferry_loop *loop, ferry__transfer *transfer,
                           ferry__fault fault);
/* It stops waiting for admission or for a name. */
void ferry__withdraw(ferry_loop *loop, ferry__transfer *transfer);
/* A running transfer has ended: its slot is free. */
void ferry__give_place(ferry_loop *loop, ferry__transfer *transfer);
/* It is finished: drops its reference to its proxy's host. */
void ferry__let_go(ferry__transfer *transfer);
/* The host whose address it connects to. */
ferry__host *ferry__dialled(const ferry__transfer *transfer);
ferry__fault ferry__connect_fault(bool proxied, int os_errno);

/* ---- Addresses (address.c) ----------------------------------------------- */

bool ferry__is_public(const struct sockaddr *address);

/* ---- Admission (admission.c) --------------------------------------------- */

struct ferry__admission {
  ferry__fifo unlimited; /* FERRY_UNLIMITED */
  ferry__fifo ring[FERRY__RINGS];
  ferry__host *open[FERRY__RINGS]; /* hosts with room and parked transfers */
  ferry__host *open_last[FERRY__RINGS];
  unsigned passed[FERRY__RINGS]; /* how often a queue was passed over */
  unsigned waiting, running;
};

void ferry__fifo_push(ferry__fifo *fifo, ferry__transfer *transfer);
void ferry__fifo_remove(ferry__fifo *fifo, ferry__transfer *transfer);
void ferry__enqueue(ferry_loop *loop, ferry__transfer *transfer);
void ferry__dequeue(ferry_loop *loop, ferry__transfer *transfer);
void ferry__admit(ferry_loop *loop);
bool ferry__admissible(const ferry_loop *loop);
/* A running transfer has ended: its slot is free. */
void ferry__leave(ferry_loop *loop, ferry__host *host);
void ferry__reprioritise(ferry_loop *loop, ferry__transfer *transfer,
                         int priority);

#endif
