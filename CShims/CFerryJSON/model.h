// model.h - an object whose keys other objects have, too.
#ifndef FERRY_JSON_MODEL_H
#define FERRY_JSON_MODEL_H

#include "CFerryJSON.h"

#include <memory>

// The length of the key at `index`, followed by its bytes.
static inline const uint8_t *ferry__json_key_at(ferry_json_tape tape,
                                                size_t index) noexcept {
  return tape.strings + ferry_json_payload(tape, index);
}

// A key that was asked for, and the member that has it.
struct Asked {
  static constexpr uint32_t absent = UINT32_MAX - 1;
  static constexpr uint32_t nothing = UINT32_MAX;

  uint64_t words[2];          // a string of Swift's, if it is kept
  uint32_t member = nothing;  // which one of the object's, or one of the above
  bool is_kept = false;
};

// Objects of one type mostly have the same keys in the same order. The first
// search in an object compares its keys with those of one that was searched
// before, its model. Where they are the same, what is known of the model's keys
// is true of the object's. A model has copies of its keys and outlives its
// document.
class Model {
 public:
  static constexpr uint32_t most_members = 256;

  enum Likeness { DIFFERENT, SAME_KEYS, SAME_PLACES };

  uint64_t tag = 0;     // of the objects that may be like it
  uint64_t serial = 0;  // of all models of the thread
  uint32_t count = 0;   // of its members
  bool keys_differ = false;

  // In this order. The entry behind the last one asked for is of no key.
  std::unique_ptr<Asked[]> asked;
  uint32_t asked_count = 0;

  // Where its keys and its closing word stand, counted from the opening word.
  const uint32_t *member_places() const noexcept { return places.get(); }

  // Whether an object can be one: none of its keys is very long.
  static bool can_be(ferry_json_tape tape, size_t object) noexcept;
  // Makes such an object the model; false for lack of memory.
  bool begin(ferry_json_tape tape, size_t object,
             ferry_json_forget *forget) noexcept;

  // How much the object is like it, which has as many members. Where only the
  // keys are the same, and `others` is not null, it gives their places.
  Likeness compare(ferry_json_tape tape, size_t object,
                   uint32_t *others) const noexcept;

  // The entry for one more key. When there is no more room, those before are
  // no longer expected.
  Asked &next_entry() noexcept;

  void forget_asked(ferry_json_forget *forget) noexcept;

 private:
  struct Key {
    uint64_t head[2];    // its length and first twelve bytes
    uint64_t part[2];    // the bits of the head that belong to it
    uint64_t tail[2];    // of a longer one, its last sixteen bytes
    uint64_t middle[2];  // of one longer still, the sixteen behind the head
    uint32_t count;
  };
  static constexpr uint32_t longest_key = 12 + 16 + 16;
  static constexpr size_t longest_text = 4096;

  std::unique_ptr<Key[]> keys;
  std::unique_ptr<uint32_t[]> places;
  uint32_t capacity = 0;
  uint32_t asked_capacity = 0;
  // Of an object without strings and containers among its values: its keys, as
  // they stand one behind the other among the strings. Else null.
  std::unique_ptr<uint8_t[]> text;
  size_t text_count = 0;

  bool reserve(ferry_json_forget *forget) noexcept;
  void copy_text(ferry_json_tape tape, size_t object) noexcept;
  static bool is_key(const Key &key, const uint8_t *string) noexcept;
  bool has_same_numbers(ferry_json_tape tape, size_t object) const noexcept;
};

#endif
