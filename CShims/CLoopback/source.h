/* source.h - output that is made when there is room for it. */
#ifndef LOOPBACK_SOURCE_H
#define LOOPBACK_SOURCE_H

#include "base.h"
#include "head.h"

enum {
  LB_SOURCE_NONE = 0,
  LB_SOURCE_PATTERN,
  LB_SOURCE_BLOB,
  LB_SOURCE_REPEAT,
  LB_SOURCE_CHUNKED,
  LB_SOURCE_CODED,
  LB_SOURCE_DRIP,
};
enum { LB_PULL_END = 0, LB_PULL_SPAN, LB_PULL_OUT, LB_PULL_WAIT };

typedef struct lb_encoder lb_encoder;

typedef struct lb_source {
  int kind;
  bool zeros;          /* zero bytes instead of the pattern */
  uint64_t offset;     /* in the pattern, in the blob */
  uint64_t left;       /* bytes still to make */
  const char *bytes;   /* BLOB, REPEAT, DRIP */
  size_t length;       /* of bytes */
  char *owned;         /* freed at the end */
  uint64_t piece;      /* CHUNKED, DRIP: bytes at a time */
  uint64_t interval;   /* DRIP, ms */
  bool ended;          /* CODED, CHUNKED: the last bytes have been made */
  lb_encoder *encoder;
} lb_source;

/* The pattern repeats the 37 bytes a–z, 0–9 and a line feed: a period that
 * divides no block size, so that misplaced bytes are noticed. */
#define LB_PATTERN_PERIOD 37
lb_slice lb__pattern(uint64_t offset, uint64_t limit, bool zeros);
int lb__source_pull(lb_conn *c, uv_buf_t *span);
void lb__source_end(lb_conn *c);
int lb__coded_pull(lb_conn *c);
void lb__coded_end(lb_source *source);

#endif
