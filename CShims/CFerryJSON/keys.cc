// keys.cc - the members of a wide object by their keys.
#include "keys.h"

#include <algorithm>

namespace {

// The order of two keys: the shorter one first, which most comparisons end at.
int compare(const KeyTable::Member &a, const KeyTable::Member &b) noexcept {
  if (a.count != b.count)
    return a.count < b.count ? -1 : 1;
  return memcmp(a.bytes, b.bytes, a.count);
}

bool is_before(const KeyTable::Member &a, const KeyTable::Member &b) noexcept {
  return compare(a, b) < 0;
}

}  // namespace

void KeyTable::fill(ferry_json_tape tape, size_t index) {
  size_t end = ferry_json_close(tape, index);
  for (size_t key = index + 1; key < end;
       key = ferry_json_after(tape, key + 1)) {
    size_t count;
    const uint8_t *bytes = ferry_json_string(tape, key, &count);
    members.push_back({bytes, static_cast<uint32_t>(count),
                       static_cast<uint32_t>(key + 1)});
  }
  // Of a key that stands twice the last value comes first, and stays.
  std::sort(members.begin(), members.end(), [](auto &a, auto &b) noexcept {
    int order = compare(a, b);
    return order ? order < 0 : a.value > b.value;
  });
  auto rest = std::unique(
      members.begin(), members.end(),
      [](auto &a, auto &b) noexcept { return compare(a, b) == 0; });
  members.erase(rest, members.end());
}

size_t KeyTable::find(const uint8_t *key, size_t count) const noexcept {
  if (count > UINT32_MAX)
    return 0;
  Member wanted = {key, static_cast<uint32_t>(count), 0};
  auto found =
      std::lower_bound(members.begin(), members.end(), wanted, is_before);
  return found != members.end() && compare(*found, wanted) == 0 ? found->value
                                                                : 0;
}
