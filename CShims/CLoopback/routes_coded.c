/* routes_coded.c - compressed bodies: good, cut short and corrupt. */
#include "internal.h"

#include <brotli/encode.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

/* Up to this size the whole body is made at once, and its length announced. */
#define WHOLE_LIMIT (4 * 1024 * 1024)
#define INPUT_BLOCK (4 * 1024 * 1024)

typedef enum coding { GZIP, DEFLATE, BARE, BROTLI, ZSTD } coding;

struct lb_encoder {
  coding coding;
  union {
    z_stream zlib;
    BrotliEncoderState *brotli;
    ZSTD_CCtx *zstd;
  };
};

/* Zero bytes for bombs: they only have to compress well. */
static bool open_encoder(lb_encoder *encoder, bool zeros) {
  int window = encoder->coding == GZIP      ? 15 + 16
               : encoder->coding == DEFLATE ? 15
                                            : -15;
  switch (encoder->coding) {
    case BROTLI:
      encoder->brotli = BrotliEncoderCreateInstance(NULL, NULL, NULL);
      return encoder->brotli &&
             BrotliEncoderSetParameter(encoder->brotli, BROTLI_PARAM_QUALITY,
                                       zeros ? 5 : 1);
    case ZSTD:
      encoder->zstd = ZSTD_createCCtx();
      return encoder->zstd &&
             !ZSTD_isError(ZSTD_CCtx_setParameter(encoder->zstd,
                                                  ZSTD_c_checksumFlag, 1));
    default:
      return deflateInit2(&encoder->zlib, zeros ? 9 : 1, Z_DEFLATED, window, 8,
                          Z_DEFAULT_STRATEGY) == Z_OK;
  }
}

static bool begin(lb_source *source, coding coding, uint64_t count,
                  bool zeros) {
  lb_encoder *encoder = lb__alloc(sizeof(*encoder));
  encoder->coding = coding;
  if (!open_encoder(encoder, zeros)) {
    free(encoder);
    return false;
  }
  source->kind = LB_SOURCE_CODED;
  source->encoder = encoder;
  source->left = count;
  source->zeros = zeros;
  return true;
}

void lb__coded_end(lb_source *source) {
  lb_encoder *encoder = source->encoder;
  if (!encoder) return;
  if (encoder->coding == BROTLI)
    BrotliEncoderDestroyInstance(encoder->brotli);
  else if (encoder->coding == ZSTD)
    ZSTD_freeCCtx(encoder->zstd);
  else
    deflateEnd(&encoder->zlib);
  free(encoder);
  source->encoder = NULL;
}

/* Encodes some of the piece; returns true at the very end. *busy: more output
 * follows without more input. */
