/* source.c - output that is made when there is room for it, so that a body of
 * many gigabytes needs no memory. A pull returns a span of memory that stays
 * valid until it is written, or adds to `out`, or waits for the timer. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define PATTERN_SIZE (LB_PATTERN_PERIOD * 7085) /* 262,145 */
#define P37 "abcdefghijklmnopqrstuvwxyz0123456789\n"

static char pattern[PATTERN_SIZE];
static char zeros[PATTERN_SIZE];

static void make_pattern(void) {
  for (size_t i = 0; i < PATTERN_SIZE; i++)
    pattern[i] = P37[i % LB_PATTERN_PERIOD];
}

lb_slice lb__pattern(uint64_t offset, uint64_t limit, bool zero) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_pattern);
  size_t start = (size_t)(offset % LB_PATTERN_PERIOD);
  size_t size = PATTERN_SIZE - start;
  if (size > limit) size = (size_t)limit;
  return (lb_slice){(zero ? zeros : pattern) + start, size};
}

static int pull_pattern(lb_source *source, uv_buf_t *span) {
  lb_slice piece;
  if (!source->left) return LB_PULL_END;
  piece = lb__pattern(source->offset, source->left, source->zeros);
  *span = uv_buf_init((char *)piece.base, (unsigned)piece.length);
  source->offset += piece.length;
  source->left -= piece.length;
  return LB_PULL_SPAN;
}

/* `bytes` over and over; `left` counts bytes, not rounds. */
static int pull_repeat(lb_source *source, uv_buf_t *span) {
  size_t size;
  if (!source->left) return LB_PULL_END;
  size = source->length - (size_t)source->offset;
  if (size > source->left) size = (size_t)source->left;
  /* uv_buf_t allows more, a single write does not. */
  if (size > 16 * 1024 * 1024) size = 16 * 1024 * 1024;
  *span = uv_buf_init((char *)source->bytes + source->offset, (unsigned)size);
  source->offset = (source->offset + size) % source->length;
  source->left -= size;
  return LB_PULL_SPAN;
}

static int pull_chunked(lb_conn *c) {
  lb_source *source = &c->source;
  if (source->ended) return LB_PULL_END;
  while (source->left && lb__buf_size(&c->out) < LB_BLOCK) {
    uint64_t size = source->piece < source->left ? source->piece
                                                 : source->left;
    lb__buf_format(&c->out, "%llx\r\n", (unsigned long long)size);
    source->left -= size;
    while (size) {
      lb_slice piece = lb__pattern(source->offset, size, source->zeros);
      lb__buf_add(&c->out, piece.base, piece.length);
      source->offset += piece.length;
      size -= piece.length;
    }
    lb__buf_text(&c->out, "\r\n");
  }
  if (!source->left) {
    lb__buf_text(&c->out, "0\r\n\r\n");
    source->ended = true;
  }
  return LB_PULL_OUT;
}

/* Sends a piece at each interval, from `bytes` or from the pattern. */
static int pull_drip(lb_conn *c) {
  lb_source *source = &c->source;
  uint64_t size = source->piece < source->left ? source->piece : source->left;
  if (!source->left) return LB_PULL_END;
  if (!c->timer_fired) return LB_PULL_WAIT;
  source->left -= size;
  if (source->bytes) {
    lb__buf_add(&c->out, source->bytes + source->offset, (size_t)size);
    source->offset += size;
  }
  while (size && !source->bytes) {
    lb_slice piece = lb__pattern(source->offset, size, source->zeros);
    lb__buf_add(&c->out, piece.base, piece.length);
    source->offset += piece.length;
    size -= piece.length;
  }
  if (source->left) lb__conn_timer(c, source->interval);
  return LB_PULL_OUT;
}

int lb__source_pull(lb_conn *c, uv_buf_t *span) {
  switch (c->source.kind) {
    case LB_SOURCE_PATTERN:
      return pull_pattern(&c->source, span);
    case LB_SOURCE_BLOB:
    case LB_SOURCE_REPEAT:
      return pull_repeat(&c->source, span);
    case LB_SOURCE_CHUNKED:
      return pull_chunked(c);
    case LB_SOURCE_CODED:
      return lb__coded_pull(c);
    case LB_SOURCE_DRIP:
      return pull_drip(c);
    default:
      return LB_PULL_END;
  }
}

void lb__source_end(lb_conn *c) {
  free(c->source.owned);
  lb__coded_end(&c->source);
  memset(&c->source, 0, sizeof(c->source));
}
