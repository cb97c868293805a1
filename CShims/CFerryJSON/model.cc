// model.cc - whether an object has the same keys as another one.
#include "model.h"

namespace {

// Whether two strings are equal, by their lengths and first twelve bytes at
// once. Reads 16 bytes of each.
inline bool same_string(const uint8_t *a, const uint8_t *b) noexcept {
  // The parts of the first and second eight bytes that belong to a string of
  // this length, including the length.
  constexpr uint64_t all = ~uint64_t(0);
  constexpr uint64_t parts[13][2] = {
      {0xffffffff, 0},         {0xffffffffff, 0}, {0xffffffffffff, 0},
      {0xffffffffffffff, 0},   {all, 0},          {all, 0xff},
      {all, 0xffff},           {all, 0xffffff},   {all, 0xffffffff},
      {all, 0xffffffffff},     {all, 0xffffffffffff},
      {all, 0xffffffffffffff}, {all, all}};
  uint64_t a_words[2], b_words[2];
  memcpy(a_words, a, sizeof a_words);
  memcpy(b_words, b, sizeof b_words);
  auto count = static_cast<uint32_t>(a_words[0]);
  const uint64_t *part = parts[count < 12 ? count : 12];
  if (((a_words[0] ^ b_words[0]) & part[0]) |
      ((a_words[1] ^ b_words[1]) & part[1]))
    return false;
  return count <= 12 || memcmp(a + 16, b + 16, count - size_t(12)) == 0;
}

}  // namespace

bool Model::measure(ferry_json_tape tape) noexcept {
  const size_t end = ferry_json_close(tape, index);
  if (end - index > UINT16_MAX)
    return false;
  uint32_t n = 0;
  for (size_t i = index + size_t(1); i < end; i = ferry_json_after(tape, i + 1))
    places[n++] = static_cast<uint16_t>(i - index);
  places[n] = static_cast<uint16_t>(end - index);
  is_measured = true;
  return true;
}

// Compares each value at the expected position rather than after the previous
// one, so that the processor need not wait. The result is discarded if one is
// elsewhere.
bool Model::has_same_places(ferry_json_tape tape, size_t object,
                            bool *has_strings) const noexcept {
  if (ferry_json_close(tape, object) - object != places[count])
    return false;
  size_t differences = 0, strings = 0;
  for (uint32_t n = 0; n < count; n++) {
    const size_t value = object + places[n] + 1;
    const uint8_t tag = ferry_json_tag(tape, value);
    differences |= ferry_json_after(tape, value) ^ (object + places[n + 1]);
    strings |= tag == '"' || (tag | 0x20) == '{';
  }
  *has_strings = strings;
  return differences == 0;
}

bool Model::has_same_keys(ferry_json_tape tape, size_t object,
                          bool *is_alike) const noexcept {
  bool has_strings;
  *is_alike = has_same_places(tape, object, &has_strings);
  if (*is_alike && !has_strings) {
    // If both objects have no strings other than their keys, in order.
    auto key_at = [&](size_t base, uint32_t n) noexcept {
      return ferry__json_key_at(tape, base + places[n]);
    };
    const uint8_t *own = key_at(index, 0), *other = key_at(object, 0);
    const uint8_t *own_last = key_at(index, count - 1);
    const uint8_t *other_last = key_at(object, count - 1);
    const auto distance = own_last - own;
    uint32_t length;
    memcpy(&length, own_last, sizeof length);
    // The lengths of the last keys first: nothing after them is read.
    return distance == other_last - other &&
           memcmp(own_last, other_last, sizeof length) == 0 &&
           memcmp(own, other,
                  static_cast<size_t>(distance) + sizeof length + length) == 0;
  }
  size_t key = object + 1;
  for (uint32_t n = 0; n < count; n++) {
    if (*is_alike)
      key = object + places[n];
    if (!same_string(ferry__json_key_at(tape, index + places[n]),
                     ferry__json_key_at(tape, key)))
      return false;
    if (!*is_alike)
      key = ferry_json_after(tape, key + 1);
  }
  return true;
}
