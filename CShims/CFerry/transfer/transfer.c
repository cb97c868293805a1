/* transfer.c - the life of one transfer on the loop's thread: started, fed
 * by libcurl's callbacks, ended exactly once. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

static void link_running(ferry_loop *loop, ferry__transfer *t) {
  t->prev = NULL;
  t->next = loop->running;
  if (loop->running)
    loop->running->prev = t;
  loop->running = t;
}

static void unlink_running(ferry_loop *loop, ferry__transfer *t) {
  if (t->prev)
    t->prev->next = t->next;
  else
    loop->running = t->next;
  if (t->next)
    t->next->prev = t->prev;
}

/* Into libcurl. code 0 = done. */
static ferry__fault enter_libcurl(ferry_loop *loop, ferry__transfer *t) {
  ferry__shard *shard = ferry__shard_for(loop, t);
  ferry__handle *handle = shard ? ferry__handle_take(loop, shard) : NULL;
  t->handle = handle;
  if (!handle)
    return (ferry__fault){FERRY_E_MEMORY, 0};
  t->lease = ++loop->leases;
  shard->running++;
  bool before = loop->starved;
  loop->starved = false;
  if (!ferry__handle_prepare(handle, t) ||
      curl_multi_add_handle(shard->multi, handle->easy))
    return (ferry__fault){
        loop->starved ? FERRY_E_MEMORY : FERRY_E_INTERNAL, 0};
  loop->starved |= before;
  ferry__shard_touch(shard);
  return (ferry__fault){FERRY_OK, 0};
}

/* Its host's name is known. */
static void begin(ferry_loop *loop, ferry__transfer *t) {
  t->state = FERRY__RUNNING;
  t->phase = FERRY_PHASE_CONNECT;
  t->last_ms = ferry__now(loop);
  t->result.metrics.name = ferry__us(t->started_ns, loop->now_ns);
  link_running(loop, t);
  t->engine = ferry__http1_carries(loop, t) ? &ferry__http1_engine
                                            : &ferry__curl_engine;
  t->result.engine = t->engine->name;
  ferry__fault fault = t->engine->start(loop, t);
  if (fault.code)
    ferry__transfer_end(loop, t, fault);
}

/* Whose name has to be looked up before it can go; NULL when all is known. */
static ferry__host *unnamed(ferry_loop *loop, const ferry__transfer *t) {
  ferry__host *via = t->extras ? t->extras->via : NULL;
  if (via && !ferry__name_known(loop, via))
    return via;
  bool ours = !via || t->extras->proxy_kind == FERRY_PROXY_SOCKS5;
  return ours && !ferry__name_known(loop, t->host) ? t->host : NULL;
}

/* The fault of a proxy's name is the proxy's. */
static ferry__fault name_fault(const ferry__transfer *t, const ferry__host *of,
                               ferry__fault fault) {
  if (fault.code == FERRY_E_DNS && t->extras && t->extras->via == of)
    return (ferry__fault){FERRY_E_PROXY, FERRY_D_PROXY_UNREACHABLE};
  return fault;
}

/* Ends one that has its place and is not in libcurl yet. */
static void give_up(ferry_loop *loop, ferry__transfer *t, ferry__fault fault) {
  ferry__leave(loop, t->host);
  t->fault = fault;
  ferry__finish(loop, t);
}

/* To the names it needs, then on its way. */
static void go(ferry_loop *loop, ferry__transfer *t) {
  ferry__host *host = unnamed(loop, t);
  if (!host) {
    ferry__fault fault =
        t->extras ? ferry__extras_route(t) : (ferry__fault){FERRY_OK, 0};
    if (fault.code) {
      t->phase = FERRY_PHASE_CONNECT;
      give_up(loop, t, fault);
    } else {
      begin(loop, t);
    }
  } else if (!host->looking_up) {
    /* Neither known nor to be asked for: nobody would come back to it. */
    give_up(loop, t,
            name_fault(t, host,
                       (ferry__fault){FERRY_E_DNS, FERRY_D_DNS_FAILED}));
  } else {
    t->state = FERRY__RESOLVING;
    t->phase = FERRY_PHASE_DNS;
    t->asked = host;
    ferry__fifo_push(&host->resolving, t);
    ferry__count(&loop->counters.resolving, 1);
  }
  ferry__watch_limits(loop, t);
}

