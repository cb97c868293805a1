/* encode.c - request bodies in gzip, by zlib, and in zstd, by libzstd. They
 * contain no time and no name, so the same body always gives the same bytes. */
#include "ferry_codes.h"
#include "ferry_encode.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

struct ferry_encoder {
  int coding;
  z_stream zlib;
  ZSTD_CCtx *zstd;
};

int ferry_encoder_make(int coding, ferry_encoder **out) {
  ferry_encoder *e = calloc(1, sizeof *e);
  *out = e;
  if (e == NULL)
    return FERRY_E_MEMORY;
  e->coding = coding;
  if (coding == FERRY_ENCODE_ZSTD) {
    e->zstd = ZSTD_createCCtx();
    /* Without TLS, only the checksum lets the server notice damage. */
    if (e->zstd != NULL &&
        !ZSTD_isError(
            ZSTD_CCtx_setParameter(e->zstd, ZSTD_c_checksumFlag, 1)))
      return 0;
    ZSTD_freeCCtx(e->zstd);
  } else if (deflateInit2(&e->zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                          MAX_WBITS + 16, MAX_MEM_LEVEL - 1,
                          Z_DEFAULT_STRATEGY) == Z_OK) {
    return 0;
  }
  free(e);
  *out = NULL;
  return FERRY_E_MEMORY;
}

void ferry_encoder_free(ferry_encoder *e) {
  if (e->coding == FERRY_ENCODE_ZSTD)
    ZSTD_freeCCtx(e->zstd);
  else
    deflateEnd(&e->zlib);
  free(e);
}

static unsigned bounded(size_t count) {
  return count < UINT_MAX ? (unsigned)count : UINT_MAX;
}

int ferry_encode(ferry_encoder *e, const void *in, size_t count, int then,
                 void *out, size_t room, size_t *taken, size_t *made) {
  static const int zlib_flush[] = {Z_NO_FLUSH, Z_FINISH, Z_SYNC_FLUSH};
  static const ZSTD_EndDirective zstd_flush[] = {ZSTD_e_continue, ZSTD_e_end,
                                                 ZSTD_e_flush};
  if (e->coding == FERRY_ENCODE_ZSTD) {
    ZSTD_inBuffer from = {in, count, 0};
    ZSTD_outBuffer to = {out, room, 0};
    size_t left = ZSTD_compressStream2(e->zstd, &to, &from, zstd_flush[then]);
    *taken = from.pos;
    *made = to.pos;
    if (ZSTD_isError(left))
      return FERRY_E_MEMORY;
    return then && left == 0 ? 1 : 0;
  }
  z_stream *z = &e->zlib;
  unsigned given = bounded(count), space = bounded(room);
  z->next_in = (unsigned char *)(uintptr_t)in;
  z->avail_in = given;
  z->next_out = out;
  z->avail_out = space;
  int code = deflate(z, given == count ? zlib_flush[then] : Z_NO_FLUSH);
  *taken = given - z->avail_in;
  *made = space - z->avail_out;
  if (code != Z_STREAM_END && code != Z_OK && code != Z_BUF_ERROR)
    return FERRY_E_MEMORY;
  /* A flush is complete when it has left room. */
  return code == Z_STREAM_END ||
         (then == FERRY_ENCODE_FLUSH && *taken == count && z->avail_out);
}
