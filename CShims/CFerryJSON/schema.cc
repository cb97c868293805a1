// schema.cc - checks a value of the tape against the rules of a schema: the
// common keywords.
#include "check.h"
#include "pattern.h"

#include <array>
#include <cmath>

namespace {

// The kinds of values by their tags: no processor can predict a jump by them.
constexpr std::array<uint8_t, 256> kinds_by_tag = [] {
  std::array<uint8_t, 256> kinds = {};
  kinds['"'] = FERRY_JSON_STRING;
  kinds['l'] = kinds['u'] = FERRY_JSON_ANY_NUMBER | FERRY_JSON_INTEGER;
  kinds['d'] = FERRY_JSON_ANY_NUMBER;
  kinds['t'] = kinds['f'] = FERRY_JSON_BOOL;
  kinds['n'] = FERRY_JSON_NULL;
  kinds['{'] = FERRY_JSON_OBJECT;
  kinds['['] = FERRY_JSON_ARRAY;
  return kinds;
}();

}  // namespace

// An integral double is an integer (RFC 8259 only has numbers).
uint32_t Check::kinds_of(size_t index) const noexcept {
  uint8_t tag = ferry_json_tag(tape, index);
  if (tag != 'd')
    return kinds_by_tag[tag];
  double number = ferry_json_double(tape, index);
  return std::trunc(number) == number
             ? FERRY_JSON_ANY_NUMBER | FERRY_JSON_INTEGER
             : FERRY_JSON_ANY_NUMBER;
}

bool Check::value(size_t index, uint32_t place) noexcept {
  const ferry_json_rule &rule = schema.rules[place];
  const uint32_t kinds = kinds_of(index);
  if (kinds & rule.plain)
    return true;
  if (!(kinds & rule.kinds))
    return fail(FERRY_JSON_WRONG_KIND, place, index);
  if (rule.enumeration && !listed(index, place))
    return false;
  if (rule.extra != FERRY_JSON_NO_RULE)
    return extended(index, place);
  return own(index, place);
}

inline bool Check::own(size_t index, uint32_t place) noexcept {
  switch (ferry_json_tag(tape, index)) {
  case '"': return string(index, place);
  case 'l':
  case 'u':
  case 'd': return number(index, place);
  case '[': return array(index, place);
  case '{': return object(index, place);
  default: return true;
  }
}

bool Check::number(size_t index, uint32_t place) noexcept {
  const ferry_json_rule &rule = schema.rules[place];
  if (rule.minimum) {
    int order = ferry_json_compare_numbers(tape, index, schema.constants,
                                           rule.minimum);
    if (order < 0 || (order == 0 && rule.exclusive_minimum))
      return fail(FERRY_JSON_BELOW, place, index);
  }
  if (rule.maximum) {
    int order = ferry_json_compare_numbers(tape, index, schema.constants,
                                           rule.maximum);
    if (order > 0 || (order == 0 && rule.exclusive_maximum))
      return fail(FERRY_JSON_ABOVE, place, index);
  }
  return true;
}

bool Check::string(size_t index, uint32_t place) noexcept {
  const ferry_json_rule &rule = schema.rules[place];
  if (rule.min_length == 0 && rule.max_length == FERRY_JSON_NO_LIMIT &&
      !rule.pattern)
    return true;
  size_t count;
  const uint8_t *bytes = ferry_json_string(tape, index, &count);
  size_t scalars = 0;
  for (size_t i = 0; i < count; i++)
    scalars += (bytes[i] & 0xc0) != 0x80;
  if (scalars < rule.min_length)
    return fail(FERRY_JSON_SHORT, place, index);
  if (rule.max_length != FERRY_JSON_NO_LIMIT && scalars > rule.max_length)
    return fail(FERRY_JSON_LONG, place, index);
  if (rule.pattern && !ferry__json_pattern_finds(rule.pattern, bytes, count))
    return fail(FERRY_JSON_NO_MATCH, place, index);
  return true;
}

