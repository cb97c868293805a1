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

/* The encoder of one body. One thread at a time may use it. */
typedef struct ferry_encoder ferry_encoder;

/* [any thread] Makes an encoder: FERRY_OK, or FERRY_E_MEMORY. */
int ferry_encoder_make(int coding, ferry_encoder *_Nullable *_Nonnull out);

/* [any thread] Frees an encoder. */
void ferry_encoder_free(ferry_encoder *_Nonnull encoder);

/* [any thread] Compresses bytes of `in` to `out`, which has room for `room`
 * bytes. Sets `taken` to the number of bytes that were consumed, and `made` to
 * the number of bytes that were written. `is_last` means that nothing follows
 * `in`. Returns 1 when the whole body was written, 0 if the function must be
 * called again, or FERRY_E_MEMORY. */
int ferry_encode(ferry_encoder *_Nonnull encoder, const void *_Nullable in,
                 size_t count, int is_last, void *_Nonnull out, size_t room,
                 size_t *_Nonnull taken, size_t *_Nonnull made);

#ifdef __cplusplus
}
#endif

#endif
