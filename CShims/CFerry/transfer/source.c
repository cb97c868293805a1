/* source.c - where the bytes of a request's body come from. */
#include "core.h"

int64_t ferry__source_pull(ferry_loop *loop, ferry__transfer *t, char *space,
                           size_t size) {
  ferry_options *o = &loop->options;
  uint64_t left = t->body_length - t->pulled;
  t->last_ms = ferry__now(loop);
  if (left < size)
    size = (size_t)left;
  if (!size)
    return 0;
  int64_t n = o->on_pull
                  ? o->on_pull(o->context, t->result.id, space, size)
                  : FERRY_ABORT;
  if (n == FERRY_PAUSE) {
    t->source = FERRY__SOURCE_PAUSED;
    return FERRY_PAUSE;
  }
  bool early = n == 0 && t->body_length != FERRY_UNKNOWN_LENGTH;
  if (n == 0 && !early)
    t->body_length = t->pulled; /* known now */
  if (n < 0 || (uint64_t)n > size || early) {
    t->fault = (ferry__fault){FERRY_E_UPLOAD_SOURCE, 0};
    return FERRY_ABORT;
  }
  t->pulled += (uint64_t)n;
  return n;
}
