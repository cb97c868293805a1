/* ferry_figures.h - gauges and counters, and the features of this machine. */
#ifndef CFERRY_FIGURES_H
#define CFERRY_FIGURES_H

#include "ferry_base.h"
#include "ferry_loop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Figures ------------------------------------------------------------- */

/* Gauges and counters of a loop. Each is exact; values read together may be
 * from different turns. */
typedef struct ferry_statistics {
  uint64_t waiting;     /* queued */
  uint64_t resolving;   /* of `running`: waiting for a name */
  uint64_t running;     /* admitted, and not ended */
  uint64_t sockets;     /* open */
  uint64_t handles;     /* easy handles, including idle ones */
  uint64_t hosts;       /* origins that are remembered, including idle ones */
  uint64_t kept_bytes;  /* of idle memory blocks for bodies and results */
  uint64_t submitted;   /* since the start, like all below */
  uint64_t finished;
  uint64_t connections; /* opened */
  uint64_t lookups;
  uint64_t refresh_faults; /* lookups that failed for a name that was known: its
                            * old addresses stay in use */
  uint64_t guarded;     /* idle connections closed because bytes arrived */
  uint64_t turns;
  uint64_t longest_turn_us;
  uint64_t trust_renewals; /* TLS files that had changed and were read */
  uint64_t trust_faults;   /* TLS files that had changed and were unusable */
} ferry_statistics;

/* [any thread] Reads the statistics of a loop. Until ferry_loop_free(). */
void ferry_loop_statistics(const ferry_loop *_Nonnull loop,
                           ferry_statistics *_Nonnull out);

/* ---- Figures of origins -------------------------------------------------- */

/* Why a connection was closed. */
enum {
  FERRY_CLOSED_ERROR = 0, /* it broke, or the bytes were not HTTP */
  FERRY_CLOSED_LIFETIME,  /* it was older than ferry_options.lifetime_ms */
  FERRY_CLOSED_IDLE,      /* unused for ferry_options.idle_ms */
  FERRY_CLOSED_SERVER,    /* the server closed it, or announced that */
  FERRY_CLOSED_POISONED,  /* bytes arrived that belong to no request */
  FERRY_CLOSED_EVICTED,   /* it made room for others */
  FERRY_CLOSED_CANCELLED, /* its transfer ended before its response */
  FERRY_CLOSED_REQUEST,   /* the request had Connection: close */
  FERRY_CLOSED_SHUTDOWN,  /* the loop ended */
  FERRY_CLOSED_UNKNOWN,   /* libcurl closed it, for an unknown reason */
  FERRY_CLOSED_REASONS
};

/* The connections of one scheme, host and port. Those through a proxy count for
 * the origin that they lead to. opened = open + the sum of closed. */
typedef struct ferry_origin_figures {
  const char *_Nonnull origin; /* "http://name:port"; "" for the first entry */
  uint64_t open;    /* gauges, like the next two: connected */
  uint64_t idle;    /* of these, unused; always 0 for libcurl */
  uint64_t pending; /* transfers that wait for a connection, without
                     * libcurl's */
  uint64_t opened;  /* counters, like all below */
  uint64_t reused;  /* transfers over a connection that had carried another */
  uint64_t failed;  /* attempts to connect that failed; always 0 for libcurl */
  uint64_t waited_us; /* the time that all transfers waited for a connection;
                       * always 0 for libcurl */
  uint64_t closed[FERRY_CLOSED_REASONS];
} ferry_origin_figures;

/* [any thread] Lists the origins that are in use, or have been unused for no
 * longer than idle_ms. Until ferry_loop_free(). The first entry holds the sums
 * of all origins that have been forgotten. The list is one block; the caller
 * frees it with ferry_origins_free(). Returns FERRY_OK or FERRY_E_MEMORY. */
int ferry_loop_origins(ferry_loop *_Nonnull loop,
                       ferry_origin_figures *_Nullable *_Nonnull out,
                       size_t *_Nonnull count);
void ferry_origins_free(ferry_origin_figures *_Nullable figures);

/* ---- Features of this machine -------------------------------------------- */

/* The features that the libcurl of this machine was built with. */
enum {
  FERRY_FEATURE_HTTP2 = 1u << 0,
  FERRY_FEATURE_NTLM = 1u << 1,
  FERRY_FEATURE_NEGOTIATE = 1u << 2,
};

/* [any thread] Returns FERRY_FEATURE_… flags. */
unsigned ferry_features(void);

/* [any thread] Returns 1 if FERRY_PUBLIC_ONLY allows this address ("1.2.3.4",
 * "::1", "[::1]"), 0 if it does not, and -1 if the text is not an address. */
int ferry_address_is_public(const char *_Nonnull text);

#ifdef __cplusplus
}
#endif
#endif
