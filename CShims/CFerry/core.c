/* core.c - puts the parts together: the work of one turn, and the start and the
 * end of a loop. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

/* ---- Turns --------------------------------------------------------------- */

static bool apply(ferry_loop *loop, ferry__transfer *transfer,
                 const ferry__command *command) {
  bool ends = false;
  switch (command->kind) {
  case FERRY__CANCEL:
    ends = transfer->state == FERRY__RUNNING;
    ferry__transfer_end(loop, transfer,
                        (ferry__fault){FERRY_E_CANCELLED, 0});
    break;
  case FERRY__RESUME:
    ferry__transfer_resume(loop, transfer);
    break;
  case FERRY__RESUME_SENDING:
    ferry__transfer_resume_sending(loop, transfer);
    break;
  case FERRY__PAUSE:
    transfer->paused |= FERRY__PAUSED_BY_RECEIVER;
    break;
  case FERRY__WRITE_TO:
    ferry__transfer_divert(loop, transfer, command->fd, command->offset,
                           command->most);
    break;
  default:
    ferry__reprioritise(loop, transfer, command->priority);
  }
  return ends;
}

static void hear_names(ferry_loop *loop) {
  ferry__answer *answer = ferry__port_answers(loop->port);
  while (answer) {
    ferry__answer *next = answer->next;
    ferry__name_answered(loop, answer);
    answer = next;
  }
}

/* A timer may have freed the slot of a transfer that must not be reported yet,
 * because its sink is still writing. */
static bool has_work(const ferry_loop *loop) {
  return loop->curl->touched || loop->transfers->rest.count ||
         ferry__admissible(loop);
}

static bool work(ferry_loop *loop) {
  hear_names(loop);
  ferry__admit(loop);
  ferry__transfers_go_on(loop);
  ferry__shards_turn(loop);
  ferry__deliver(loop);
  return has_work(loop);
}

static bool has_results(const ferry_loop *loop) {
  return loop->transfers->finished;
}

static void write_gauges(ferry_loop *loop) {
  atomic_store_explicit(&loop->counters.waiting, loop->admission->waiting,
                        memory_order_relaxed);
  atomic_store_explicit(&loop->counters.running, loop->admission->running,
                        memory_order_relaxed);
  atomic_store_explicit(&loop->counters.hosts, loop->hosts->count,
                        memory_order_relaxed);
  atomic_store_explicit(&loop->counters.kept_bytes,
                        ferry__pool_kept(&loop->pool), memory_order_relaxed);
}

static uint64_t look(ferry_loop *loop, uint64_t now) {
  uint64_t next = ferry__http1_look(loop, now);
  uint64_t other = ferry__shards_look(loop, now);
  if (other && (!next || other < next))
    next = other;
  other = ferry__hosts_look(loop, now);
  return other && (!next || other < next) ? other : next;
}

static const ferry__engine *choose(const ferry_loop *loop,
                                   const ferry__transfer *t) {
  return ferry__http1_carries(loop, t) ? &ferry__http1_engine
                                       : &ferry__curl_engine;
}

static void forget(ferry_loop *loop, ferry__host *host) {
  ferry__routes_close(host, false);
  ferry__sockets_forget(loop, host);
  ferry__name_leave(loop, host);
}

/* ---- The end ------------------------------------------------------------- */

static void fail_all(ferry_loop *loop) {
  const ferry__fault fault = {FERRY_E_SHUTDOWN, 0};
  for (size_t i = 0; i < loop->table.capacity;)
    if (loop->table.slots[i] &&
        loop->table.slots[i]->state != FERRY__WRITING)
      ferry__transfer_end(loop, loop->table.slots[i], fault);
    else
      i++; /* ending one transfer may move another into this slot */
}

/* Writes that are still under way continue without the loop. */
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

static void stop(ferry_loop *loop) {
  ferry__transfer *late = ferry__mailbox_close(loop);
  while (late) {
    ferry__transfer *next = late->entry.next;
    ferry__accept(loop, late);
    late = next;
  }
  loop->now_ns = uv_hrtime();
  fail_all(loop);
  loop->closing = true;
  write_gauges(loop);
  ferry__deliver(loop);
  for (unsigned i = 0; i < loop->curl->shard_count; i++)
    ferry__shard_close(&loop->curl->shards[i]);
  ferry__http1_close(loop);
  ferry__port_close(loop->port);
  uv_timer_start(&loop->timer, on_patience, FERRY__WRITE_MS, 0);
  ferry__jobs_close(loop);
  ferry__loop_close_handles(loop);
}

