/* routes_deflate.c - compressed bodies, good, cut short and corrupt. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Up to here the whole is made at once, and its length announced. */
#define WHOLE_LIMIT (4 * 1024 * 1024)
#define INPUT_BLOCK (4 * 1024 * 1024)

static bool begin(lb_source *source, int window_bits, uint64_t count,
                  bool zeros) {
  z_stream *stream = lb__alloc(sizeof(*stream));
  /* Zero bytes for bombs: all that matters is that they get small. */
  if (deflateInit2(stream, zeros ? 9 : 1, Z_DEFLATED, window_bits, 8,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    free(stream);
    return false;
  }
  source->kind = LB_SOURCE_DEFLATE;
  source->deflate = stream;
  source->left = count;
  source->zeros = zeros;
  return true;
}

void lb__deflate_end(lb_source *source) {
  if (!source->deflate) return;
  deflateEnd(source->deflate);
  free(source->deflate);
  source->deflate = NULL;
}

/* Compresses up to INPUT_BLOCK bytes into `out`; true at the end. */
static bool compress_block(lb_source *source, lb_buf *out) {
  z_stream *stream = source->deflate;
  uint64_t done = 0;
  int result = Z_OK;
  while (done < INPUT_BLOCK && result != Z_STREAM_END) {
    lb_slice piece =
        lb__pattern(source->offset, source->left, source->zeros);
    stream->next_in = (Bytef *)piece.base;
    stream->avail_in = (uInt)piece.length;
    source->offset += piece.length;
    source->left -= piece.length;
    done += piece.length ? piece.length : INPUT_BLOCK;
    do {
      stream->next_out = (Bytef *)lb__buf_room(out, LB_BLOCK);
      stream->avail_out = LB_BLOCK;
      result = deflate(stream, source->left ? Z_NO_FLUSH : Z_FINISH);
      out->end += LB_BLOCK - stream->avail_out;
    } while (!stream->avail_out);
  }
  return result == Z_STREAM_END;
}

int lb__deflate_pull(lb_conn *c) {
  lb_buf made = {0};
  if (c->source.ended) return LB_PULL_END;
  c->source.ended = compress_block(&c->source, &made);
  if (lb__buf_size(&made)) {
    lb__buf_format(&c->out, "%zx\r\n", lb__buf_size(&made));
    lb__buf_add(&c->out, lb__buf_data(&made), lb__buf_size(&made));
    lb__buf_text(&c->out, "\r\n");
  } else {
    /* All of it is still inside zlib. Others have their turn first, and a
     * timer of 0 would not let them. */
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
                  const char *encoding, int window_bits) {
  uint64_t count;
  bool zeros = lb__query_number(head->query, "zeros", 0) != 0;
  if (!lb__number(rest, &count) ||
      !begin(&c->source, window_bits, count, zeros)) {
    lb__reply_error(c, 400);
    return;
  }
  lb__reply_begin(c, 200, NULL);
  lb__buf_format(&c->out,
                 "Content-Type: application/octet-stream\r\n"
                 "Content-Encoding: %s\r\n",
                 encoding);
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
  reply(c, head, rest, "gzip", 15 + 16);
}

void lb__route_deflate(lb_conn *c, const lb_head *head, lb_slice rest) {
  bool raw = lb__query_number(head->query, "raw", 0) != 0;
  reply(c, head, rest, "deflate", raw ? -15 : 15);
}