bool Check::length_fits(size_t index, uint32_t place) noexcept {
  const ferry_json_rule &rule = schema.rules[place];
  if (rule.min_items || rule.max_items != FERRY_JSON_NO_LIMIT) {
    size_t count = ferry_json_count(tape, index);
    if (count < rule.min_items)
      return fail(FERRY_JSON_SHORT, place, index);
    if (rule.max_items != FERRY_JSON_NO_LIMIT && count > rule.max_items)
      return fail(FERRY_JSON_LONG, place, index);
  }
  return true;
}

bool Check::array(size_t index, uint32_t place) noexcept {
  const ferry_json_rule &rule = schema.rules[place];
  if (!length_fits(index, place))
    return false;
  if (rule.items == FERRY_JSON_NO_RULE)
    return true;
  size_t end = ferry_json_close(tape, index);
  for (size_t i = index + 1; i < end; i = ferry_json_after(tape, i))
    if (!value(i, rule.items))
      return false;
  return true;
}

// Documents usually have their members in the order of the schema, so the
// search for a key starts after the one found last.
bool Check::object(size_t index, uint32_t place) noexcept {
  const ferry_json_rule &rule = schema.rules[place];
  const ferry_json_property *properties = schema.properties + rule.properties;
  uint32_t count = rule.property_count, next = 0;
  uint64_t seen = 0;
  KeyTable table;
  size_t end = ferry_json_close(tape, index);
  for (size_t key = index + 1; key < end;
       key = ferry_json_after(tape, key + 1)) {
    size_t length;
    const uint8_t *bytes = ferry_json_string(tape, key, &length);
    uint32_t tries = 0;
    for (; tries < count; tries++, next++) {
      if (next == count)
        next = 0;
      if (properties[next].count == length &&
          ferry_json_same_bytes(properties[next].key, bytes, length))
        break;
    }
    if (tries < count) {
      if (!value(key + 1, properties[next].rule) && is_last(index, key, table))
        return false;
      if (next < 64)
        seen |= uint64_t(1) << next;
      next++;
    } else if (rule.closed) {
      return fail(FERRY_JSON_UNKNOWN, place, key);
    } else if (rule.others != FERRY_JSON_NO_RULE) {
      if (!value(key + 1, rule.others) && is_last(index, key, table))
        return false;
    }
  }
  return no_key_is_missing(index, place, seen);
}

// Of duplicate keys, only the last value has to match. Nearly always the first
// mismatch is the last one. If it is not, and there are many members, a table
// serves the next ones.
[[gnu::noinline]] bool Check::is_last(size_t object, size_t key,
                                      KeyTable &table) noexcept {
  size_t length;
  const uint8_t *bytes = ferry_json_string(tape, key, &length);
  if (!table.is_empty())
    return table.find(bytes, length) == key + 1;
  if (ferry_json_find(tape, object, bytes, length) == key + 1)
    return true;
  if (ferry__json_is_wide(tape, object))
    table.fill(tape, object);
  return false;
}

bool Check::no_key_is_missing(size_t object, uint32_t place,
                              uint64_t seen) noexcept {
  const ferry_json_rule &rule = schema.rules[place];
  if (!(rule.required & ~seen) && rule.property_count <= 64)
    return true;
  for (uint32_t i = 0; i < rule.property_count; i++) {
    const ferry_json_property &property =
        schema.properties[rule.properties + i];
    if (!property.required || (i < 64 && (seen >> i & 1)))
      continue;
    if (i < 64 || !ferry_json_find(tape, object, property.key, property.count))
      return fail(FERRY_JSON_MISSING, place, object, rule.properties + i);
  }
  return true;
}

bool Check::listed(size_t index, uint32_t place) noexcept {
  size_t list = schema.rules[place].enumeration;
  size_t end = ferry_json_close(schema.constants, list);
  for (size_t i = list + 1; i < end; i = ferry_json_after(schema.constants, i))
    if (ferry_json_equal(schema.constants, i, tape, index))
      return true;
  return fail(FERRY_JSON_NOT_LISTED, place, index);
}

bool ferry_json_check(const ferry_json_schema *schema, ferry_json_tape tape,
                      size_t index, ferry_json_mismatch *mismatch) {
  *mismatch = {};
  Check check(*schema, tape, index, *mismatch);
  return check.value(index, 0) && !check.is_given_up();
}
