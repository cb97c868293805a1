// text.cc - strings and integers as JSON writes them.
#include "CFerryJSON.h"

namespace {

constexpr char hex[] = "0123456789abcdef";

constexpr uint64_t every_byte = 0x0101010101010101u;
constexpr uint64_t upper_bits = 0x8080808080808080u;

inline uint64_t is_zero(uint64_t word) noexcept {
  return (word - every_byte) & ~word & upper_bits;
}

// Not 0 if one of eight bytes must be escaped. It may be set wrongly for a byte
// after one that must be.
inline uint64_t has_special(uint64_t word, bool escapes_slashes) noexcept {
  uint64_t control = (word - every_byte * 0x20) & ~word & upper_bits;
  uint64_t special = control | is_zero(word ^ every_byte * '"') |
                     is_zero(word ^ every_byte * '\\');
  return escapes_slashes ? special | is_zero(word ^ every_byte * '/')
                         : special;
}

inline uint8_t *put(uint8_t *out, uint8_t byte, bool escapes_slashes) noexcept {
  uint8_t letter;
  switch (byte) {
  case '"': letter = '"'; break;
  case '\\': letter = '\\'; break;
  case '\b': letter = 'b'; break;
  case '\f': letter = 'f'; break;
  case '\n': letter = 'n'; break;
  case '\r': letter = 'r'; break;
  case '\t': letter = 't'; break;
  case '/':
    if (escapes_slashes) {
      letter = '/';
      break;
    }
    *out++ = byte;
    return out;
  default:
    if (byte >= 0x20) {
      *out++ = byte;
      return out;
    }
    memcpy(out, "\\u00", 4);
    out[4] = static_cast<uint8_t>(hex[byte >> 4]);
    out[5] = static_cast<uint8_t>(hex[byte & 15]);
    return out + 6;
  }
  out[0] = '\\';
  out[1] = letter;
  return out + 2;
}

}  // namespace

size_t ferry_json_escape(uint8_t *out, const uint8_t *bytes, size_t count,
                         bool escapes_slashes) {
  uint8_t *begin = out;
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t word;
    memcpy(&word, bytes + i, sizeof word);
    if (has_special(word, escapes_slashes)) {
      for (size_t j = 0; j < 8; j++)
        out = put(out, bytes[i + j], escapes_slashes);
    } else {
      memcpy(out, &word, sizeof word);
      out += 8;
    }
  }
  for (; i < count; i++)
    out = put(out, bytes[i], escapes_slashes);
  return static_cast<size_t>(out - begin);
}

size_t ferry_json_write_integer(uint8_t *out, uint64_t magnitude,
                                bool is_negative) {
  uint8_t digits[20];
  size_t place = sizeof digits;
  do {
    digits[--place] = static_cast<uint8_t>('0' + magnitude % 10);
    magnitude /= 10;
  } while (magnitude);
  size_t count = 0;
  if (is_negative)
    out[count++] = '-';
  memcpy(out + count, digits + place, sizeof digits - place);
  return count + sizeof digits - place;
}
