// differ.cc - whether all elements of an array are different.
//
// A few are compared with one another. Many get a number each, the same number
// if they are equal: scalars by a total order, containers by the numbers of
// their contents. They are sorted, not hashed, so no choice of values makes it
// slow. Nesting needs no stack.
#include "check.h"

#include <algorithm>
#include <map>

namespace {

constexpr size_t most_compared = 16;

bool is_container(uint8_t tag) noexcept { return tag == '[' || tag == '{'; }

bool is_number(uint8_t tag) noexcept {
  return tag == 'l' || tag == 'u' || tag == 'd';
}

// An order of all scalars, in which equal ones are adjacent.
struct ScalarOrder {
  ferry_json_tape tape;

  bool operator()(size_t a, size_t b) const noexcept {
    uint8_t a_tag = ferry_json_tag(tape, a), b_tag = ferry_json_tag(tape, b);
    if (is_number(a_tag) && is_number(b_tag))
      return ferry_json_compare_numbers(tape, a, tape, b) < 0;
    if (a_tag != b_tag)
      return a_tag < b_tag;
    if (a_tag != '"')
      return false;
    size_t a_count, b_count;
    const uint8_t *a_bytes = ferry_json_string(tape, a, &a_count);
    const uint8_t *b_bytes = ferry_json_string(tape, b, &b_count);
    if (a_count != b_count)
      return a_count < b_count;
    return memcmp(a_bytes, b_bytes, a_count) < 0;
  }
};

class Identities {
 public:
  explicit Identities(ferry_json_tape tape)
      : tape(tape), scalars(ScalarOrder{tape}) {}

  // The numbers of the elements of the array.
  std::vector<uint32_t> of_elements(size_t array) {
    std::vector<Open> open;
    open.push_back({ferry_json_close(tape, array), false, {}});
    for (size_t i = array + 1;;) {
      if (i == open.back().end) {
        Open closed = std::move(open.back());
        open.pop_back();
        if (open.empty())
          return std::move(closed.children);
        open.back().children.push_back(number_of(closed));
        i++;
        continue;
      }
      uint8_t tag = ferry_json_tag(tape, i);
      if (is_container(tag)) {
        open.push_back({ferry_json_close(tape, i), tag == '{', {}});
        i++;
      } else {
        open.back().children.push_back(number_of_scalar(i));
        i = ferry_json_after(tape, i);
      }
    }
  }

 private:
  struct Open {
    size_t end;
    bool is_object;
    std::vector<uint32_t> children;  // keys too
  };

  ferry_json_tape tape;
  std::map<size_t, uint32_t, ScalarOrder> scalars;
  std::map<std::vector<uint32_t>, uint32_t> containers;
  uint32_t count = 0;

  uint32_t number_of_scalar(size_t index) {
    auto place = scalars.try_emplace(index, count);
    count += place.second;
    return place.first->second;
  }

  uint32_t number_of(Open &closed) {
    std::vector<uint32_t> key;
    if (closed.is_object)
      key = members(closed.children);
    else
      key = std::move(closed.children);
    key.push_back(closed.is_object);
    auto place = containers.try_emplace(std::move(key), count);
    count += place.second;
    return place.first->second;
  }

  // In the order of their keys' numbers; of a duplicate key only the last one.
  static std::vector<uint32_t> members(const std::vector<uint32_t> &children) {
    std::map<uint32_t, uint32_t> values;
    for (size_t i = 0; i + 1 < children.size(); i += 2)
      values[children[i]] = children[i + 1];
    std::vector<uint32_t> sorted;
    sorted.reserve(2 * values.size() + 1);
    for (auto [key, value] : values) {
      sorted.push_back(key);
      sorted.push_back(value);
    }
    return sorted;
  }
};

template <class List, class Order>
bool all_differ(List &list, Order is_before) {
  std::sort(list.begin(), list.end(), is_before);
  return std::adjacent_find(list.begin(), list.end(), [&](auto a, auto b) {
           return !is_before(a, b);
         }) == list.end();
}

}  // namespace

bool ferry__json_elements_differ(ferry_json_tape tape, size_t index) {
  std::vector<size_t> elements;
  bool has_container = false;
  size_t end = ferry_json_close(tape, index);
  if (ferry_json_count(tape, index) <= most_compared) {
    for (size_t a = index + 1; a < end; a = ferry_json_after(tape, a))
      for (size_t b = index + 1; b < a; b = ferry_json_after(tape, b))
        if (ferry_json_equal(tape, a, tape, b))
          return false;
    return true;
  }
  for (size_t i = index + 1; i < end; i = ferry_json_after(tape, i)) {
    has_container |= is_container(ferry_json_tag(tape, i));
    elements.push_back(i);
  }
  if (!has_container)
    return all_differ(elements, ScalarOrder{tape});
  std::vector<uint32_t> numbers = Identities(tape).of_elements(index);
  return all_differ(numbers, std::less<uint32_t>());
}
