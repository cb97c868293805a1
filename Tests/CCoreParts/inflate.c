#include "CCoreParts.h"
#include "core.h"

#include <stdlib.h>
#include <string.h>

/* The receiver of one body. */
typedef struct sink {
  parts_body *body;
  uint64_t chance;
  size_t capacity;
} sink;

static uint64_t draw(uint64_t *chance) {
  *chance = *chance * 6364136223846793005u + 1442695040888963407u;
  return *chance >> 33;
}

static void append(sink *sink, const void *bytes, size_t length) {
  parts_body *body = sink->body;
  if (body->length + length > sink->capacity) {
    sink->capacity = (body->length + length) * 2;
    body->bytes = realloc(body->bytes, sink->capacity);
    if (!body->bytes)
      abort();
  }
  memcpy(body->bytes + body->length, bytes, length);
  body->length += length;
}

static int on_body(void *context, uint64_t id, const void *bytes,
                   size_t length) {
  sink *sink = context;
  (void)id;
  append(sink, bytes, length);
  return sink->chance && draw(&sink->chance) % 3 == 0 ? FERRY_PAUSE
                                                       : FERRY_CONTINUE;
}

static bool resume(ferry_loop *loop, ferry__transfer *t) {
  while (t->paused) {
    t->paused = 0;
    if (!ferry__inflate_drain(loop, t))
      return false;
  }
  return true;
}

static void feed(ferry_loop *loop, ferry__transfer *t, sink *sink,
                 const unsigned char *bytes, size_t length) {
  while (length) {
    size_t piece = length;
    if (sink->chance && piece > 1)
      piece = 1 + draw(&sink->chance) % (piece > 40 ? 40 : piece);
    /* A copy of its own, so that reading past its end shows. */
    char *copy = malloc(piece);
    if (!copy)
      abort();
    memcpy(copy, bytes, piece);
    bool good = ferry__inflate_write(loop, t, copy, piece) && resume(loop, t);
    free(copy);
    if (!good)
      return;
    bytes += piece;
    length -= piece;
  }
}

void parts_inflate(parts_body *body, int coding, const unsigned char *bytes,
                   size_t length, uint64_t chance, uint64_t limit) {
  ferry_loop *loop = calloc(1, sizeof *loop);
  ferry__transfer *t = calloc(1, sizeof *t);
  if (!loop || !t)
    abort();
  *body = (parts_body){0};
  sink sink = {.body = body, .chance = chance};
  loop->options.on_body = on_body;
  loop->options.context = &sink;
  loop->closing = true; /* keeps no spare one */
  t->response_kind = FERRY_STREAM;
  t->max_body = limit;
  t->inflate = ferry__inflate_take(loop, coding == PARTS_GZIP
                                             ? FERRY__CODING_GZIP
                                             : FERRY__CODING_DEFLATE);
  if (!t->inflate)
    abort();
  feed(loop, t, &sink, bytes, length);
  body->code = t->fault.code;
  body->detail = t->fault.detail;
  body->ended = t->inflate->ended;
  ferry__inflate_give(loop, t->inflate);
  free(loop->scratch);
  free(t);
  free(loop);
}

void parts_deflate(parts_body *body, int coding, bool bare,
                   const unsigned char *bytes, size_t length) {
  z_stream z = {0};
  int window = coding == PARTS_GZIP ? 15 + 16 : bare ? -15 : 15;
  *body = (parts_body){0};
  if (deflateInit2(&z, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    abort();
  size_t most = deflateBound(&z, length);
  body->bytes = malloc(most);
  if (!body->bytes)
    abort();
  z.next_in = (unsigned char *)(uintptr_t)bytes;
  z.avail_in = (unsigned)length;
  z.next_out = body->bytes;
  z.avail_out = (unsigned)most;
  if (deflate(&z, Z_FINISH) != Z_STREAM_END)
    abort();
  body->length = z.total_out;
  body->ended = true;
  deflateEnd(&z);
}

void parts_body_free(parts_body *body) { free(body->bytes); }
