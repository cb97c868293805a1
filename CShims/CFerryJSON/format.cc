// format.cc - strings of a given format.
#include "check.h"
#include "pattern.h"

#include <arpa/inet.h>

namespace {

bool is_digit(uint8_t c) noexcept { return c >= '0' && c <= '9'; }

bool is_letter(uint8_t c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_hexadecimal(uint8_t c) noexcept {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_one_of(uint8_t c, const char *set) noexcept {
  return c && c < 0x80 && strchr(set, c);
}

// The rest of a string.
class Reader {
 public:
  Reader(const uint8_t *bytes, size_t count) noexcept
      : at(bytes), end(bytes + count) {}

  bool is_done() const noexcept { return at == end; }
  size_t left() const noexcept { return static_cast<size_t>(end - at); }
  uint8_t peek() const noexcept { return at < end ? *at : 0; }

  bool take(char c) noexcept {
    if (at == end || *at != static_cast<uint8_t>(c))
      return false;
    at++;
    return true;
  }

  bool take_one_of(const char *set) noexcept {
    if (at == end || !is_one_of(*at, set))
      return false;
    at++;
    return true;
  }

  template <class Is>
  size_t skip(Is is) noexcept {
    const uint8_t *first = at;
    while (at < end && is(*at))
      at++;
    return static_cast<size_t>(at - first);
  }

  // Exactly this many digits, as a number.
  bool number(int digits, int *value) noexcept {
    for (*value = 0; digits > 0; digits--, at++) {
      if (at == end || !is_digit(*at))
        return false;
      *value = *value * 10 + (*at - '0');
    }
    return true;
  }

  // Up to the first of these characters, or to the end.
  Reader until(const char *set) noexcept {
    const uint8_t *first = at;
    while (at < end && !is_one_of(*at, set))
      at++;
    return Reader(first, static_cast<size_t>(at - first));
  }

  bool has(uint8_t c) const noexcept { return left() && memchr(at, c, left()); }

  const uint8_t *at;
  const uint8_t *end;
};

bool date(Reader &text) noexcept {
  static constexpr int days[] = {31, 28, 31, 30, 31, 30,
                                 31, 31, 30, 31, 30, 31};
  int year, month, day;
  if (!text.number(4, &year) || !text.take('-') || !text.number(2, &month) ||
      !text.take('-') || !text.number(2, &day))
    return false;
  if (month < 1 || month > 12 || day < 1)
    return false;
  bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return day <= days[month - 1] + (month == 2 && is_leap);
}

// A leap second is the last one of a day, in UTC.
bool time(Reader &text) noexcept {
  int hour, minute, second, offset_hour = 0, offset_minute = 0, sign = 0;
  if (!text.number(2, &hour) || !text.take(':') || !text.number(2, &minute) ||
      !text.take(':') || !text.number(2, &second))
    return false;
  if (text.take('.') && !text.skip(is_digit))
    return false;
  if (!text.take_one_of("Zz")) {
    sign = text.take('+') ? 1 : -1;
    if ((sign < 0 && !text.take('-')) || !text.number(2, &offset_hour) ||
        !text.take(':') || !text.number(2, &offset_minute))
      return false;
  }
  if (hour > 23 || minute > 59 || second > 60 || offset_hour > 23 ||
      offset_minute > 59)
    return false;
  int minutes = hour * 60 + minute - sign * (offset_hour * 60 + offset_minute);
  return second < 60 || (minutes + 2 * 1440) % 1440 == 1439;
}

// Numbers with these units, in order, without gaps.
bool amounts(Reader &text, const char *units) noexcept {
  bool has_any = false;
  while (is_digit(text.peek())) {
    text.skip(is_digit);
    const char *unit = text.peek() ? strchr(units, text.peek()) : nullptr;
    if (!unit || (has_any && unit != units))
      return false;
    text.at++;
    units = unit + 1;
    has_any = true;
  }
  return has_any;
}

bool duration(Reader text) noexcept {
  if (!text.take('P'))
    return false;
  if (text.peek() != 'T') {
    Reader week = text;
    if (week.skip(is_digit) && week.take('W'))
      return week.is_done();
    if (!amounts(text, "YMD"))
      return false;
  }
  if (text.take('T') && !amounts(text, "HMS"))
    return false;
  return text.is_done();
}

bool hostname(Reader text) noexcept {
  if (text.left() > 253)
    return false;
  do {
    Reader label = text.until(".");
    size_t count = label.left();
    if (count == 0 || count > 63 || *label.at == '-' || label.end[-1] == '-')
      return false;
    label.skip(
        [](uint8_t c) { return is_letter(c) || is_digit(c) || c == '-'; });
    if (!label.is_done())
      return false;
  } while (text.take('.'));
  return true;
}

bool address(int family, Reader text) noexcept {
  char copy[INET6_ADDRSTRLEN];
  unsigned char result[sizeof(struct in6_addr)];
  size_t count = text.left();
  if (count >= sizeof copy || text.has(0))
    return false;
  memcpy(copy, text.at, count);
  copy[count] = 0;
  return inet_pton(family, copy, result) == 1;
}

bool is_atom(uint8_t c) noexcept {
  return is_letter(c) || is_digit(c) || is_one_of(c, "!#$%&'*+-/=?^_`{|}~");
}

bool local_part(Reader &text) noexcept {
  if (!text.take('"')) {
    do {
      if (!text.skip(is_atom))
        return false;
    } while (text.take('.'));
    return true;
  }
  while (!text.is_done() && !text.take('"')) {
    if (text.take('\\') && text.is_done())
      return false;
    if (*text.at < 0x20 || *text.at > 0x7e)
      return false;
    text.at++;
    if (text.is_done())
      return false;
  }
  return text.end > text.at && text.at[-1] == '"';
}

bool email(Reader text) noexcept {
  const uint8_t *first = text.at;
  if (!local_part(text) || text.at - first > 64 || !text.take('@'))
    return false;
  if (!text.take('['))
    return hostname(text);
  Reader literal = text.until("]");
  if (!text.take(']') || !text.is_done())
    return false;
  static constexpr char mark[] = "IPv6:";
  if (literal.left() > 5 && memcmp(literal.at, mark, 5) == 0) {
    literal.at += 5;
    return address(AF_INET6, literal);
  }
  return address(AF_INET, literal);
}

bool is_unreserved(uint8_t c) noexcept {
  return is_letter(c) || is_digit(c) || is_one_of(c, "-._~");
}

// Unreserved characters, percent-encoded ones, the delimiters within
// components, and those in `more`.
bool component(Reader text, const char *more) noexcept {
  while (!text.is_done()) {
    uint8_t c = *text.at++;
    if (c == '%') {
      if (text.left() < 2 || !is_hexadecimal(text.at[0]) ||
          !is_hexadecimal(text.at[1]))
        return false;
      text.at += 2;
    } else if (!is_unreserved(c) && !is_one_of(c, "!$&'()*+,;=") &&
               !is_one_of(c, more)) {
      return false;
    }
  }
  return true;
}

bool ip_literal(Reader text) noexcept {
  if (!text.take_one_of("vV"))
    return address(AF_INET6, text);
  if (!text.skip(is_hexadecimal) || !text.take('.') || text.is_done())
    return false;
  return !text.has('%') && component(text, ":");
}

bool authority(Reader text) noexcept {
  if (text.has('@')) {
    if (!component(text.until("@"), ":"))
      return false;
    text.take('@');
  }
  if (text.take('[')) {
    Reader literal = text.until("]");
    if (!text.take(']') || !ip_literal(literal))
      return false;
  } else if (!component(text.until(":"), "")) {
    return false;
  }
  if (text.take(':'))
    text.skip(is_digit);
  return text.is_done();
}

bool uri(Reader text, bool may_be_relative) noexcept {
  Reader scheme = text;
  bool has_scheme = is_letter(scheme.peek());
  scheme.skip([](uint8_t c) {
    return is_letter(c) || is_digit(c) || is_one_of(c, "+-.");
  });
  has_scheme = has_scheme && scheme.take(':');
  if (has_scheme)
    text = scheme;
  else if (!may_be_relative)
    return false;

  Reader hierarchy = text.until("?#");
  if (text.take('?') && !component(text.until("#"), ":@/?"))
    return false;
  if (text.take('#') && !component(text, ":@/?"))
    return false;
  if (hierarchy.left() >= 2 && hierarchy.at[0] == '/' &&
      hierarchy.at[1] == '/') {
    hierarchy.at += 2;
    if (!authority(hierarchy.until("/")))
      return false;
  } else if (!has_scheme) {
    Reader path = hierarchy;
    if (path.until("/").has(':'))
      return false;
  }
  return component(hierarchy, ":@/");
}

bool uuid(Reader text) noexcept {
  static constexpr size_t groups[] = {8, 4, 4, 4, 12};
  for (size_t group : groups) {
    if (group != 8 && !text.take('-'))
      return false;
    if (text.skip(is_hexadecimal) != group)
      return false;
  }
  return text.is_done();
}

bool json_pointer(Reader text) noexcept {
  if (!text.is_done() && text.peek() != '/')
    return false;
  while (!text.is_done()) {
    uint8_t c = *text.at++;
    if (c == '~' && !text.take('0') && !text.take('1'))
      return false;
  }
  return true;
}

}  // namespace

bool ferry__json_has_format(uint32_t format, const uint8_t *bytes,
                            size_t count) noexcept {
  Reader text(bytes, count);
  switch (format) {
  case FERRY_JSON_DATE_TIME:
    return date(text) && text.take_one_of("Tt") && time(text) &&
           text.is_done();
  case FERRY_JSON_DATE: return date(text) && text.is_done();
  case FERRY_JSON_TIME: return time(text) && text.is_done();
  case FERRY_JSON_DURATION: return duration(text);
  case FERRY_JSON_EMAIL: return email(text);
  case FERRY_JSON_HOSTNAME: return hostname(text);
  case FERRY_JSON_IPV4: return address(AF_INET, text);
  case FERRY_JSON_IPV6: return address(AF_INET6, text);
  case FERRY_JSON_URI: return uri(text, false);
  case FERRY_JSON_URI_REFERENCE: return uri(text, true);
  case FERRY_JSON_UUID: return uuid(text);
  case FERRY_JSON_POINTER: return json_pointer(text);
  case FERRY_JSON_REGEX: return ferry__json_is_pattern(bytes, count);
  default: return true;
  }
}
