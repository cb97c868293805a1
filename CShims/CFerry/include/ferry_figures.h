/* ferry_figures.h - gauges and counters, and features of this machine. */
#ifndef CFERRY_FIGURES_H
#define CFERRY_FIGURES_H

#include "ferry_base.h"
#include "ferry_loop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Figures ------------------------------------------------------------- */

/* Gauges and counters of a loop. Each is exact; together they may differ by
 * a turn. */
typedef struct ferry_statistics {
  uint64_t waiting;     /* in the rings */
  uint64_t resolving;   /* of the running, for a name */
  uint64_t running;     /* with a place of their own */
  uint64_t sockets;     /* open */
  uint64_t handles;     /* easy handles, idle ones included */
  uint64_t hosts;       /* origins that are remembered, idle ones included */
  uint64_t kept_bytes;  /* of blocks for bodies and results that are idle */
  uint64_t submitted;   /* since the start, like all that follow */
  uint64_t finished;
  uint64_t connections; /* opened */
  uint64_t lookups;
  uint64_t refresh_faults; /* of these, those that failed for a name that was
                            * known: its old addresses stay in use */
  uint64_t guarded;     /* idle connections ended because bytes came */
  uint64_t turns;
  uint64_t longest_turn_us;
  uint64_t trust_renewals; /* files of TLS that had changed, and were read */
  uint64_t trust_faults;   /* likewise, and could not be used */
} ferry_statistics;

/* [any thread], until ferry_loop_free(). */
void ferry_loop_statistics(const ferry_loop *_Nonnull loop,
                           ferry_statistics *_Nonnull out);

/* ---- Figures of origins -------------------------------------------------- */

/* Why a connection was closed. */
enum {
  FERRY_CLOSED_ERROR = 0, /* it broke, or what came over it was no HTTP */
  FERRY_CLOSED_LIFETIME,  /* it was older than ferry_options.lifetime_ms */
  FERRY_CLOSED_IDLE,      /* unused for ferry_options.idle_ms */
  FERRY_CLOSED_SERVER,    /* the server closed it, or said that it would */
  FERRY_CLOSED_POISONED,  /* bytes came that are a response to nothing */
  FERRY_CLOSED_EVICTED,   /* it made room for others */
  FERRY_CLOSED_CANCELLED, /* its transfer ended before its response */
  FERRY_CLOSED_REQUEST,   /* the request had Connection: close */
  FERRY_CLOSED_SHUTDOWN,  /* the loop ended */
  FERRY_CLOSED_UNKNOWN,   /* libcurl closed it, and does not tell why */
  FERRY_CLOSED_REASONS
};

/* The connections of one scheme, host and port; those through a proxy count
 * for the origin that they lead to. opened = open + all of closed. */
typedef struct ferry_origin_figures {
  const char *_Nonnull origin; /* "http://name:port"; "" = see below */
  uint64_t open;    /* gauges: connected */
  uint64_t idle;    /* of these, unused; 0 of libcurl's */
  uint64_t pending; /* transfers that wait for a connection, not in libcurl */
  uint64_t opened;  /* counters, like all that follow */
  uint64_t reused;  /* transfers over a connection that had carried another */
  uint64_t failed;  /* connections that did not come about; 0 of libcurl's */
  uint64_t waited_us; /* of all transfers, for a connection; 0 of libcurl's */
  uint64_t closed[FERRY_CLOSED_REASONS];
} ferry_origin_figures;

/* [any thread], until ferry_loop_free(). The origins in use, or not unused
 * for longer than idle_ms. The first entry has the sums of all removed ones.
 * The list is one block, for ferry_origins_free(). FERRY_OK or
 * FERRY_E_MEMORY. */
int ferry_loop_origins(ferry_loop *_Nonnull loop,
                       ferry_origin_figures *_Nullable *_Nonnull out,
                       size_t *_Nonnull count);
void ferry_origins_free(ferry_origin_figures *_Nullable figures);

/* ---- What this machine has ----------------------------------------------- */

/* The features of this machine's libcurl. */
enum {
  FERRY_FEATURE_HTTP2 = 1u << 0,
  FERRY_FEATURE_NTLM = 1u << 1,
  FERRY_FEATURE_NEGOTIATE = 1u << 2,
};

/* [any thread] FERRY_FEATURE_… */
unsigned ferry_features(void);

/* [any thread] 1 if FERRY_PUBLIC_ONLY permits this address ("1.2.3.4",
 * "::1", "[::1]"), 0 if not, -1 if it is not an address. */
int ferry_address_is_public(const char *_Nonnull text);

#ifdef __cplusplus
}
#endif
#endif
