// notes.cc - the notes of a thread, and which model an object has.
#include "notes.h"

#include "keys.h"

#include <new>

__thread Notes *Notes::current;
__thread ferry_json_note *ferry__json_notes;

namespace {

// Frees the notes when the thread ends. A search that comes later goes without.
struct Owner {
  Notes *notes = nullptr;
  bool is_alive = true;
  ~Owner() {
    is_alive = false;
    delete notes;
  }
};
thread_local Owner owner;

}  // namespace

Notes *Notes::make() noexcept {
  if (!owner.is_alive)
    return nullptr;
  Notes *made = new (std::nothrow) Notes();
  if (made && !made->no_model.asked) {
    delete made;
    return nullptr;
  }
  owner.notes = current = made;
  ferry__json_notes = made->notes;
  return made;
}

Notes::Notes() noexcept {
  no_model.asked.reset(new (std::nothrow) Asked[1]());
  if (no_model.asked)
    no_model.asked[0].member = FERRY_JSON_NO_KEY;
}

Notes::~Notes() {
  for (auto &set : models)
    for (Model &model : set)
      model.forget_asked(forget);
  if (current == this) {
    current = nullptr;
    ferry__json_notes = nullptr;
  }
}

void Notes::use(Model &model, Note &note, Model::Likeness likeness) noexcept {
  note.keys_differ = model.keys_differ;
  const bool has_own = likeness == Model::SAME_KEYS;
  if (has_own && model.count > many_members)
    return;
  note.model = &model;
  note.next = model.asked.get();
  note.places = has_own ? places[&note - notes] : model.member_places();
}

void Notes::use_none(Note &note) noexcept {
  note.model = &no_model;
  note.next = no_model.asked.get();
  note.places = nullptr;
}

void Notes::begin(Note &note, ferry_json_tape tape, size_t index) noexcept {
  note = {};
  note.document = tape.words[0];
  note.index = static_cast<uint32_t>(index);
  use_none(note);
  const size_t count = ferry_json_payload(tape, index) >> 32;
  if (ferry_json_tag(tape, index) != '{' || count == 0 ||
      count > Model::most_members)
    return;
  // A model has as many members, the first of which has the same key.
  const uint8_t *first = ferry__json_key_at(tape, index + 1);
  uint64_t head;
  memcpy(&head, first, sizeof head);
  if (static_cast<uint32_t>(head) < 4)
    head &= (UINT64_C(0x100000000) << 8 * static_cast<uint32_t>(head)) - 1;
  const uint64_t tag = ferry__json_spread(head ^ count << 40, first) | 1;
  const size_t set = tag >> (64 - set_bits);
  const unsigned ways = count > many_members ? 1 : set_size;
  uint32_t *own = count > many_members ? nullptr : places[&note - notes];
  for (unsigned way = 0; way < ways; way++) {
    Model &model = models[set][way];
    if (model.tag != tag || model.count != count)
      continue;
    const auto likeness = model.compare(tape, index, own);
    if (likeness == Model::DIFFERENT)
      continue;
    failures[set] = 0;
    use(model, note, likeness);
    return;
  }
  if (!Model::can_be(tape, index) ||
      (++failures[set] > most_failures && failures[set] % tried_of != 0))
    return;
  Model &model = models[set][turns[set]++ % ways];
  // What the model has so far goes away.
  for (Note &other : notes)
    if (other.model == &model)
      use_none(other);
  if (!model.begin(tape, index, forget))
    return;
  model.tag = tag;
  use(model, note, Model::SAME_PLACES);
}
