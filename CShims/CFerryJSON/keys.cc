// keys.cc - the members of a wide object by their keys, and hashes of keys.
#include "keys.h"

#include <sys/random.h>

#include <algorithm>
#include <atomic>

namespace {

// The order of two keys: the shorter one first, which decides most comparisons.
int compare(const KeyTable::Member &a, const KeyTable::Member &b) noexcept {
  if (a.count != b.count)
    return a.count < b.count ? -1 : 1;
  return memcmp(a.bytes, b.bytes, a.count);
}

bool is_before(const KeyTable::Member &a, const KeyTable::Member &b) noexcept {
  return compare(a, b) < 0;
}

// Unknown outside the process, so that keys cannot be chosen to collide.
struct Secret {
  uint64_t words[2] = {0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u};
  Secret() noexcept {
    uint64_t random[2];
    if (getrandom(random, sizeof random, GRND_NONBLOCK) == sizeof random)
      memcpy(words, random, sizeof random);
  }
};

inline uint64_t mix(uint64_t a, uint64_t b) noexcept {
  auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

uint64_t ferry_json_hash(const uint8_t *key, size_t count) {
  static const Secret secret;
  uint64_t sum = mix(secret.words[0] ^ count, secret.words[1]), word;
  for (; count > 8; key += 8, count -= 8) {
    memcpy(&word, key, sizeof word);
    sum = mix(sum ^ word, secret.words[1]);
  }
  word = 0;
  memcpy(&word, key, count);
  return mix(sum ^ word, secret.words[0]);
}

uint64_t ferry_json_new_identity(void) {
  constexpr uint64_t block = 1024;
  static std::atomic<uint64_t> next_block{1};
  thread_local uint64_t identity = 0;
  if (++identity % block <= 1)
    identity = block * next_block.fetch_add(1, std::memory_order_relaxed) + 2;
  return identity;
}

void KeyTable::fill(ferry_json_tape tape, size_t index) {
  size_t end = ferry_json_close(tape, index);
  for (size_t key = index + 1; key < end;
       key = ferry_json_after(tape, key + 1)) {
    size_t count;
    const uint8_t *bytes = ferry_json_string(tape, key, &count);
    members.push_back({bytes, static_cast<uint32_t>(count),
                       static_cast<uint32_t>(key + 1)});
  }
  // For a duplicate key the last value comes first, and is kept.
  std::sort(members.begin(), members.end(), [](auto &a, auto &b) noexcept {
    int order = compare(a, b);
    return order ? order < 0 : a.value > b.value;
  });
  auto rest = std::unique(
      members.begin(), members.end(),
      [](auto &a, auto &b) noexcept { return compare(a, b) == 0; });
  members.erase(rest, members.end());
}

size_t KeyTable::find(const uint8_t *key, size_t count) const noexcept {
  if (count > UINT32_MAX)
    return 0;
  Member wanted = {key, static_cast<uint32_t>(count), 0};
  auto found =
      std::lower_bound(members.begin(), members.end(), wanted, is_before);
  return found != members.end() && compare(*found, wanted) == 0 ? found->value
                                                                : 0;
}
