// document.h - a document, as seen by the parts of CFerryJSON.
#ifndef FERRY_JSON_DOCUMENT_H
#define FERRY_JSON_DOCUMENT_H

#include "CFerryJSON.h"

#include <simdjson.h>

#include <memory>

// simdjson does not count an empty container: with this limit, the documents
// that it accepts are within FERRY_JSON_DEPTH.
constexpr size_t ferry__json_usual_depth = FERRY_JSON_DEPTH - 1;

struct ferry_json {
  std::unique_ptr<simdjson::internal::dom_parser_implementation> parser;
  simdjson::dom::document document;
  std::unique_ptr<uint8_t[]> copy;  // for texts without padding
  size_t copy_capacity = 0;

  size_t capacity() const noexcept { return document.capacity(); }

  // Makes room for a text of `count` bytes.
  int reserve(size_t count) noexcept;

  // The text with padding, or null without memory.
  const uint8_t *padded(const uint8_t *text, size_t count,
                        size_t spare) noexcept;

  // Frees the copy of a text that is so large that the parser is used only
  // once.
  void drop_text() noexcept;
};

// Takes a parser with room for `count` bytes, from the pool if one is there.
ferry_json *ferry__json_take(size_t count) noexcept;
void ferry__json_give(ferry_json *document) noexcept;

// The position in the text of the error that the parser reported.
size_t ferry__json_locate(const ferry_json &document, const uint8_t *text,
                          size_t count, simdjson::error_code error) noexcept;

#endif
