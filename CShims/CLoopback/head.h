/* head.h - the head of a request and the framing of its body (head.c, text.c,
 * body.c). */
#ifndef LOOPBACK_HEAD_H
#define LOOPBACK_HEAD_H

#include "base.h"
#include "buffer.h"

typedef struct lb_slice {
  const char *base;
  size_t length;
} lb_slice;

typedef struct lb_head {
  lb_slice raw; /* request line to empty line */
  lb_slice method;
  lb_slice target;
  lb_slice path;
  lb_slice query; /* without its question mark */
  struct {
    lb_slice name;
    lb_slice value;
  } fields[LB_MAX_FIELDS];
  size_t count;
  uint64_t content_length;
  bool has_length;
  bool chunked;
  bool keep_alive;
  bool expects_continue;
} lb_head;

/* Returns the length of the head, 0 if it is incomplete, or a negative HTTP
 * status. */
long lb__head_parse(const char *base, size_t length, lb_head *head);
bool lb__head_field(const lb_head *head, const char *name, lb_slice *value);

bool lb__equal(lb_slice slice, const char *text);
bool lb__equal_fold(lb_slice slice, const char *text);
bool lb__starts(lb_slice slice, const char *text);
bool lb__number(lb_slice slice, uint64_t *out); /* all digits, no overflow */
int lb__hex(char digit); /* -1 if it is not a hex digit */
size_t lb__unescape(lb_slice slice, bool plus, char *out); /* <= length */
/* Takes the next `name=value` of a query, both still escaped. */
bool lb__query_next(lb_slice *query, lb_slice *name, lb_slice *value);
bool lb__query(lb_slice query, const char *name, lb_slice *value);
uint64_t lb__query_number(lb_slice query, const char *name, uint64_t other);
void lb__json_string(lb_buf *out, lb_slice text);
bool lb__is_utf8(lb_slice text);

typedef struct lb_framing {
  bool chunked;
  int state;
  uint64_t left; /* of the body, or of this chunk */
  size_t line;   /* bytes of a chunk line so far */
} lb_framing;

enum { LB_BODY_MORE = 0, LB_BODY_PIECE, LB_BODY_END, LB_BODY_BAD };

void lb__framing_begin(lb_framing *framing, const lb_head *head);
/* Consumes *used bytes of the input; PIECE: *piece is content. */
int lb__framing_next(lb_framing *framing, lb_slice input, size_t *used,
                     lb_slice *piece);

#endif
