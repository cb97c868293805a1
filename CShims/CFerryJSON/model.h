// model.h - an object whose keys other objects have, too.
#ifndef FERRY_JSON_MODEL_H
#define FERRY_JSON_MODEL_H

#include "CFerryJSON.h"

// The length of the key at `index`, followed by its bytes.
static inline const uint8_t *ferry__json_key_at(ferry_json_tape tape,
                                                size_t index) noexcept {
  return tape.strings + ferry_json_payload(tape, index);
}

// Objects of one type usually have the same keys in the same order. The first
// search in an object compares its keys with those of an object that was
// searched before, its model. If they are equal, everything known about the
// model's keys applies to the object's.
struct Model {
  // With fewer members, comparing the keys with one another is as fast.
  static constexpr uint32_t least_members = 12;
  static constexpr uint32_t most_members = 256;
  static constexpr uint32_t most_asked = 40;
  static constexpr uint32_t most_failures = 8;

  uint64_t document;
  uint64_t serial;    // unique among the models of the thread
  uint32_t index;     // the index of the object
  uint32_t count;     // the number of its members
  uint32_t failures;  // consecutive objects that were different
  uint32_t asked_count;
  bool keys_differ;
  bool is_measured;
  // The positions of the keys and the closing word, relative to the opening
  // word.
  uint16_t places[most_members + 1];
  // The keys that were asked for, in this order.
  uint16_t asked[most_asked];

  bool measure(ferry_json_tape tape) noexcept;
  // Whether an object with as many members has the same keys; then, whether
  // they have the same positions.
  bool has_same_keys(ferry_json_tape tape, size_t object,
                     bool *is_alike) const noexcept;
  bool has_same_places(ferry_json_tape tape, size_t object,
                       bool *has_strings) const noexcept;
};

#endif
