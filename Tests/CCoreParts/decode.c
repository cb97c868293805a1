#include "CCoreParts.h"
#include "core.h"

#include <brotli/encode.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

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
    if (!ferry__decode_drain(loop, t))
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
    /* A separate copy, so that reading past its end is detected. */
    char *copy = malloc(piece);
    if (!copy)
      abort();
    memcpy(copy, bytes, piece);
    bool good = ferry__decode_write(loop, t, copy, piece) && resume(loop, t);
    free(copy);
    if (!good)
      return;
    bytes += piece;
    length -= piece;
  }
}

static const uint8_t codings[] = {
    [PARTS_GZIP] = FERRY__CODING_GZIP,
    [PARTS_DEFLATE] = FERRY__CODING_DEFLATE,
    [PARTS_BROTLI] = FERRY__CODING_BROTLI,
    [PARTS_ZSTD] = FERRY__CODING_ZSTD,
};

void parts_decode(parts_body *body, int coding, const unsigned char *bytes,
                   size_t length, uint64_t chance, uint64_t limit) {
  ferry_loop *loop = ferry__core_make();
  ferry__transfer *t = calloc(1, sizeof *t);
  if (!loop || !t)
    abort();
  *body = (parts_body){0};
  sink sink = {.body = body, .chance = chance};
  loop->options.on_body = on_body;
  loop->options.context = &sink;
  loop->closing = true; /* keeps no spare decoder */
  t->response_kind = FERRY_STREAM;
  t->max_body = limit;
  t->decoder = ferry__decoder_take(loop, codings[coding]);
  if (!t->decoder)
    abort();
  feed(loop, t, &sink, bytes, length);
  body->code = t->fault.code;
  body->detail = t->fault.detail;
  body->ended = t->decoder->ended;
  ferry__decoder_give(loop, t->decoder);
  free(loop->transfers->scratch);
  free(loop->transfers->rest.ids);
  free(t);
  free(loop);
}

static void deflate_whole(parts_body *body, int coding, bool bare,
                          const unsigned char *bytes, size_t length) {
  z_stream z = {0};
  int window = coding == PARTS_GZIP ? 15 + 16 : bare ? -15 : 15;
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
  deflateEnd(&z);
}

void parts_encode(parts_body *body, int coding, bool bare,
                  const unsigned char *bytes, size_t length) {
  static const unsigned char none[1];
  *body = (parts_body){.ended = true};
  if (coding == PARTS_GZIP || coding == PARTS_DEFLATE) {
    deflate_whole(body, coding, bare, bytes, length);
    return;
  }
  size_t most = length + length / 8 + 1024;
  body->bytes = malloc(most);
  if (!body->bytes)
    abort();
  body->length = most;
  if (coding == PARTS_ZSTD) {
    body->length = ZSTD_compress(body->bytes, most, bytes, length, 3);
    if (ZSTD_isError(body->length))
      abort();
  } else if (!BrotliEncoderCompress(5, 22, BROTLI_MODE_GENERIC, length,
                                    bytes ? bytes : none, &body->length,
                                    body->bytes)) {
    abort();
  }
}

void parts_body_free(parts_body *body) { free(body->bytes); }
