// pattern.cc - regular expressions, the C library's.
//
// Its matcher never backtracks as long as an expression has no back-reference,
// which Ferry's translation never writes. But it begins anew at every place of
// the text: what is not anchored and may go on without end takes the square of
// the text's length, and so has a second expression that reads a text once.
// Characters are UTF-8's whatever the process chose as its locale.
#include "pattern.h"

#include <locale.h>
#include <regex.h>

#include <climits>
#include <new>

struct ferry_json_pattern {
  regex_t expression;
  regex_t one_pass;
  bool has_one_pass = false;
};

namespace {

// Up to so many bytes the expression itself is the faster one.
constexpr size_t short_text = 64;

// The calling thread reads text as UTF-8 for as long as this lives.
class Utf8Thread {
 public:
  Utf8Thread() noexcept {
    static const locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (utf8)
      before = uselocale(utf8);
  }
  ~Utf8Thread() {
    if (before)
      uselocale(before);
  }
  Utf8Thread(const Utf8Thread &) = delete;
  Utf8Thread &operator=(const Utf8Thread &) = delete;

 private:
  locale_t before = nullptr;
};

}  // namespace

ferry_json_pattern *ferry_json_pattern_create(const char *expression,
                                              const char *one_pass,
                                              char *message, size_t capacity) {
  auto *pattern = new (std::nothrow) ferry_json_pattern;
  if (!pattern)
    return nullptr;
  Utf8Thread utf8;
  int error = regcomp(&pattern->expression, expression, REG_EXTENDED);
  if (error) {
    regerror(error, &pattern->expression, message, capacity);
    delete pattern;
    return nullptr;
  }
  if (one_pass) {
    error = regcomp(&pattern->one_pass, one_pass, REG_EXTENDED);
    if (error) {
      regerror(error, &pattern->one_pass, message, capacity);
      ferry_json_pattern_free(pattern);
      return nullptr;
    }
    pattern->has_one_pass = true;
  }
  return pattern;
}

void ferry_json_pattern_free(ferry_json_pattern *pattern) {
  regfree(&pattern->expression);
  if (pattern->has_one_pass)
    regfree(&pattern->one_pass);
  delete pattern;
}

bool ferry__json_pattern_finds(const ferry_json_pattern *pattern,
                               const uint8_t *text, size_t count) noexcept {
  if (count > INT_MAX)
    return false;
  Utf8Thread utf8;
  const regex_t &chosen = pattern->has_one_pass && count > short_text
                              ? pattern->one_pass
                              : pattern->expression;
  // GNU's form of the search takes a length, so that NUL is a character too.
  // It locks the expression by itself and changes nothing that a caller sees.
  auto *expression = const_cast<regex_t *>(&chosen);
  int length = static_cast<int>(count);
  return re_search(expression, reinterpret_cast<const char *>(text), length, 0,
                   length, nullptr) >= 0;
}
