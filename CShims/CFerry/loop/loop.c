/* loop.c - the thread, its turns, and its end.
 *
 * One turn: what came from other threads, then who may start, then the
 * shards that have something due, then one list of results. A turn has at
 * most four such rounds before the sockets get theirs: working on until
 * nothing is left would starve them when a server answers at once (a p99 of
 * 266 ms beside a p50 of 1 ms). */
#include "core.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

_Thread_local ferry_loop *ferry__current;

int ferry_loop_is_current(const ferry_loop *loop) {
  return ferry__current == loop;
}

void *ferry_current_context(void) {
  return ferry__current ? ferry__current->options.context : NULL;
}

/* ---- Turns --------------------------------------------------------------- */

static ferry__fault find_proxy(ferry_loop *loop, ferry__transfer *t) {
  ferry__fault fault = {0, 0};
  const char *origin = t->extras->proxy_origin;
  t->host->held++; /* not to be put out of the table by the other */
  t->extras->via = ferry__host_find(loop, origin, strlen(origin), &fault);
  t->host->held--;
  if (t->extras->via)
    t->extras->via->held++;
  return fault.code == FERRY_E_INVALID_URL
             ? (ferry__fault){FERRY_E_INVALID_REQUEST, FERRY_D_NONE}
             : fault;
}

void ferry__accept(ferry_loop *loop, ferry__transfer *t) {
  ferry__fault fault = {0, 0};
  ferry__count(&loop->counters.submitted, 1);
  t->submitted_ms = ferry__now(loop);
  t->next = t->prev = NULL;
  if (!ferry__table_insert(&loop->table, t))
    fault.code = FERRY_E_MEMORY;
  else
    t->host = ferry__host_find(loop, t->origin, t->origin_length, &fault);
  if (!fault.code && t->extras && t->extras->proxy)
    fault = find_proxy(loop, t);
  if (fault.code) {
    t->fault = fault;
    ferry__finish(loop, t);
    return;
  }
  ferry__enqueue(loop, t);
  if (t->deadline_ms)
    ferry__wheel_set(loop, t, t->submitted_ms + t->deadline_ms);
}

void ferry__deliver(ferry_loop *loop) {
  ferry_result *first = loop->finished;
  size_t count = loop->finished_count;
  if (!first)
    return;
  loop->finished = NULL;
  loop->finished_last = &loop->finished;
  loop->finished_count = 0;
  loop->options.on_finished(loop->options.context, first, count);
}

static void hear_names(ferry_loop *loop) {
  ferry__answer *answer = ferry__port_answers(loop->port);
  while (answer) {
    ferry__answer *next = answer->next;
    ferry__name_answered(loop, answer);
    answer = next;
  }
}

static void call(ferry_loop *loop) {
  if (!atomic_load_explicit(&loop->mailbox.called, memory_order_relaxed) ||
      !atomic_exchange_explicit(&loop->mailbox.called, false,
                                memory_order_acq_rel))
    return;
  if (loop->options.on_call)
    loop->options.on_call(loop->options.context);
}

/* A callback or a job that takes long holds the loop: sockets go unread and
 * requests unsent, and no limit of a transfer may pass for that alone. What is
 * noted here the limits take into account (timeout.c). */
static void look_at_clock(ferry_loop *loop) {
  uv_update_time(&loop->uv);
  uint64_t now = ferry__now(loop);
  if (now < loop->polled + FERRY__HELD_MS)
    return;
  loop->held_from = loop->polled;
  loop->held_until = now;
}

static void begin_stop(ferry_loop *loop);

static bool round_of_work(ferry_loop *loop) {
  look_at_clock(loop);
  loop->now_ns = uv_hrtime();
  ferry__mailbox_submits(loop);
  ferry__mailbox_commands(loop);
  hear_names(loop);
  ferry__admit(loop);
  ferry__shard *shard = loop->touched;
  loop->touched = NULL;
  while (shard) {
    ferry__shard *next = shard->touched_next;
    shard->touched = false;
    ferry__shard_turn(shard);
    shard = next;
  }
  ferry__deliver(loop);
  call(loop);
  return loop->touched || !ferry__mailbox_is_empty(loop) ||
         ferry__admissible(loop);
}

