// pattern.cc - regular expressions with RE2.
//
// RE2 takes time proportional to the length of the text for any expression: it
// has no look-around and no back-references, and does not backtrack. Many
// threads may use one expression at once.
#include "pattern.h"

#include "expression.h"

#include <re2/re2.h>

#include <new>
#include <string>

struct ferry_json_pattern {
  ferry_json_pattern(const std::string &text, const RE2::Options &options)
      : expression(text, options) {}
  RE2 expression;
  size_t memory = 0;
};

namespace {

// Memory that common expressions need, and that others may have.
constexpr size_t budgets[] = {64 << 10, 256 << 10, FERRY_JSON_PATTERN_MEMORY};

// With less for each instruction RE2 has no room for its states, and is slow.
constexpr size_t memory_per_instruction = 256;

bool suffices(size_t memory, const RE2 &expression) {
  auto instructions = static_cast<size_t>(expression.ProgramSize());
  return memory == FERRY_JSON_PATTERN_MEMORY ||
         memory >= memory_per_instruction * instructions;
}

RE2::Options options_with(size_t memory) {
  RE2::Options options;
  options.set_max_mem(static_cast<int64_t>(memory));
  options.set_log_errors(false);
  options.set_never_capture(true);
  return options;
}

std::string message_of(const RE2 &expression) {
  switch (expression.error_code()) {
  case RE2::ErrorPatternTooLarge: return "needs too much memory";
  case RE2::ErrorRepeatSize:
    return "repetitions within one another of more than 1000 in all are not "
           "supported";
  // The only remaining cause in ECMA-262's syntax is the name of a script.
  case RE2::ErrorBadCharRange: return "an unknown script";
  default: return expression.error();
  }
}

ferry_json_pattern *refuse(const std::string &reason, char *message,
                           size_t capacity) {
  snprintf(message, capacity, "%s", reason.c_str());
  return nullptr;
}

ferry_json_pattern *create(const uint8_t *expression, size_t count,
                           char *message, size_t capacity) noexcept {
  if (count > FERRY_JSON_PATTERN_LENGTH)
    return refuse("is too long", message, capacity);
  Expression read(expression, count);
  if (!read.read())
    return refuse(read.fault, message, capacity);
  if (!read.unsupported.empty())
    return refuse(read.unsupported, message, capacity);
  for (size_t memory : budgets) {
    auto *pattern =
        new (std::nothrow) ferry_json_pattern(read.text, options_with(memory));
    if (!pattern)
      return refuse("no memory", message, capacity);
    bool is_well = pattern->expression.ok();
    if (is_well && suffices(memory, pattern->expression)) {
      pattern->memory = memory;
      return pattern;
    }
    refuse(message_of(pattern->expression), message, capacity);
    auto error = pattern->expression.error_code();
    bool may_have_more = is_well || error == RE2::ErrorPatternTooLarge;
    delete pattern;
    if (!may_have_more)
      break;
  }
  return nullptr;
}

}  // namespace

ferry_json_pattern *ferry_json_pattern_create(const uint8_t *expression,
                                              size_t count, char *message,
                                              size_t capacity) {
  return create(expression, count, message, capacity);
}

size_t ferry_json_pattern_memory(const ferry_json_pattern *pattern) {
  return pattern->memory;
}

void ferry_json_pattern_free(ferry_json_pattern *pattern) { delete pattern; }

bool ferry__json_pattern_finds(const ferry_json_pattern *pattern,
                               const uint8_t *text, size_t count) noexcept {
  re2::StringPiece searched(reinterpret_cast<const char *>(text), count);
  return pattern->expression.Match(searched, 0, count, RE2::UNANCHORED, nullptr,
                                   0);
}

bool ferry__json_is_pattern(const uint8_t *text, size_t count) noexcept {
  if (count > FERRY_JSON_PATTERN_LENGTH)
    return false;
  Expression expression(text, count);
  return expression.read() && !expression.has_stray_parenthesis;
}
