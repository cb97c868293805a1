// find.cc - the search for a member of an object.
//
// Of keys that stand twice the last one counts, so all members have to be
// looked at, unless the keys are known to differ. A search finds that out, and
// notes it for the next ones, with the place that it has come to: most ask for
// members in their order. Notes are a thread's own, so that documents never
// change.
#include "keys.h"

#include <sys/random.h>

#include <atomic>
#include <memory>
#include <new>
#include <type_traits>

namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "a string's length comes before its bytes in the first word");

// So many keys are compared with one bit for each.
constexpr size_t few = 16;

// Objects with more members are gone through some times before their keys are
// compared, which takes as long.
constexpr size_t most_compared = 64;
constexpr uint32_t most_searches = 3;

// What of the first word of a string belongs to it, by its length: that, and up
// to four bytes.
constexpr uint64_t masks[] = {0xffffffff, 0xffffffffff, 0xffffffffffff,
                              0xffffffffffffff, ~uint64_t(0)};

struct Note {
  uint64_t document;
  uint32_t index;     // of the object
  uint32_t next;      // the member behind the last one found, or the end
  uint32_t searches;
  bool keys_differ;
};

// One for each of several objects, as those that are within one another take
// turns.
constexpr unsigned note_bits = 4;
thread_local Note notes[1 << note_bits];

Note &note_for(size_t index) noexcept {
  return notes[static_cast<uint32_t>(index) * 0x9e3779b1u >> (32 - note_bits)];
}

// The length of a key and its first four bytes, which tell nearly all apart.
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

inline const uint8_t *key_at(ferry_json_tape tape, size_t index) noexcept {
  return tape.strings + ferry_json_payload(tape, index);
}

// Whether the key at `index` stands before it too.
[[gnu::noinline]] bool stands_before(ferry_json_tape tape, size_t begin,
                                     size_t index) noexcept {
  size_t count;
  const uint8_t *bytes = ferry_json_string(tape, index, &count);
  for (size_t i = begin; i < index; i = ferry_json_after(tape, i + 1))
    if (ferry_json_is_string(tape, i, bytes, count))
      return true;
  return false;
}

// The keys of an object of few members: one bit for each, and if that is taken,
// a look at all before.
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

// The keys of an object of up to `most_compared` members, in a table.
class SomeKeys {
 public:
  SomeKeys(ferry_json_tape tape, size_t) noexcept : tape(tape) {}

  bool is_new(size_t index, uint64_t word, const uint8_t *string) noexcept {
    size_t place = ferry__json_spread(word, string) >> (64 - bits);
    for (; table[place]; place = (place + 1) & ((1 << bits) - 1)) {
      const uint8_t *other = key_at(tape, table[place]);
      if (Wanted{word, string + 4, static_cast<uint32_t>(word)}.is(
              first_word(other), other))
        return false;
    }
    table[place] = static_cast<uint32_t>(index);
    return true;
  }

 private:
  // Twice as many as there are keys at most.
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
    const uint8_t *string = key_at(tape, i);
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
    const uint8_t *string = key_at(tape, i);
    if (wanted.is(first_word(string), string))
      return i + 1;
  }
  return 0;
}

// Whether the keys of a large object differ. Where there is no memory to find
// out, they do not.
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

// Not known outside of the process, so that no choice of keys collides.
struct Secret {
  uint64_t words[2] = {0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u};
  Secret() noexcept {
    uint64_t random[2];
    if (getrandom(random, sizeof random, GRND_NONBLOCK) == sizeof random)
      memcpy(words, random, sizeof random);
  }
};

inline uint64_t mix(uint64_t a, uint64_t b) noexcept {
  auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

uint64_t ferry_json_hash(const uint8_t *key, size_t count) {
  static const Secret secret;
  uint64_t sum = mix(secret.words[0] ^ count, secret.words[1]), word;
  for (; count > 8; key += 8, count -= 8) {
    memcpy(&word, key, sizeof word);
    sum = mix(sum ^ word, secret.words[1]);
  }
  word = 0;
  memcpy(&word, key, count);
  return mix(sum ^ word, secret.words[0]);
}

uint64_t ferry_json_new_identity(void) {
  constexpr uint64_t block = 1024;
  static std::atomic<uint64_t> next_block{1};
  thread_local uint64_t identity = 0;
  if (++identity % block <= 1)
    identity = block * next_block.fetch_add(1, std::memory_order_relaxed) + 2;
  return identity;
}

size_t ferry_json_find(ferry_json_tape tape, size_t index, const uint8_t *key,
                       size_t count) {
  if (count > UINT32_MAX)
    return 0;
  const size_t end = ferry_json_close(tape, index);
  Note &note = note_for(index);
  bool is_noted = note.index == index && note.document == tape.words[0];
  if (is_noted && note.keys_differ && note.next < end &&
      ferry_json_is_string(tape, note.next, key, count)) {
    size_t found = note.next + size_t(1);
    note.next = static_cast<uint32_t>(ferry_json_after(tape, found));
    return found;
  }
  const Wanted wanted = {first_word(key, count), key, count};
  if (!is_noted)
    note = {tape.words[0], static_cast<uint32_t>(index),
            static_cast<uint32_t>(index + 1), 0, false};
  if (!note.keys_differ && note.searches == most_searches)
    note.keys_differ = all_differ(tape, index, end);
  size_t found;
  if (note.keys_differ) {
    found = find_first(tape, note.next, end, wanted);
    if (!found)
      found = find_first(tape, index + 1, note.next, wanted);
  } else {
    found = find_last(tape, index, end, wanted, &note.keys_differ);
    note.searches++;
  }
  if (found)
    note.next = static_cast<uint32_t>(ferry_json_after(tape, found));
  return found;
}
