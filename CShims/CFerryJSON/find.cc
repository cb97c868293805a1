// find.cc - the search for a member of an object.
//
// If a key is duplicated, its last value counts. So a search looks at all
// members unless the keys are known to differ. The first search determines that
// and keeps a note for the next ones, with the position it has reached, because
// most programs ask for members in order. Objects with many members are
// compared with a model (model.h), which answers all of this at once. Each
// thread has its own notes, so documents never change.
#include "keys.h"
#include "model.h"

#include <memory>
#include <new>
#include <type_traits>

namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "a string's length comes before its bytes in the first word");

// Up to this number, keys are compared with one bit for each.
constexpr size_t few = 16;

// Objects with more members are searched several times before their keys are
// compared, which takes as long as a search.
constexpr size_t most_compared = 64;
constexpr uint32_t most_searches = 3;

// The part of a string's first word that belongs to it, by its length: the
// length, and up to four bytes.
constexpr uint64_t masks[] = {0xffffffff, 0xffffffffff, 0xffffffffffff,
                              0xffffffffffffff, ~uint64_t(0)};

// The length of a key and its first four bytes, which distinguish nearly all.
uint64_t first_word(const uint8_t *string) noexcept {
  uint64_t word;
  memcpy(&word, string, sizeof word);
  auto count = static_cast<uint32_t>(word);
  return word & masks[count < 4 ? count : 4];
}

uint64_t first_word(const uint8_t *key, size_t count) noexcept {
  uint64_t word = count;
  for (size_t i = 0; i < count && i < 4; i++)
    word |= uint64_t(key[i]) << (32 + 8 * i);
  return word;
}

struct Wanted {
  uint64_t word;
  const uint8_t *key;
  size_t count;

  bool is(uint64_t other, const uint8_t *string) const noexcept {
    return other == word &&
           (count <= 4 ||
            ferry_json_same_bytes(string + 8, key + 4, count - 4));
  }
};

struct Note {
  uint64_t document;
  uint32_t index;       // the index of the object
  uint32_t next;        // the member after the last one found, or the end
  uint32_t asked;       // the number of keys asked for
  uint32_t searches;
  Model *model;         // or null
  uint64_t serial;      // the serial of the model
  bool keys_differ;
  bool has_same_places; // as in the model
};

// One for each of several objects, because nested objects alternate.
constexpr unsigned note_bits = 4;
thread_local Note notes[1 << note_bits];
// Only a few, because thread-local storage comes out of each thread's stack.
constexpr unsigned model_bits = 3;
thread_local Model models[1 << model_bits];
thread_local uint64_t last_serial;

Note &note_for(size_t index) noexcept {
  return notes[static_cast<uint32_t>(index) * 0x9e3779b1u >> (32 - note_bits)];
}

// Whether the key at `index` also occurs before it.
[[gnu::noinline]] bool stands_before(ferry_json_tape tape, size_t begin,
                                     size_t index) noexcept {
  size_t count;
  const uint8_t *bytes = ferry_json_string(tape, index, &count);
  for (size_t i = begin; i < index; i = ferry_json_after(tape, i + 1))
    if (ferry_json_is_string(tape, i, bytes, count))
      return true;
  return false;
}

// The keys of an object with few members: one bit for each; if the bit is set,
// all earlier keys are compared.
class FewKeys {
 public:
  FewKeys(ferry_json_tape tape, size_t index) noexcept
      : tape(tape), begin(index + 1) {}

  bool is_new(size_t index, uint64_t word, const uint8_t *string) noexcept {
    uint64_t bit = uint64_t(1) << (ferry__json_spread(word, string) >> 58);
    bool is_taken = seen & bit;
    seen |= bit;
    return !is_taken || !stands_before(tape, begin, index);
  }

 private:
  ferry_json_tape tape;
  size_t begin;
  uint64_t seen = 0;
};

// The keys of an object with up to `most_compared` members, in a table.
class SomeKeys {
 public:
  SomeKeys(ferry_json_tape tape, size_t) noexcept : tape(tape) {}

  bool is_new(size_t index, uint64_t word, const uint8_t *string) noexcept {
    size_t place = ferry__json_spread(word, string) >> (64 - bits);
    for (; table[place]; place = (place + 1) & ((1 << bits) - 1)) {
      const uint8_t *other = ferry__json_key_at(tape, table[place]);
      if (Wanted{word, string + 4, static_cast<uint32_t>(word)}.is(
              first_word(other), other))
        return false;
    }
    table[place] = static_cast<uint32_t>(index);
    return true;
  }

 private:
  // At least twice the number of keys.
  static constexpr unsigned bits = 7;
  ferry_json_tape tape;
  uint32_t table[1 << bits] = {};
};

struct ManyKeys {
  ManyKeys(ferry_json_tape, size_t) noexcept {}
  bool is_new(size_t, uint64_t, const uint8_t *) noexcept { return false; }
};

// Goes through all members, and compares their keys.
template <typename Keys>
size_t find_last(ferry_json_tape tape, size_t index, size_t end,
                 const Wanted &wanted, bool *keys_differ) noexcept {
  Keys keys(tape, index);
  bool all_new = true;
  size_t found = 0;
  for (size_t i = index + 1; i < end; i = ferry_json_after(tape, i + 1)) {
    const uint8_t *string = ferry__json_key_at(tape, i);
    uint64_t word = first_word(string);
    if (wanted.is(word, string))
      found = i + 1;
    all_new = all_new && keys.is_new(i, word, string);
  }
  *keys_differ = all_new && !std::is_same<Keys, ManyKeys>();
  return found;
}

