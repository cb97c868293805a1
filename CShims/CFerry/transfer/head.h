/* head.h - the head of a response, and the decoders of its body. */
#ifndef FERRY_HEAD_H
#define FERRY_HEAD_H

#include "loop/loop.h"

/* ---- Heads (head.c) ------------------------------------------------------ */

typedef struct ferry__head {
  char *bytes;
  ferry_field *fields;
  uint32_t length, capacity;
  uint32_t count, field_capacity;
  uint64_t received;      /* number of bytes of all heads and trailers */
  int64_t content_length; /* -1 = not announced */
  uint32_t limit;
  uint16_t status;
  uint16_t informational, trailers;
  /* Informational heads, then trailers, as received; usually empty. */
  char *aside;
  uint32_t aside_length, aside_capacity, informational_length;
  uint32_t informational_at; /* where the last one begins */
  uint8_t version;
  uint8_t coding;   /* FERRY__CODING_… */
  bool chunked, in_fields, complete;
  bool tunnel; /* of a response to CONNECT: success has no framing */
  bool http2; /* known from the connection; the status line must agree */
} ferry__head;

enum {
  FERRY__CODING_NONE = 0,
  FERRY__CODING_GZIP,
  FERRY__CODING_DEFLATE,
  FERRY__CODING_BROTLI,
  FERRY__CODING_ZSTD,
  FERRY__CODING_OTHER, /* not decoded */
};

typedef struct ferry__fault {
  int32_t code, detail;
} ferry__fault;

/* The characters of names and methods (tchar of RFC 9110, 5.6.2). */
extern const unsigned char ferry__tchar[256];
/* Forgets all heads; keeps the memory. */
void ferry__head_begin(ferry__head *head, uint32_t limit);
/* Another response follows: the next line must be a status line. */
void ferry__head_expect_status(ferry__head *head);
/* Takes one line with its CR LF. Code 0 = accepted. Sets `complete` at the end
 * of the final head. */
ferry__fault ferry__head_line(ferry__head *head, const char *line,
                              size_t length);
void ferry__head_free(ferry__head *head);
/* The head of a transfer that has received nothing. */
extern ferry__head *const ferry__no_head;

/* ---- Decoding (decode.c) ------------------------------------------------- */

typedef struct ferry__decoder {
  struct ferry__decoder *next; /* in the loop's list of spare decoders */
  union {
    z_stream zlib;
    struct BrotliDecoderStateStruct *brotli;
    struct ZSTD_DCtx_s *zstd;
  };
  const unsigned char *in; /* of the current piece */
  size_t left;
  uint8_t coding;
  bool begun, ended;
  unsigned char first, first_length; /* the first byte of "deflate", if it
                                      * arrived alone */
  /* Input that was left when the receiver paused within a piece. */
  unsigned char *held;
  size_t held_length;
  uint64_t turn, most; /* in this turn (ferry_loop.waits) it decodes until the
                        * body is so long */
} ferry__decoder;

typedef struct ferry__spares {
  ferry__decoder *first;
  unsigned count;
} ferry__spares;

ferry__decoder *ferry__decoder_take(ferry_loop *loop, uint8_t coding);
void ferry__decoder_give(ferry_loop *loop, ferry__decoder *decoder);
void ferry__decoder_free(ferry__decoder *decoder);
void ferry__decoders_free(ferry_loop *loop);
/* Decodes bytes and delivers them. If the receiver pauses, it holds the rest.
 * Returns false and sets transfer->fault on an error. */
bool ferry__decode_write(ferry_loop *loop, ferry__transfer *transfer,
                         const char *bytes, size_t length);
/* The same for the bytes that it holds. */
bool ferry__decode_drain(ferry_loop *loop, ferry__transfer *transfer);

#endif
