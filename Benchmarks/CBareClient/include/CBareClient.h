/* CBareClient.h - the minimum cost of requests: a client in C over libcurl's
 * multi-socket interface and libuv, which sends one GET repeatedly, checks the
 * status and counts the bytes of the body. */
#ifndef CBARECLIENT_H
#define CBARECLIENT_H

#include <stdint.h>

typedef struct cbare_load {
  const char *url;
  uint64_t total;
  uint32_t concurrency; /* beyond 64 the rest waits, like in Ferry */
  uint64_t expected_length;
  uint64_t *latencies; /* room for `total`, in nanoseconds */
} cbare_load;

typedef struct cbare_report {
  double seconds;
  uint64_t ok, wrong, failed, connections;
} cbare_report;

/* Runs on the caller's thread. Returns 0, or -1 if libuv or libcurl failed. */
int cbare_run(const cbare_load *load, cbare_report *report);

#endif
