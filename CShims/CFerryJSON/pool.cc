// pool.cc - parsers, kept instead of freed.
//
// A parser needs some 14 bytes of memory for each byte of text. Each slot holds
// one parser or none and is emptied and filled by a single atomic exchange, so
// that no lock is needed and no node can be seen twice. A thread looks first
// into the slot that it used last. Three sizes, so that a small text never keeps
// the memory of a large one from the text that needs it.
#include "document.h"

#include <atomic>
#include <new>

namespace {

struct Shelf {
  size_t largest;  // text, in bytes
  unsigned first;
  unsigned count;
};

constexpr Shelf shelves[] = {
    {size_t(64) << 10, 0, 64},
    {size_t(1) << 20, 64, 8},
    {size_t(16) << 20, 72, 2},
};
constexpr unsigned slot_count = 74;
constexpr size_t smallest = 4096;

std::atomic<ferry_json *> slots[slot_count];
std::atomic<unsigned> next_place;
thread_local const unsigned place = next_place.fetch_add(1);

const Shelf *shelf_for(size_t count) noexcept {
  for (const Shelf &shelf : shelves)
    if (count <= shelf.largest)
      return &shelf;
  return nullptr;
}

// Sizes double, so that texts a little longer than the last need nothing new.
size_t rounded(size_t count) noexcept {
  if (!shelf_for(count))
    return count;
  size_t size = smallest;
  while (size < count)
    size *= 2;
  return size;
}

}  // namespace

int ferry_json::reserve(size_t count) noexcept {
  if (parser && document.capacity() >= count)
    return FERRY_JSON_OK;
  size_t size = rounded(count);
  if (document.allocate(size))
    return FERRY_JSON_NO_MEMORY;
  simdjson::error_code error;
  if (parser)
    error = parser->allocate(size, ferry__json_usual_depth);
  else
    error = simdjson::get_active_implementation()
                ->create_dom_parser_implementation(
                    size, ferry__json_usual_depth, parser);
  return error ? FERRY_JSON_NO_MEMORY : FERRY_JSON_OK;
}

const uint8_t *ferry_json::padded(const uint8_t *text, size_t count,
                                  size_t spare) noexcept {
  if (spare >= FERRY_JSON_PADDING)
    return text;
  size_t size = count + FERRY_JSON_PADDING;
  if (copy_capacity < size) {
    size = rounded(count) + FERRY_JSON_PADDING;
    copy.reset(new (std::nothrow) uint8_t[size]);
    copy_capacity = copy ? size : 0;
    if (!copy)
      return nullptr;
  }
  memcpy(copy.get(), text, count);
  memset(copy.get() + count, ' ', FERRY_JSON_PADDING);
  return copy.get();
}

ferry_json *ferry__json_take(size_t count) noexcept {
  if (const Shelf *shelf = shelf_for(count)) {
    for (unsigned i = 0; i < shelf->count; i++) {
      auto &slot = slots[shelf->first + (place + i) % shelf->count];
      if (!slot.load(std::memory_order_relaxed))
        continue;
      if (ferry_json *found = slot.exchange(nullptr, std::memory_order_acquire))
        return found;
    }
  }
  return new (std::nothrow) ferry_json;
}

void ferry__json_give(ferry_json *document) noexcept {
  if (const Shelf *shelf = shelf_for(document->capacity())) {
    for (unsigned i = 0; i < shelf->count; i++) {
      auto &slot = slots[shelf->first + (place + i) % shelf->count];
      ferry_json *none = nullptr;
      if (slot.compare_exchange_strong(none, document,
                                       std::memory_order_release,
                                       std::memory_order_relaxed))
        return;
    }
  }
  delete document;
}

size_t ferry_json_pooled(void) {
  size_t count = 0;
  for (auto &slot : slots)
    count += slot.load(std::memory_order_relaxed) != nullptr;
  return count;
}
