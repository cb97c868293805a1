/* CCoreDriver.h - loads the transfer core without any Swift: measures the core
 * alone, and so what the layers above it add. */
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
  uint8_t engine;           /* as in ferry_options */
  uint8_t insecure;         /* as in ferry_options */
  /* Room for `total` latencies in nanoseconds, submit to result. */
  uint64_t *_Nonnull latencies;
} ccore_load;

typedef struct ccore_report {
  uint64_t ok;     /* status 200 and the expected length */
  uint64_t wrong;  /* other responses */
  uint64_t failed; /* transfers without a response */
  uint64_t connections;
  uint64_t longest_turn_us;
  double seconds;
} ccore_report;

/* Sends `total` GETs, `concurrency` of them at once; after each result the next
 * one is submitted on the loop's thread. Blocks until all have ended. Returns 0
 * or a negative FERRY_E_… code. */
int ccore_run(const ccore_load *_Nonnull load, ccore_report *_Nonnull out);

/* Makes the allocator return unused memory to the kernel (malloc_trim(3)), then
 * returns how many bytes the program has allocated and not freed
 * (mallinfo2(3)); 0 if the C library does not tell. The difference to the
 * resident size belongs to the allocator. */
size_t ccore_allocated(void);

#endif
