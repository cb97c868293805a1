// find.cc - the search for a member of an object.
//
// Of keys that stand twice the last one counts, so all members have to be looked
// at, unless the keys are known to differ: the first search in an object compares
// them with one another, and its note tells the next ones.
#include "CFerryJSON.h"

namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "a string's length comes before its bytes in the first word");

// Comparing the keys of larger objects with one another costs too much.
constexpr size_t most_compared = 64;

// What of the first word of a string belongs to it, by its length: that, and up
// to four bytes.
constexpr uint64_t masks[] = {0xffffffff, 0xffffffffff, 0xffffffffffff,
                              0xffffffffffffff, ~uint64_t(0)};

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

// Seldom needed, and so kept out of the loop that needs the registers.
[[gnu::noinline]] bool stands_before(ferry_json_tape tape, size_t begin, size_t index) noexcept {
  size_t count;
  const uint8_t *bytes = ferry_json_string(tape, index, &count);
  for (size_t i = begin; i < index; i = ferry_json_after(tape, i + 1))
    if (ferry_json_is_string(tape, i, bytes, count))
      return true;
  return false;
}

[[gnu::noinline]] bool same_end(const uint8_t *string, const uint8_t *key,
                                size_t count) noexcept {
  return ferry_json_same_bytes(string + 8, key + 4, count - 4);
}

}  // namespace

size_t ferry_json_search(ferry_json_tape tape, size_t index,
                         const uint8_t *key, size_t count, bool keys_differ) {
  if (count > UINT32_MAX)
    return 0;
  const uint64_t wanted = first_word(key, count);
  const size_t end = ferry_json_close(tape, index);
  bool compares =
      !keys_differ && ferry_json_payload(tape, index) >> 32 <= most_compared;
  uint64_t seen = 0;
  size_t found = 0;
  for (size_t i = index + 1; i < end; i = ferry_json_after(tape, i + 1)) {
    const uint8_t *string = tape.strings + ferry_json_payload(tape, i);
    uint64_t word = first_word(string);
    if (word == wanted &&
        (count <= 4 || same_end(string, key, count))) {
      found = i + 1;
      if (keys_differ)
        break;
    }
    if (compares) {
      uint64_t bit = uint64_t(1) << (word * 0x9e3779b97f4a7c15u >> 58);
      compares = !(seen & bit) || !stands_before(tape, index + 1, i);
      seen |= bit;
    }
  }
  if (found && (keys_differ || compares))
    ferry_json_note(tape, index, ferry_json_after(tape, found));
  return found;
}
