#include "CAllocations.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>

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

/* The functions of the GNU C library, by their names for interposers. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

/* Initial-exec: reading it must not allocate. */
static _Thread_local size_t count __attribute__((tls_model("initial-exec")));

static _Thread_local bool refuses __attribute__((tls_model("initial-exec")));

/* mallinfo() would count the freed blocks that each thread caches, up to 200 KB
 * a thread. Signed: a block may come from before counting began. */
static _Atomic ptrdiff_t in_use;

bool allocations_are_counted(void) { return true; }
size_t allocations_of_thread(void) { return count; }

size_t allocations_in_use(void) {
  ptrdiff_t bytes = atomic_load_explicit(&in_use, memory_order_relaxed);
  return bytes < 0 ? 0 : (size_t)bytes;
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

static ptrdiff_t size_of(void *block) {
  return block ? (ptrdiff_t)malloc_usable_size(block) : 0;
}

static void *counted(void *block) {
  atomic_fetch_add_explicit(&in_use, size_of(block), memory_order_relaxed);
  return block;
}

void *malloc(size_t size) {
  return is_refused() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t number, size_t size) {
  return is_refused() ? NULL : counted(__libc_calloc(number, size));
}

void *realloc(void *block, size_t size) {
  if (is_refused())
    return NULL;
  ptrdiff_t before = size_of(block);
  void *moved = __libc_realloc(block, size);
  /* A null result leaves the block unchanged, unless its new size was 0. */
  if (moved || size == 0)
    atomic_fetch_add_explicit(&in_use, size_of(moved) - before,
                              memory_order_relaxed);
  return moved;
}

static void *aligned(size_t alignment, size_t size) {
  return is_refused() ? NULL : counted(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size) {
  return aligned(alignment, size);
}

void *memalign(size_t alignment, size_t size) {
  return aligned(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
  if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 ||
      alignment == 0)
    return EINVAL;
  int before = errno;
  void *made = aligned(alignment, size);
  errno = before; /* only its result shows a failure */
  if (!made)
    return ENOMEM;
  *block = made;
  return 0;
}

void free(void *block) {
  atomic_fetch_sub_explicit(&in_use, size_of(block), memory_order_relaxed);
  __libc_free(block);
}

#endif