size_t find_last(ferry_json_tape tape, size_t index, size_t end,
                 const Wanted &wanted, bool *keys_differ) noexcept {
  size_t count = ferry_json_payload(tape, index) >> 32;
  if (count <= few)
    return find_last<FewKeys>(tape, index, end, wanted, keys_differ);
  if (count <= most_compared)
    return find_last<SomeKeys>(tape, index, end, wanted, keys_differ);
  return find_last<ManyKeys>(tape, index, end, wanted, keys_differ);
}

size_t find_first(ferry_json_tape tape, size_t begin, size_t end,
                  const Wanted &wanted) noexcept {
  for (size_t i = begin; i < end; i = ferry_json_after(tape, i + 1)) {
    const uint8_t *string = ferry__json_key_at(tape, i);
    if (wanted.is(first_word(string), string))
      return i + 1;
  }
  return 0;
}

// Whether the keys of a large object differ. Without memory to determine it,
// the result is false.
bool all_differ(ferry_json_tape tape, size_t index, size_t end) noexcept {
  size_t size = 256;
  while (size < 2 * ferry_json_count(tape, index))
    size *= 2;
  std::unique_ptr<uint32_t[]> table(new (std::nothrow) uint32_t[size]());
  if (!table)
    return false;
  for (size_t i = index + 1; i < end; i = ferry_json_after(tape, i + 1)) {
    size_t count;
    const uint8_t *key = ferry_json_string(tape, i, &count);
    size_t place = ferry_json_hash(key, count) & (size - 1);
    for (; table[place]; place = (place + 1) & (size - 1))
      if (ferry_json_is_string(tape, table[place], key, count))
        return false;
    table[place] = static_cast<uint32_t>(i);
  }
  return true;
}

// The model of an object, or null: an object with as many members and the same
// first key.
[[gnu::noinline]] void begin(Note &note, ferry_json_tape tape,
                             size_t index) noexcept {
  note = {};
  note.document = tape.words[0];
  note.index = static_cast<uint32_t>(index);
  note.next = note.index + 1;
  const size_t count = ferry_json_payload(tape, index) >> 32;
  if (count < Model::least_members || count > Model::most_members)
    return;
  const uint8_t *first = ferry__json_key_at(tape, index + 1);
  const uint64_t hash =
      ferry__json_spread(first_word(first) ^ count << 40, first);
  Model &model = models[hash >> (64 - model_bits)];
  const bool is_known =
      model.document == note.document && model.count == count;
  if (is_known && model.failures > Model::most_failures)
    return;
  if (is_known && (model.is_measured || model.measure(tape)) &&
      model.has_same_keys(tape, index, &note.has_same_places)) {
    model.failures = 0;
    note.keys_differ = model.keys_differ;
  } else {
    model.failures = is_known ? model.failures + 1 : 0;
    model.document = note.document;
    model.serial = ++last_serial;
    model.index = note.index;
    model.count = static_cast<uint32_t>(count);
    model.asked_count = 0;
    model.keys_differ = model.is_measured = false;
    note.has_same_places = true;
  }
  note.model = &model;
  note.serial = model.serial;
}

inline Model *model_of(const Note &note) noexcept {
  return note.model && note.model->serial == note.serial ? note.model : nullptr;
}

size_t search(Note &note, ferry_json_tape tape, size_t index, size_t end,
              const Wanted &wanted) noexcept {
  bool keys_differ = note.keys_differ;
  if (!keys_differ && note.searches == most_searches)
    keys_differ = all_differ(tape, index, end);
  size_t found;
  if (keys_differ) {
    found = find_first(tape, note.next, end, wanted);
    if (!found)
      found = find_first(tape, index + 1, note.next, wanted);
  } else {
    found = find_last(tape, index, end, wanted, &keys_differ);
    note.searches++;
  }
  note.keys_differ = keys_differ;
  if (Model *model = keys_differ ? model_of(note) : nullptr)
    model->keys_differ = true;
  return found;
}

// The position of the key that was asked for at this point in the model, or 0.
inline size_t expected_key(Note &note) noexcept {
  const uint32_t asked = note.asked++;
  const Model *model = note.has_same_places ? model_of(note) : nullptr;
  return model && asked < model->asked_count ? note.index + model->asked[asked]
                                             : 0;
}

// Stores the position of the key that was asked for last, for other objects.
void note_place(const Note &note, size_t key) noexcept {
  Model *model = note.has_same_places ? model_of(note) : nullptr;
  const size_t place = key - note.index;
  const uint32_t asked = note.asked - 1;
  if (!model || asked > model->asked_count || asked >= Model::most_asked ||
      place > UINT16_MAX)
    return;
  model->asked[asked] = static_cast<uint16_t>(place);
  if (asked == model->asked_count)
    model->asked_count++;
}

}  // namespace

size_t ferry_json_find(ferry_json_tape tape, size_t index, const uint8_t *key,
                       size_t count) {
  if (count > UINT32_MAX)
    return 0;
  Note &note = note_for(index);
  if (note.index != index || note.document != tape.words[0])
    begin(note, tape, index);
  const size_t end = ferry_json_close(tape, index);
  const size_t expected = note.model ? expected_key(note) : 0;
  size_t at = expected ? expected : note.keys_differ ? note.next : end;
  if (at >= end || !ferry_json_is_string(tape, at, key, count)) {
    at = search(note, tape, index, end,
                {first_word(key, count), key, count});
    if (!at)
      return 0;
    at--;
  }
  if (note.model && at != expected)
    note_place(note, at);
  note.next = static_cast<uint32_t>(ferry_json_after(tape, at + 1));
  return at + 1;
}
