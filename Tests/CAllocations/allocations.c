#include "CAllocations.h"

#include <errno.h>
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
void allocations_refuse_next(void) {}

#else

/* The GNU C library's own, by the names it has for interposers. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

/* Initial-exec: reading it must not allocate. */
static _Thread_local size_t count __attribute__((tls_model("initial-exec")));

static _Thread_local bool refuses __attribute__((tls_model("initial-exec")));

bool allocations_are_counted(void) { return true; }
size_t allocations_of_thread(void) { return count; }

size_t allocations_in_use(void) {
  struct mallinfo2 all = mallinfo2();
  return all.uordblks + all.hblkhd;
}

void allocations_refuse_next(void) { refuses = true; }

static bool is_refused(void) {
  count++;
  if (!refuses)
    return false;
  refuses = false;
  errno = ENOMEM;
  return true;
}

void *malloc(size_t size) {
  return is_refused() ? NULL : __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
  return is_refused() ? NULL : __libc_calloc(number, size);
}

void *realloc(void *block, size_t size) {
  return is_refused() ? NULL : __libc_realloc(block, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  return is_refused() ? NULL : __libc_memalign(alignment, size);
}

#endif
