#include <malloc.h>

#include "CCoreDriver.h"

size_t ccore_allocated(void) {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  malloc_trim(0);
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}
