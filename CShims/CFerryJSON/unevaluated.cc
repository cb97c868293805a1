// unevaluated.cc - members and elements that no other keyword evaluates.
//
// The value is known to match everything else. So only the alternatives and
// conditions that it matches must be determined again. The rules that apply to
// the same value then mark what they evaluate.
#include "check.h"
#include "pattern.h"

bool Check::unevaluated(size_t index, uint32_t place) noexcept {
  const ferry_json_extra &extra = extra_of(place);
  bool is_object = ferry_json_tag(tape, index) == '{';
  uint32_t rule =
      is_object ? extra.unevaluated_members : extra.unevaluated_items;
  Evaluated evaluated;
  evaluated.children.resize(ferry_json_count(tape, index));
  mark(index, place, true, evaluated);
  if (given_up)
    return false;
  if (evaluated.all)
    return true;
  bool refuses_all = schema.rules[rule].kinds == 0;
  KeyTable table;
  size_t end = ferry_json_close(tape, index), position = 0;
  for (size_t i = index + 1; i < end; position++) {
    size_t child = is_object ? i + 1 : i;
    if (!evaluated.children[position]) {
      if (is_object && refuses_all)
        return fail(FERRY_JSON_UNKNOWN, place, i);
      if (!value(child, rule) && (!is_object || is_last(index, i, table)))
        return false;
    }
    i = ferry_json_after(tape, child);
  }
  return true;
}

void Check::mark(size_t index, uint32_t place, bool is_outermost,
                 Evaluated &evaluated) noexcept {
  if (evaluated.all || given_up)
    return;
  if (ferry_json_tag(tape, index) == '{')
    mark_members(index, place, evaluated);
  else
    mark_elements(index, place, evaluated);
  if (schema.rules[place].extra == FERRY_JSON_NO_RULE)
    return;
  if (ferry_json_stack_is_low()) {
    give_up(FERRY_JSON_LOW_STACK, place, index);
    return;
  }

  const ferry_json_extra &extra = extra_of(place);
  bool is_object = ferry_json_tag(tape, index) == '{';
  uint32_t rest =
      is_object ? extra.unevaluated_members : extra.unevaluated_items;
  if (rest != FERRY_JSON_NO_RULE && !is_outermost) {
    evaluated.all = true;
    return;
  }
  if (extra.reference != FERRY_JSON_NO_RULE &&
      evaluated.references.insert(extra.reference).second)
    mark(index, extra.reference, false, evaluated);
  for (uint32_t i = 0; i < extra.all_of.count; i++)
    mark(index, schema.list[extra.all_of.first + i], false, evaluated);
  for (ferry_json_span span : {extra.any_of, extra.one_of}) {
    for (uint32_t i = 0; i < span.count; i++) {
      uint32_t alternative = schema.list[span.first + i];
      if (probe(index, alternative))
        mark(index, alternative, false, evaluated);
    }
  }
  if (extra.condition != FERRY_JSON_NO_RULE) {
    bool fits = probe(index, extra.condition);
    if (fits)
      mark(index, extra.condition, false, evaluated);
    uint32_t then = fits ? extra.consequence : extra.alternative;
    if (then != FERRY_JSON_NO_RULE)
      mark(index, then, false, evaluated);
  }
  for (uint32_t i = 0; is_object && i < extra.dependencies.count; i++) {
    const ferry_json_dependency &dependency =
        schema.dependencies[extra.dependencies.first + i];
    if (dependency.rule != FERRY_JSON_NO_RULE &&
        ferry_json_find(tape, index, dependency.key, dependency.count))
      mark(index, dependency.rule, false, evaluated);
  }
}

void Check::mark_elements(size_t index, uint32_t place,
                          Evaluated &evaluated) noexcept {
  const ferry_json_rule &rule = schema.rules[place];
  if (rule.items != FERRY_JSON_NO_RULE) {
    evaluated.all = true;
    return;
  }
  if (rule.extra == FERRY_JSON_NO_RULE)
    return;
  const ferry_json_extra &extra = extra_of(place);
  size_t count = evaluated.children.size();
  for (size_t i = 0; i < extra.prefix.count && i < count; i++)
    evaluated.children[i] = true;
  if (extra.contained == FERRY_JSON_NO_RULE)
    return;
  size_t end = ferry_json_close(tape, index), position = 0;
  for (size_t i = index + 1; i < end; i = ferry_json_after(tape, i)) {
    if (!evaluated.children[position] && probe(i, extra.contained))
      evaluated.children[position] = true;
    position++;
  }
}

void Check::mark_members(size_t index, uint32_t place,
                         Evaluated &evaluated) noexcept {
  const ferry_json_rule &rule = schema.rules[place];
  bool has_extra = rule.extra != FERRY_JSON_NO_RULE;
  if (rule.takes_all_members || rule.closed ||
      rule.others != FERRY_JSON_NO_RULE) {
    evaluated.all = true;
    return;
  }
  uint32_t patterned = has_extra ? extra_of(place).patterned.count : 0;
  if (!rule.property_count && !patterned)
    return;
  uint32_t next = 0;
  size_t end = ferry_json_close(tape, index), position = 0;
  for (size_t key = index + 1; key < end;
       key = ferry_json_after(tape, key + 1), position++) {
    uint32_t found = find_property(rule, key, &next);
    bool is_named =
        found < rule.property_count &&
        schema.properties[rule.properties + found].named;
    size_t length;
    const uint8_t *bytes = ferry_json_string(tape, key, &length);
    for (uint32_t i = 0; i < patterned && !is_named; i++)
      is_named = ferry__json_pattern_finds(
          schema.patterned[extra_of(place).patterned.first + i].pattern, bytes,
          length);
    if (is_named)
      evaluated.children[position] = true;
  }
}
