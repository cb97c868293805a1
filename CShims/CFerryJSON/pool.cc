// pool.cc - a pool of parsers.
//
// A parser needs about 14 bytes of memory for each byte of text. Each slot
// holds one parser or none, and is emptied and filled by a single atomic
// exchange, so that no lock is needed and no node can be seen twice. A thread
// first tries the slot that it used last. There are three sizes, so that a
// small text never occupies the memory that a large one needs.
//
// Parsers that have been idle for a minute are freed. Threads that return a
// parser do that, at most every quarter of a minute. Large parsers are also
// freed if no thread comes by: while some are in the pool, a separate thread
// checks them.
#include "document.h"

#include <pthread.h>
#include <signal.h>
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

// The shelf of parsers that a separate thread checks.
constexpr const Shelf &watched = shelves[2];

// How long a parser may be idle, in milliseconds.
std::atomic<int64_t> most_idle{60000};

struct Slot {
  std::atomic<ferry_json *> document;
  // When a document was last returned here, in milliseconds.
  std::atomic<int64_t> since;
};

Slot slots[slot_count];
std::atomic<int64_t> next_look;
std::atomic<unsigned> next_place;
thread_local const unsigned place = next_place.fetch_add(1);

int64_t now() noexcept {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return int64_t(time.tv_sec) * 1000 + time.tv_nsec / 1000000;
}

const Shelf *shelf_for(size_t count) noexcept {
  for (const Shelf &shelf : shelves)
    if (count <= shelf.largest)
      return &shelf;
  return nullptr;
}

// Sizes double, so that slightly longer texts need no new parser.
size_t rounded(size_t count) noexcept {
  if (!shelf_for(count))
    return count;
  size_t size = smallest;
  while (size < count)
    size *= 2;
  return size;
}

void look(int64_t time) noexcept {
  const int64_t idle = most_idle.load(std::memory_order_relaxed);
  int64_t next = next_look.load(std::memory_order_relaxed);
  // One thread checks, and the others continue.
  if (time < next ||
      !next_look.compare_exchange_strong(next, time + idle / 4,
                                         std::memory_order_relaxed))
    return;
  for (Slot &slot : slots) {
    if (!slot.document.load(std::memory_order_relaxed) ||
        time - slot.since.load(std::memory_order_relaxed) < idle)
      continue;
    delete slot.document.exchange(nullptr, std::memory_order_acquire);
  }
}

std::atomic<bool> is_watching;

bool has_watched() noexcept {
  for (unsigned i = 0; i < watched.count; i++)
    if (slots[watched.first + i].document.load())
      return true;
  return false;
}

void *watch(void *) noexcept {
  for (;;) {
    const int64_t pause = most_idle.load(std::memory_order_relaxed) / 4 + 1;
    timespec time = {static_cast<time_t>(pause / 1000),
                     static_cast<long>(pause % 1000 * 1000000)};
    nanosleep(&time, nullptr);
    look(now());
    if (has_watched())
      continue;
    is_watching = false;
    // A parser that came in between has seen that there is a thread.
    if (!has_watched() || is_watching.exchange(true))
      return nullptr;
  }
}

// Without memory for a thread, the next thread that returns a parser checks.
void begin_to_watch() noexcept {
  if (is_watching.exchange(true))
    return;
  pthread_attr_t attributes;
  sigset_t all, before;
  bool has_begun = false;
  if (!pthread_attr_init(&attributes)) {
    pthread_t thread;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, size_t(128) << 10);
    // The process's signals are for its other threads.
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    has_begun = !pthread_create(&thread, &attributes, watch, nullptr);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
  }
  if (!has_begun)
    is_watching = false;
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

void ferry_json::drop_text() noexcept {
  if (shelf_for(capacity()))
    return;
  copy.reset();
  copy_capacity = 0;
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
  const bool is_large = shelf == &watched;
  for (unsigned i = 0; shelf && i < shelf->count; i++) {
    auto &slot = slots[shelf->first + (place + i) % shelf->count];
    ferry_json *none = nullptr;
    // The time first, so that a document is never seen with the time of an
    // earlier one.
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
  if (is_large && !document)
    begin_to_watch();
  delete document;
  look(time);
}

// Regardless of the last check, which may have been for a future time.
void ferry_json_pool_look(int64_t seconds) {
  next_look = 0;
  look(now() + seconds * 1000);
  next_look = 0;
}

void ferry_json_pool_wait(int64_t milliseconds) {
  most_idle = milliseconds;
  next_look = 0;
}

size_t ferry_json_pooled(void) {
  size_t count = 0;
  for (auto &slot : slots)
    count += slot.document.load(std::memory_order_relaxed) != nullptr;
  return count;
}
