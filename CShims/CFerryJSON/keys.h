// keys.h - the members of a wide object by their keys.
#ifndef FERRY_JSON_KEYS_H
#define FERRY_JSON_KEYS_H

#include "CFerryJSON.h"

#include <vector>

// Objects with more members are not scanned once for each of them.
constexpr size_t ferry__json_most_scanned = 64;

static inline bool ferry__json_is_wide(ferry_json_tape tape, size_t index) {
  return ferry_json_payload(tape, index) >> 32 > ferry__json_most_scanned;
}

// Spreads keys over the upper bits by their length, first and last bytes,
// because numbered keys begin alike. `head` has the length and the first four
// bytes.
static inline uint64_t ferry__json_spread(uint64_t head,
                                          const uint8_t *string) {
  auto count = static_cast<uint32_t>(head);
  uint32_t tail;
  // The length precedes the bytes, so there are at least four.
  memcpy(&tail, string + count, sizeof tail);
  return (head ^ uint64_t(tail) << 29) * 0x9e3779b97f4a7c15u;
}

// Sorted, not hashed: no choice of keys makes it slow. Every key is in it once,
// with its last value.
class KeyTable {
 public:
  struct Member {
    const uint8_t *bytes;
    uint32_t count;
    uint32_t value;
  };

  bool is_empty() const noexcept { return members.empty(); }
  void fill(ferry_json_tape tape, size_t index);
  size_t find(const uint8_t *key, size_t count) const noexcept;

  std::vector<Member> members;
};

#endif
