#include "CCoreParts.h"
#include "core.h"

#include <sys/mman.h>
#include <unistd.h>

bool parts_buffers_open(void) {
  ferry__initialise();
  if (!ferry__buffers_base) /* not made yet under the address sanitizer */
    ferry__buffers_initialise();
  return ferry__buffers_base;
}

char *parts_buffer_take(void) { return ferry__buffers_take(); }

void parts_buffer_give(char *buffer) { ferry__buffers_give(buffer); }

bool parts_buffer_is_one(const char *block) {
  return ferry__buffers_hold(block);
}

size_t parts_buffer_size(void) { return FERRY__BUFFER + 16; }

long parts_resident_pages(const char *bytes, size_t length) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t first = (uintptr_t)bytes / page * page;
  unsigned char seen[16];
  size_t count = ((uintptr_t)bytes + length - first + page - 1) / page;
  if (count > sizeof seen || mincore((void *)first, count * page, seen))
    return -1;
  long resident = 0;
  for (size_t i = 0; i < count; i++)
    resident += seen[i] & 1;
  return resident;
}

void parts_pool_empty(void) {
  static const size_t sizes[FERRY__CLASSES] = {1000,   4000,   16384,  65536,
                                               131072, 262144, 1048576};
  ferry__pool pool = {0};
  for (int class = 0; class < FERRY__CLASSES; class++) {
    size_t capacity;
    void *bytes = ferry__pool_take(&pool, sizes[class], &capacity);
    if (bytes)
      ferry__pool_give(&pool, bytes);
  }
  ferry__pool_close(&pool);
}

/* A thread without a loop gives two large blocks to the process, and then
 * allocates and frees blocks of its own. Returns whether a loop that starts
 * afterwards still finds the two. */
bool parts_blocks_stay_for_loops(unsigned made_between) {
  enum { LARGE = 1000000 };
  ferry__pool pool = {0};
  size_t capacity;
  void *first = ferry__pool_take(&pool, LARGE, &capacity);
  void *second = ferry__pool_take(&pool, LARGE, &capacity);
  ferry__pool_close(&pool);
  if (!first || !second)
    return false;
  ferry__block_free(first);
  ferry__block_free(second);
  for (unsigned i = 0; i < made_between; i++) {
    void *made = ferry__block_make(LARGE, &capacity);
    if (made)
      ferry__block_free(made);
  }
  void *found = ferry__pool_take(&pool, LARGE, &capacity);
  void *next = ferry__pool_take(&pool, LARGE, &capacity);
  bool stay = found == second && next == first;
  ferry__block_free(found);
  ferry__block_free(next);
  ferry__pool_close(&pool);
  return stay;
}

bool parts_block_keeps_its_bytes(size_t most) {
  ferry__pool pool = {0};
  size_t capacity = 0, used = 0;
  unsigned char *bytes = NULL;
  bool keeps = true;
  while (used < most && keeps) {
    unsigned char *larger =
        ferry__pool_grow(&pool, bytes, used, used * 2 + 1, &capacity);
    keeps = larger && capacity > used;
    if (!larger)
      break;
    bytes = larger;
    for (size_t i = 0; i < used && keeps; i++)
      keeps = bytes[i] == (unsigned char)(i * 31 >> 3);
    for (; used < capacity; used++)
      bytes[used] = (unsigned char)(used * 31 >> 3);
  }
  if (bytes)
    ferry__pool_give(&pool, bytes);
  ferry__pool_close(&pool);
  return keeps;
}
