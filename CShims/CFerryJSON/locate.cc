// locate.cc - the position of an error in the text.
//
// simdjson reports what is wrong, but not where. After an error this file goes
// through the tokens that simdjson's first stage has found. It looks for the
// first token that simdjson refuses on its own, or that is not allowed at its
// position. It does not decide whether a text is accepted.
#include "document.h"

#include <bitset>
#include <memory>
#include <new>

namespace {

using Parser = simdjson::internal::dom_parser_implementation;

// The first byte that does not continue valid UTF-8 (RFC 3629).
size_t first_invalid_byte(const uint8_t *text, size_t count) noexcept {
  size_t i = 0;
  while (i < count) {
    uint8_t lead = text[i];
    if (lead < 0x80) {
      i++;
      continue;
    }
    size_t more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
    if (lead < 0xc2 || lead > 0xf4 || i + more >= count)
      return i;
    uint8_t low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    for (size_t k = 1; k <= more; k++, low = 0x80, high = 0xbf)
      if (text[i + k] < low || text[i + k] > high)
        return i;
    i += more + 1;
  }
  return count;
}

// The first control character within a string.
size_t first_control(const uint8_t *text, size_t count) noexcept {
  bool inside = false;
  for (size_t i = 0; i < count; i++) {
    if (text[i] == '"')
      inside = !inside;
    else if (inside && text[i] == '\\')
      i++;
    else if (inside && text[i] < 0x20)
      return i;
  }
  return count;
}

bool is_scalar(uint8_t c) noexcept {
  return c == '-' || (c >= '0' && c <= '9') || c == 't' || c == 'f' || c == 'n';
}

bool begins_value(uint8_t c) noexcept {
  return is_scalar(c) || c == '"' || c == '[' || c == '{';
}

// The tokens of a text, as found by the first stage.
class Tokens {
 public:
  Tokens(const Parser &parser, const uint8_t *text, size_t count) noexcept
      : parser(parser), text(text), size(count) {}

  size_t count() const noexcept { return parser.n_structural_indexes; }
  size_t offset(size_t i) const noexcept {
    return i < count() ? parser.structural_indexes[i] : size;
  }
  uint8_t first(size_t i) const noexcept { return text[offset(i)]; }

  // Whether simdjson refuses the token on its own.
  bool is_refused_alone(size_t i, ferry_json &alone) const noexcept {
    size_t length = offset(i + 1) - offset(i);
    if (alone.reserve(length))
      return true;
    const uint8_t *copy = alone.padded(text + offset(i), length, 0);
    return !copy || alone.parser->parse(copy, length, alone.document);
  }

 private:
  const Parser &parser;
  const uint8_t *text;
  size_t size;
};

size_t first_refused(const Tokens &tokens, bool strings) noexcept {
  ferry_json alone;
  size_t i = 0;
  for (; i < tokens.count(); i++) {
    uint8_t c = tokens.first(i);
    if ((strings ? c == '"' : is_scalar(c)) &&
        tokens.is_refused_alone(i, alone))
      break;
  }
  return tokens.offset(i);
}

size_t first_too_deep(const Tokens &tokens) noexcept {
  size_t depth = 0, i = 0;
  for (; i < tokens.count(); i++) {
    uint8_t c = tokens.first(i);
    if ((c == '[' || c == '{') && ++depth >= FERRY_JSON_DEPTH)
      break;
    if (c == ']' || c == '}')
      depth--;
  }
  return tokens.offset(i);
}

// The first token that is not allowed at its position.
size_t first_misplaced(const Tokens &tokens) noexcept {
  enum { VALUE, FIRST_VALUE, KEY, FIRST_KEY, COLON, NEXT, END };
  int expected = VALUE;
  std::bitset<FERRY_JSON_DEPTH + 1> is_object;
  size_t depth = 0, i = 0;
  for (; i < tokens.count(); i++) {
    uint8_t c = tokens.first(i);
    bool closes = false;
    switch (expected) {
    case FIRST_VALUE:
      closes = c == ']';
      [[fallthrough]];
    case VALUE:
      if (closes)
        break;
      if (!begins_value(c))
        return tokens.offset(i);
      if (c == '[' || c == '{') {
        if (depth == FERRY_JSON_DEPTH)
          return tokens.offset(i);
        is_object[++depth] = c == '{';
        expected = c == '{' ? FIRST_KEY : FIRST_VALUE;
        continue;
      }
      expected = depth ? NEXT : END;
      continue;
    case FIRST_KEY:
      closes = c == '}';
      [[fallthrough]];
    case KEY:
      if (closes)
        break;
      if (c != '"')
        return tokens.offset(i);
      expected = COLON;
      continue;
    case COLON:
      if (c != ':')
        return tokens.offset(i);
      expected = VALUE;
      continue;
    case NEXT:
      closes = c == (is_object[depth] ? '}' : ']');
      if (closes)
        break;
      if (c != ',')
        return tokens.offset(i);
      expected = is_object[depth] ? KEY : VALUE;
      continue;
    case END:
      return tokens.offset(i);
    }
    expected = --depth ? NEXT : END;
  }
  return tokens.offset(i);
}

}  // namespace

size_t ferry__json_locate(const ferry_json &document, const uint8_t *text,
                          size_t count, simdjson::error_code error) noexcept {
  Tokens tokens(*document.parser, text, count);
  switch (error) {
  case simdjson::EMPTY:
  case simdjson::UNCLOSED_STRING:
    return count;
  case simdjson::UTF8_ERROR:
    return first_invalid_byte(text, count);
  case simdjson::UNESCAPED_CHARS:
    return first_control(text, count);
  case simdjson::DEPTH_ERROR:
    return first_too_deep(tokens);
  case simdjson::STRING_ERROR:
    return first_refused(tokens, true);
  case simdjson::NUMBER_ERROR:
  case simdjson::T_ATOM_ERROR:
  case simdjson::F_ATOM_ERROR:
  case simdjson::N_ATOM_ERROR:
    return first_refused(tokens, false);
  default:
    return first_misplaced(tokens);
  }
}

size_t ferry_json_offset(const ferry_json *document, const uint8_t *text,
                         size_t index, ferry_json_cursor *cursor) {
  ferry_json_tape tape = ferry_json_tape_of(document);
  const Parser &parser = *document->parser;
  if (cursor->index == 0 || cursor->index / 2 > index)
    *cursor = {1, 0};
  // Moves back a little: the tape does not have the length of the previous
  // value, but the text does.
  while (cursor->index > index) {
    uint8_t c;
    do {
      if (cursor->structural == 0)
        return FERRY_JSON_NOWHERE;
      c = text[parser.structural_indexes[--cursor->structural]];
    } while (c == ':' || c == ',');
    cursor->index -= c == '-' || (c >= '0' && c <= '9') ? 2 : 1;
  }
  // Every token except colons and commas has one element of the tape, in order.
  for (;; cursor->structural++) {
    if (cursor->structural >= parser.n_structural_indexes)
      return FERRY_JSON_NOWHERE;
    size_t offset = parser.structural_indexes[cursor->structural];
    if (text[offset] == ':' || text[offset] == ',')
      continue;
    if (cursor->index >= index)
      return offset;
    uint8_t tag = ferry_json_tag(tape, cursor->index);
    cursor->index += tag == 'l' || tag == 'u' || tag == 'd' ? 2 : 1;
  }
}
