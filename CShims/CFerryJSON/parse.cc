// parse.cc - from text to tape.
#include "document.h"

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

  auto error = taken->parser->parse(padded, count, taken->document);
  if (error) {
    code = code_of(error);
    *offset = mark + ferry__json_locate(*taken, padded, count, error);
    ferry__json_give(taken);
    return code;
  }
  taken->document.tape[0] = ferry_json_new_identity();
  *document = taken;
  return FERRY_JSON_OK;
}

void ferry_json_release(ferry_json *document) { ferry__json_give(document); }

ferry_json_tape ferry_json_tape_of(const ferry_json *document) {
  return {document->document.tape.get(), document->document.string_buf.get()};
}
