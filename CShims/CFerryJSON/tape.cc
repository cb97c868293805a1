// tape.cc - reading a tape.
#include "keys.h"

#include <cmath>

namespace {

// Compares a double with an integer, exactly: the integer's range is within the
// double's, and integral doubles within that range convert without loss.
int compare(double a, int64_t b) noexcept {
  if (a >= 0x1p63)
    return 1;
  if (a < -0x1p63)
    return -1;
  auto whole = static_cast<int64_t>(a);
  if (whole != b)
    return whole < b ? -1 : 1;
  double rest = a - std::trunc(a);
  return (rest > 0) - (rest < 0);
}

int compare(double a, uint64_t b) noexcept {
  if (a >= 0x1p64)
    return 1;
  if (a < 0)
    return -1;
  auto whole = static_cast<uint64_t>(a);
  if (whole != b)
    return whole < b ? -1 : 1;
  return a > std::trunc(a);
}

bool is_number(uint8_t tag) noexcept {
  return tag == 'l' || tag == 'u' || tag == 'd';
}

bool same_string(ferry_json_tape a, size_t at, ferry_json_tape b,
                 size_t bt) noexcept {
  size_t a_count, b_count;
  const uint8_t *a_bytes = ferry_json_string(a, at, &a_count);
  const uint8_t *b_bytes = ferry_json_string(b, bt, &b_count);
  return a_count == b_count && memcmp(a_bytes, b_bytes, a_count) == 0;
}

// Two values that must be equal, and have yet to be compared.
struct Pair {
  size_t a, b;
};

// Compares without recursion: nested values are put on a list.
class Comparison {
 public:
  Comparison(ferry_json_tape a, ferry_json_tape b) noexcept : a(a), b(b) {}

  bool same(Pair pair) {
    if (!same_or_open(pair))
      return false;
    while (!open.empty()) {
      pair = open.back();
      open.pop_back();
      bool is_array = ferry_json_tag(a, pair.a) == '[';
      if (is_array ? !same_elements(pair) : !same_members(pair))
        return false;
    }
    return true;
  }

 private:
  ferry_json_tape a, b;
  std::vector<Pair> open;

  // Returns false if they differ; containers are put on the list.
  bool same_or_open(Pair pair) {
    uint8_t a_tag = ferry_json_tag(a, pair.a);
    uint8_t b_tag = ferry_json_tag(b, pair.b);
    if (is_number(a_tag) && is_number(b_tag))
      return ferry_json_compare_numbers(a, pair.a, b, pair.b) == 0;
    if (a_tag != b_tag)
      return false;
    if (a_tag == '"')
      return same_string(a, pair.a, b, pair.b);
    if (a_tag == '[' || a_tag == '{')
      open.push_back(pair);
    return true;
  }

  bool same_elements(Pair pair) {
    size_t a_end = ferry_json_close(a, pair.a);
    size_t b_end = ferry_json_close(b, pair.b);
    size_t at = pair.a + 1, bt = pair.b + 1;
    while (at < a_end && bt < b_end) {
      if (!same_or_open({at, bt}))
        return false;
      at = ferry_json_after(a, at);
      bt = ferry_json_after(b, bt);
    }
    return at == a_end && bt == b_end;
  }

  bool same_members(Pair pair) {
    if (ferry__json_is_wide(a, pair.a) || ferry__json_is_wide(b, pair.b))
      return same_tables(pair);
    size_t b_end = ferry_json_close(b, pair.b), count;
    for (size_t key = pair.b + 1; key < b_end;
         key = ferry_json_after(b, key + 1)) {
      const uint8_t *bytes = ferry_json_string(b, key, &count);
      if (!ferry_json_find(a, pair.a, bytes, count))
        return false;
    }
    size_t a_end = ferry_json_close(a, pair.a);
    for (size_t key = pair.a + 1; key < a_end;
         key = ferry_json_after(a, key + 1)) {
      const uint8_t *bytes = ferry_json_string(a, key, &count);
      size_t theirs = ferry_json_find(b, pair.b, bytes, count);
      if (!theirs)
        return false;
      // Of duplicate keys the last value counts.
      if (ferry_json_find(a, pair.a, bytes, count) == key + 1 &&
          !same_or_open({key + 1, theirs}))
        return false;
    }
    return true;
  }

  // Both tables have the keys in the same order.
  bool same_tables(Pair pair) {
    KeyTable ours, theirs;
    ours.fill(a, pair.a);
    theirs.fill(b, pair.b);
    if (ours.members.size() != theirs.members.size())
      return false;
    for (size_t i = 0; i < ours.members.size(); i++) {
      const KeyTable::Member &own = ours.members[i], &other = theirs.members[i];
      if (own.count != other.count ||
          memcmp(own.bytes, other.bytes, own.count) != 0 ||
          !same_or_open({own.value, other.value}))
        return false;
    }
    return true;
  }
};

}  // namespace

bool ferry__json_short_strings;

size_t ferry_json_count(ferry_json_tape tape, size_t index) {
  size_t count = ferry_json_payload(tape, index) >> 32;
  if (count < 0xffffff)
    return count;
  bool is_object = ferry_json_tag(tape, index) == '{';
  size_t end = ferry_json_close(tape, index);
  count = 0;
  for (size_t i = index + 1; i < end; count++)
    i = ferry_json_after(tape, is_object ? i + 1 : i);
  return count;
}

size_t ferry_json_element(ferry_json_tape tape, size_t index, size_t position) {
  size_t end = ferry_json_close(tape, index);
  size_t i = index + 1;
  while (i < end && position-- > 0)
    i = ferry_json_after(tape, i);
  return i < end ? i : 0;
}

int ferry_json_compare_numbers(ferry_json_tape a, size_t at, ferry_json_tape b,
                               size_t bt) {
  uint8_t a_tag = ferry_json_tag(a, at), b_tag = ferry_json_tag(b, bt);
  uint64_t a_bits = a.words[at + 1], b_bits = b.words[bt + 1];
  auto a_signed = static_cast<int64_t>(a_bits);
  auto b_signed = static_cast<int64_t>(b_bits);
  if (a_tag == 'd' && b_tag == 'd') {
    double left = ferry_json_double(a, at), right = ferry_json_double(b, bt);
    return (left > right) - (left < right);
  }
  if (a_tag == 'd')
    return b_tag == 'u' ? compare(ferry_json_double(a, at), b_bits)
                        : compare(ferry_json_double(a, at), b_signed);
  if (b_tag == 'd')
    return -ferry_json_compare_numbers(b, bt, a, at);
  if (a_tag == 'l' && b_tag == 'l')
    return (a_signed > b_signed) - (a_signed < b_signed);
  if (a_tag == 'l' && a_signed < 0)
    return -1;
  if (b_tag == 'l' && b_signed < 0)
    return 1;
  return (a_bits > b_bits) - (a_bits < b_bits);
}

bool ferry_json_equal(ferry_json_tape a, size_t at, ferry_json_tape b,
                      size_t bt) {
  return Comparison(a, b).same({at, bt});
}
