// stack.cc - how much stack a thread has left.
//
// Types that contain values of their own kind are created by recursion, as deep
// as the document: up to 1,023 levels. A thread may have little stack.
#include "CFerryJSON.h"

#include <pthread.h>

namespace {

constexpr size_t most_reserved = size_t(64) << 10;

struct Reserve {
  uintptr_t begin = 0;
  size_t size = 0;

  // A quarter of a small stack. If the system does not tell the thread's stack,
  // nothing is reserved.
  Reserve() noexcept {
    pthread_attr_t attributes;
    void *base;
    size_t all;
    if (pthread_getattr_np(pthread_self(), &attributes))
      return;
    if (!pthread_attr_getstack(&attributes, &base, &all)) {
      begin = reinterpret_cast<uintptr_t>(base);
      size = all / 4 < most_reserved ? all / 4 : most_reserved;
    }
    pthread_attr_destroy(&attributes);
  }
};

thread_local const Reserve reserve;

}  // namespace

bool ferry_json_stack_is_low(void) {
  // A frame on another stack than the thread's own is far outside.
  auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return frame - reserve.begin < reserve.size;
}
