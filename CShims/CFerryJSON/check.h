// check.h - checks a value of the tape against the rules of a schema.
#ifndef FERRY_JSON_CHECK_H
#define FERRY_JSON_CHECK_H

#include "keys.h"
#include "verdicts.h"

#include <set>
#include <vector>

class Check {
 public:
  Check(const ferry_json_schema &schema, ferry_json_tape tape, size_t index,
        ferry_json_mismatch &mismatch) noexcept
      : schema(schema),
        tape(tape),
        mismatch(mismatch),
        budget(4096 + 16 * (ferry_json_after(tape, index) - index)) {}

  bool value(size_t index, uint32_t place) noexcept;
  bool is_given_up() const noexcept { return given_up; }

 private:
  const ferry_json_schema &schema;
  ferry_json_tape tape;
  ferry_json_mismatch &mismatch;
  bool given_up = false;
  // The number of steps before results are kept.
  size_t budget;
  size_t steps = 0;
  Verdicts verdicts;

  bool fail(ferry_json_reason reason, uint32_t rule, size_t index,
            uint32_t property = 0) noexcept {
    if (!given_up)
      mismatch = {reason, rule, property, index};
    return false;
  }

  uint32_t kinds_of(size_t index) const noexcept;
  bool own(size_t index, uint32_t place) noexcept;
  bool number(size_t index, uint32_t place) noexcept;
  bool string(size_t index, uint32_t place) noexcept;
  bool array(size_t index, uint32_t place) noexcept;
  bool object(size_t index, uint32_t place) noexcept;
  bool length_fits(size_t index, uint32_t place) noexcept;
  bool is_last(size_t object, size_t key, KeyTable &table) noexcept;
  bool no_key_is_missing(size_t object, uint32_t place, uint64_t seen) noexcept;
  bool listed(size_t index, uint32_t place) noexcept;

  // The rarely used keywords, keywords.cc.
  const ferry_json_extra &extra_of(uint32_t place) const noexcept {
    return schema.extras[schema.rules[place].extra];
  }
  bool give_up(ferry_json_reason reason, uint32_t place, size_t index) noexcept;
  bool extended(size_t index, uint32_t place) noexcept;
  bool keywords(size_t index, uint32_t place) noexcept;
  bool all_of(size_t index, uint32_t place) noexcept;
  bool any_of(size_t index, uint32_t place) noexcept;
  bool one_of(size_t index, uint32_t place) noexcept;
  bool conditional(size_t index, uint32_t place) noexcept;
  bool formatted(size_t index, uint32_t place) noexcept;
  bool multiple(size_t index, uint32_t place) noexcept;
  bool elements(size_t index, uint32_t place) noexcept;
  bool contained(size_t index, uint32_t place) noexcept;
  bool members(size_t index, uint32_t place) noexcept;
  bool member_count_fits(size_t index, uint32_t place) noexcept;
  bool patterned_members(size_t index, uint32_t place) noexcept;
  bool dependencies(size_t index, uint32_t place) noexcept;
  bool probe(size_t index, uint32_t place) noexcept;
  uint32_t allowed_kinds(uint32_t place) const noexcept;
  uint32_t find_property(const ferry_json_rule &rule, size_t key,
                         uint32_t *next) const noexcept;

  // The members and elements that no other keyword has evaluated,
  // unevaluated.cc.
  struct Evaluated {
    bool all = false;
    std::vector<bool> children;
    std::set<uint32_t> references;  // those that have been followed
  };
  bool unevaluated(size_t index, uint32_t place) noexcept;
  void mark(size_t index, uint32_t place, bool is_outermost,
            Evaluated &evaluated) noexcept;
  void mark_elements(size_t index, uint32_t place,
                     Evaluated &evaluated) noexcept;
  void mark_members(size_t index, uint32_t place,
                    Evaluated &evaluated) noexcept;
};

// Whether the number is an integer multiple of the other one, both as decimals,
// as they were written.
bool ferry__json_is_multiple(ferry_json_tape tape, size_t index,
                             ferry_json_tape other_tape,
                             size_t other) noexcept;

// Whether all elements of the array are different.
bool ferry__json_elements_differ(ferry_json_tape tape, size_t index);

// Whether a string has a format (ferry_json_format).
bool ferry__json_has_format(uint32_t format, const uint8_t *bytes,
                            size_t count) noexcept;

#endif
