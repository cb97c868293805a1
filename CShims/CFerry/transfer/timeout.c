/* timeout.c - the limits of one transfer. None is left to libcurl: its limits
 * include the time in its own queue, and its clock stops while nothing
 * happens. */
#include "transfer/transfer.h"

static int idle_detail(const ferry__transfer *t) {
  if (t->phase <= FERRY_PHASE_DNS)
    return FERRY_D_TIMEOUT_DNS;
  if (t->phase == FERRY_PHASE_CONNECT)
    return FERRY_D_TIMEOUT_CONNECT;
  if (t->phase == FERRY_PHASE_TLS)
    return FERRY_D_TIMEOUT_TLS;
  if (t->phase == FERRY_PHASE_BODY)
    return FERRY_D_TIMEOUT_READ;
  if (t->phase == FERRY_PHASE_SEND)
    return FERRY_D_TIMEOUT_WRITE;
  return FERRY_D_TIMEOUT_RESPONSE_HEAD;
}

static void sooner(uint64_t *next, uint64_t at) {
  if (at && (!*next || at < *next))
    *next = at;
}

/* ---- What expires next --------------------------------------------------- */

/* Returns true if the limit has passed; otherwise notes when it will. The time
 * in which the loop was held does not count, as nothing could happen in it.
 * Only the last such time is left out, so that a limit passes even if every
 * turn is long. */
static bool passed(const ferry__clock *clock, uint64_t from, uint32_t limit,
                   uint64_t *next) {
  if (!limit)
    return false;
  if (from < clock->held_from)
    from += clock->held_until - clock->held_from;
  else if (from < clock->held_until)
    from = clock->held_until;
  if (clock->now >= from + limit)
    return true;
  sooner(next, from + limit);
  return false;
}

/* A deadline is a point in time and does not move. One that passed while the
 * loop was held takes effect a moment later, when what had arrived has been
 * read. */
static bool is_over(const ferry__clock *clock, const ferry__transfer *t,
                    uint64_t *next) {
  uint64_t at = t->submitted_ms + t->deadline_ms;
  uint64_t grace = clock->held_until - clock->held_from;
  if (grace > FERRY__GRACE_MS)
    grace = FERRY__GRACE_MS;
  if (!t->deadline_ms)
    return false;
  if (at > clock->held_from && at < clock->held_until + grace)
    at = clock->held_until + grace;
  if (clock->now >= at)
    return true;
  sooner(next, at);
  return false;
}

static ferry__expiry timed_out(int detail) {
  return (ferry__expiry){.kind = FERRY__EXPIRES_NOW, .detail = detail};
}

/* Whether too few bytes arrived while the window was open. */
static ferry__expiry speed_of(const ferry__clock *clock,
                              const ferry__transfer *t, bool paused,
                              uint64_t moved, ferry__expiry e) {
  if (!t->low_speed_ms)
    return e;
  if (t->phase < FERRY_PHASE_SEND) {
    sooner(&e.at, clock->now + t->low_speed_ms / 4 + 1);
    return e;
  }
  e.window = paused || !t->window_ms;
  uint64_t least = (uint64_t)t->low_speed_bytes * t->low_speed_ms / 1000;
  if (!passed(clock, e.window ? clock->now : t->window_ms, t->low_speed_ms,
              &e.at))
    return e;
  if (moved - (e.window ? moved : t->window_bytes) < least)
    return timed_out(FERRY_D_TIMEOUT_LOW_SPEED);
  e.window = true;
  sooner(&e.at, clock->now + t->low_speed_ms);
  return e;
}

ferry__expiry ferry__expiry_of(const ferry__clock *clock,
                               const ferry__transfer *t,
                               const ferry__progress *progress) {
  ferry__expiry e = {.kind = FERRY__EXPIRES_LATER};
  /* With FERRY_DUPLEX silence is silence, unless only the receiver is awaited.
   * If the server waits for the receiver, which waits for the source, all wait
   * for ever. */
  bool duplex = t->flags & FERRY_DUPLEX;
  bool held = (t->paused & FERRY__PAUSED_BY_RATE) ||
              (t->paused && !(duplex && progress->sending));
  bool paused = held || (progress->source_paused && !duplex);
  bool waiting = t->state == FERRY__WAITING;
  if (t->receiving == FERRY__RECEIVE_PING && t->state == FERRY__RUNNING) {
    /* No limit fails it any more. */
    if (is_over(clock, t, &e.at) ||
        passed(clock, t->last_ms, FERRY__PING_MS, &e.at))
      e.kind = FERRY__EXPIRES_UNSENT;
    return e;
  }
  if (is_over(clock, t, &e.at))
    return timed_out(waiting ? FERRY_D_TIMEOUT_QUEUE
                             : FERRY_D_TIMEOUT_DEADLINE);
  if (waiting)
    return e;
  if (passed(clock, t->started_ms, t->total_ms, &e.at))
    return timed_out(FERRY_D_TIMEOUT_TOTAL);
  uint64_t begun = t->repeated_ms ? t->repeated_ms : t->started_ms;
  if (t->phase < FERRY_PHASE_SEND &&
      passed(clock, begun, t->connect_ms, &e.at))
    return timed_out(idle_detail(t));
  if (progress->answered && (progress->source_paused || !paused) &&
      t->state == FERRY__RUNNING) {
    /* Its source may never resume, or the server never read the rest. */
    if (passed(clock, t->last_ms, t->idle_ms, &e.at))
      return (ferry__expiry){.kind = FERRY__EXPIRES_UNSENT};
  } else if (!paused) {
    if (t->phase >= FERRY_PHASE_DNS &&
        passed(clock, t->last_ms, t->idle_ms, &e.at))
      return timed_out(idle_detail(t));
  } else if (t->idle_ms) {
    sooner(&e.at, clock->now + t->idle_ms); /* its own clock is suspended */
  }
  return speed_of(clock, t, t->paused || progress->source_paused,
                  progress->moved, e);
}

