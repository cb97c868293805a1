// expression_set.cc - sets, classes and escapes of characters.
//
// The digits and words of ECMA-262 are ASCII, its white space is Unicode's.
#include "expression.h"

#include <cstring>
#include <iterator>
#include <utility>

namespace {

constexpr uint32_t last_scalar = 0x10ffff;

struct Range {
  uint32_t low, high;
};

constexpr Range digits[] = {{'0', '9'}};
constexpr Range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
// WhiteSpace and LineTerminator of ECMA-262.
constexpr Range spaces[] = {
    {0x09, 0x0d},     {0x20, 0x20},     {0xa0, 0xa0},     {0x1680, 0x1680},
    {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f},
    {0x3000, 0x3000}, {0xfeff, 0xfeff},
};

// General categories: the long name, and the short one, which RE2 knows.
constexpr std::pair<const char *, const char *> categories[] = {
    {"Letter", "L"},
    {"Uppercase_Letter", "Lu"},
    {"Lowercase_Letter", "Ll"},
    {"Titlecase_Letter", "Lt"},
    {"Modifier_Letter", "Lm"},
    {"Other_Letter", "Lo"},
    {"Mark", "M"},
    {"Nonspacing_Mark", "Mn"},
    {"Spacing_Mark", "Mc"},
    {"Enclosing_Mark", "Me"},
    {"Number", "N"},
    {"Decimal_Number", "Nd"},
    {"Letter_Number", "Nl"},
    {"Other_Number", "No"},
    {"Punctuation", "P"},
    {"Connector_Punctuation", "Pc"},
    {"Dash_Punctuation", "Pd"},
    {"Open_Punctuation", "Ps"},
    {"Close_Punctuation", "Pe"},
    {"Initial_Punctuation", "Pi"},
    {"Final_Punctuation", "Pf"},
    {"Other_Punctuation", "Po"},
    {"Symbol", "S"},
    {"Math_Symbol", "Sm"},
    {"Currency_Symbol", "Sc"},
    {"Modifier_Symbol", "Sk"},
    {"Other_Symbol", "So"},
    {"Separator", "Z"},
    {"Space_Separator", "Zs"},
    {"Line_Separator", "Zl"},
    {"Paragraph_Separator", "Zp"},
};

uint32_t digit_value(uint32_t c) noexcept {
  if (ferry__json_is_digit(c))
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

}  // namespace

bool Expression::set() {
  bool is_negated = take('^');
  Set set;
  while (!at_end()) {
    if (take(']')) {
      whole(set, is_negated);
      return true;
    }
    Member low, high;
    if (!member(set, &low))
      return false;
    if (peek() != '-' || peek(1) == ']' || peek(1) == nothing) {
      if (!low.is_class)
        range(set, low.scalar, low.scalar);
      continue;
    }
    next++;
    if (!member(set, &high))
      return false;
    if (low.is_class || high.is_class) {
      // Annex B: with a class at one end the hyphen is a character.
      range(set, '-', '-');
      if (!low.is_class)
        range(set, low.scalar, low.scalar);
      if (!high.is_class)
        range(set, high.scalar, high.scalar);
      continue;
    }
    if (low.scalar > high.scalar)
      return wrong("a range that goes backwards");
    range(set, low.scalar, high.scalar);
  }
  return wrong("[ without ]");
}

// A class is added to the set at once.
bool Expression::member(Set &set, Member *found) {
  *found = {false, scalars[next++]};
  if (found->scalar != '\\')
    return true;
  if (at_end())
    return wrong("\\ at the end");
  uint32_t letter = scalars[next++];
  if (letter && letter < 0x80 && strchr("dDwWsSpP", static_cast<int>(letter))) {
    found->is_class = true;
    return class_escape(letter, set);
  }
  if (letter == 'b') {
    found->scalar = 0x08;
    return true;
  }
  return character_escape(letter, &found->scalar);
}

bool Expression::class_escape(uint32_t kind, Set &set) {
  auto add = [&](const Range *ranges, size_t count, bool is_negated) {
    uint32_t low = 0;
    for (size_t i = 0; i < count; i++) {
      if (!is_negated)
        range(set, ranges[i].low, ranges[i].high);
      else if (ranges[i].low > low)
        range(set, low, ranges[i].low - 1);
      low = ranges[i].high + 1;
    }
    if (is_negated)
      range(set, low, last_scalar);
    return true;
  };
  switch (kind) {
  case 'd':
  case 'D': return add(digits, std::size(digits), kind == 'D');
  case 'w':
  case 'W': return add(words, std::size(words), kind == 'W');
  case 's':
  case 'S': return add(spaces, std::size(spaces), kind == 'S');
  default: return property(kind == 'P', set);
  }
}

// `{L}`, `{Letter}`, `{General_Category=L}`, `{Script=Greek}`.
bool Expression::property(bool is_negated, Set &set) {
  if (!take('{'))
    return wrong("\\p without a property");
  std::string name, value;
  bool has_value = false;
  for (; !at_end() && peek() != '}'; next++) {
    uint32_t scalar = peek();
    if (scalar == '=' && !has_value) {
      has_value = true;
      continue;
    }
    if (!ferry__json_is_letter(scalar) && !ferry__json_is_digit(scalar) &&
        scalar != '_')
      return wrong("\\p without a property");
    (has_value ? value : name) += static_cast<char>(scalar);
  }
  if (!take('}') || name.empty() || (has_value && value.empty()))
    return wrong("\\p without a property");
  const char *sign = is_negated ? "\\P{" : "\\p{";
  // RE2 knows the scripts, and refuses others.
  if (has_value && (name == "Script" || name == "sc")) {
    if (value.size() < 3 || value == "Any")
      return wrong("an unknown script");
    set += sign + value + "}";
    return true;
  }
  if (!has_value && (name == "Any" || name == "ASCII")) {
    uint32_t high = name == "Any" ? last_scalar : 0x7f;
    if (!is_negated)
      range(set, 0, high);
    else if (high < last_scalar)
      range(set, high + 1, last_scalar);
    else
      set += "\\P{Any}";
    return true;
  }
  if (has_value && name != "General_Category" && name != "gc") {
    refuse(("the Unicode property " + name + " is").c_str());
    range(set, 0, 0);
    return true;
  }
  const std::string &category = has_value ? value : name;
  for (auto [full, brief] : categories) {
    if (category == full || category == brief) {
      set += sign + std::string(brief) + "}";
      return true;
    }
  }
  refuse(("the Unicode property " + category + " is").c_str());
  range(set, 0, 0);
  return true;
}

bool Expression::character_escape(uint32_t letter, uint32_t *scalar) {
  switch (letter) {
  case 'n': *scalar = '\n'; return true;
  case 'r': *scalar = '\r'; return true;
  case 't': *scalar = '\t'; return true;
  case 'f': *scalar = '\f'; return true;
  case 'v': *scalar = '\v'; return true;
  case 'x': return hexadecimal(2, scalar);
  case 'u': return unicode_escape(scalar);
  case 'c':
    if (!ferry__json_is_letter(peek()))
      return wrong("\\c without a letter");
    *scalar = scalars[next++] % 32;
    return true;
  case '0':
    if (ferry__json_is_digit(peek()))
      return wrong("an octal escape");
    *scalar = 0;
    return true;
  default:
    if (ferry__json_is_letter(letter) || ferry__json_is_digit(letter))
      return wrong(std::string("\\") + static_cast<char>(letter) +
                   " is no escape");
    *scalar = letter;
    return true;
  }
}

bool Expression::hexadecimal(size_t digits, uint32_t *value) {
  *value = 0;
  for (size_t i = 0; i < digits; i++) {
    uint32_t digit = at_end() ? 16 : digit_value(peek());
    if (digit == 16)
      return wrong("an escape without its hexadecimal digits");
    *value = *value * 16 + digit;
    next++;
  }
  return true;
}

// `\u0041`, `\u{1F600}`, and the two halves of a surrogate pair.
bool Expression::unicode_escape(uint32_t *scalar) {
  if (!take('{')) {
    if (!hexadecimal(4, scalar))
      return false;
    bool is_first = *scalar >= 0xd800 && *scalar <= 0xdbff;
    if (is_first && peek() == '\\' && peek(1) == 'u' && peek(2) != '{') {
      size_t before = next;
      next += 2;
      uint32_t second;
      if (!hexadecimal(4, &second))
        return false;
      if (second >= 0xdc00 && second <= 0xdfff)
        *scalar = 0x10000 + ((*scalar - 0xd800) << 10) + (second - 0xdc00);
      else
        next = before;
    }
    return true;
  }
  *scalar = 0;
  size_t first = next;
  for (; digit_value(peek()) < 16; next++) {
    *scalar = *scalar * 16 + digit_value(peek());
    if (*scalar > last_scalar)
      return wrong("an escape of a character that is none");
  }
  bool has_digits = next > first;
  if (!take('}') || !has_digits)
    return wrong("an escape without its hexadecimal digits");
  return true;
}