static bool encode(lb_encoder *encoder, lb_slice *piece, bool last,
                   lb_buf *out, bool *busy) {
  unsigned char *room = (unsigned char *)lb__buf_room(out, LB_BLOCK);
  size_t left = LB_BLOCK;
  bool ended = false;
  if (encoder->coding == BROTLI) {
    const unsigned char *in = (const unsigned char *)piece->base;
    BrotliEncoderCompressStream(
        encoder->brotli,
        last ? BROTLI_OPERATION_FINISH : BROTLI_OPERATION_PROCESS,
        &piece->length, &in, &left, &room, NULL);
    piece->base = (const char *)in;
    ended = BrotliEncoderIsFinished(encoder->brotli);
    *busy = piece->length || BrotliEncoderHasMoreOutput(encoder->brotli);
  } else if (encoder->coding == ZSTD) {
    ZSTD_inBuffer in = {piece->base, piece->length, 0};
    ZSTD_outBuffer made = {room, left, 0};
    size_t more = ZSTD_compressStream2(encoder->zstd, &made, &in,
                                       last ? ZSTD_e_end : ZSTD_e_continue);
    piece->base += in.pos;
    piece->length -= in.pos;
    left -= made.pos;
    ended = last && !more;
    *busy = piece->length || (last && more);
  } else {
    z_stream *stream = &encoder->zlib;
    stream->next_in = (Bytef *)piece->base;
    stream->avail_in = (uInt)piece->length;
    stream->next_out = room;
    stream->avail_out = (uInt)left;
    ended = deflate(stream, last ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_END;
    piece->base = (const char *)stream->next_in;
    piece->length = stream->avail_in;
    left = stream->avail_out;
    *busy = !left;
  }
  out->end += LB_BLOCK - left;
  return ended;
}

/* Compresses up to INPUT_BLOCK bytes into `out`; returns true at the end. */
static bool compress_block(lb_source *source, lb_buf *out) {
  uint64_t done = 0;
  bool ended = false;
  while (done < INPUT_BLOCK && !ended) {
    lb_slice piece =
        lb__pattern(source->offset, source->left, source->zeros);
    bool busy = true;
    source->offset += piece.length;
    source->left -= piece.length;
    done += piece.length ? piece.length : INPUT_BLOCK;
    while (busy && !ended)
      ended = encode(source->encoder, &piece, !source->left, out, &busy);
  }
  return ended;
}

int lb__coded_pull(lb_conn *c) {
  lb_buf made = {0};
  if (c->source.ended) return LB_PULL_END;
  c->source.ended = compress_block(&c->source, &made);
  if (lb__buf_size(&made)) {
    lb__buf_format(&c->out, "%zx\r\n", lb__buf_size(&made));
    lb__buf_add(&c->out, lb__buf_data(&made), lb__buf_size(&made));
    lb__buf_text(&c->out, "\r\n");
  } else {
    /* Everything is still inside the encoder. Other connections get a turn
     * first, which a timer of 0 would prevent. */
    lb__conn_timer(c, 1);
  }
  lb__buf_free(&made);
  if (c->source.ended) lb__buf_text(&c->out, "0\r\n\r\n");
  return LB_PULL_OUT;
}

static void reply_whole(lb_conn *c, const lb_head *head, lb_buf *body) {
  size_t length;
  if (lb__query_number(head->query, "corrupt", 0)) {
    size_t middle = lb__buf_size(body) / 2;
    for (size_t i = middle; i < lb__buf_size(body) && i < middle + 16; i++)
      lb__buf_data(body)[i] = (char)0xFF;
  }
  length = lb__buf_size(body);
  if (lb__query_number(head->query, "cut", 0)) length /= 2;
  lb__reply_length(c, length);
  if (!c->head_only) lb__buf_add(&c->out, lb__buf_data(body), length);
}

static void reply(lb_conn *c, const lb_head *head, lb_slice rest,
                  const char *name, coding coding) {
  uint64_t count;
  bool zeros = lb__query_number(head->query, "zeros", 0) != 0;
  if (!lb__number(rest, &count) || !begin(&c->source, coding, count, zeros)) {
    lb__reply_error(c, 400);
    return;
  }
  lb__reply_begin(c, 200, NULL);
  lb__buf_format(&c->out,
                 "Content-Type: application/octet-stream\r\n"
                 "Content-Encoding: %s\r\n",
                 name);
  if (count <= WHOLE_LIMIT) {
    lb_buf body = {0};
    while (!compress_block(&c->source, &body)) continue;
    lb__source_end(c);
    reply_whole(c, head, &body);
    lb__buf_free(&body);
  } else {
    lb__reply_chunked(c);
  }
  lb__reply_end(c);
}

void lb__route_gzip(lb_conn *c, const lb_head *head, lb_slice rest) {
  reply(c, head, rest, "gzip", GZIP);
}

void lb__route_deflate(lb_conn *c, const lb_head *head, lb_slice rest) {
  bool raw = lb__query_number(head->query, "raw", 0) != 0;
  reply(c, head, rest, "deflate", raw ? BARE : DEFLATE);
}

void lb__route_brotli(lb_conn *c, const lb_head *head, lb_slice rest) {
  reply(c, head, rest, "br", BROTLI);
}

void lb__route_zstd(lb_conn *c, const lb_head *head, lb_slice rest) {
  reply(c, head, rest, "zstd", ZSTD);
}
