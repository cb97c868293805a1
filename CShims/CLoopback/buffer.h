/* buffer.h - memory allocation that never fails: the process ends instead. */
#ifndef LOOPBACK_BUFFER_H
#define LOOPBACK_BUFFER_H

#include "base.h"

typedef struct lb_buf {
  char *base;
  size_t start; /* first byte of the content */
  size_t end;
  size_t capacity;
} lb_buf;

void *lb__alloc(size_t size);
void *lb__copy(const void *bytes, size_t size); /* a zero byte follows */
char *lb__buf_room(lb_buf *buf, size_t size);
void lb__buf_add(lb_buf *buf, const void *bytes, size_t size);
void lb__buf_text(lb_buf *buf, const char *text);
void lb__buf_format(lb_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void lb__buf_clear(lb_buf *buf);
void lb__buf_free(lb_buf *buf);
static inline size_t lb__buf_size(const lb_buf *buf) {
  return buf->end - buf->start;
}
static inline char *lb__buf_data(const lb_buf *buf) {
  return buf->base + buf->start;
}

#endif
