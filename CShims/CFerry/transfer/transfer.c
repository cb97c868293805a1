/* transfer.c - the life of one transfer on the loop's thread, from its engine
 * on: started, paused and resumed, ended exactly once. */
#include "transfer/transfer.h"

#include <stdlib.h>
#include <string.h>

/* Those that rest may take a quarter of the time, within these bounds. */
enum { LEAST_NS = 1000000, MOST_NS = 5000000 };

static void link_running(ferry_loop *loop, ferry__transfer *t) {
  t->prev = NULL;
  t->next = loop->transfers->running;
  if (loop->transfers->running)
    loop->transfers->running->prev = t;
  loop->transfers->running = t;
}

static void unlink_running(ferry_loop *loop, ferry__transfer *t) {
  if (t->prev)
    t->prev->next = t->next;
  else
    loop->transfers->running = t->next;
  if (t->next)
    t->next->prev = t->prev;
}

void ferry__transfer_run(ferry_loop *loop, ferry__transfer *t,
                         const ferry__engine *engine) {
  t->state = FERRY__RUNNING;
  t->phase = FERRY_PHASE_CONNECT;
  t->last_ms = ferry__now(loop);
  t->result.metrics.name = ferry__us(t->started_ns, loop->now_ns);
  link_running(loop, t);
  t->engine = engine;
  t->result.engine = engine->name;
  ferry__fault fault = engine->start(loop, t);
  if (fault.code)
    ferry__transfer_end(loop, t, fault);
}

/* ---- Pauses -------------------------------------------------------------- */

static bool is_at_work(const ferry__transfer *t) {
  return t->state == FERRY__RUNNING || t->state == FERRY__DRAINING;
}

void ferry__transfer_unpause(ferry_loop *loop, ferry__transfer *t,
                             unsigned reason) {
  bool paused = t->paused || t->source == FERRY__SOURCE_PAUSED;
  t->paused &= (uint8_t)~reason;
  if (reason != FERRY__PAUSED_BY_RECEIVER &&
      (t->paused & FERRY__PAUSED_BY_RECEIVER))
    return; /* the source resumes by itself */
  if (!paused || !is_at_work(t)) {
    ferry__source_ready(t);
    return;
  }
  t->last_ms = ferry__now(loop);
  t->window_ms = 0; /* starts again at the next look */
  if (t->decoder && t->decoder->held) {
    if (!ferry__decode_drain(loop, t)) {
      ferry__transfer_end(loop, t, t->fault);
      return;
    }
    if (t->decoder->held)
      return; /* paused again before the held bytes were delivered */
    if (ferry__is_cut(t)) {
      ferry__transfer_end(loop, t,
                          (ferry__fault){FERRY_E_CONTENT_DECODING,
                                         FERRY_D_DECODING_TRUNCATED});
      return;
    }
    ferry__tell_answered(loop, t); /* also if the last piece has paused it */
    if (t->paused && t->state != FERRY__DRAINING) /* which has its end, too */
      return;
  }
  t->engine->resume(loop, t);
}

void ferry__transfer_rest(ferry_loop *loop, ferry__transfer *t) {
  ferry__rest *rest = &loop->transfers->rest;
  if (t->paused & FERRY__PAUSED_BY_TURN)
    return;
  if (rest->count == rest->capacity && rest->first) {
    rest->count -= rest->first;
    memmove(rest->ids, rest->ids + rest->first,
            rest->count * sizeof *rest->ids);
    rest->first = 0;
  }
  if (rest->count == rest->capacity) {
    size_t capacity = rest->capacity ? 2 * rest->capacity : 16;
    uint64_t *ids = realloc(rest->ids, capacity * sizeof *ids);
    if (!ids)
      return; /* it continues now */
    rest->ids = ids;
    rest->capacity = capacity;
  }
  rest->ids[rest->count++] = t->result.id;
  t->paused |= FERRY__PAUSED_BY_TURN;
}

void ferry__transfers_go_on(ferry_loop *loop) {
  ferry__rest *rest = &loop->transfers->rest;
  if (rest->turn == loop->waits)
    return;
  rest->turn = loop->waits;
  uint64_t began = uv_hrtime(), share = (began - rest->began_ns) / 4;
  rest->began_ns = began;
  share = share < LEAST_NS ? LEAST_NS : share > MOST_NS ? MOST_NS : share;
  loop->transfers->decoded = 0;
  /* Those that rest again meanwhile continue in the next turn. */
  for (size_t left = rest->count - rest->first; left > 0; left--) {
    uint64_t id = rest->ids[rest->first++];
    if (rest->first == rest->count)
      rest->first = rest->count = 0;
    ferry__transfer *t = ferry__table_find(&loop->table, id);
    if (!t || !(t->paused & FERRY__PAUSED_BY_TURN))
      continue;
    ferry__transfer_unpause(loop, t, FERRY__PAUSED_BY_TURN);
    if (uv_hrtime() - began >= share)
      return;
  }
}

void ferry__transfer_resume(ferry_loop *loop, ferry__transfer *t) {
  ferry__transfer_unpause(loop, t, FERRY__PAUSED_BY_RECEIVER);
}

void ferry__transfer_resume_sending(ferry_loop *loop, ferry__transfer *t) {
  if (t->source == FERRY__SOURCE_DRY)
    t->source = FERRY__SOURCE_READY;
  if (t->source != FERRY__SOURCE_PAUSED || t->state != FERRY__RUNNING)
    return;
  ferry__source_ready(t);
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
    if (most &&
        __builtin_add_overflow(t->result.body_length, most, &t->max_body))
      t->max_body = 0; /* no limit */
  }
  ferry__transfer_resume(loop, t);
}

/* ---- The end ------------------------------------------------------------- */

/* A cancel, a stop or a deadline does not wait for a write that may never
 * return. Other ends do wait, because the caller may be about to write to the
 * same place. */
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

static void note_head(ferry__transfer *t) {
  ferry_result *r = &t->result;
  const ferry__head *head = t->head;
  r->head_received = head->received;
  if (head->status)
    r->status = head->status;
  r->http_version = head->version;
  r->content_length = head->content_length;
}

static void settle(ferry_loop *loop, ferry__transfer *t) {
  note_head(t);
  t->engine->figures(loop, t);
  ferry__result_pack(loop, t);
  t->engine->release(loop, t);
  unlink_running(loop, t);
  loop->hooks->give_place(loop, t);
  t->state = FERRY__WRITING;
  if (ferry__sink_rests(t))
    ferry__finish(loop, t);
  else
    wait_for_write(loop, t, t->fault);
}

void ferry__transfer_left(ferry_loop *loop, ferry__transfer *t,
                          ferry__fault fault) {
  t->fault = fault;
  if (!t->fault.code && t->decoder) {
    if (t->decoder->held) {
      /* All bytes are here, but the receiver has not taken them yet. */
      t->state = FERRY__DRAINING;
      return;
    }
    if (t->result.body_received && !t->decoder->ended)
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
  case FERRY__RESOLVING:
    loop->hooks->withdraw(loop, t);
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
