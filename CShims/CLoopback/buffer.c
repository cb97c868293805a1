/* buffer.c - growing byte buffers. A buffer keeps its memory when it is
 * emptied, so that a warm connection allocates nothing. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An emptied buffer larger than this is freed. */
#define KEEP_SIZE (512 * 1024)

static void out_of_memory(void) {
  fputs("CLoopback: out of memory, the test server cannot go on\n", stderr);
  abort();
}

void *lb__alloc(size_t size) {
  void *memory = calloc(1, size ? size : 1);
  if (!memory) out_of_memory();
  return memory;
}

void *lb__copy(const void *bytes, size_t size) {
  char *copy = malloc(size + 1);
  if (!copy) out_of_memory();
  if (size) memcpy(copy, bytes, size);
  copy[size] = 0;
  return copy;
}

char *lb__buf_room(lb_buf *buf, size_t size) {
  size_t used = buf->end - buf->start;
  size_t capacity;
  if (buf->capacity - buf->end >= size) return buf->base + buf->end;
  if (buf->capacity - used >= size && buf->start >= used) {
    if (used) memmove(buf->base, buf->base + buf->start, used);
  } else {
    char *base;
    capacity = buf->capacity ? buf->capacity : 512;
    while (capacity - used < size) capacity *= 2;
    base = malloc(capacity);
    if (!base) out_of_memory();
    if (used) memcpy(base, buf->base + buf->start, used);
    free(buf->base);
    buf->base = base;
    buf->capacity = capacity;
  }
  buf->start = 0;
  buf->end = used;
  return buf->base + used;
}

void lb__buf_add(lb_buf *buf, const void *bytes, size_t size) {
  if (!size) return;
  memcpy(lb__buf_room(buf, size), bytes, size);
  buf->end += size;
}

void lb__buf_text(lb_buf *buf, const char *text) {
  lb__buf_add(buf, text, strlen(text));
}

void lb__buf_format(lb_buf *buf, const char *format, ...) {
  va_list arguments;
  int length;
  va_start(arguments, format);
  length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  lb__buf_room(buf, (size_t)length + 1);
  va_start(arguments, format);
  vsnprintf(buf->base + buf->end, (size_t)length + 1, format, arguments);
  va_end(arguments);
  buf->end += (size_t)length;
}

void lb__buf_clear(lb_buf *buf) {
  if (buf->capacity > KEEP_SIZE) {
    lb__buf_free(buf);
    return;
  }
  buf->start = buf->end = 0;
}

void lb__buf_free(lb_buf *buf) {
  free(buf->base);
  memset(buf, 0, sizeof(*buf));
}
