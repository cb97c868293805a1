/* ferry_encode.h - the content codings in which a request's body may be sent:
 * gzip (RFC 1952) and zstd (RFC 8878). */
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

/* Compresses one body. Used on one thread at a time. */
typedef struct ferry_encoder ferry_encoder;

/* [any thread] FERRY_E_MEMORY where there is none. */
int ferry_encoder_make(int coding, ferry_encoder *_Nullable *_Nonnull out);

/* [any thread] */
void ferry_encoder_free(ferry_encoder *_Nonnull encoder);

/* [any thread] Compresses from `in`, and sets `taken` to how many bytes of it
 * are used up and `made` to how many bytes were written to `out`, which has
 * room for `room` of them. `is_last` says that nothing follows `in`. Returns 1
 * when all of the body is written, 0 when it is to be called again, or
 * FERRY_E_MEMORY. */
int ferry_encode(ferry_encoder *_Nonnull encoder, const void *_Nullable in,
                 size_t count, int is_last, void *_Nonnull out, size_t room,
                 size_t *_Nonnull taken, size_t *_Nonnull made);

#ifdef __cplusplus
}
#endif

#endif
