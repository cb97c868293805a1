/* decode.c - the content codings gzip (RFC 1952), deflate (RFC 1950, and bare
 * RFC 1951 as some servers send it), br (RFC 7932) and zstd (RFC 8878).
 *
 * Decoded by zlib, libbrotli and libzstd, not by libcurl: libcurl reports a
 * stream that was cut short as success when Content-Length agrees with the cut,
 * and a second gzip member as a failed write. */
#include "transfer/transfer.h"

#include <brotli/decode.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
  SCRATCH = 65536,
  SPARE = 16,
  /* The largest window of a response, as a power of two (RFC 9659, 3). */
  ZSTD_WINDOW = 23,
  /* After so many bytes of one transfer, and of all, others get their turn: a
   * few bytes may become gigabytes. */
  TURN = 1 << 20,
  TURN_OF_ALL = 8 << 20,
  /* A decoder with a larger window is not kept. */
  ZSTD_KEPT = 512 * 1024,
};

/* ---- Codings ------------------------------------------------------------- */

typedef enum outcome { GOES_ON, ENDED, CORRUPT } outcome;

/* Decodes from decoder->in into `out`, and sets the number of bytes made. */
static outcome step_zlib(ferry__decoder *d, size_t *made, unsigned char *out) {
  z_stream *z = &d->zlib;
  z->next_in = (unsigned char *)(uintptr_t)d->in;
  z->avail_in = (unsigned)d->left;
  z->next_out = out;
  z->avail_out = SCRATCH;
  int code = inflate(z, Z_NO_FLUSH);
  d->in = z->next_in;
  d->left = z->avail_in;
  *made = SCRATCH - z->avail_out;
  return code == Z_STREAM_END                     ? ENDED
         : code == Z_OK || code == Z_BUF_ERROR ? GOES_ON
                                               : CORRUPT;
}

static outcome step_brotli(ferry__decoder *d, size_t *made,
                           unsigned char *out) {
  size_t room = SCRATCH;
  BrotliDecoderResult result = BrotliDecoderDecompressStream(
      d->brotli, &d->left, &d->in, &room, &out, NULL);
  *made = SCRATCH - room;
  return result == BROTLI_DECODER_RESULT_SUCCESS ? ENDED
         : result == BROTLI_DECODER_RESULT_ERROR ? CORRUPT
                                                 : GOES_ON;
}

static outcome step_zstd(ferry__decoder *d, size_t *made, unsigned char *out) {
  ZSTD_inBuffer in = {d->in, d->left, 0};
  ZSTD_outBuffer room = {out, SCRATCH, 0};
  size_t code = ZSTD_decompressStream(d->zstd, &room, &in);
  d->in += in.pos;
  d->left -= in.pos;
  *made = room.pos;
  return ZSTD_isError(code) ? CORRUPT : code ? GOES_ON : ENDED;
}

static outcome step(ferry__decoder *d, size_t *made, unsigned char *out) {
  switch (d->coding) {
  case FERRY__CODING_BROTLI:
    return step_brotli(d, made, out);
  case FERRY__CODING_ZSTD:
    return step_zstd(d, made, out);
  default:
    return step_zlib(d, made, out);
  }
}

/* After the end, another gzip member (RFC 1952, 2.2) or another zstd frame (RFC
 * 8878, 3.1) may follow, but nothing else. */
static bool begin_next(ferry__decoder *d) {
  d->ended = false;
  return d->coding == FERRY__CODING_ZSTD ||
         (d->coding == FERRY__CODING_GZIP && inflateReset(&d->zlib) == Z_OK);
}

static bool is_zlib(uint8_t coding) {
  return coding == FERRY__CODING_GZIP || coding == FERRY__CODING_DEFLATE;
}

/* Prepares a new decoder, or one that was used for another body. */
static bool prepare(ferry__decoder *d, uint8_t coding, bool is_new) {
  int window = coding == FERRY__CODING_GZIP ? 15 + 16 : 15;
  if (coding == FERRY__CODING_BROTLI)
    return (d->brotli = BrotliDecoderCreateInstance(NULL, NULL, NULL)) != NULL;
  if (coding == FERRY__CODING_ZSTD) {
    if (is_new && !(d->zstd = ZSTD_createDCtx()))
      return false;
    return !ZSTD_isError(
               ZSTD_DCtx_reset(d->zstd, ZSTD_reset_session_only)) &&
           !ZSTD_isError(ZSTD_DCtx_setParameter(
               d->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW));
  }
  return (is_new ? inflateInit2(&d->zlib, window)
                 : inflateReset2(&d->zlib, window)) == Z_OK;
}

/* ---- Spare decoders ------------------------------------------------------ */

/* The loop's list of spare decoders for this coding. */
static ferry__spares *spares(ferry_loop *loop, uint8_t coding) {
  return &loop->transfers->decoders[is_zlib(coding) ? 0 : 1];
}

void ferry__decoder_free(ferry__decoder *d) {
  if (d->coding == FERRY__CODING_BROTLI)
    BrotliDecoderDestroyInstance(d->brotli);
  else if (d->coding == FERRY__CODING_ZSTD)
    ZSTD_freeDCtx(d->zstd);
  else
    inflateEnd(&d->zlib);
  free(d->held);
  free(d);
}

