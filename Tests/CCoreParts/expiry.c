#include "CCoreParts.h"
#include "core.h"

#include <stdlib.h>

void parts_expiry_of(parts_expiry *out, const parts_limits *limits) {
  ferry__transfer *t = calloc(1, sizeof *t);
  if (!t)
    abort();
  t->state = limits->waits ? FERRY__WAITING : FERRY__RUNNING;
  t->phase = limits->phase;
  t->submitted_ms = t->started_ms = limits->began;
  t->last_ms = limits->last;
  t->window_ms = limits->window;
  t->window_bytes = limits->window_bytes;
  t->connect_ms = limits->connect;
  t->idle_ms = limits->idle;
  t->total_ms = limits->total;
  t->deadline_ms = limits->deadline;
  t->low_speed_bytes = limits->low_speed_bytes;
  t->low_speed_ms = limits->low_speed;
  t->paused = limits->receiver_paused ? FERRY__PAUSED_BY_RECEIVER : 0;
  ferry__clock clock = {.now = limits->now, .held_from = limits->held_from,
                        .held_until = limits->held_until};
  ferry__progress progress = {.moved = limits->moved,
                              .source_paused = limits->source_paused,
                              .answered = limits->answered};
  ferry__expiry expiry = ferry__expiry_of(&clock, t, &progress);
  *out = (parts_expiry){
      .at = expiry.at, .detail = expiry.detail, .window = expiry.window,
      .unsent = expiry.kind == FERRY__EXPIRES_UNSENT,
      .now = expiry.kind == FERRY__EXPIRES_NOW,
  };
  free(t);
}
