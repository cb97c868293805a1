// pool.cc - parsers, kept instead of freed.
//
// A parser needs some 14 bytes of memory for each byte of text. Each slot holds
// one parser or none and is emptied and filled by a single atomic exchange, so
// that no lock is needed and no node can be seen twice. A thread looks first
// into the slot that it used last. Three sizes, so that a small text never
// keeps the memory of a large one from the text that needs it.
//
// What has waited for a minute is freed. No thread of its own looks after that:
// a thread that gives a parser back does so, every quarter of a minute at most.
#include "document.h"

#include <time.h>

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

// How long a parser waits, in seconds.
constexpr int64_t most_idle = 60;

struct Slot {
  std::atomic<ferry_json *> document;
  // When a document was last put here, in seconds.
  std::atomic<int64_t> since;
};

Slot slots[slot_count];
std::atomic<int64_t> next_look;
std::atomic<unsigned> next_place;
thread_local const unsigned place = next_place.fetch_add(1);

int64_t now() noexcept {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return time.tv_sec;
}

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

void look(int64_t time) noexcept {
  int64_t next = next_look.load(std::memory_order_relaxed);
  // One thread looks, and the others go on.
  if (time < next ||
      !next_look.compare_exchange_strong(next, time + most_idle / 4,
                                         std::memory_order_relaxed))
    return;
  for (Slot &slot : slots) {
    if (!slot.document.load(std::memory_order_relaxed) ||
        time - slot.since.load(std::memory_order_relaxed) < most_idle)
      continue;
    delete slot.document.exchange(nullptr, std::memory_order_acquire);
  }
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
      if (!slot.document.load(std::memory_order_relaxed))
        continue;
      if (ferry_json *found =
              slot.document.exchange(nullptr, std::memory_order_acquire))
        return found;
    }
  }
  return new (std::nothrow) ferry_json;
}

void ferry__json_give(ferry_json *document) noexcept {
  const int64_t time = now();
  const Shelf *shelf = shelf_for(document->capacity());
  for (unsigned i = 0; shelf && i < shelf->count; i++) {
    auto &slot = slots[shelf->first + (place + i) % shelf->count];
    ferry_json *none = nullptr;
    // First the time: a document is never seen with that of another before it.
    if (slot.document.load(std::memory_order_relaxed))
      continue;
    slot.since.store(time, std::memory_order_relaxed);
    if (slot.document.compare_exchange_strong(none, document,
                                              std::memory_order_release,
                                              std::memory_order_relaxed)) {
      document = nullptr;
      break;
    }
  }
  delete document;
  look(time);
}

void ferry_json_pool_look(int64_t seconds) {
  look(now() + seconds);
}

size_t ferry_json_pooled(void) {
  size_t count = 0;
  for (auto &slot : slots)
    count += slot.document.load(std::memory_order_relaxed) != nullptr;
  return count;
}