/* It is there for uv to poll without blocking, which is decided after idle
 * handles have run: the turn that finds nothing more to do stops it. */
static void on_idle(uv_idle_t *idle) { (void)idle; }

static void write_gauges(ferry_loop *loop) {
  atomic_store_explicit(&loop->counters.waiting, loop->admission.waiting,
                        memory_order_relaxed);
  atomic_store_explicit(&loop->counters.running, loop->admission.running,
                        memory_order_relaxed);
  atomic_store_explicit(&loop->counters.hosts, loop->hosts.count,
                        memory_order_relaxed);
  atomic_store_explicit(&loop->counters.kept_bytes,
                        ferry__pool_kept(&loop->pool), memory_order_relaxed);
}

static void turn(ferry_loop *loop) {
  bool more = true;
  if (loop->closing)
    return;
  uint64_t began = uv_hrtime();
  for (int round = 0; more && round < FERRY__ROUNDS; round++)
    more = round_of_work(loop);
  if (loop->finished)
    more = true;
  if (more) /* keeps poll from blocking: the sockets, then on with it */
    uv_idle_start(&loop->idle, on_idle);
  else
    uv_idle_stop(&loop->idle);
  ferry__counters *counters = &loop->counters;
  ferry__count(&counters->turns, 1);
  write_gauges(loop);
  look_at_clock(loop);
  uint64_t us = (uv_hrtime() - began) / 1000;
  if (us > atomic_load_explicit(&counters->longest_turn_us,
                                memory_order_relaxed))
    atomic_store_explicit(&counters->longest_turn_us, us,
                          memory_order_relaxed);
  if (atomic_load_explicit(&loop->stopping, memory_order_acquire))
    begin_stop(loop);
}

static void on_check(uv_check_t *check) {
  ferry_loop *loop = check->data;
  loop->polled = ferry__now(loop); /* uv takes the time when its poll ends */
  turn(loop);
}

static void on_prepare(uv_prepare_t *prepare) {
  ferry_loop *loop = prepare->data;
  loop->http1.turn++;
  /* What a timer has touched, or this very thread has submitted. */
  if (loop->touched || loop->finished || !ferry__mailbox_is_empty(loop))
    turn(loop);
}

/* ---- The one timer ------------------------------------------------------- */

static void on_timer(uv_timer_t *timer) {
  ferry_loop *loop = timer->data;
  uint64_t now = ferry__now(loop), next;
  loop->timer_at = 0;
  ferry__wheel_turn(loop);
  next = ferry__wheel_next(loop);
  uint64_t native = ferry__http1_look(loop, now);
  if (native && (!next || native < next))
    next = native;
  for (unsigned i = 0; i < loop->shard_count; i++) {
    ferry__shard *shard = &loop->shards[i];
    uint64_t rest = ferry__shard_rest(shard, now);
    if (rest && (!next || rest < next))
      next = rest;
    if (shard->due <= 1)
      continue;
    if (shard->due <= now) {
      shard->due = 1;
      ferry__shard_touch(shard);
    } else if (!next || shard->due < next) {
      next = shard->due;
    }
  }
  if (next)
    ferry__arm(loop, next);
}

/* Never moved later, as an early look costs less than a move at every
 * request; never armed with 0, as libuv 1.44 can spin on such a timer. */
void ferry__arm(ferry_loop *loop, uint64_t at) {
  if (loop->closing || (loop->timer_at && loop->timer_at <= at))
    return;
  uint64_t now = ferry__now(loop);
  loop->timer_at = at > now ? at : now + 1;
  uv_timer_start(&loop->timer, on_timer, loop->timer_at - now, 0);
}

/* ---- The end ------------------------------------------------------------- */

