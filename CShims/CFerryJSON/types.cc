// types.cc - what is known about types, by the addresses of their descriptions.
//
// All threads read this for every value, so it has no lock. Nothing is ever
// removed: the number of types in a process is limited by its program.
#include "CFerryJSON.h"

#include <atomic>

namespace {

constexpr size_t slot_count = 4096;
constexpr size_t most_looked_at = 64;

struct Slot {
  std::atomic<const void *> type;
  std::atomic<uintptr_t> known;
};

Slot slots[slot_count];

inline size_t place_of(const void *type) noexcept {
  auto bits = reinterpret_cast<uintptr_t>(type);
  return (bits >> 4 ^ bits >> 13) % slot_count;
}

}  // namespace

uintptr_t ferry_json_known_type(const void *type) {
  size_t place = place_of(type);
  for (size_t i = 0; i < most_looked_at; i++) {
    const Slot &slot = slots[(place + i) % slot_count];
    const void *own = slot.type.load(std::memory_order_relaxed);
    if (own == type)
      return slot.known.load(std::memory_order_acquire);
    if (!own)
      return 0;
  }
  return 0;
}

uintptr_t ferry_json_know_type(const void *type, uintptr_t known) {
  size_t place = place_of(type);
  for (size_t i = 0; i < most_looked_at; i++) {
    Slot &slot = slots[(place + i) % slot_count];
    const void *own = nullptr;
    if (slot.type.compare_exchange_strong(own, type,
                                          std::memory_order_relaxed) ||
        own == type) {
      uintptr_t none = 0;
      return slot.known.compare_exchange_strong(none, known,
                                                std::memory_order_acq_rel)
                 ? known
                 : none;
    }
  }
  return known;
}
