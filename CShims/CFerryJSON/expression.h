// expression.h - regular expressions of ECMA-262, in the syntax of RE2.
#ifndef FERRY_JSON_EXPRESSION_H
#define FERRY_JSON_EXPRESSION_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

static inline bool ferry__json_is_digit(uint32_t c) {
  return c >= '0' && c <= '9';
}

static inline bool ferry__json_is_letter(uint32_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Translates an expression for RE2 in one pass. Constructs that the two read
// differently are written in a form with only one meaning for RE2. Time and
// memory are proportional to the expression's length.
class Expression {
 public:
  // The maximum depth of groups; a deeper expression is refused.
  static constexpr size_t deepest = 200;
  // RE2's own limit for repetitions.
  static constexpr uint32_t most_repeated = 1000;

  Expression(const uint8_t *bytes, size_t count);

  // Returns false if it is not an expression of ECMA-262; then `fault` says
  // why.
  bool read();

  // The expression for RE2.
  std::string text;
  std::string fault;
  // The requested feature that RE2 lacks, if any.
  std::string unsupported;
  // A `)` without an opening parenthesis was read as a character.
  bool has_stray_parenthesis = false;

 private:
  std::vector<uint32_t> scalars;
  size_t next = 0;
  size_t depth = 0;
  bool may_repeat = false;
  bool has_inner_place = false;
  std::vector<std::vector<uint32_t>> names;

  // A set of characters in RE2's notation, without its brackets.
  using Set = std::string;
  // A member of a set: one character, or a class of them.
  struct Member {
    bool is_class;
    uint32_t scalar;
  };

  bool at_end() const noexcept { return next == scalars.size(); }
  uint32_t peek(size_t ahead = 0) const noexcept {
    return next + ahead < scalars.size() ? scalars[next + ahead] : nothing;
  }
  bool take(uint32_t scalar) noexcept {
    if (peek() != scalar)
      return false;
    next++;
    return true;
  }
  static constexpr uint32_t nothing = UINT32_MAX;

  bool wrong(std::string message);
  void refuse(const char *what);
  void literal(uint32_t scalar);
  static void range(Set &set, uint32_t low, uint32_t high);
  void whole(const Set &set, bool is_negated);

  bool group();
  bool group_name();
  bool repeat(const std::string &bounds);
  bool is_bounds(size_t *length, uint32_t *least, uint32_t *most) const;
  bool braces();
  bool escape();
  bool set();
  bool member(Set &set, Member *found);
  bool class_escape(uint32_t kind, Set &set);
  bool property(bool is_negated, Set &set);
  bool character_escape(uint32_t letter, uint32_t *scalar);
  bool hexadecimal(size_t digits, uint32_t *value);
  bool unicode_escape(uint32_t *scalar);
};

#endif