static void fail_all(ferry_loop *loop) {
  const ferry__fault fault = {FERRY_E_SHUTDOWN, 0};
  for (size_t i = 0; i < loop->table.capacity;)
    if (loop->table.slots[i] &&
        loop->table.slots[i]->state != FERRY__WRITING)
      ferry__transfer_end(loop, loop->table.slots[i], fault);
    else
      i++; /* an end may shift another one into this slot */
}

/* What is still being written is written without the loop. */
static void on_patience(uv_timer_t *timer) {
  ferry_loop *loop = timer->data;
  for (size_t i = 0; i < loop->table.capacity;) {
    ferry__transfer *t = loop->table.slots[i];
    if (t)
      ferry__sink_leave(loop, t, (ferry__fault){FERRY_E_SHUTDOWN, 0});
    if (loop->table.slots[i] == t)
      i++; /* as in fail_all() */
  }
  ferry__deliver(loop);
  uv_timer_start(timer, on_patience, FERRY__WRITE_MS, 0);
  ferry__jobs_close(loop);
}

static void begin_stop(ferry_loop *loop) {
  ferry__transfer *late = ferry__mailbox_close(loop);
  while (late) {
    ferry__transfer *next = late->next;
    ferry__accept(loop, late);
    late = next;
  }
  loop->now_ns = uv_hrtime();
  fail_all(loop);
  loop->closing = true;
  write_gauges(loop);
  ferry__deliver(loop);
  for (unsigned i = 0; i < loop->shard_count; i++)
    ferry__shard_close(&loop->shards[i]);
  ferry__http1_close(loop);
  ferry__port_close(loop->port);
  uv_timer_start(&loop->timer, on_patience, FERRY__WRITE_MS, 0);
  ferry__jobs_close(loop);
  uv_close((uv_handle_t *)&loop->sockets.poll, NULL);
  uv_close((uv_handle_t *)&loop->check, NULL);
  uv_close((uv_handle_t *)&loop->prepare, NULL);
  uv_close((uv_handle_t *)&loop->idle, NULL);
}

static void free_parts(ferry_loop *loop) {
  while (loop->inflates) {
    ferry__inflate *inflate = loop->inflates;
    loop->inflates = inflate->next;
    inflateEnd(&inflate->stream);
    free(inflate);
  }
  ferry__hosts_free(loop);
  ferry__sockets_free(loop);
  ferry__pool_close(&loop->pool);
  ferry__shelves_clear(loop->shelves);
  free(loop->table.slots);
  free(loop->scratch);
  free(loop->shards);
  free(loop->ca_file);
  free(loop->pinned_keys);
  free(loop->user_agent);
  free(loop->encodings);
  if (loop->options.jar)
    ferry_jar_free(loop->options.jar);
  free(loop->client_certificate);
  free(loop->client_key);
  free(loop->client_key_password);
  free(loop);
}

static void *run(void *data) {
  ferry_loop *loop = data;
  ferry__current = loop;
  pthread_setname_np(pthread_self(), "ferry-loop");
  uv_update_time(&loop->uv);
  loop->polled = ferry__now(loop);
  uv_run(&loop->uv, UV_RUN_DEFAULT);
  uv_loop_close(&loop->uv);
  if (loop->options.on_stopped)
    loop->options.on_stopped(loop->options.context);
  ferry__current = NULL;
  if (loop->freed_by_itself)
    free_parts(loop);
  return NULL;
}

void ferry_loop_stop(ferry_loop *loop) {
  if (!atomic_exchange_explicit(&loop->stopping, true, memory_order_acq_rel))
    ferry__wake(loop);
}

void ferry_loop_free(ferry_loop *loop) {
  if (ferry_loop_is_current(loop)) {
    /* A thread cannot wait for itself; it frees the loop as it ends. */
    loop->freed_by_itself = true;
    pthread_detach(loop->thread);
    ferry_loop_stop(loop);
    return;
  }
  ferry_loop_stop(loop);
  pthread_join(loop->thread, NULL);
  free_parts(loop);
}

/* ---- The start ----------------------------------------------------------- */

static bool copy_string(char **to, const char *from) {
  return !from || (*to = strdup(from));
}