static void free_parts(ferry_loop *loop) {
  ferry__decoders_free(loop);
  free(loop->transfers->rest.ids);
  ferry__hosts_free(loop);
  ferry__sockets_free(loop);
  ferry__pool_close(&loop->pool);
  ferry__shelves_clear(loop->shelves);
  free(loop->table.slots);
  free(loop->transfers->scratch);
  free(loop->curl->shards);
  free(loop->ca_file);
  free(loop->pinned_keys);
  free(loop->user_agent);
  free(loop->encodings);
  if (loop->options.jar)
    ferry_jar_free(loop->options.jar);
  free(loop->client_certificate);
  free(loop->client_key);
  free(loop->client_key_password);
  free(loop->unix_socket);
  ferry__overrides_free(loop);
  pthread_mutex_destroy(&loop->hosts->lock);
  free(loop);
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

static const ferry__hooks hooks = {
    .accept = ferry__accept,
    .apply = apply,
    .work = work,
    .has_work = has_work,
    .has_results = has_results,
    .gauge = write_gauges,
    .expire = ferry__watch_limits,
    .look = look,
    .stop = stop,
    .free = free_parts,
    .withdraw = ferry__withdraw,
    .give_place = ferry__give_place,
    .let_go = ferry__let_go,
    .choose = choose,
    .forget = forget,
};

/* ---- The start ----------------------------------------------------------- */

static bool copy_string(char **to, const char *from) {
  return !from || (*to = strdup(from));
}

static int copy_options(ferry_loop *loop, const ferry_options *from) {
  ferry_options *o = &loop->options;
  *o = *from;
  o->override_count = 0; /* of those that have been copied */
  ferry__jar_hold(o->jar);
  if (!o->max_transfers)
    o->max_transfers = 1024;
  if (!o->max_per_host)
    o->max_per_host = 64;
  if (!o->max_streams || o->max_streams > FERRY__STREAMS)
    o->max_streams = FERRY__STREAMS;
  if (!o->idle_ms)
    o->idle_ms = 60000;
  if (!copy_string(&loop->ca_file, from->ca_file) ||
      !copy_string(&loop->pinned_keys, from->pinned_keys) ||
      !copy_string(&loop->user_agent, from->user_agent) ||
      !copy_string(&loop->encodings, from->encodings) ||
      !copy_string(&loop->client_certificate, from->client_certificate) ||
      !copy_string(&loop->client_key, from->client_key) ||
      !copy_string(&loop->client_key_password, from->client_key_password) ||
      !copy_string(&loop->unix_socket, from->unix_socket) ||
      !ferry__overrides_copy(loop, from))
    return FERRY_E_MEMORY;
  if (o->minimum_idle > o->max_transfers)
    o->minimum_idle = o->max_transfers;
  if (o->unix_socket)
    o->http2 = FERRY_HTTP2_NEVER;
  loop->curl->per_shard = o->http2 ? FERRY__STREAMS : FERRY__PER_SHARD;
  if (o->http2 && o->max_per_host > FERRY__STREAMS)
    o->max_per_host = FERRY__STREAMS;
  loop->curl->shard_count =
      (uint32_t)(((uint64_t)o->max_transfers + loop->curl->per_shard - 1) /
                 loop->curl->per_shard);
  if (o->http2 && ferry__offers_busy())
    /* With and without multiplexing, and a few for identities. */
    loop->curl->shard_count = loop->curl->shard_count * 2 + 8;
  loop->curl->shard_count++; /* for FERRY_UNLIMITED */
  ferry__curl *curl = loop->curl;
  curl->shards = calloc(curl->shard_count, sizeof *curl->shards);
  if (!loop->curl->shards)
    return FERRY_E_MEMORY;
  loop->hosts->feeds = loop->curl->shard_count;
  for (unsigned i = 0; i < loop->curl->shard_count; i++) {
    loop->curl->shards[i].loop = loop;
    loop->curl->shards[i].index = i;
  }
  return FERRY_OK;
}

ferry_loop *ferry__core_make(void) {
  ferry__core *core = calloc(1, sizeof *core);
  if (!core)
    return NULL;
  core->loop.transfers = &core->transfers;
  core->loop.hosts = &core->hosts;
  core->loop.admission = &core->admission;
  core->loop.curl = &core->curl;
  core->loop.http1 = &core->http1;
  return &core->loop;
}

int ferry_loop_start(const ferry_options *options, ferry_loop **out) {
  int code = FERRY_E_MEMORY;
  *out = NULL;
  if (!options->on_finished ||
      (options->http2 && !(ferry_features() & FERRY_FEATURE_HTTP2)) ||
      !ferry__overrides_are_valid(options))
    return FERRY_E_INVALID_REQUEST;
  ferry__initialise();
  ferry_loop *loop = ferry__core_make();
  if (!loop)
    return code;
  pthread_mutex_init(&loop->hosts->lock, NULL);
  loop->hooks = &hooks;
  loop->transfers->finished_last = &loop->transfers->finished;
  loop->asleep = true;
  loop->sockets.epoll = loop->wake = loop->alarm.fd = -1;
  ferry__mailbox_open(loop);
  if (uv_loop_init(&loop->uv)) {
    pthread_mutex_destroy(&loop->hosts->lock);
    free(loop);
    return FERRY_E_INTERNAL;
  }
  code = copy_options(loop, options);
  if (!code && !(loop->port = ferry__port_make(loop)))
    code = FERRY_E_MEMORY;
  if (!code && (ferry__loop_open(loop) || ferry__loop_run(loop)))
    code = FERRY_E_INTERNAL;
  if (code)
    goto fail;
  *out = loop;
  return FERRY_OK;

fail:
  ferry__loop_close(loop);
  if (loop->port)
    ferry__port_close(loop->port);
  free_parts(loop);
  return code;
}