void ferry__transfer_start(ferry_loop *loop, ferry__transfer *t) {
  t->started_ns = loop->now_ns;
  t->started_ms = t->last_ms = ferry__now(loop);
  if ((t->flags & FERRY_NOTIFY_START) && loop->options.on_started)
    loop->options.on_started(loop->options.context, t->result.id);
  go(loop, t);
}

void ferry__transfer_named(ferry_loop *loop, ferry__transfer *t,
                           ferry__fault fault) {
  ferry__host *host = t->asked;
  ferry__fifo_remove(&host->resolving, t);
  ferry__count(&loop->counters.resolving, -1);
  t->state = FERRY__NEW;
  if (fault.code)
    give_up(loop, t, name_fault(t, host, fault));
  else
    go(loop, t);
}

/* What libcurl holds of receiving stays so: a body that is held is not let go
 * by another that is sent. */
static void go_on(ferry_loop *loop, ferry__transfer *t) {
  /* What libcurl held goes to our callbacks here. When they refuse it, or
   * libcurl itself does (a trailer without a colon), only this call is told,
   * and libcurl would go on without those bytes. */
  bool withheld = t->withheld && !t->receive_paused;
  if (withheld)
    t->withheld = false;
  CURLcode code = curl_easy_pause(
      t->handle->easy, t->withheld ? CURLPAUSE_RECV : CURLPAUSE_CONT);
  if (t->fault.code) {
    ferry__transfer_end(loop, t, t->fault);
    return;
  }
  /* With words it had failed before, and its message is there to be read. */
  if (code && withheld && !t->handle->words[0]) {
    ferry__transfer_completed(loop, t, code);
    return;
  }
  t->handle->shard->due = 1; /* 7.88.1 may not ask for it itself */
  ferry__shard_touch(t->handle->shard);
}

void ferry__transfer_resume(ferry_loop *loop, ferry__transfer *t) {
  bool paused = t->receive_paused || t->send_paused;
  t->held = t->send_paused = t->dry = false;
  t->receive_paused = t->paced || ferry__sink_is_choked(t);
  if (!paused || (t->state != FERRY__RUNNING && t->state != FERRY__DRAINING))
    return;
  t->last_ms = ferry__now(loop);
  t->window_ms = 0; /* begins anew at the next look */
  if (t->inflate && t->inflate->held) {
    if (!ferry__inflate_drain(loop, t)) {
      ferry__transfer_end(loop, t, t->fault);
      return;
    }
    if (t->receive_paused)
      return; /* paused again before what was held has gone */
  }
  if (t->kept) {
    if (!ferry__kept_drain(loop, t)) {
      ferry__transfer_end(loop, t, t->fault);
      return;
    }
    if (t->kept || (t->inflate && t->inflate->held))
      return; /* likewise */
  }
  if (t->state == FERRY__RUNNING)
    t->engine->resume(loop, t);
  else if (t->handle)
    ferry__transfer_completed(loop, t, CURLE_OK);
  else
    ferry__transfer_left(loop, t, (ferry__fault){FERRY_OK, 0});
}

void ferry__transfer_resume_sending(ferry_loop *loop, ferry__transfer *t) {
  t->dry = false;
  if (!t->send_paused || t->state != FERRY__RUNNING)
    return;
  t->send_paused = false;
  t->last_ms = ferry__now(loop);
  t->window_ms = 0;
  t->engine->resume_sending(loop, t);
}

void ferry__transfer_divert(ferry_loop *loop, ferry__transfer *t, int32_t fd,
                            int64_t offset, uint64_t most) {
  if (t->response_kind == FERRY_STREAM) {
    t->response_kind = FERRY_DESCRIPTOR;
    t->fd = fd;
    t->offset = offset;
    if (most)
      t->max_body = t->result.body_length + most;
  }
  ferry__transfer_resume(loop, t);
}

/* ---- The end ------------------------------------------------------------- */

