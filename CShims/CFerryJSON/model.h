// model.h - a model: an object whose keys other objects probably have, too.
#ifndef FERRY_JSON_MODEL_H
#define FERRY_JSON_MODEL_H

#include "CFerryJSON.h"

#include <memory>

// The length of the key at `index`, followed by its bytes.
static inline const uint8_t *ferry__json_key_at(ferry_json_tape tape,
                                                size_t index) noexcept {
  return tape.strings + ferry_json_payload(tape, index);
}

using Asked = ferry_json_asked;

// The first or last bytes of a key, compared at once.
typedef uint8_t KeyBytes __attribute__((vector_size(16)));

// Objects of one type usually have the same keys in the same order. The first
// search in an object compares its keys with those of an earlier object, its
// model. If the keys are the same, everything that is known about the model's
// keys also holds for the object. A model has copies of the keys, so it
// outlives its document.
struct ferry_json_model {
 public:
  static constexpr uint32_t most_members = 256;

  enum Likeness { DIFFERENT, SAME_KEYS, SAME_PLACES };

  uint64_t tag = 0;    // of the objects that may have this model
  uint32_t count = 0;  // number of members
  bool keys_differ = false;

  // The keys in the order in which they were asked for. The entry after the
  // last one has no key.
  std::unique_ptr<Asked[]> asked;
  uint32_t asked_count = 0;

  // The places of the keys and of the closing word, counted from the opening
  // word.
  const uint32_t *member_places() const noexcept { return places.get(); }

  // Whether an object can be a model: none of its keys is very long.
  static bool can_be(ferry_json_tape tape, size_t object) noexcept;
  // Makes such an object the model. Returns false if there is not enough
  // memory.
  bool begin(ferry_json_tape tape, size_t object,
             ferry_json_forget *forget) noexcept;

  // Compares an object that has the same number of members. If only the keys
  // are the same and `others` is not null, it receives the places of the
  // object's keys.
  Likeness compare(ferry_json_tape tape, size_t object,
                   uint32_t *others) const noexcept;

  // The entry for one more key. If there is no more room, the earlier keys are
  // forgotten.
  Asked &next_entry() noexcept;

  void forget_asked(ferry_json_forget *forget) noexcept;

 private:
  struct Key {
    KeyBytes head;    // its length and its first 12 bytes
    KeyBytes part;    // the bits of the head that belong to the key
    KeyBytes tail;    // over 12 bytes: the last 16 bytes
    KeyBytes middle;  // over 28 bytes: the 16 bytes after the head
    uint32_t count;
    uint32_t place;   // counted from the opening word
  };
  static constexpr uint32_t longest_key = 12 + 16 + 16;
  static constexpr size_t longest_text = 4096;

  std::unique_ptr<Key[]> keys;
  std::unique_ptr<uint32_t[]> places;
  uint32_t capacity = 0;
  uint32_t asked_capacity = 0;
  // The keys as they follow each other among the document's strings, if no
  // value of the object is a string or a container. Otherwise null.
  std::unique_ptr<uint8_t[]> text;
  size_t text_count = 0;

  bool reserve(ferry_json_forget *forget) noexcept;
  uint32_t skip_alike(ferry_json_tape tape, size_t origin, uint32_t n,
                      size_t &place) const noexcept;
  void copy_text(ferry_json_tape tape, size_t object) noexcept;
  static bool is_key(const Key &key, const uint8_t *string) noexcept;
  bool has_same_numbers(ferry_json_tape tape, size_t object) const noexcept;
};

using Model = ferry_json_model;

#endif
