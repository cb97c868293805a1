/* CCoreDriver.h - the transfer core under load without any Swift: what the
 * core alone costs, and with it what the layers above it add. */
#ifndef CCOREDRIVER_H
#define CCOREDRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef struct ccore_load {
  const char *_Nonnull url;
  uint64_t total;           /* requests */
  uint32_t concurrency;     /* submitted at once */
  uint64_t expected_length; /* of every body */
  uint32_t max_transfers;   /* as in ferry_options */
  uint32_t max_per_host;
  uint8_t engine;           /* likewise */
  uint8_t insecure;         /* likewise */
  /* Room for `total` latencies in nanoseconds, submit to result. */
  uint64_t *_Nonnull latencies;
} ccore_load;

typedef struct ccore_report {
  uint64_t ok;     /* status 200 and the expected length */
  uint64_t wrong;  /* answered otherwise */
  uint64_t failed; /* not answered */
  uint64_t connections;
  uint64_t longest_turn_us;
  double seconds;
} ccore_report;

/* Sends `total` GETs, `concurrency` of them at once; each result is answered
 * by the next submit on the loop's thread. Blocks until all have ended.
 * Returns 0 or a negative FERRY_E_… code. */
int ccore_run(const ccore_load *_Nonnull load, ccore_report *_Nonnull out);

/* Has the allocator give the kernel what it keeps for later (malloc_trim(3)),
 * then says how many bytes the program has taken from it and not given back
 * (mallinfo2(3)); 0 where the C library does not say. What lies between this
 * and the resident size is the allocator's own. */
size_t ccore_allocated(void);

#endif
