/* ferry_encode.h - compresses the body of a request to gzip (RFC 1952) or zstd
 * (RFC 8878). */
#ifndef CFERRY_ENCODE_H
#define CFERRY_ENCODE_H

#include "ferry_base.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  FERRY_ENCODE_GZIP = 1,
  FERRY_ENCODE_ZSTD = 2,
};

/* What follows the bytes that are given to the encoder. */
enum {
  FERRY_ENCODE_MORE = 0,
  FERRY_ENCODE_END = 1,   /* nothing: the body is complete */
  FERRY_ENCODE_FLUSH = 2, /* perhaps nothing for a long time: the receiver must
                           * be able to decode everything so far */
};

/* The encoder of one body. One thread at a time may use it. */
typedef struct ferry_encoder ferry_encoder;

/* [any thread] Makes an encoder: FERRY_OK, or FERRY_E_MEMORY. */
int ferry_encoder_make(int coding, ferry_encoder *_Nullable *_Nonnull out);

/* [any thread] Frees an encoder. */
void ferry_encoder_free(ferry_encoder *_Nonnull encoder);

/* [any thread] Compresses bytes of `in` to `out`, which has room for `room`
 * bytes. Sets `taken` to the number of bytes that were consumed, and `made` to
 * the number of bytes that were written. Returns 1 when everything was written
 * up to the end or the flush, 0 if the function must be called again, or
 * FERRY_E_MEMORY. */
int ferry_encode(ferry_encoder *_Nonnull encoder, const void *_Nullable in,
                 size_t count, int then, void *_Nonnull out, size_t room,
                 size_t *_Nonnull taken, size_t *_Nonnull made);

#ifdef __cplusplus
}
#endif

#endif
