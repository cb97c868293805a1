/* body.c - parses the body of a request, framed by a length or in chunks. */
#include "internal.h"

#include <string.h>

enum { LENGTH = 0, SIZE, EXTENSION, DATA, DATA_END, TRAILER, DONE };

#define LINE_LIMIT 8192 /* of a chunk line, and of all trailers together */

void lb__framing_begin(lb_framing *framing, const lb_head *head) {
  memset(framing, 0, sizeof(*framing));
  framing->chunked = head->chunked;
  framing->state = head->chunked ? SIZE : LENGTH;
  framing->left = head->chunked ? 0 : head->content_length;
}

/* Takes one byte outside a chunk's data. Returns false if it is invalid
 * there. */
static bool step(lb_framing *f, char byte) {
  int digit;
  if (f->state != DATA_END && ++f->line > LINE_LIMIT) return false;
  switch (f->state) {
    case SIZE:
      digit = lb__hex(byte);
      if (digit >= 0) {
        if (f->left > UINT64_MAX >> 4) return false;
        f->left = f->left << 4 | (unsigned)digit;
        return true;
      }
      /* The first byte of the line must be a digit. */
      if (f->line == 1) return false;
      f->state = EXTENSION;
      /* fall through */
    case EXTENSION:
      if (byte != '\n') return true;
      f->state = f->left ? DATA : TRAILER;
      f->line = 0;
      return true;
    case DATA_END:
      if (byte == '\r') return true;
      f->state = SIZE;
      f->line = 0;
      return byte == '\n';
    case TRAILER:
      /* `left` counts the bytes of this line, 0 after a line feed. */
      if (byte == '\n') {
        if (!f->left) f->state = DONE;
        f->left = 0;
      } else if (byte != '\r') {
        f->left++;
      }
      return true;
    default:
      return false;
  }
}

int lb__framing_next(lb_framing *f, lb_slice input, size_t *used,
                     lb_slice *piece) {
  size_t at = 0;
  *used = 0;
  if (f->state == LENGTH && !f->left) return LB_BODY_END;
  while (at < input.length) {
    if (f->state == LENGTH || f->state == DATA) {
      size_t size = input.length - at;
      if (size > f->left) size = (size_t)f->left;
      *piece = (lb_slice){input.base + at, size};
      f->left -= size;
      if (f->state == DATA && !f->left) f->state = DATA_END;
      *used = at + size;
      return LB_BODY_PIECE;
    }
    if (!step(f, input.base[at++])) return LB_BODY_BAD;
    if (f->state == DONE) {
      *used = at;
      return LB_BODY_END;
    }
  }
  *used = at;
  return LB_BODY_MORE;
}
