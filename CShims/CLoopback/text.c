/* text.c - slices, numbers, queries, JSON strings. */
#include "internal.h"

#include <string.h>
#include <strings.h>

bool lb__equal(lb_slice slice, const char *text) {
  return slice.length == strlen(text) &&
         memcmp(slice.base, text, slice.length) == 0;
}

bool lb__equal_fold(lb_slice slice, const char *text) {
  return slice.length == strlen(text) &&
         strncasecmp(slice.base, text, slice.length) == 0;
}

bool lb__starts(lb_slice slice, const char *text) {
  size_t length = strlen(text);
  return slice.length >= length && memcmp(slice.base, text, length) == 0;
}

bool lb__number(lb_slice slice, uint64_t *out) {
  uint64_t number = 0;
  if (!slice.length) return false;
  for (size_t i = 0; i < slice.length; i++) {
    unsigned digit = (unsigned)(unsigned char)slice.base[i] - '0';
    if (digit > 9 || number > (UINT64_MAX - digit) / 10) return false;
    number = number * 10 + digit;
  }
  *out = number;
  return true;
}

int lb__hex(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  digit |= 0x20;
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

size_t lb__unescape(lb_slice slice, bool plus, char *out) {
  size_t made = 0;
  for (size_t i = 0; i < slice.length; i++) {
    char byte = slice.base[i];
    if (byte == '%' && i + 2 < slice.length &&
        lb__hex(slice.base[i + 1]) >= 0 && lb__hex(slice.base[i + 2]) >= 0) {
      byte = (char)(lb__hex(slice.base[i + 1]) * 16 +
                    lb__hex(slice.base[i + 2]));
      i += 2;
    } else if (byte == '+' && plus) {
      byte = ' ';
    }
    out[made++] = byte;
  }
  return made;
}

bool lb__query_next(lb_slice *query, lb_slice *name, lb_slice *value) {
  const char *end;
  const char *equals;
  size_t length;
  if (!query->length) return false;
  end = memchr(query->base, '&', query->length);
  length = end ? (size_t)(end - query->base) : query->length;
  equals = memchr(query->base, '=', length);
  *name = (lb_slice){query->base,
                     equals ? (size_t)(equals - query->base) : length};
  *value = (lb_slice){"", 0};
  if (equals)
    *value = (lb_slice){equals + 1, length - name->length - 1};
  query->base += length + (end ? 1 : 0);
  query->length -= length + (end ? 1 : 0);
  return true;
}

bool lb__query(lb_slice query, const char *name, lb_slice *value) {
  lb_slice found;
  while (lb__query_next(&query, &found, value))
    if (lb__equal(found, name)) return true;
  return false;
}

uint64_t lb__query_number(lb_slice query, const char *name, uint64_t other) {
  lb_slice value;
  uint64_t number;
  if (lb__query(query, name, &value) && lb__number(value, &number))
    return number;
  return other;
}

bool lb__is_utf8(lb_slice text) {
  const unsigned char *at = (const unsigned char *)text.base;
  const unsigned char *end = at + text.length;
  while (at < end) {
    unsigned more = *at < 0x80 ? 0
                    : *at >= 0xC2 && *at < 0xE0 ? 1
                    : *at >= 0xE0 && *at < 0xF0 ? 2
                    : *at >= 0xF0 && *at < 0xF5 ? 3 : 4;
    if (more == 4 || (size_t)(end - at) <= more) return false;
    /* Overlong forms and surrogates. */
    if ((*at == 0xE0 && at[1] < 0xA0) || (*at == 0xED && at[1] > 0x9F) ||
        (*at == 0xF0 && at[1] < 0x90) || (*at == 0xF4 && at[1] > 0x8F))
      return false;
    for (at++; more; more--, at++)
      if ((*at & 0xC0) != 0x80) return false;
  }
  return true;
}

/* Text that is not UTF-8 is read as Latin-1, so that the document is valid
 * UTF-8. */
void lb__json_string(lb_buf *out, lb_slice text) {
  bool utf8 = lb__is_utf8(text);
  lb__buf_text(out, "\"");
  for (size_t i = 0; i < text.length; i++) {
    unsigned char byte = (unsigned char)text.base[i];
    if (byte == '"' || byte == '\\')
      lb__buf_format(out, "\\%c", byte);
    else if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !utf8))
      lb__buf_format(out, "\\u%04x", byte);
    else
      lb__buf_add(out, &byte, 1);
  }
  lb__buf_text(out, "\"");
}