ferry__decoder *ferry__decoder_take(ferry_loop *loop, uint8_t coding) {
  /* libbrotli has no reset, so each of its decoders is new. */
  ferry__spares *spare = spares(loop, coding);
  ferry__decoder *d = coding == FERRY__CODING_BROTLI ? NULL : spare->first;
  unsigned char **scratch = &loop->transfers->scratch;
  if (!*scratch && !(*scratch = malloc(SCRATCH)))
    return NULL;
  bool is_new = !d;
  if (is_new) {
    d = calloc(1, sizeof *d);
    if (!d)
      return NULL;
  } else {
    spare->first = d->next;
    spare->count--;
  }
  d->coding = coding;
  if (!prepare(d, coding, is_new)) {
    /* Safe also if the decoder was never initialised. */
    ferry__decoder_free(d);
    return NULL;
  }
  d->begun = d->ended = false;
  d->first_length = 0;
  d->turn = UINT64_MAX;
  return d;
}

void ferry__decoder_give(ferry_loop *loop, ferry__decoder *d) {
  ferry__spares *spare = spares(loop, d->coding);
  free(d->held);
  d->held = NULL;
  d->held_length = 0;
  if (spare->count >= SPARE || loop->closing ||
      d->coding == FERRY__CODING_BROTLI ||
      (d->coding == FERRY__CODING_ZSTD &&
       ZSTD_sizeof_DCtx(d->zstd) > ZSTD_KEPT)) {
    ferry__decoder_free(d);
    return;
  }
  d->next = spare->first;
  spare->first = d;
  spare->count++;
}

void ferry__decoders_free(ferry_loop *loop) {
  for (int i = 0; i < 2; i++) {
    while (loop->transfers->decoders[i].first) {
      ferry__decoder *d = loop->transfers->decoders[i].first;
      loop->transfers->decoders[i].first = d->next;
      ferry__decoder_free(d);
    }
  }
}

/* ---- A body -------------------------------------------------------------- */

static bool corrupt(ferry__transfer *t) {
  t->fault = (ferry__fault){FERRY_E_CONTENT_DECODING,
                            FERRY_D_DECODING_CORRUPT};
  return false;
}

/* Keeps the remaining input until the receiver resumes. */
static bool hold(ferry__transfer *t) {
  ferry__decoder *d = t->decoder;
  unsigned char *held = malloc(d->left ? d->left : 1);
  if (!held) {
    t->fault = (ferry__fault){FERRY_E_MEMORY, 0};
    return false;
  }
  if (d->left)
    memcpy(held, d->in, d->left);
  free(d->held);
  d->held = held;
  d->held_length = d->left;
  return true;
}

static bool run(ferry_loop *loop, ferry__transfer *t) {
  ferry__transfers *all = loop->transfers;
  ferry__decoder *d = t->decoder;
  bool more = true;
  if (all->turn != loop->waits) {
    all->turn = loop->waits;
    all->decoded = 0;
  }
  if (d->turn != loop->waits) {
    d->turn = loop->waits;
    d->most = t->result.body_length + TURN;
  }
  while (more) {
    size_t made;
    if (d->ended) {
      if (!d->left)
        break;
      if (!begin_next(d))
        return corrupt(t);
    }
    outcome outcome = step(d, &made, all->scratch);
    if (outcome == CORRUPT)
      return corrupt(t);
    d->ended = outcome == ENDED;
    if (made &&
        !ferry__body_deliver(loop, t, (const char *)all->scratch, made))
      return false;
    all->decoded += made;
    more = d->left || made == SCRATCH;
    if (t->result.body_length >= d->most || all->decoded >= TURN_OF_ALL)
      ferry__transfer_rest(loop, t);
    if (t->paused && more)
      return hold(t);
  }
  return true;
}

/* By the RFC «deflate» is zlib's format, but some servers send bare deflate
 * data. The first two bytes tell which it is (RFC 1950, 2.2). */
static bool choose_format(ferry__decoder *d, const unsigned char *bytes,
                          size_t length) {
  unsigned char two[2];
  size_t have = 0;
  if (d->first_length)
    two[have++] = d->first;
  for (size_t i = 0; i < length && have < 2; i++)
    two[have++] = bytes[i];
  if (have < 2)
    return false;
  bool zlib = (two[0] & 0x0f) == Z_DEFLATED &&
              ((unsigned)two[0] << 8 | two[1]) % 31 == 0;
  if (!zlib)
    inflateReset2(&d->zlib, -15);
  return true;
}

bool ferry__decode_write(ferry_loop *loop, ferry__transfer *t,
                         const char *bytes, size_t length) {
  ferry__decoder *d = t->decoder;
  if (!d->begun && d->coding == FERRY__CODING_DEFLATE) {
    if (!choose_format(d, (const unsigned char *)bytes, length)) {
      if (length) {
        d->first = (unsigned char)bytes[0];
        d->first_length = 1;
      }
      return true;
    }
    if (d->first_length) { /* one byte gives no output yet */
      d->in = &d->first;
      d->left = 1;
      if (!run(loop, t))
        return false;
    }
  }
  d->begun = true;
  d->in = (const unsigned char *)bytes;
  d->left = length;
  return run(loop, t);
}

bool ferry__decode_drain(ferry_loop *loop, ferry__transfer *t) {
  ferry__decoder *d = t->decoder;
  unsigned char *held = d->held;
  if (!held)
    return true;
  d->in = held;
  d->left = d->held_length;
  d->held = NULL;
  d->held_length = 0;
  bool good = run(loop, t); /* may hold again: a copy of the rest */
  free(held);
  return good;
}
