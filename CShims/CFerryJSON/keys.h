// keys.h - the members of a wide object by their keys.
#ifndef FERRY_JSON_KEYS_H
#define FERRY_JSON_KEYS_H

#include "CFerryJSON.h"

#include <vector>

// Objects with more members are not gone through once for each of them.
constexpr size_t ferry__json_most_scanned = 64;

static inline bool ferry__json_is_wide(ferry_json_tape tape, size_t index) {
  return ferry_json_payload(tape, index) >> 32 > ferry__json_most_scanned;
}

// Sorted, and not hashed: no choice of keys makes it slow. Every key is in it
// once, with its last value.
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
