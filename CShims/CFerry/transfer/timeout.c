/* timeout.c - the limits of one transfer. All of them are ours: libcurl's
 * count the time in its own queue, and its clock stands still while nothing
 * happens. */
#include "core.h"

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

void ferry__look_at_phase(ferry__transfer *t) {
  curl_off_t sent = 0;
  if (!t->handle) /* the native engine tells of its phases by itself */
    return;
  if (t->phase == FERRY_PHASE_CONNECT && t->host->secure &&
      (t->extras && t->extras->proxy ? t->handle->tunnelled
                                     : ferry__is_connected(t->handle)))
    t->phase = FERRY_PHASE_TLS;
  if (t->phase == FERRY_PHASE_SEND && t->body_length != FERRY_UNKNOWN_LENGTH) {
    curl_easy_getinfo(t->handle->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    if ((uint64_t)sent >= t->body_length)
      t->phase = FERRY_PHASE_WAIT_HEAD;
  }
}

static void sooner(uint64_t *next, uint64_t at) {
  if (!*next || at < *next)
    *next = at;
}

/* True when the limit has passed; else notes when it will. The time in which
 * the loop was held does not count, as nothing could happen in it: the last
 * such time, so that a limit passes even where every turn is a long one. */
static bool passed(const ferry_loop *loop, uint64_t from, uint32_t limit,
                   uint64_t *next) {
  if (!limit)
    return false;
  if (from < loop->held_from)
    from += loop->held_until - loop->held_from;
  else if (from < loop->held_until)
    from = loop->held_until;
  if (ferry__now(loop) >= from + limit)
    return true;
  sooner(next, from + limit);
  return false;
}

/* A deadline is a point in time, which does not move. One that passed while the
 * loop was held passes a moment after it, when what had come is read. */
static bool is_over(const ferry_loop *loop, const ferry__transfer *t,
                    uint64_t *next) {
  uint64_t at = t->submitted_ms + t->deadline_ms;
  uint64_t grace = loop->held_until - loop->held_from;
  if (grace > FERRY__GRACE_MS)
    grace = FERRY__GRACE_MS;
  if (!t->deadline_ms)
    return false;
  if (at > loop->held_from && at < loop->held_until + grace)
    at = loop->held_until + grace;
  if (ferry__now(loop) >= at)
    return true;
  sooner(next, at);
  return false;
}

static uint64_t moved(const ferry__transfer *t) {
  uint64_t sent = t->body_kind == FERRY_BODY_BYTES && t->engine
                      ? t->engine->sent(t)
                      : 0;
  return t->result.body_received + t->pulled + sent;
}

/* The socket is not this transfer's alone, so its events tell nothing. */
static void look_at_upload(ferry__transfer *t, uint64_t now) {
  uint64_t bytes = moved(t);
  if (bytes != t->uploaded)
    t->last_ms = now;
  t->uploaded = bytes;
}

/* It would end by one of its limits only, and tell of a slow server. */
static ferry__fault unwatched(ferry__transfer *t) {
  t->result.os_errno = t->unwatched;
  return t->phase < FERRY_PHASE_SEND
             ? (ferry__fault){FERRY_E_CONNECT, FERRY_D_CONNECT_FAILED}
             : (ferry__fault){FERRY_E_INTERNAL, 0};
}

/* Its answer is settled, and only a write is under way. */
static uint64_t check_writing(ferry_loop *loop, ferry__transfer *t) {
  static const ferry__fault late = {FERRY_E_TIMEOUT, FERRY_D_TIMEOUT_DEADLINE};
  uint64_t now = ferry__now(loop), next = 0;
  if (!t->leave_ms && is_over(loop, t, &next))
    t->leave_ms = now + FERRY__WRITE_MS;
  if (!t->leave_ms)
    return next;
  if (now < t->leave_ms)
    return t->leave_ms;
  ferry__sink_leave(loop, t, late);
  return t->state == FERRY__WRITING ? now + FERRY__WRITE_MS : 0;
}

/* The next moment at which something of this transfer may expire; 0 = none.
 * *fault is set when it has. */
static uint64_t check(ferry_loop *loop, ferry__transfer *t,
                      ferry__fault *fault) {
  uint64_t now = ferry__now(loop), next = 0;
  int detail = 0;
  bool paused = t->receive_paused || t->send_paused;
  if (t->state == FERRY__DONE)
    return 0;
  if (t->state == FERRY__WRITING)
    return check_writing(loop, t);
  if (t->unwatched && t->state == FERRY__RUNNING) {
    *fault = unwatched(t);
    return 0;
  }
  if (is_over(loop, t, &next)) {
    detail = t->state == FERRY__WAITING ? FERRY_D_TIMEOUT_QUEUE
                                        : FERRY_D_TIMEOUT_DEADLINE;
  } else if (t->state != FERRY__WAITING) {
    ferry__look_at_phase(t);
    if (t->phase >= FERRY_PHASE_SEND && loop->options.http2 &&
        t->body_kind != FERRY_BODY_NONE)
      look_at_upload(t, now);
    if (passed(loop, t->started_ms, t->total_ms, &next))
      detail = FERRY_D_TIMEOUT_TOTAL;
    else if (t->phase < FERRY_PHASE_SEND &&
             passed(loop, t->started_ms, t->connect_ms, &next))
      detail = idle_detail(t);
    else if (!paused && t->phase >= FERRY_PHASE_DNS &&
             passed(loop, t->last_ms, t->idle_ms, &next))
      detail = idle_detail(t);
    else if (t->send_paused && t->state == FERRY__RUNNING &&
             ferry__is_answered(t) &&
             passed(loop, t->last_ms, t->idle_ms, &next)) {
      t->engine->leave_unsent(loop, t); /* its source may never come back */
      return check(loop, t, fault); /* its receiver may not, either */
    } else if (paused && t->idle_ms)
      sooner(&next, now + t->idle_ms); /* its own clock stands still */
    uint64_t again = ferry__sink_look(t);
    if (again)
      sooner(&next, again);
    again = t->connection ? ferry__exchange_look(t->connection, now) : 0;
    if (again)
      sooner(&next, again);
    if (!detail && t->low_speed_ms && t->phase >= FERRY_PHASE_SEND) {
      if (paused || !t->window_ms) {
        t->window_ms = now;
        t->window_bytes = moved(t);
      }
      if (passed(loop, t->window_ms, t->low_speed_ms, &next)) {
        uint64_t least =
            (uint64_t)t->low_speed_bytes * t->low_speed_ms / 1000;
        if (moved(t) - t->window_bytes < least) {
          detail = FERRY_D_TIMEOUT_LOW_SPEED;
        } else {
          t->window_ms = now;
          t->window_bytes = moved(t);
          sooner(&next, now + t->low_speed_ms);
        }
      }
    } else if (!detail && t->low_speed_ms) {
      sooner(&next, now + t->low_speed_ms / 4 + 1);
    }
  }
  if (!detail && t->paced) {
    uint64_t again = ferry__pace_look(loop, t);
    if (t->state != FERRY__RUNNING && t->state != FERRY__DRAINING)
      return check(loop, t, fault); /* that was its end, but for a write */
    if (again)
      sooner(&next, again);
  }
  if (!detail && t->nudged)
    ferry__nudge(t);
  if (detail)
    *fault = (ferry__fault){FERRY_E_TIMEOUT, detail};
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
