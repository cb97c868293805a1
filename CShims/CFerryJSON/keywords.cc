// keywords.cc - checks a value of the tape against the rules of a schema: the
// rarely used keywords, and those that apply other rules to the same value.
#include "check.h"
#include "pattern.h"

namespace {

constexpr uint32_t all_kinds = FERRY_JSON_STRING | FERRY_JSON_ANY_NUMBER |
                               FERRY_JSON_INTEGER | FERRY_JSON_BOOL |
                               FERRY_JSON_NULL | FERRY_JSON_OBJECT |
                               FERRY_JSON_ARRAY;

}  // namespace

bool Check::give_up(ferry_json_reason reason, uint32_t place,
                    size_t index) noexcept {
  fail(reason, place, index);
  given_up = true;
  return false;
}

// Rules that refer to one another can reach one value in very many ways. After
// more steps than schemas usually need, each result is kept for the next way
// that reaches it.
bool Check::extended(size_t index, uint32_t place) noexcept {
  if (given_up)
    return false;
  if (ferry_json_stack_is_low())
    return give_up(FERRY_JSON_LOW_STACK, place, index);
  if (++steps <= budget)
    return keywords(index, place);
  if (const Verdicts::Verdict *known = verdicts.find(index, place)) {
    auto reason = static_cast<ferry_json_reason>(known->reason);
    return reason == FERRY_JSON_FITS ||
           fail(reason, known->rule, known->found_at, known->property);
  }
  bool fits = keywords(index, place);
  if (given_up)
    return false;
  if (!verdicts.add(index, place, fits ? ferry_json_mismatch() : mismatch))
    return give_up(FERRY_JSON_MUCH_WORK, place, index);
  return fits;
}

bool Check::keywords(size_t index, uint32_t place) noexcept {
  const ferry_json_extra &extra = extra_of(place);
  if (extra.reference != FERRY_JSON_NO_RULE && !value(index, extra.reference))
    return false;
  if (extra.all_of.count && !all_of(index, place))
    return false;
  if (extra.any_of.count && !any_of(index, place))
    return false;
  if (extra.one_of.count && !one_of(index, place))
    return false;
  if (extra.negated != FERRY_JSON_NO_RULE && probe(index, extra.negated))
    return fail(FERRY_JSON_NEGATED, place, index);
  if (extra.condition != FERRY_JSON_NO_RULE && !conditional(index, place))
    return false;
  switch (ferry_json_tag(tape, index)) {
  case '"':
    return string(index, place) && formatted(index, place);
  case 'l':
  case 'u':
  case 'd':
    return number(index, place) && multiple(index, place);
  case '[':
    return elements(index, place) &&
           (extra.unevaluated_items == FERRY_JSON_NO_RULE ||
            unevaluated(index, place));
  case '{':
    return members(index, place) &&
           (extra.unevaluated_members == FERRY_JSON_NO_RULE ||
            unevaluated(index, place));
  default:
    return true;
  }
}

// Whether the value matches; both outcomes are allowed.
bool Check::probe(size_t index, uint32_t place) noexcept {
  ferry_json_mismatch before = mismatch;
  bool fits = value(index, place) && !given_up;
  if (!given_up)
    mismatch = before;
  return fits;
}

bool Check::all_of(size_t index, uint32_t place) noexcept {
  ferry_json_span span = extra_of(place).all_of;
  for (uint32_t i = 0; i < span.count; i++)
    if (!value(index, schema.list[span.first + i]))
      return false;
  return true;
}

// The kinds of values that a rule allows, if it, or a rule that it only refers
// to, says so.
uint32_t Check::allowed_kinds(uint32_t place) const noexcept {
  for (;;) {
    const ferry_json_rule &rule = schema.rules[place];
    if (rule.kinds != all_kinds || rule.extra == FERRY_JSON_NO_RULE ||
        extra_of(place).reference == FERRY_JSON_NO_RULE)
      return rule.kinds;
    place = extra_of(place).reference;
  }
}

