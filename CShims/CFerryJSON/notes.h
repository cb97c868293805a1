// notes.h - the notes of a thread about the objects that it searches.
#ifndef FERRY_JSON_NOTES_H
#define FERRY_JSON_NOTES_H

#include "model.h"

using Note = ferry_json_note;

// All notes of a thread: some tens of KiB.
class Notes {
 public:
  // Null if there is not enough memory.
  static Notes *of_thread() noexcept {
    return current ? current : make();
  }

  Notes() noexcept;
  ~Notes();

  Note &note_for(size_t index) noexcept {
    return notes[ferry__json_note_number(index)];
  }

  // Begins the note of an object that was not searched before.
  void begin(Note &note, ferry_json_tape tape, size_t index) noexcept;

  // Whether the note is of an object that has a model.
  bool has_model(const Note &note) const noexcept {
    return note.model != &no_model;
  }

  ferry_json_forget *forget = nullptr;

 private:
  static constexpr unsigned note_bits = FERRY_JSON_NOTE_BITS;
  static constexpr unsigned set_bits = 3;
  // Models whose tags share some bits.
  static constexpr unsigned set_size = 4;
  // Of models with more members, each set holds one, without their places.
  static constexpr size_t many_members = 64;
  // After this many objects in a row without a model, only some are tried.
  static constexpr uint32_t most_failures = 8;
  static constexpr uint32_t tried_of = 64;

  [[gnu::tls_model("initial-exec")]] static __thread Notes *current;
  static Notes *make() noexcept;

  Note notes[1 << note_bits] = {};
  uint32_t places[1 << note_bits][many_members];
  Model models[1 << set_bits][set_size];
  uint32_t failures[1 << set_bits] = {};
  uint32_t turns[1 << set_bits] = {};
  Model no_model;

  void use(Model &model, Note &note, Model::Likeness likeness) noexcept;
  void use_none(Note &note) noexcept;
};

#endif
