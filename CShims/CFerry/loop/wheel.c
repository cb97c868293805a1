/* wheel.c - when a transfer may expire next: a wheel of 512 slots of 8 ms.
 *
 * Each transfer is in the slot of the earliest moment at which one of its
 * limits could pass. When that moment comes, the limits are checked, and the
 * transfer ends or goes into another slot. So activity costs nothing, as it
 * only moves times that are not checked before. Transfers due beyond the
 * wheel's range (4 s) are checked once per revolution. */
#include "loop/loop.h"

static unsigned slot_of(uint64_t tick) { return tick % FERRY__SLOTS; }

void ferry__wheel_set(ferry_loop *loop, ferry__transfer *transfer,
                      uint64_t at) {
  ferry__wheel *wheel = &loop->wheel;
  ferry__entry *t = ferry__entry_of(transfer);
  if (t->timer_at)
    ferry__wheel_remove(loop, transfer);
  uint64_t now = ferry__now(loop) / FERRY__SLOT_MS;
  /* Not while it turns, though it may be empty in between: counted from `now`,
   * the furthest slot could be the one that is being processed, and a transfer
   * put there would be taken out again without end. */
  if (!wheel->is_turning && (!wheel->count || wheel->turned > now))
    wheel->turned = now;
  /* Rounded up, so that a transfer is never checked too early. */
  uint64_t tick = (at + FERRY__SLOT_MS - 1) / FERRY__SLOT_MS;
  if (tick <= wheel->turned)
    tick = wheel->turned + 1;
  if (tick >= wheel->turned + FERRY__SLOTS)
    tick = wheel->turned + FERRY__SLOTS - 1;
  unsigned slot = slot_of(tick);
  t->timer_at = tick;
  t->timer_prev = NULL;
  t->timer_next = wheel->slot[slot];
  if (t->timer_next)
    ferry__entry_of(t->timer_next)->timer_prev = transfer;
  wheel->slot[slot] = transfer;
  wheel->used[slot / 64] |= 1ull << (slot % 64);
  wheel->count++;
  ferry__arm(loop, tick * FERRY__SLOT_MS);
}

void ferry__wheel_remove(ferry_loop *loop, ferry__transfer *transfer) {
  ferry__entry *t = ferry__entry_of(transfer);
  if (!t->timer_at)
    return;
  ferry__wheel *wheel = &loop->wheel;
  unsigned slot = slot_of(t->timer_at);
  if (t->timer_prev)
    ferry__entry_of(t->timer_prev)->timer_next = t->timer_next;
  else
    wheel->slot[slot] = t->timer_next;
  if (t->timer_next)
    ferry__entry_of(t->timer_next)->timer_prev = t->timer_prev;
  if (!wheel->slot[slot])
    wheel->used[slot / 64] &= ~(1ull << (slot % 64));
  t->timer_at = 0;
  wheel->count--;
}

void ferry__wheel_turn(ferry_loop *loop) {
  ferry__wheel *wheel = &loop->wheel;
  uint64_t now = ferry__now(loop) / FERRY__SLOT_MS;
  /* After a delay longer than the wheel's range, check each slot once. */
  if (wheel->count && now >= wheel->turned + FERRY__SLOTS)
    wheel->turned = now - FERRY__SLOTS + 1;
  wheel->is_turning = true;
  while (wheel->count && wheel->turned < now) {
    unsigned slot = slot_of(++wheel->turned);
    /* A transfer that is put in again lands in a later slot, as `turned` has
     * moved. */
    while (wheel->slot[slot]) {
      ferry__transfer *t = wheel->slot[slot];
      ferry__wheel_remove(loop, t);
      loop->hooks->expire(loop, t);
    }
  }
  wheel->is_turning = false;
}

uint64_t ferry__wheel_next(const ferry_loop *loop) {
  const ferry__wheel *wheel = &loop->wheel;
  if (!wheel->count)
    return 0;
  for (uint64_t ahead = 1; ahead < FERRY__SLOTS;) {
    unsigned slot = slot_of(wheel->turned + ahead);
    uint64_t word = wheel->used[slot / 64] >> (slot % 64);
    if (word)
      return (wheel->turned + ahead + (unsigned)__builtin_ctzll(word)) *
             FERRY__SLOT_MS;
    ahead += 64 - slot % 64;
  }
  return (wheel->turned + FERRY__SLOTS) * FERRY__SLOT_MS;
}
