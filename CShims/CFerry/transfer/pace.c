/* pace.c - limits the rate of one transfer. Bytes are paid for from a budget,
 * which time fills and which holds a quarter of a second's bytes. libcurl's own
 * limit (CURLOPT_MAX_RECV_SPEED_LARGE) lets 300 KB through at once where 300 KB
 * a second are allowed. */
#include "transfer/transfer.h"

/* One read may cost more than the budget. Such a debt is paid back in full,
 * even over many seconds, before the next byte. */
static void fill(ferry__transfer *t, uint64_t now) {
  int64_t most = (int64_t)(t->max_rate / 4) + 1;
  uint64_t bytes = 0;
  bool full = !t->pace_ms ||
              __builtin_mul_overflow(t->max_rate, now - t->pace_ms, &bytes);
  if (!full) {
    bytes /= 1000;
    t->budget += (int64_t)bytes;
    full = t->budget >= most;
  }
  if (full) {
    t->budget = most;
    t->pace_ms = now;
  } else {
    /* Time that was too short for a whole byte is carried over: at a few bytes
     * a second all of it would be lost. */
    t->pace_ms += bytes * 1000 / t->max_rate;
  }
}

/* The time that paying back its debt takes. */
static uint64_t wait(const ferry__transfer *t) {
  return 1 + (uint64_t)(-t->budget) * 1000 / t->max_rate;
}

bool ferry__pace_take(ferry_loop *loop, ferry__transfer *t, size_t count) {
  uint64_t now = ferry__now(loop);
  fill(t, now);
  if (t->budget > 0) {
    t->budget -= (int64_t)count;
    return true;
  }
  t->paused |= FERRY__PAUSED_BY_RATE;
  uint64_t at = now + wait(t);
  if (!t->entry.timer_at || t->entry.timer_at * FERRY__SLOT_MS > at)
    ferry__wheel_set(loop, t, at);
  return false;
}

uint64_t ferry__pace_look(ferry_loop *loop, ferry__transfer *t) {
  uint64_t now = ferry__now(loop);
  fill(t, now);
  if (t->budget <= 0)
    return now + wait(t);
  ferry__transfer_unpause(loop, t, FERRY__PAUSED_BY_RATE);
  return t->paused & FERRY__PAUSED_BY_RATE ? now + wait(t) : 0;
}