// If a single alternative is for values of this kind, its mismatch says more
// than that none matches.
bool Check::any_of(size_t index, uint32_t place) noexcept {
  ferry_json_span span = extra_of(place).any_of;
  uint32_t kinds = kinds_of(index), candidates = 0;
  ferry_json_mismatch nearest = {};
  for (uint32_t i = 0; i < span.count; i++) {
    uint32_t alternative = schema.list[span.first + i];
    if (value(index, alternative))
      return true;
    if (kinds & allowed_kinds(alternative)) {
      candidates++;
      nearest = mismatch;
    }
  }
  if (candidates == 1 && !given_up) {
    mismatch = nearest;
    return false;
  }
  return fail(FERRY_JSON_NONE_FITS, place, index);
}

bool Check::one_of(size_t index, uint32_t place) noexcept {
  ferry_json_span span = extra_of(place).one_of;
  uint32_t kinds = kinds_of(index), candidates = 0, fitting = 0;
  ferry_json_mismatch nearest = {};
  for (uint32_t i = 0; i < span.count; i++) {
    uint32_t alternative = schema.list[span.first + i];
    if (value(index, alternative)) {
      fitting++;
    } else if (kinds & allowed_kinds(alternative)) {
      candidates++;
      nearest = mismatch;
    }
  }
  if (fitting == 1)
    return true;
  if (fitting == 0 && candidates == 1 && !given_up) {
    mismatch = nearest;
    return false;
  }
  return fail(fitting ? FERRY_JSON_SEVERAL_FIT : FERRY_JSON_NONE_FITS, place,
              index);
}

bool Check::conditional(size_t index, uint32_t place) noexcept {
  const ferry_json_extra &extra = extra_of(place);
  uint32_t rule =
      probe(index, extra.condition) ? extra.consequence : extra.alternative;
  return rule == FERRY_JSON_NO_RULE || value(index, rule);
}

bool Check::formatted(size_t index, uint32_t place) noexcept {
  uint32_t format = extra_of(place).format;
  if (format == FERRY_JSON_ANY_FORMAT)
    return true;
  size_t count;
  const uint8_t *bytes = ferry_json_string(tape, index, &count);
  return ferry__json_has_format(format, bytes, count) ||
         fail(FERRY_JSON_FORMAT, place, index);
}

bool Check::multiple(size_t index, uint32_t place) noexcept {
  uint32_t factor = extra_of(place).multiple_of;
  return !factor ||
         ferry__json_is_multiple(tape, index, schema.constants, factor) ||
         fail(FERRY_JSON_NOT_MULTIPLE, place, index);
}

bool Check::elements(size_t index, uint32_t place) noexcept {
  const ferry_json_rule &rule = schema.rules[place];
  const ferry_json_extra &extra = extra_of(place);
  if (!length_fits(index, place))
    return false;
  size_t end = ferry_json_close(tape, index), position = 0;
  for (size_t i = index + 1; i < end; i = ferry_json_after(tape, i)) {
    uint32_t element = position < extra.prefix.count
                           ? schema.list[extra.prefix.first + position]
                           : rule.items;
    if (element == FERRY_JSON_NO_RULE)
      break;
    if (!value(i, element))
      return false;
    position++;
  }
  if (extra.contained != FERRY_JSON_NO_RULE && !contained(index, place))
    return false;
  return !extra.unique || ferry__json_elements_differ(tape, index) ||
         fail(FERRY_JSON_EQUAL_ITEMS, place, index);
}

bool Check::contained(size_t index, uint32_t place) noexcept {
  const ferry_json_extra &extra = extra_of(place);
  size_t end = ferry_json_close(tape, index), found = 0;
  for (size_t i = index + 1; i < end; i = ferry_json_after(tape, i)) {
    if (found >= extra.min_contained &&
        extra.max_contained == FERRY_JSON_NO_LIMIT)
      return true;
    if (!probe(i, extra.contained))
      continue;
    found++;
    if (extra.max_contained != FERRY_JSON_NO_LIMIT &&
        found > extra.max_contained)
      return fail(FERRY_JSON_MANY_CONTAINED, place, index);
  }
  return found >= extra.min_contained ||
         fail(FERRY_JSON_FEW_CONTAINED, place, index);
}

