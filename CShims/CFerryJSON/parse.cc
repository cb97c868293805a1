// parse.cc - parses text to a tape.
#include "document.h"

#include <charconv>

namespace {

int code_of(simdjson::error_code error) noexcept {
  switch (error) {
  case simdjson::SUCCESS: return FERRY_JSON_OK;
  case simdjson::EMPTY: return FERRY_JSON_EMPTY;
  case simdjson::CAPACITY: return FERRY_JSON_TOO_LARGE;
  case simdjson::MEMALLOC: return FERRY_JSON_NO_MEMORY;
  case simdjson::DEPTH_ERROR: return FERRY_JSON_TOO_DEEP;
  case simdjson::UTF8_ERROR: return FERRY_JSON_UTF8;
  case simdjson::UNESCAPED_CHARS: return FERRY_JSON_CONTROL;
  case simdjson::UNCLOSED_STRING: return FERRY_JSON_UNCLOSED;
  case simdjson::STRING_ERROR: return FERRY_JSON_ESCAPE;
  case simdjson::NUMBER_ERROR: return FERRY_JSON_NUMBER;
  case simdjson::T_ATOM_ERROR:
  case simdjson::F_ATOM_ERROR:
  case simdjson::N_ATOM_ERROR: return FERRY_JSON_LITERAL;
  default: return FERRY_JSON_STRUCTURE;
  }
}

size_t mark_length(const uint8_t *text, size_t count) noexcept {
  return count >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

bool is_digit(uint8_t c) noexcept { return c >= '0' && c <= '9'; }

// Whether a container is nested within FERRY_JSON_DEPTH - 1 others.
bool is_too_deep(ferry_json_tape tape) noexcept {
  size_t depth = 0, i = 1;
  do {
    uint8_t tag = ferry_json_tag(tape, i);
    if (tag == '[' || tag == '{') {
      if (++depth >= FERRY_JSON_DEPTH)
        return true;
      i++;
    } else if (tag == ']' || tag == '}') {
      depth--;
      i++;
    } else {
      i = ferry_json_after(tape, i);
    }
  } while (depth > 0);
  return false;
}

// The usual limit refuses documents with a value in the deepest allowed
// container. They are parsed again with one more level. Then the levels of the
// tape are counted.
simdjson::error_code parse_deep(ferry_json &document, const uint8_t *text,
                                size_t count) noexcept {
  auto error = document.parser->set_max_depth(FERRY_JSON_DEPTH);
  if (!error)
    error = document.parser->parse(text, count, document.document);
  if (!error && is_too_deep(ferry_json_tape_of(&document)))
    error = simdjson::DEPTH_ERROR;
  // If this fails for lack of memory, the parser refuses the next container,
  // and the next document gets here again.
  static_cast<void>(document.parser->set_max_depth(ferry__json_usual_depth));
  return error;
}

// Parses with as many levels as are allowed, whatever is in the deepest one.
simdjson::error_code parse_any(ferry_json &document, const uint8_t *text,
                               size_t count) noexcept {
  auto error = document.parser->parse(text, count, document.document);
  return error == simdjson::DEPTH_ERROR ? parse_deep(document, text, count)
                                        : error;
}

// simdjson refuses a document with an integer beyond 64 bits. In that case the
// text is parsed again, and each of these integers becomes the nearest double,
// as if it were written with a fraction. The decoder reads it from its digits
// in the text if a type needs it as an integer or as a decimal.
class LargeIntegers {
 public:
  LargeIntegers(ferry_json &document, const uint8_t *text,
                size_t count) noexcept
      : document(document), parser(*document.parser), text(text),
        size(count) {}

  // Parses again, with a number of the same length in place of each; `parsed`
  // is the text of the last parse.
  simdjson::error_code parse(const uint8_t *&parsed) noexcept {
    uint8_t *copy = nullptr;
    for (size_t i = 0; i < parser.n_structural_indexes; i++) {
      size_t offset = parser.structural_indexes[i], length = large_at(i);
      double value;
      if (!length || !read(offset, length, value))
        continue;
      if (!copy) {
        if (!document.padded(text, size, 0))
          return simdjson::MEMALLOC;
        copy = document.copy.get();
      }
      memset(copy + offset, '0', length);
      copy[offset + 1] = '.';  // 0.000…
    }
    if (!copy)
      return simdjson::NUMBER_ERROR;
    parsed = copy;
    auto error = parse_any(document, copy, size);
    if (!error)
      put_values();
    return error;
  }

 private:
  ferry_json &document;
  simdjson::internal::dom_parser_implementation &parser;
  const uint8_t *text;
  size_t size;

  // The length of the token, if it is an integer beyond 64 bits; otherwise 0.
  size_t large_at(size_t token) const noexcept {
    size_t start = parser.structural_indexes[token];
    size_t next = token + 1 < parser.n_structural_indexes
                      ? parser.structural_indexes[token + 1]
                      : size;
    size_t first = start + (text[start] == '-'), end = first;
    while (end < next && is_digit(text[end]))
      end++;
    size_t digits = end - first, most = first > start ? 19 : 20;
    const char *bound = first > start ? "9223372036854775808"
                                      : "18446744073709551615";
    if (digits < most || text[first] == '0' ||
        (digits == most && memcmp(text + first, bound, most) <= 0))
      return 0;
    for (size_t i = end; i < next; i++)
      if (text[i] != ' ' && text[i] != '\t' && text[i] != '\n' &&
          text[i] != '\r')
        return 0;
    return end - start;
  }

  // Also false for a number beyond the doubles.
  bool read(size_t offset, size_t length, double &value) const noexcept {
    auto start = reinterpret_cast<const char *>(text + offset);
    return std::from_chars(start, start + length, value).ec == std::errc();
  }

  // Every token except colons and commas has one element of the tape, in order.
  void put_values() noexcept {
    uint64_t *tape = document.document.tape.get();
    size_t index = 1;
    for (size_t i = 0; i < parser.n_structural_indexes; i++) {
      size_t offset = parser.structural_indexes[i], length;
      double value;
      if (text[offset] == ':' || text[offset] == ',')
        continue;
      uint8_t tag = static_cast<uint8_t>(tape[index] >> 56);
      if (tag == 'd' && (length = large_at(i)) && read(offset, length, value))
        memcpy(&tape[index + 1], &value, sizeof value);
      index += tag == 'l' || tag == 'u' || tag == 'd' ? 2 : 1;
    }
  }
};

}  // namespace

int ferry_json_parse(const uint8_t *text, size_t count, size_t spare,
                     ferry_json **document, size_t *offset) {
  *document = nullptr;
  *offset = 0;
  if (!text || count == 0)
    return FERRY_JSON_EMPTY;
  if (count >= simdjson::SIMDJSON_MAXSIZE_BYTES)
    return FERRY_JSON_TOO_LARGE;

  size_t mark = mark_length(text, count);
  text += mark;
  count -= mark;
  ferry_json *taken = ferry__json_take(count);
  if (!taken)
    return FERRY_JSON_NO_MEMORY;
  int code = taken->reserve(count);
  const uint8_t *padded = code ? nullptr : taken->padded(text, count, spare);
  if (!padded) {
    delete taken;
    return FERRY_JSON_NO_MEMORY;
  }

  auto error = parse_any(*taken, padded, count);
  if (error == simdjson::NUMBER_ERROR)
    error = LargeIntegers(*taken, text, count).parse(padded);
  if (error) {
    code = code_of(error);
    *offset = mark + ferry__json_locate(*taken, padded, count, error);
    ferry__json_give(taken);
    return code;
  }
  taken->drop_text();
  taken->document.tape[0] = ferry_json_new_identity();
  *document = taken;
  return FERRY_JSON_OK;
}

void ferry_json_release(ferry_json *document) { ferry__json_give(document); }

ferry_json_tape ferry_json_tape_of(const ferry_json *document) {
  return {document->document.tape.get(), document->document.string_buf.get()};
}
