#include "CAllocations.h"

#include <malloc.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifdef SANITIZED

bool allocations_are_counted(void) { return false; }
size_t allocations_of_thread(void) { return 0; }
size_t allocations_in_use(void) { return 0; }

#else

/* The GNU C library's own, by the names it has for interposers. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

/* Initial-exec: reading it must not allocate. */
static _Thread_local size_t count __attribute__((tls_model("initial-exec")));

bool allocations_are_counted(void) { return true; }
size_t allocations_of_thread(void) { return count; }

size_t allocations_in_use(void) {
  struct mallinfo2 all = mallinfo2();
  return all.uordblks + all.hblkhd;
}

void *malloc(size_t size) {
  count++;
  return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
  count++;
  return __libc_calloc(number, size);
}

void *realloc(void *block, size_t size) {
  count++;
  return __libc_realloc(block, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  count++;
  return __libc_memalign(alignment, size);
}

#endif