bool Check::members(size_t index, uint32_t place) noexcept {
  const ferry_json_extra &extra = extra_of(place);
  if (!member_count_fits(index, place))
    return false;
  if (extra.names != FERRY_JSON_NO_RULE) {
    size_t end = ferry_json_close(tape, index);
    for (size_t key = index + 1; key < end;
         key = ferry_json_after(tape, key + 1))
      if (!value(key, extra.names))
        return false;
  }
  if (!(extra.by_pattern ? patterned_members(index, place)
                         : object(index, place)))
    return false;
  return !extra.dependencies.count || dependencies(index, place);
}

// Duplicate keys count as one member.
bool Check::member_count_fits(size_t index, uint32_t place) noexcept {
  const ferry_json_extra &extra = extra_of(place);
  bool has_limit = extra.max_members != FERRY_JSON_NO_LIMIT;
  if (!extra.min_members && !has_limit)
    return true;
  size_t count = ferry_json_count(tape, index);
  bool is_certain = (!has_limit || count <= extra.max_members) &&
                    (count < extra.min_members || extra.min_members <= 1);
  if (!is_certain) {
    KeyTable table;
    table.fill(tape, index);
    count = table.members.size();
  }
  if (count < extra.min_members)
    return fail(FERRY_JSON_SHORT, place, index);
  if (has_limit && count > extra.max_members)
    return fail(FERRY_JSON_LONG, place, index);
  return true;
}

// The position of the property among those of the rule, or their number. Starts
// at `*next`, because documents usually have their members in the schema's
// order.
uint32_t Check::find_property(const ferry_json_rule &rule, size_t key,
                              uint32_t *next) const noexcept {
  const ferry_json_property *properties = schema.properties + rule.properties;
  size_t length;
  const uint8_t *bytes = ferry_json_string(tape, key, &length);
  for (uint32_t tries = 0; tries < rule.property_count; tries++, ++*next) {
    if (*next >= rule.property_count)
      *next = 0;
    if (properties[*next].count == length &&
        ferry_json_same_bytes(properties[*next].key, bytes, length))
      return (*next)++;
  }
  return rule.property_count;
}

bool Check::patterned_members(size_t index, uint32_t place) noexcept {
  const ferry_json_rule &rule = schema.rules[place];
  ferry_json_span patterned = extra_of(place).patterned;
  uint32_t next = 0;
  uint64_t seen = 0;
  KeyTable table;
  size_t end = ferry_json_close(tape, index);
  for (size_t key = index + 1; key < end;
       key = ferry_json_after(tape, key + 1)) {
    size_t length;
    const uint8_t *bytes = ferry_json_string(tape, key, &length);
    bool is_named = false, fits = true;
    uint32_t found = find_property(rule, key, &next);
    if (found < rule.property_count) {
      const ferry_json_property &own =
          schema.properties[rule.properties + found];
      if (found < 64)
        seen |= uint64_t(1) << found;
      if (own.named) {
        is_named = true;
        fits = value(key + 1, own.rule);
      }
    }
    for (uint32_t i = 0; i < patterned.count && fits; i++) {
      const ferry_json_patterned &member =
          schema.patterned[patterned.first + i];
      if (!ferry__json_pattern_finds(member.pattern, bytes, length))
        continue;
      is_named = true;
      fits = value(key + 1, member.rule);
    }
    if (!is_named && rule.closed)
      return fail(FERRY_JSON_UNKNOWN, place, key);
    if (!is_named && rule.others != FERRY_JSON_NO_RULE)
      fits = value(key + 1, rule.others);
    if (!fits && is_last(index, key, table))
      return false;
  }
  return no_key_is_missing(index, place, seen);
}

bool Check::dependencies(size_t index, uint32_t place) noexcept {
  ferry_json_span span = extra_of(place).dependencies;
  for (uint32_t i = 0; i < span.count; i++) {
    const ferry_json_dependency &dependency =
        schema.dependencies[span.first + i];
    if (!ferry_json_find(tape, index, dependency.key, dependency.count))
      continue;
    for (uint32_t k = 0; k < dependency.required.count; k++) {
      uint32_t required = dependency.required.first + k;
      const ferry_json_property &property = schema.properties[required];
      if (!ferry_json_find(tape, index, property.key, property.count))
        return fail(FERRY_JSON_MISSING, place, index, required);
    }
    if (dependency.rule != FERRY_JSON_NO_RULE &&
        !value(index, dependency.rule))
      return false;
  }
  return true;
}
