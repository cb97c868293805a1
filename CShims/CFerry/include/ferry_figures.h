/* ferry_figures.h - gauges and counters, and what this machine has. */
#ifndef CFERRY_FIGURES_H
#define CFERRY_FIGURES_H

#include "ferry_base.h"
#include "ferry_loop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Figures ------------------------------------------------------------- */

/* Gauges and counters of a loop; each is exact, together they may differ by
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
  uint64_t guarded;     /* idle connections ended because bytes came */
  uint64_t turns;
  uint64_t longest_turn_us;
} ferry_statistics;

/* [any thread], until ferry_loop_free(). */
void ferry_loop_statistics(const ferry_loop *_Nonnull loop,
                           ferry_statistics *_Nonnull out);

/* ---- What this machine has ----------------------------------------------- */

/* What the libcurl of this machine was built for. */
enum {
  FERRY_FEATURE_HTTP2 = 1u << 0,
  FERRY_FEATURE_NTLM = 1u << 1,
  FERRY_FEATURE_NEGOTIATE = 1u << 2,
};

/* [any thread] FERRY_FEATURE_… */
unsigned ferry_features(void);

/* [any thread] 1 when FERRY_PUBLIC_ONLY connects to this address ("1.2.3.4",
 * "::1", "[::1]"), 0 when it does not, -1 when it is not an address. */
int ferry_address_is_public(const char *_Nonnull text);

#ifdef __cplusplus
}
#endif
#endif
