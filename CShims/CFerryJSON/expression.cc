// expression.cc - from ECMA-262 to RE2.
//
// ECMA-262 with the flag u, and of its Annex B what common patterns use: `{`
// and `]` as characters, and `\` before any character that is no letter or
// digit.
// RE2 differs in `.`, `\s`, `[]`, `[^]` and in the escapes; and it finds `\B`
// within the bytes of one character.
#include "expression.h"

#include <algorithm>
#include <cstring>
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

bool is_digit(uint32_t c) noexcept { return c >= '0' && c <= '9'; }

bool is_letter(uint32_t c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

uint32_t digit_value(uint32_t c) noexcept {
  if (is_digit(c))
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

// In a form that has no other meaning anywhere.
void append_character(std::string &text, uint32_t scalar) {
  if (is_letter(scalar) || is_digit(scalar)) {
    text.push_back(static_cast<char>(scalar));
    return;
  }
  char escape[16];
  snprintf(escape, sizeof escape, "\\x{%x}", scalar);
  text += escape;
}

}  // namespace

// The bytes are UTF-8, as all strings of documents and of Swift are.
Expression::Expression(const uint8_t *bytes, size_t count) {
  scalars.reserve(count);
  for (size_t i = 0; i < count;) {
    uint32_t lead = bytes[i];
    size_t length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    uint32_t scalar = lead & (length == 1 ? 0x7f : 0x7f >> length);
    for (size_t k = 1; k < length && i + k < count; k++)
      scalar = scalar << 6 | (bytes[i + k] & 0x3f);
    scalars.push_back(scalar);
    i += length;
  }
}

bool Expression::wrong(std::string message) {
  fault = std::move(message);
  return false;
}

void Expression::refuse(const char *what) {
  if (unsupported.empty())
    unsupported = std::string(what) + " not supported";
}

void Expression::literal(uint32_t scalar) {
  append_character(text, scalar);
  may_repeat = true;
}

void Expression::range(Set &set, uint32_t low, uint32_t high) {
  append_character(set, low);
  if (low == high)
    return;
  set += '-';
  append_character(set, high);
}

void Expression::whole(const Set &set, bool is_negated) {
  if (set.empty())
    text += is_negated ? "[\\x{0}-\\x{10ffff}]" : "[^\\x{0}-\\x{10ffff}]";
  else
    text += (is_negated ? "[^" : "[") + set + "]";
  may_repeat = true;
}

bool Expression::read() {
  while (!at_end()) {
    uint32_t scalar = scalars[next++];
    bool is_well = true;
    switch (scalar) {
    case '\\': is_well = escape(); break;
    case '[': is_well = set(); break;
    case '(': is_well = group(); break;
    case ')':
      if (depth == 0) {
        has_stray_parenthesis = true;
        literal(scalar);
      } else {
        depth--;
        text += ')';
        may_repeat = true;
      }
      break;
    case '*': is_well = repeat("*"); break;
    case '+': is_well = repeat("+"); break;
    case '?': is_well = repeat("?"); break;
    case '{': is_well = braces(); break;
    case '.': whole("\\x{a}\\x{d}\\x{2028}\\x{2029}", true); break;
    case '^':
    case '$':
    case '|':
      text += static_cast<char>(scalar);
      may_repeat = false;
      break;
    default: literal(scalar);
    }
    if (!is_well)
      return false;
  }
  if (depth)
    return wrong("( without )");
  // From its beginning character by character: RE2 would look for the place
  // that `\B` names between the bytes of one, too.
  if (has_inner_place)
    text = "^(?s:.)*?(?:" + text + ")";
  return true;
}

bool Expression::group() {
  if (++depth > deepest)
    return wrong("groups are nested more than " + std::to_string(deepest) +
                 " deep");
  text += "(?:";
  may_repeat = false;
  if (!take('?'))
    return true;
  if (take(':'))
    return true;
  if (take('=') || take('!')) {
    refuse("look-ahead is");
    return true;
  }
  if (!take('<'))
    return wrong("( with an unknown kind of group");
  if (take('=') || take('!')) {
    refuse("look-behind is");
    return true;
  }
  return group_name();
}

bool Expression::group_name() {
  std::vector<uint32_t> name;
  while (!at_end() && peek() != '>') {
    uint32_t scalar = scalars[next++];
    bool is_part = is_letter(scalar) || scalar == '_' || scalar == '$' ||
                   scalar >= 0x80 || (is_digit(scalar) && !name.empty());
    if (!is_part)
      return wrong("a group's name is not an identifier");
    name.push_back(scalar);
  }
  if (!take('>') || name.empty())
    return wrong("a group's name is not an identifier");
  if (std::find(names.begin(), names.end(), name) != names.end())
    return wrong("two groups have one name");
  names.push_back(std::move(name));
  return true;
}

// Whether something is found does not depend on which way is tried first.
bool Expression::repeat(const std::string &bounds) {
  if (!may_repeat)
    return wrong("nothing to repeat");
  text += bounds;
  take('?');
  may_repeat = false;
  return true;
}

// `2}`, `2,}` and `2,5}`; numbers beyond the bound are as good as one more.
bool Expression::is_bounds(size_t *length, uint32_t *least,
                           uint32_t *most) const {
  size_t i = next;
  auto number = [&](uint32_t *value) {
    size_t first = i;
    for (*value = 0; i < scalars.size() && is_digit(scalars[i]); i++)
      *value = std::min(*value * 10 + scalars[i] - '0', most_repeated + 1);
    return i > first;
  };
  if (!number(least))
    return false;
  *most = *least;
  if (i < scalars.size() && scalars[i] == ',') {
    i++;
    if (!number(most))
      *most = nothing;
  }
  if (i == scalars.size() || scalars[i] != '}')
    return false;
  *length = i + 1 - next;
  return true;
}

bool Expression::braces() {
  size_t length;
  uint32_t least, most;
  if (!is_bounds(&length, &least, &most)) {
    literal('{');
    return true;
  }
  next += length;
  if (most < least)
    return wrong("a repetition whose bounds are in the wrong order");
  if (least > most_repeated || (most != nothing && most > most_repeated)) {
    refuse("a repetition of more than 1000 is");
    return repeat("*");
  }
  std::string bounds = "{" + std::to_string(least);
  if (most != least)
    bounds += "," + (most == nothing ? "" : std::to_string(most));
  return repeat(bounds + "}");
}

bool Expression::escape() {
  if (at_end())
    return wrong("\\ at the end");
  uint32_t letter = scalars[next++];
  if (letter == 'b' || letter == 'B') {
    has_inner_place |= letter == 'B';
    text += letter == 'b' ? "\\b" : "\\B";
    may_repeat = false;
    return true;
  }
  if (letter >= '1' && letter <= '9') {
    while (is_digit(peek()))
      next++;
    refuse("a back-reference is");
    may_repeat = true;
    return true;
  }
  if (letter == 'k') {
    if (!take('<'))
      return wrong("\\k without the name of a group");
    while (!at_end() && peek() != '>')
      next++;
    refuse("a back-reference is");
    may_repeat = true;
    return take('>') || wrong("\\k without the name of a group");
  }
  if (letter && letter < 0x80 && strchr("dDwWsSpP", static_cast<int>(letter))) {
    Set set;
    if (!class_escape(letter, set))
      return false;
    whole(set, false);
    return true;
  }
  uint32_t scalar;
  if (!character_escape(letter, &scalar))
    return false;
  literal(scalar);
  return true;
}

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

// A class goes into the set at once.
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
    if (!is_letter(scalar) && !is_digit(scalar) && scalar != '_')
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
    if (!is_letter(peek()))
      return wrong("\\c without a letter");
    *scalar = scalars[next++] % 32;
    return true;
  case '0':
    if (is_digit(peek()))
      return wrong("an octal escape");
    *scalar = 0;
    return true;
  default:
    if (is_letter(letter) || is_digit(letter))
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
