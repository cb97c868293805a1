// stack.cc - how much stack a thread has left.
//
// Types that contain values of their own kind are created by recursion, as deep
// as the document: up to 1,023 levels. A thread may have little stack.
#include "CFerryJSON.h"

#include <pthread.h>

namespace {

constexpr size_t most_reserved = size_t(64) << 10;

// A quarter of a small stack. If the system does not tell the thread's stack,
// nothing is reserved.
ferry_json_reserve find_reserve() noexcept {
  ferry_json_reserve reserve = {0, 0};
  pthread_attr_t attributes;
  void *base;
  size_t all;
  if (pthread_getattr_np(pthread_self(), &attributes))
    return reserve;
  if (!pthread_attr_getstack(&attributes, &base, &all)) {
    reserve.begin = reinterpret_cast<uintptr_t>(base);
    reserve.size = all / 4 < most_reserved ? all / 4 : most_reserved;
  }
  pthread_attr_destroy(&attributes);
  return reserve;
}

}  // namespace

__thread ferry_json_reserve ferry__json_reserve = {0, SIZE_MAX};

bool ferry__json_stack_is_low(uintptr_t frame) {
  if (ferry__json_reserve.size == SIZE_MAX)
    ferry__json_reserve = find_reserve();
  return frame - ferry__json_reserve.begin < ferry__json_reserve.size;
}
