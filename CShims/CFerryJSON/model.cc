// model.cc - compares the keys of an object with those of a model.
#include "model.h"

#include <new>

namespace {

// The length of a string, before its bytes.
constexpr uint32_t length_size = 4;

inline bool is_string_or_container(uint8_t tag) noexcept {
  return tag == '"' || (tag | 0x20) == '{';
}

inline KeyBytes bytes_at(const uint8_t *string) noexcept {
  KeyBytes bytes;
  memcpy(&bytes, string, sizeof bytes);
  return bytes;
}

inline bool are_equal(KeyBytes a, KeyBytes b) noexcept {
  return __builtin_reduce_and(a == b) != 0;
}

}  // namespace

bool Model::reserve(ferry_json_forget *forget) noexcept {
  if (count < capacity)
    return true;
  forget_asked(forget);
  const uint32_t size = count < 16 ? 16 : count + 1;
  capacity = 0;
  keys.reset(new (std::nothrow) Key[size]);
  places.reset(new (std::nothrow) uint32_t[size]);
  // Room for more keys than there are members: a program may ask for absent
  // keys, or twice for the same one.
  asked_capacity = size + size / 4;
  asked.reset(new (std::nothrow) Asked[asked_capacity]());
  if (!keys || !places || !asked)
    return false;
  capacity = size;
  return true;
}

void Model::forget_asked(ferry_json_forget *forget) noexcept {
  for (uint32_t n = 0; asked && n < asked_capacity; n++) {
    if (asked[n].is_kept && forget)
      forget(asked[n].words);
    asked[n].is_kept = false;
  }
}

bool Model::can_be(ferry_json_tape tape, size_t object) noexcept {
  const size_t end = ferry_json_close(tape, object);
  for (size_t i = object + 1; i < end; i = ferry_json_after(tape, i + 1)) {
    uint32_t length;
    memcpy(&length, ferry__json_key_at(tape, i), sizeof length);
    if (length > longest_key)
      return false;
  }
  return true;
}

bool Model::begin(ferry_json_tape tape, size_t object,
                  ferry_json_forget *forget) noexcept {
  count = static_cast<uint32_t>(ferry_json_payload(tape, object) >> 32);
  tag = 0;
  if (!reserve(forget))
    return false;
  asked_count = 0;
  asked[0].member = FERRY_JSON_NO_KEY;
  keys_differ = false;
  const size_t end = ferry_json_close(tape, object);
  bool has_strings = false;
  uint32_t n = 0;
  for (size_t i = object + 1; i < end; n++) {
    const uint8_t *string = ferry__json_key_at(tape, i);
    Key &key = keys[n];
    memcpy(&key.count, string, sizeof key.count);
    for (uint32_t byte = 0; byte < sizeof key.part; byte++)
      key.part[byte] = byte < length_size + key.count ? 0xff : 0;
    key.head = bytes_at(string) & key.part;
    if (key.count > 12)
      key.tail = bytes_at(string + key.count - 12);
    if (key.count > 28)
      key.middle = bytes_at(string + 16);
    places[n] = key.place = static_cast<uint32_t>(i - object);
    has_strings |= is_string_or_container(ferry_json_tag(tape, i + 1));
    i = ferry_json_after(tape, i + 1);
  }
  places[n] = static_cast<uint32_t>(end - object);
  text.reset();
  if (!has_strings)
    copy_text(tape, object);
  return true;
}

void Model::copy_text(ferry_json_tape tape, size_t object) noexcept {
  const uint8_t *first = ferry__json_key_at(tape, object + places[0]);
  const uint8_t *last = ferry__json_key_at(tape, object + places[count - 1]);
  uint32_t length;
  memcpy(&length, last, sizeof length);
  text_count = static_cast<size_t>(last - first) + sizeof length + length;
  if (last < first || text_count > longest_text)
    return;
  text.reset(new (std::nothrow) uint8_t[text_count]);
  if (text)
    memcpy(text.get(), first, text_count);
}

// Reads 16 bytes of the string, whatever its length.
inline bool Model::is_key(const Key &key, const uint8_t *string) noexcept {
  // More of it is read only if it has the length of the key.
  if (!are_equal(bytes_at(string) & key.part, key.head))
    return false;
  if (key.count <= 12)
    return true;
  if (!are_equal(bytes_at(string + key.count - 12), key.tail))
    return false;
  return key.count <= 28 || are_equal(bytes_at(string + 16), key.middle);
}

// Whether an object has the keys of the model at the same places, and like the
// model no strings or containers among its values. Then its strings are just
// its keys, in order. Each value is checked by its place in the model and not
// by the value before it, so that the processor need not wait.
bool Model::has_same_numbers(ferry_json_tape tape,
                             size_t object) const noexcept {
  size_t differences = 0, strings = 0;
  for (uint32_t n = 0; n < count; n++) {
    const size_t value = object + places[n] + 1;
    differences |= ferry_json_after(tape, value) ^ (object + places[n + 1]);
    strings |= is_string_or_container(ferry_json_tag(tape, value));
  }
  if (differences | strings)
    return false;
  const uint8_t *first = ferry__json_key_at(tape, object + places[0]);
  const uint8_t *last = ferry__json_key_at(tape, object + places[count - 1]);
  const auto distance = static_cast<size_t>(last - first);
  uint32_t length;
  // The length is compared first, so that nothing after the last key is read.
  memcpy(&length, last, sizeof length);
  return distance + sizeof length + length == text_count &&
         memcmp(first, text.get(), text_count) == 0;
}

// Skips members from number `n` on that have the keys of the model, at its
// places counted from `origin`. Returns the number of the first that has not.
// `place` is that of the next member.
[[gnu::noinline]] uint32_t Model::skip_alike(ferry_json_tape tape,
                                             size_t origin, uint32_t n,
                                             size_t &place) const noexcept {
  const Key *key = &keys[n], *const end = &keys[count];
  size_t next = place;
  for (; key < end; key++) {
    // As long as each value has the length of the model's, the place of the
    // next key is known before the value is read, and the processor need not
    // wait. The compiler must not see that both places are the same: it would
    // use only the one after the value.
    const size_t expected = origin + key->place;
    size_t same = expected;
    asm("" : "+r"(same));
    if (next != expected || !is_key(*key, ferry__json_key_at(tape, same)))
      break;
    next = ferry_json_after(tape, same + 1);
  }
  place = next;
  return static_cast<uint32_t>(key - keys.get());
}

Model::Likeness Model::compare(ferry_json_tape tape, size_t object,
                               uint32_t *others) const noexcept {
  if (text && ferry_json_close(tape, object) - object == places[count] &&
      has_same_numbers(tape, object))
    return SAME_PLACES;
  uint32_t n = 0;
  size_t place = object + 1, origin = object;
  for (;;) {
    const uint32_t first = n;
    n = skip_alike(tape, origin, first, place);
    if (n == count && first == 0)
      return SAME_PLACES;
    const auto moved = static_cast<uint32_t>(origin - object);
    for (uint32_t other = first; others && other < n; other++)
      others[other] = places[other] + moved;
    if (n == count)
      return SAME_KEYS;
    if (place == origin + keys[n].place)
      return DIFFERENT;
    // The value before is longer or shorter than the model's.
    origin = place - keys[n].place;
  }
}

Asked &Model::next_entry() noexcept {
  if (asked_count + 1 >= asked_capacity)
    asked_count = 0;
  Asked &entry = asked[asked_count++];
  asked[asked_count].member = FERRY_JSON_NO_KEY;
  return entry;
}