/* ---- Acting on it -------------------------------------------------------- */

static ferry__clock clock_of(const ferry_loop *loop) {
  return (ferry__clock){.now = ferry__now(loop),
                        .held_from = loop->held_from,
                        .held_until = loop->held_until};
}

static uint64_t moved(const ferry__transfer *t) {
  uint64_t sent = t->body_kind == FERRY_BODY_BYTES && t->engine
                      ? t->engine->sent(t)
                      : 0;
  return t->result.body_received + ferry__pulled(t) + sent;
}

/* The socket is shared with other transfers, so its events say nothing about
 * this one. */
static void look_at_upload(ferry__transfer *t, uint64_t now) {
  uint64_t bytes = moved(t);
  if (bytes != t->uploaded)
    t->last_ms = now;
  t->uploaded = bytes;
}

/* Its outcome is settled, and only a write is under way. */
static uint64_t check_writing(ferry_loop *loop, ferry__transfer *t) {
  static const ferry__fault late = {FERRY_E_TIMEOUT, FERRY_D_TIMEOUT_DEADLINE};
  ferry__clock clock = clock_of(loop);
  uint64_t next = 0;
  if (!t->leave_ms && is_over(&clock, t, &next))
    t->leave_ms = clock.now + FERRY__WRITE_MS;
  if (!t->leave_ms)
    return next;
  if (clock.now < t->leave_ms)
    return t->leave_ms;
  ferry__sink_leave(loop, t, late);
  return t->state == FERRY__WRITING ? clock.now + FERRY__WRITE_MS : 0;
}

/* Resumes what is due without an event. Returns when to look again, 0 = never;
 * sets *fault if the transfer cannot continue. */
static uint64_t go_on(ferry_loop *loop, ferry__transfer *t,
                      ferry__fault *fault) {
  uint64_t next = 0;
  if (t->engine && t->state == FERRY__RUNNING)
    next = t->engine->look(loop, t, fault);
  if (!fault->code && t->phase >= FERRY_PHASE_SEND && loop->options.http2 &&
      t->body_kind != FERRY_BODY_NONE)
    look_at_upload(t, ferry__now(loop));
  sooner(&next, ferry__sink_look(t));
  return next;
}

static void open_window(ferry_loop *loop, ferry__transfer *t) {
  t->window_ms = ferry__now(loop);
  t->window_bytes = moved(t);
}

/* The next moment at which a limit of this transfer may pass; 0 = none. Sets
 * *fault if one has. */
static uint64_t check(ferry_loop *loop, ferry__transfer *t,
                      ferry__fault *fault) {
  if (t->state == FERRY__DONE)
    return 0;
  if (t->state == FERRY__WRITING)
    return check_writing(loop, t);
  ferry__progress progress = {
      .source_paused = t->source == FERRY__SOURCE_PAUSED};
  uint64_t next = t->state == FERRY__WAITING ? 0 : go_on(loop, t, fault);
  if (fault->code)
    return 0;
  progress.answered = t->engine && t->engine->is_answered(t);
  progress.sending = t->body_kind == FERRY_BODY_PULL &&
                     t->source == FERRY__SOURCE_READY &&
                     ferry__pulled(t) < t->body_length;
  progress.moved = t->low_speed_ms ? moved(t) : 0;
  ferry__clock clock = clock_of(loop);
  ferry__expiry expiry = ferry__expiry_of(&clock, t, &progress);
  if (expiry.window)
    open_window(loop, t);
  sooner(&next, expiry.at);
  switch (expiry.kind) {
  case FERRY__EXPIRES_NOW:
    *fault = (ferry__fault){FERRY_E_TIMEOUT, expiry.detail};
    return 0;
  case FERRY__EXPIRES_UNSENT:
    t->engine->leave_unsent(loop, t);
    return check(loop, t, fault); /* its receiver may never resume, either */
  }
  if (t->paused & FERRY__PAUSED_BY_RATE) {
    sooner(&next, ferry__pace_look(loop, t));
    if (t->state != FERRY__RUNNING && t->state != FERRY__DRAINING)
      return check(loop, t, fault); /* it has ended, except for a write */
  }
  return next;
}

void ferry__watch_limits(ferry_loop *loop, ferry__transfer *t) {
  ferry__fault fault = {0, 0};
  uint64_t next = check(loop, t, &fault);
  if (fault.code)
    ferry__transfer_end(loop, t, fault);
  else if (next)
    ferry__wheel_set(loop, t, next);
}
