#include "CCoreDriver.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "CFerry.h"

/* One of the `concurrency` slots; its number + 1 is the transfer's id, so that
 * no lookup is needed. */
typedef struct slot {
  uint64_t started;
} slot;

typedef struct run {
  const ccore_load *load;
  ferry_loop *loop;
  slot *slots;
  size_t url_length;
  sem_t all_done;
  /* Until the first `concurrency` submits are done, the caller's thread counts
   * `issued`; the loop's thread waits for the lock before it takes over. */
  pthread_mutex_t priming;
  uint64_t issued;
  uint64_t finished;
  ccore_report report;
} run;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int submit(run *run, uint64_t id) {
  ferry_request request;
  memset(&request, 0, sizeof request);
  request.id = id;
  request.url = run->load->url;
  request.url_length = run->url_length;
  request.method = "GET";
  request.method_length = 3;
  request.priority = FERRY_NORMAL;
  request.flags = FERRY_IDEMPOTENT;
  run->issued++;
  run->slots[id - 1].started = now();
  return ferry_submit(run->loop, &request, NULL);
}

static void finish(run *run, const ferry_result *result) {
  ccore_report *report = &run->report;
  run->load->latencies[run->finished++] =
      now() - run->slots[result->id - 1].started;
  if (result->code != FERRY_OK)
    report->failed++;
  else if (result->status != 200 ||
           result->body_length != run->load->expected_length)
    report->wrong++;
  else
    report->ok++;
}

static void on_finished(void *context, ferry_result *first, size_t count) {
  run *run = context;
  (void)count;
  pthread_mutex_lock(&run->priming);
  while (first != NULL) {
    ferry_result *result = first;
    uint64_t id = result->id;
    first = result->next;
    finish(run, result);
    ferry_result_free(result);
    /* A refused submit gets no result, so it is counted here. */
    while (run->issued < run->load->total && submit(run, id) != 0) {
      run->report.failed++;
      run->finished++;
    }
  }
  if (run->finished == run->load->total) sem_post(&run->all_done);
  pthread_mutex_unlock(&run->priming);
}

static int prime(run *run) {
  uint64_t first = run->load->concurrency;
  int result = 0;
  if (first > run->load->total) first = run->load->total;
  pthread_mutex_lock(&run->priming);
  for (uint64_t id = 1; id <= first && result == 0; id++)
    result = submit(run, id);
  pthread_mutex_unlock(&run->priming);
  return result;
}

int ccore_run(const ccore_load *load, ccore_report *out) {
  run run;
  ferry_options options;
  ferry_statistics statistics;
  uint64_t start;
  int result;

  memset(&run, 0, sizeof run);
  memset(&options, 0, sizeof options);
  run.load = load;
  run.url_length = strlen(load->url);
  run.slots = calloc(load->concurrency, sizeof *run.slots);
  if (run.slots == NULL) return FERRY_E_MEMORY;
  sem_init(&run.all_done, 0, 0);
  pthread_mutex_init(&run.priming, NULL);
  options.context = &run;
  options.on_finished = on_finished;
  options.max_transfers = load->max_transfers;
  options.max_per_host = load->max_per_host;
  options.engine = load->engine;
  options.insecure = load->insecure;

  result = ferry_loop_start(&options, &run.loop);
  if (result != 0) goto done;
  start = now();
  result = prime(&run);
  if (result == 0 && load->total > 0)
    while (sem_wait(&run.all_done) != 0 && errno == EINTR) {
    }
  run.report.seconds = (double)(now() - start) / 1e9;
  ferry_loop_statistics(run.loop, &statistics);
  run.report.connections = statistics.connections;
  run.report.longest_turn_us = statistics.longest_turn_us;
  ferry_loop_free(run.loop);
  *out = run.report;

done:
  pthread_mutex_destroy(&run.priming);
  sem_destroy(&run.all_done);
  free(run.slots);
  return result;
}