/* Out of libcurl, the handle still at hand for its figures. */
static void leave_libcurl(ferry_loop *loop, ferry__transfer *t) {
  ferry__shard *shard = t->handle->shard;
  curl_multi_remove_handle(shard->multi, t->handle->easy);
  shard->running--;
  if (shard->index < loop->first_free)
    loop->first_free = shard->index;
  if (!shard->running) {
    shard->idle_since = ferry__now(loop);
    ferry__arm(loop, shard->idle_since + loop->options.idle_ms);
  }
  ferry__shard_touch(shard);
}

/* Whoever cancels, stops or sets a deadline does not wait for a write that may
 * never return. Others do, as they may be about to write to the same place. */
static void wait_for_write(ferry_loop *loop, ferry__transfer *t,
                           ferry__fault fault) {
  bool leaves = fault.code == FERRY_E_CANCELLED ||
                fault.code == FERRY_E_SHUTDOWN ||
                (fault.code == FERRY_E_TIMEOUT &&
                 fault.detail == FERRY_D_TIMEOUT_DEADLINE);
  if (leaves && !t->leave_ms)
    t->leave_ms = ferry__now(loop) + FERRY__WRITE_MS;
  ferry__watch_limits(loop, t);
}

static void give_handle(ferry__transfer *t) {
  /* Nor does one live on that has answered challenges. */
  bool healthy = !t->fault.code && t->handle->attempts <= 1 &&
                 !t->late && !t->cut &&
                 !(t->extras &&
                   (t->extras->schemes || t->extras->proxy_schemes));
  ferry__handle_give(t->handle, healthy);
  t->handle = NULL;
  t->head = ferry__no_head;
}

static void settle(ferry_loop *loop, ferry__transfer *t) {
  if (t->fault.code && t->handle && t->handle->words[0])
    t->words = strdup(t->handle->words);
  ferry__read_figures(t);
  ferry__jar_check(loop, t);
  ferry__result_pack(loop, t);
  t->host->large = t->result.body_length > FERRY__LONG_BODY;
  if (t->handle)
    give_handle(t);
  else
    ferry__head_give(loop, t);
  unlink_running(loop, t);
  ferry__leave(loop, t->host);
  t->state = FERRY__WRITING;
  if (ferry__sink_rests(t))
    ferry__finish(loop, t);
  else
    wait_for_write(loop, t, t->fault);
}

/* Nothing of it was sent, or looked at: once more, with another handle. */
static void begin_again(ferry_loop *loop, ferry__transfer *t) {
  leave_libcurl(loop, t);
  t->earlier = (uint8_t)(t->earlier + t->handle->attempts);
  t->reached |= t->handle->reached && !t->untouched;
  ferry__handle_give(t->handle, false);
  t->handle = NULL;
  t->head = ferry__no_head;
  t->again = t->untouched = false;
  t->unwatched = 0;
  free(t->late); /* of a connection that it leaves */
  t->late = NULL;
  t->phase = FERRY_PHASE_CONNECT;
  ferry__fault fault = enter_libcurl(loop, t);
  if (fault.code)
    ferry__transfer_end(loop, t, fault);
}

