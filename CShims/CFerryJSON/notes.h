// notes.h - the notes of a thread about the objects that it searches.
#ifndef FERRY_JSON_NOTES_H
#define FERRY_JSON_NOTES_H

#include "model.h"

// The note about one object.
struct alignas(64) Note {
  uint64_t document;
  uint64_t serial;         // of the model
  Model *model;
  const Asked *next;       // of the model: the key that is expected next
  const uint32_t *places;  // of the members, like those of the model
  uint32_t index;          // of the object
  uint32_t last;           // the value found last, or 0
  uint32_t searches;
  bool keys_differ;

  bool is_of(ferry_json_tape tape, size_t object) const noexcept {
    return index == object && document == tape.words[0];
  }

  // Whether the model expects this string next.
  bool expects(uint64_t first, uint64_t second) const noexcept {
    // First the serial: the entries of another model may be elsewhere.
    return model->serial == serial && next->words[0] == first &&
           next->words[1] == second && next->member != Asked::nothing;
  }

  // The value of the string that the model expects, or 0.
  size_t take_expected() noexcept {
    const uint32_t member = next++->member;
    if (member == Asked::absent)
      return 0;
    last = index + places[member] + 1;
    return last;
  }
};

// All notes of a thread: some tens of KiB.
class Notes {
 public:
  // Null if there is not enough memory.
  static Notes *of_thread() noexcept {
    return current ? current : make();
  }
  static Notes *known_of_thread() noexcept { return current; }

  Notes() noexcept;
  ~Notes();

  Note &note_for(size_t index) noexcept {
    return notes[static_cast<uint32_t>(index) * 0x9e3779b1u >>
                 (32 - note_bits)];
  }

  // Begins the note of an object that was not searched before.
  void begin(Note &note, ferry_json_tape tape, size_t index) noexcept;

  ferry_json_forget *forget = nullptr;

 private:
  // One for each of several objects, as those that are within one another take
  // turns.
  static constexpr unsigned note_bits = 6;
  static constexpr unsigned set_bits = 3;
  // Models whose tags share some bits.
  static constexpr unsigned set_size = 4;
  // Of models with more members, each set holds one, without their places.
  static constexpr size_t many_members = 64;
  // After this many objects in a row without a model, only some are tried.
  static constexpr uint32_t most_failures = 8;
  static constexpr uint32_t tried_of = 64;

  // Not thread_local, which may have to be initialised: this is read without a
  // call.
  [[gnu::tls_model("initial-exec")]] static __thread Notes *current;
  static Notes *make() noexcept;

  Note notes[1 << note_bits] = {};
  uint32_t places[1 << note_bits][many_members];
  Model models[1 << set_bits][set_size];
  uint32_t failures[1 << set_bits] = {};
  uint32_t turns[1 << set_bits] = {};
  Model no_model;
  uint64_t last_serial = 0;

  void use(Model &model, Note &note, Model::Likeness likeness) noexcept;
};

#endif
