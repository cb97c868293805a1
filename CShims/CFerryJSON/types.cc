// types.cc - what is known about types, by the addresses of their descriptions.
//
// All threads read this for every value, so it has no lock. Nothing is ever
// removed: the number of types in a process is limited by its program.
#include "CFerryJSON.h"

#include <atomic>
#include <new>

namespace {

constexpr size_t slot_count = 4096;
constexpr size_t most_looked_at = 64;

struct Slot {
  std::atomic<const void *> type;
  std::atomic<uintptr_t> known;
};

// Types that find no place in a table are in the next one.
struct Table {
  Slot slots[slot_count];
  std::atomic<Table *> next;
};

Table first;

// The table after this one, which is made if there is none. NULL without
// memory.
Table *after(Table *table) noexcept {
  Table *next = table->next.load(std::memory_order_acquire);
  if (next)
    return next;
  Table *made = new (std::nothrow) Table();
  if (!made || table->next.compare_exchange_strong(next, made,
                                                   std::memory_order_acq_rel))
    return made;
  delete made;
  return next;
}

inline size_t place_of(const void *type) noexcept {
  auto bits = reinterpret_cast<uintptr_t>(type);
  return (bits >> 4 ^ bits >> 13) % slot_count;
}

}  // namespace

uintptr_t ferry_json_known_type(const void *type) {
  size_t place = place_of(type);
  for (const Table *table = &first; table;
       table = table->next.load(std::memory_order_acquire))
    for (size_t i = 0; i < most_looked_at; i++) {
      const Slot &slot = table->slots[(place + i) % slot_count];
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
  for (Table *table = &first; table; table = after(table))
    for (size_t i = 0; i < most_looked_at; i++) {
      Slot &slot = table->slots[(place + i) % slot_count];
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