static int copy_options(ferry_loop *loop, const ferry_options *from) {
  ferry_options *o = &loop->options;
  *o = *from;
  ferry__jar_hold(o->jar);
  if (!o->max_transfers)
    o->max_transfers = 1024;
  if (!o->max_per_host)
    o->max_per_host = 64;
  if (!o->idle_ms)
    o->idle_ms = 60000;
  if (!copy_string(&loop->ca_file, from->ca_file) ||
      !copy_string(&loop->pinned_keys, from->pinned_keys) ||
      !copy_string(&loop->user_agent, from->user_agent) ||
      !copy_string(&loop->encodings, from->encodings) ||
      !copy_string(&loop->client_certificate, from->client_certificate) ||
      !copy_string(&loop->client_key, from->client_key) ||
      !copy_string(&loop->client_key_password, from->client_key_password))
    return FERRY_E_MEMORY;
  loop->per_shard = o->http2 ? FERRY__STREAMS : FERRY__PER_SHARD;
  if (o->http2 && o->max_per_host > FERRY__STREAMS)
    o->max_per_host = FERRY__STREAMS;
  loop->shard_count =
      (o->max_transfers + loop->per_shard - 1) / loop->per_shard;
  loop->shards = calloc(loop->shard_count, sizeof *loop->shards);
  if (!loop->shards)
    return FERRY_E_MEMORY;
  for (unsigned i = 0; i < loop->shard_count; i++) {
    loop->shards[i].loop = loop;
    loop->shards[i].index = i;
  }
  return FERRY_OK;
}

static int open_handles(ferry_loop *loop) {
  uv_loop_t *uv = &loop->uv;
  int code;
  if ((code = uv_timer_init(uv, &loop->timer)) ||
      (code = uv_idle_init(uv, &loop->idle)) ||
      (code = uv_check_init(uv, &loop->check)) ||
      (code = uv_prepare_init(uv, &loop->prepare)) ||
      (code = ferry__jobs_open(loop)))
    return code;
  loop->timer.data = loop->check.data = loop->prepare.data = loop;
  if ((code = uv_check_start(&loop->check, on_check)) ||
      (code = uv_prepare_start(&loop->prepare, on_prepare)))
    return code;
  return ferry__sockets_open(loop);
}

static int start_thread(ferry_loop *loop) {
  sigset_t all, old;
  /* No signal is this thread's, SIGPIPE included: writing reports EPIPE. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int code = pthread_create(&loop->thread, NULL, run, loop);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return code;
}

static void close_handle(uv_handle_t *handle, void *unused) {
  (void)unused;
  if (!uv_is_closing(handle))
    uv_close(handle, NULL);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void initialise(void) { ferry__memory_initialise(); }
void ferry__initialise(void) { pthread_once(&once, initialise); }

int ferry_loop_start(const ferry_options *options, ferry_loop **out) {
  int code = FERRY_E_MEMORY;
  *out = NULL;
  if (!options->on_finished ||
      (options->http2 && !(ferry_features() & FERRY_FEATURE_HTTP2)))
    return FERRY_E_INVALID_REQUEST;
  ferry__initialise();
  ferry_loop *loop = calloc(1, sizeof *loop);
  if (!loop)
    return code;
  loop->finished_last = &loop->finished;
  loop->sockets.epoll = loop->wake = -1;
  ferry__mailbox_open(loop);
  if (uv_loop_init(&loop->uv)) {
    free(loop);
    return FERRY_E_INTERNAL;
  }
  code = copy_options(loop, options);
  if (!code && !(loop->port = ferry__port_make(loop)))
    code = FERRY_E_MEMORY;
  if (!code && (open_handles(loop) || start_thread(loop)))
    code = FERRY_E_INTERNAL;
  if (code)
    goto fail;
  *out = loop;
  return FERRY_OK;

fail:
  uv_walk(&loop->uv, close_handle, NULL);
  uv_run(&loop->uv, UV_RUN_DEFAULT);
  uv_loop_close(&loop->uv);
  if (loop->port)
    ferry__port_close(loop->port);
  free_parts(loop);
  return code;
}
