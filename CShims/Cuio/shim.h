/* glibc declares preadv2(2) only with _GNU_SOURCE, which Swift's Glibc module
 * does not define. */
#ifndef FERRY_UIO_SHIM_H
#define FERRY_UIO_SHIM_H

#include <sys/types.h>

struct iovec;

/* With _GNU_SOURCE there is an identical declaration already. */
extern ssize_t preadv2(int descriptor, const struct iovec *vectors, int count,
                       off_t offset, int flags);

/* Reads only what is in memory; EAGAIN if the disk would have to be read. */
enum { FERRY_UIO_NOWAIT = 0x8 /* RWF_NOWAIT */ };

#endif
