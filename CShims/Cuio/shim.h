/* preadv2(2) is in glibc, but only for those who ask for GNU's names, and
 * Swift's Glibc module does not. */
#ifndef FERRY_UIO_SHIM_H
#define FERRY_UIO_SHIM_H

#include <sys/types.h>

struct iovec;

/* With GNU's names it is declared already, and the same. */
extern ssize_t preadv2(int descriptor, const struct iovec *vectors, int count,
                       off_t offset, int flags);

/* Only what is in memory: EAGAIN where the disk would have to be waited for. */
enum { FERRY_UIO_NOWAIT = 0x8 /* RWF_NOWAIT */ };

#endif
