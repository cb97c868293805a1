// expression.cc - from ECMA-262 to RE2.
//
// This accepts ECMA-262 with the flag u, and those parts of its Annex B that
// common patterns use: `{` and `]` as characters, and `\` before any character
// that is not a letter or a digit. RE2 differs in `.`, `\s`, `[]`, `[^]` and in
// the escapes, and it finds `\B` within the bytes of one character.
#include "expression.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace {

// In a form that has no other meaning anywhere.
void append_character(std::string &text, uint32_t scalar) {
  if (ferry__json_is_letter(scalar) || ferry__json_is_digit(scalar)) {
    text.push_back(static_cast<char>(scalar));
    return;
  }
  char escape[16];
  snprintf(escape, sizeof escape, "\\x{%x}", scalar);
  text += escape;
}

}  // namespace

// The bytes are UTF-8, like all strings of documents and of Swift.
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
  // Matched from the start, character by character: RE2 would also find the
  // position of `\B` between the bytes of a character.
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
    bool is_part = ferry__json_is_letter(scalar) || scalar == '_' ||
                   scalar == '$' || scalar >= 0x80 ||
                   (ferry__json_is_digit(scalar) && !name.empty());
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

// Whether a match exists does not depend on which alternative is tried first.
bool Expression::repeat(const std::string &bounds) {
  if (!may_repeat)
    return wrong("nothing to repeat");
  text += bounds;
  take('?');
  may_repeat = false;
  return true;
}

// `2}`, `2,}` and `2,5}`; numbers beyond the limit are equivalent to limit + 1.
bool Expression::is_bounds(size_t *length, uint32_t *least,
                           uint32_t *most) const {
  size_t i = next;
  auto number = [&](uint32_t *value) {
    size_t first = i;
    for (*value = 0;
         i < scalars.size() && ferry__json_is_digit(scalars[i]); i++)
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
    while (ferry__json_is_digit(peek()))
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
