// members.cc - the members of one object after another, laid out for lookups.
//
// Objects of one type usually have the same keys in the same order. The keys of
// an object are compared with those of the previous one, in one pass. If they
// are equal, everything known about the previous keys also applies to them.
#include "keys.h"

#include <cstdlib>

namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "a string's length comes before its bytes in the first word");

constexpr uint64_t masks[] = {0xffffffff, 0xffffffffff, 0xffffffffffff,
                              0xffffffffffffff, ~uint64_t(0)};

// Objects with more members than this get a table after several searches.
constexpr size_t most_scanned = 32;
constexpr uint32_t most_scans = 8;

// The length of a key and its first four bytes.
inline uint64_t head_of(const uint8_t *string) noexcept {
  uint64_t word;
  memcpy(&word, string, sizeof word);
  auto count = static_cast<uint32_t>(word);
  return word & masks[count < 4 ? count : 4];
}

inline uint64_t head_of(const uint8_t *key, size_t count) noexcept {
  uint64_t word = count;
  for (size_t i = 0; i < count && i < 4; i++)
    word |= uint64_t(key[i]) << (32 + 8 * i);
  return word;
}

inline bool same_key(uint64_t head, const uint8_t *string,
                     const uint8_t *key) noexcept {
  auto count = static_cast<uint32_t>(head);
  return count <= 4 ||
         ferry_json_same_bytes(string + 8, key + 4, count - size_t(4));
}

inline const uint8_t *string_at(const ferry_json_members *members,
                                ferry_json_tape tape, size_t place) noexcept {
  return tape.strings + members->keys[place];
}

void grow(ferry_json_members *members) noexcept {
  size_t capacity = members->capacity ? 2 * size_t(members->capacity) : 16;
  auto resize = [](void *memory, size_t size) {
    void *larger = realloc(memory, size);
    if (!larger)
      abort();
    return larger;
  };
  members->keys = static_cast<uint64_t *>(
      resize(members->keys, capacity * sizeof *members->keys));
  members->heads = static_cast<uint64_t *>(
      resize(members->heads, capacity * sizeof *members->heads));
  members->values = static_cast<uint32_t *>(
      resize(members->values, capacity * sizeof *members->values));
  members->capacity = static_cast<uint32_t>(capacity);
}

// The slot of a key in the table: where it is, or where it would be.
uint32_t *slot_of(const ferry_json_members *members, ferry_json_tape tape,
                  uint64_t head, const uint8_t *key) noexcept {
  size_t mask = members->table_size - size_t(1);
  size_t place = ferry_json_hash(key, static_cast<uint32_t>(head)) & mask;
  for (;; place = (place + 1) & mask) {
    uint32_t own = members->table[place];
    if (own == 0)
      break;
    if (members->heads[own - 1] == head &&
        same_key(head, string_at(members, tape, own - 1), key))
      break;
  }
  return &members->table[place];
}

// For a duplicate key the last position is in the table.
void make_table(ferry_json_members *members, ferry_json_tape tape) noexcept {
  size_t size = 64;
  while (size < 2 * size_t(members->count))
    size *= 2;
  if (members->table_size < size) {
    free(members->table);
    members->table = static_cast<uint32_t *>(malloc(size * sizeof(uint32_t)));
    if (!members->table)
      abort();
    members->table_size = static_cast<uint32_t>(size);
  }
  memset(members->table, 0, members->table_size * sizeof(uint32_t));
  for (uint32_t i = 0; i < members->count; i++) {
    const uint8_t *key = string_at(members, tape, i) + 4;
    uint32_t *slot = slot_of(members, tape, members->heads[i], key);
    if (*slot)
      members->keys_differ = false;
    *slot = i + 1;
  }
  members->has_table = true;
}

// Whether all keys differ, and whether all are ASCII.
void look_at_keys(ferry_json_members *members, ferry_json_tape tape) noexcept {
  members->has_table = false;
  members->scans = 0;
  members->keys_differ = true;
  members->is_ascii = true;
  uint64_t seen[8] = {};
  for (size_t i = 0; i < members->count; i++) {
    const uint8_t *key = string_at(members, tape, i) + 4;
    uint64_t head = members->heads[i];
    if (!ferry_json_is_ascii(key, static_cast<uint32_t>(head)))
      members->is_ascii = false;
    if (members->count > 2 * most_scanned || !members->keys_differ)
      continue;
    uint64_t bits = ferry__json_spread(head, key - 4) >> 55;
    uint64_t bit = uint64_t(1) << (bits & 63);
    if (seen[bits >> 6] & bit) {
      for (size_t j = 0; j < i && members->keys_differ; j++)
        members->keys_differ =
            members->heads[j] != head ||
            !same_key(head, string_at(members, tape, j), key);
    }
    seen[bits >> 6] |= bit;
  }
  if (members->count > 2 * most_scanned)
    make_table(members, tape);
}

}  // namespace

bool ferry_json_members_fill(ferry_json_members *members, ferry_json_tape tape,
                             size_t index) {
  const size_t end = ferry_json_close(tape, index);
  size_t i = index + 1, n = 0;
  for (; i < end && n < members->count; n++) {
    uint64_t place = ferry_json_payload(tape, i);
    uint64_t head = head_of(tape.strings + place);
    if (head != members->heads[n] ||
        !same_key(head, tape.strings + members->keys[n],
                  tape.strings + place + 4))
      break;
    members->values[n] = static_cast<uint32_t>(i + 1);
    i = ferry_json_after(tape, i + 1);
  }
  if (i >= end && n == members->count)
    return true;
  for (; i < end; n++) {
    if (n == members->capacity)
      grow(members);
    uint64_t place = ferry_json_payload(tape, i);
    members->keys[n] = place;
    members->heads[n] = head_of(tape.strings + place);
    members->values[n] = static_cast<uint32_t>(i + 1);
    i = ferry_json_after(tape, i + 1);
  }
  members->count = static_cast<uint32_t>(n);
  look_at_keys(members, tape);
  return false;
}

size_t ferry_json_members_find(ferry_json_members *members,
                               ferry_json_tape tape, const uint8_t *key,
                               size_t count, size_t guess) {
  if (count > UINT32_MAX)
    return FERRY_JSON_NOWHERE;
  const uint64_t head = head_of(key, count);
  if (members->keys_differ && guess < members->count &&
      members->heads[guess] == head &&
      same_key(head, string_at(members, tape, guess), key))
    return guess;
  if (!members->has_table && members->count > most_scanned &&
      ++members->scans > most_scans)
    make_table(members, tape);
  if (members->has_table) {
    uint32_t found = *slot_of(members, tape, head, key);
    return found ? found - size_t(1) : FERRY_JSON_NOWHERE;
  }
  for (size_t n = members->count; n-- > 0;)
    if (members->heads[n] == head &&
        same_key(head, string_at(members, tape, n), key))
      return n;
  return FERRY_JSON_NOWHERE;
}

void ferry_json_members_free(ferry_json_members *members) {
  free(members->keys);
  free(members->heads);
  free(members->values);
  free(members->table);
}