void ferry__transfer_completed(ferry_loop *loop, ferry__transfer *t,
                               CURLcode code) {
  if (t->untouched && code && !t->fault.code && !t->fresh && !t->pulled &&
      !t->head->received)
    t->again = t->fresh = true;
  if (t->again && code && !t->fault.code) {
    begin_again(loop, t);
    return;
  }
  bool running = t->state == FERRY__RUNNING;
  /* What comes of the rest of the request no longer matters to the answer. */
  if (code == CURLE_SEND_ERROR && !t->fault.code && ferry__is_answered(t)) {
    code = CURLE_OK;
    t->cut = true;
  }
  if (code == CURLE_SEND_ERROR && t->late && !t->fault.code &&
      !t->head->received && ferry__late_answer(t))
    code = CURLE_OK;
  if (code == CURLE_COULDNT_CONNECT && t->fault.code)
    t->handle->words[0] = 0; /* it was not to: ferry__on_open() */
  if (!code)
    t->handle->words[0] = 0; /* a reset behind an answer explains nothing */
  t->result.curl_code = (int32_t)code;
  if (running)
    leave_libcurl(loop, t);
  if (code && !t->fault.code) {
    long os_errno = 0;
    curl_easy_getinfo(t->handle->easy, CURLINFO_OS_ERRNO, &os_errno);
    t->result.os_errno = (int32_t)os_errno;
    t->fault = ferry__fault_of(t, code, t->handle->words);
    if (t->fault.code == FERRY_E_TLS &&
        t->fault.detail != FERRY_D_TLS_CONFIGURATION)
      t->phase = FERRY_PHASE_TLS; /* its socket is closed already */
    if (t->fault.code == FERRY_E_ADDRESS_FORBIDDEN)
      t->handle->words[0] = 0; /* «could not connect» is not why */
  }
  if (t->phase == FERRY_PHASE_SEND)
    ferry__look_at_phase(t);
  if (!t->fault.code && t->head_held)
    ferry__head_final(loop, t);
  /* For libcurl a head may end with its connection. */
  if (!t->fault.code && !t->head->complete)
    t->fault = (ferry__fault){FERRY_E_CONNECTION_CLOSED, 0};
  if (!t->fault.code && (t->result.flags & FERRY_RESULT_CLOSE_FRAMED) &&
      t->host->secure && !t->close_notified)
    t->fault = (ferry__fault){FERRY_E_INCOMPLETE_BODY, 0};
  if (!t->fault.code && t->kept) {
    t->state = FERRY__DRAINING;
    return;
  }
  ferry__transfer_left(loop, t, t->fault);
}

void ferry__transfer_left(ferry_loop *loop, ferry__transfer *t,
                          ferry__fault fault) {
  t->fault = fault;
  if (!t->fault.code && t->inflate) {
    if (t->inflate->held) {
      /* All is here, but the receiver has not taken it yet. */
      t->state = FERRY__DRAINING;
      return;
    }
    if (t->result.body_received && !t->inflate->ended)
      t->fault = (ferry__fault){FERRY_E_CONTENT_DECODING,
                                FERRY_D_DECODING_TRUNCATED};
  }
  if (!t->fault.code)
    t->phase = FERRY_PHASE_DONE;
  settle(loop, t);
}

void ferry__transfer_end(ferry_loop *loop, ferry__transfer *t,
                         ferry__fault fault) {
  if (t->state == FERRY__WRITING) { /* its sink will end it */
    if (!t->fault.code)
      t->fault = fault;
    wait_for_write(loop, t, fault);
    return;
  }
  t->fault = fault;
  switch (t->state) {
  case FERRY__WAITING:
    ferry__dequeue(loop, t);
    break;
  case FERRY__RESOLVING:
    ferry__fifo_remove(&t->asked->resolving, t);
    ferry__name_unwanted(loop, t->asked);
    ferry__count(&loop->counters.resolving, -1);
    ferry__leave(loop, t->host);
    break;
  case FERRY__RUNNING:
    t->engine->abandon(loop, t);
    settle(loop, t);
    return;
  case FERRY__DRAINING:
    settle(loop, t);
    return;
  }
  ferry__finish(loop, t);
}

/* ---- libcurl's engine ---------------------------------------------------- */

static void abandon(ferry_loop *loop, ferry__transfer *t) {
  if (!t->handle) /* there was none to be had */
    return;
  ferry__look_at_phase(t);
  leave_libcurl(loop, t);
}

static uint64_t sent(const ferry__transfer *t) {
  curl_off_t bytes = 0;
  if (t->handle)
    curl_easy_getinfo(t->handle->easy, CURLINFO_SIZE_UPLOAD_T, &bytes);
  return (uint64_t)bytes;
}

static void look(ferry_loop *loop, ferry__transfer *t) {
  (void)loop;
  ferry__look_at_phase(t);
}

const ferry__engine ferry__curl_engine = {
    .name = FERRY_ENGINE_LIBCURL,
    .start = enter_libcurl,
    .abandon = abandon,
    .resume = go_on,
    .resume_sending = go_on,
    .sent = sent,
    .look = look,
    .leave_unsent = ferry__leave_unsent,
    .so_far = ferry__read_so_far,
};
