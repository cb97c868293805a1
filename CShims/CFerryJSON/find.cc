// find.cc - finds a member of an object by its key.
//
// If a key occurs twice, its last value counts. A search therefore reads all
// members unless the keys are known to differ. The first search finds out
// whether they do, and writes a note for later searches. The note also has the
// place where the search ended, because most programs ask for members in their
// order. If an object is like a model (model.h), the model has this information
// at once, and also the keys that the program will probably ask for. Each
// thread has its own notes, so documents never change.
#include "keys.h"
#include "notes.h"

#include <algorithm>
#include <memory>
#include <new>
#include <type_traits>

namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "a string's length comes before its bytes in the first word");

// Objects with up to this many members are checked with one bit for each key.
constexpr size_t few = 16;

// The keys of objects with more members are compared only after some searches,
// because that takes as long as these searches.
constexpr size_t most_compared = 64;
constexpr uint32_t most_searches = 3;

// The bits of the first word that belong to a string, by its length: the length
// itself and up to four bytes.
constexpr uint64_t masks[] = {0xffffffff, 0xffffffffff, 0xffffffffffff,
                              0xffffffffffffff, ~uint64_t(0)};

// The length of a key and its first four bytes. They distinguish nearly all
// keys.
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

// The keys of an object with few members: one bit for each key. If the bit is
// taken, all earlier keys are compared.
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

// The keys of an object with up to `most_compared` members, in a hash table.
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
  // The table has twice as many slots as there can be keys.
  static constexpr unsigned bits = 7;
  ferry_json_tape tape;
  uint32_t table[1 << bits] = {};
};

// Does not compare the keys of an object with many members.
struct ManyKeys {
  ManyKeys(ferry_json_tape, size_t) noexcept {}
  bool is_new(size_t, uint64_t, const uint8_t *) noexcept { return false; }
};

// Finds the last member with a key, and compares all keys meanwhile.
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

// Whether the keys of a large object differ. Returns false if there is not
// enough memory to find out.
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

// The member after the one that was found last.
inline size_t next_of(const Note &note, ferry_json_tape tape) noexcept {
  return note.last ? ferry_json_after(tape, note.last) : note.index + size_t(1);
}

// The index of the value, or 0.
size_t search(Note &note, ferry_json_tape tape, size_t index, size_t end,
              const Wanted &wanted) noexcept {
  bool keys_differ = note.keys_differ;
  if (!keys_differ && note.searches == most_searches)
    keys_differ = all_differ(tape, index, end);
  size_t found;
  if (keys_differ) {
    const size_t next = next_of(note, tape);
    found = find_first(tape, next, end, wanted);
    if (!found)
      found = find_first(tape, index + 1, next, wanted);
  } else {
    found = find_last(tape, index, end, wanted, &keys_differ);
    note.searches++;
  }
  note.keys_differ = keys_differ;
  if (keys_differ)
    note.model->keys_differ = true;
  return found;
}

// The note of an object, which may be new; null if there is not enough memory.
inline Note *note_of(ferry_json_tape tape, size_t index) noexcept {
  Notes *own = Notes::of_thread();
  if (!own)
    return nullptr;
  Note &note = own->note_for(index);
  if (!ferry__json_is_note_of(&note, tape, index))
    own->begin(note, tape, index);
  return &note;
}

}  // namespace

size_t ferry_json_find(ferry_json_tape tape, size_t index, const uint8_t *key,
                       size_t count) {
  if (count > UINT32_MAX)
    return 0;
  const size_t end = ferry_json_close(tape, index);
  Note *note = note_of(tape, index);
  if (!note) {
    bool keys_differ;
    return find_last<ManyKeys>(tape, index, end,
                               {first_word(key, count), key, count},
                               &keys_differ);
  }
  size_t found = 0;
  if (note->keys_differ) {
    const size_t next = next_of(*note, tape);
    if (next < end && ferry_json_is_string(tape, next, key, count))
      found = next + 1;
  }
  if (!found)
    found = search(*note, tape, index, end,
                   {first_word(key, count), key, count});
  if (found)
    note->last = static_cast<uint32_t>(found);
  return found;
}

// Looks for a key among all that the model expects. The program may have
// skipped some, the object may be new, or its note may have been replaced by
// another one.
size_t ferry_json_expected_later(ferry_json_tape tape, size_t index,
                                 uint64_t first, uint64_t second) {
  Note *note = note_of(tape, index);
  if (!note)
    return FERRY_JSON_NOWHERE;
  const Asked *expected = note->next, *begin = note->model->asked.get();
  const Asked *end = begin + note->model->asked_count;
  for (; note->next < end; note->next++)
    if (ferry__json_expects(note, first, second))
      return ferry__json_take_expected(note);
  for (note->next = begin; note->next < expected; note->next++)
    if (ferry__json_expects(note, first, second))
      return ferry__json_take_expected(note);
  return FERRY_JSON_NOWHERE;
}

void *ferry_json_expect(ferry_json_tape tape, size_t index, size_t found,
                        ferry_json_forget *forget, bool *is_kept) {
  Notes *own = Notes::of_thread();
  if (!own)
    return nullptr;
  Note &note = own->note_for(index);
  if (!ferry__json_is_note_of(&note, tape, index) || !own->has_model(note))
    return nullptr;
  uint32_t member = FERRY_JSON_ABSENT;
  if (found) {
    const uint32_t *end = note.places + note.model->count;
    const auto place = static_cast<uint32_t>(found - index - 1);
    const uint32_t *at = std::lower_bound(note.places, end, place);
    if (at == end || *at != place)
      return nullptr;
    member = static_cast<uint32_t>(at - note.places);
  }
  Asked &entry = note.model->next_entry();
  note.next = &entry + 1;
  own->forget = forget;
  entry.member = member;
  *is_kept = entry.is_kept;
  entry.is_kept = true;
  return entry.words;
}
