/* head.c - the head of a response: raw bytes, a table of offsets, and a check
 * of every line as it arrives (RFC 9112).
 *
 * libcurl is lenient where leniency is dangerous: it accepts contradictory
 * lengths, control bytes in values and endless 1xx responses. A line that is
 * refused here ends the transfer and its connection. */
#include "transfer/transfer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

const unsigned char ferry__tchar[256] = {
    ['!'] = 1,  ['#'] = 1, ['$'] = 1, ['%'] = 1,        ['&'] = 1,
    ['\''] = 1, ['*'] = 1, ['+'] = 1, ['-'] = 1,        ['.'] = 1,
    ['^'] = 1,  ['_'] = 1, ['`'] = 1, ['|'] = 1,        ['~'] = 1,
    ['0' ... '9'] = 1,     ['A' ... 'Z'] = 1,           ['a' ... 'z'] = 1,
};

static ferry__fault malformed(int detail) {
  return (ferry__fault){FERRY_E_MALFORMED_RESPONSE, detail};
}

static ferry__fault too_large(int detail) {
  return (ferry__fault){FERRY_E_HEAD_TOO_LARGE, detail};
}

static const ferry__fault taken = {FERRY_OK, 0};

static ferry__head nothing = {.content_length = -1};
ferry__head *const ferry__no_head = &nothing;

void ferry__head_begin(ferry__head *head, uint32_t limit) {
  head->received = 0;
  head->informational = head->trailers = 0;
  head->limit = limit ? limit : FERRY__MAX_HEAD;
  head->status = 0;
  head->version = 0;
  head->http2 = false;
  ferry__head_expect_status(head);
}

static void expect_status(ferry__head *head) {
  head->length = head->count = 0;
  head->content_length = -1;
  head->chunked = head->in_fields = head->complete = false;
  head->coding = FERRY__CODING_NONE;
}

void ferry__head_expect_status(ferry__head *head) {
  head->aside_length = head->informational_length = 0;
  expect_status(head);
}

void ferry__head_free(ferry__head *head) {
  free(head->bytes);
  free(head->fields);
  free(head->aside);
}

static bool keep_aside(ferry__head *head, const char *bytes, size_t length) {
  if (head->aside_length + length > head->aside_capacity) {
    uint32_t capacity = head->aside_capacity ? head->aside_capacity : 512;
    while (capacity < head->aside_length + length)
      capacity *= 2;
    char *aside = realloc(head->aside, capacity);
    if (!aside)
      return false;
    head->aside = aside;
    head->aside_capacity = capacity;
  }
  memcpy(head->aside + head->aside_length, bytes, length);
  head->aside_length += (uint32_t)length;
  return true;
}

static bool keep(ferry__head *head, const char *line, size_t length) {
  if (head->length + length > head->capacity) {
    uint32_t capacity = head->capacity ? head->capacity : 1024;
    while (capacity < head->length + length)
      capacity *= 2;
    char *bytes = realloc(head->bytes, capacity);
    if (!bytes)
      return false;
    head->bytes = bytes;
    head->capacity = capacity;
  }
  memcpy(head->bytes + head->length, line, length);
  head->length += (uint32_t)length;
  return true;
}

static bool keep_field(ferry__head *head, size_t name_length, size_t value,
                       size_t value_length) {
  if (head->count == head->field_capacity) {
    uint32_t capacity = head->field_capacity ? head->field_capacity * 2 : 32;
    ferry_field *fields = realloc(head->fields, capacity * sizeof *fields);
    if (!fields)
      return false;
    head->fields = fields;
    head->field_capacity = capacity;
  }
  head->fields[head->count++] = (ferry_field){
      head->length, head->length + (uint32_t)value, (uint16_t)name_length,
      (uint16_t)value_length};
  return true;
}

/* CR, NUL and similar bytes are never a part of a line (RFC 9110, 5.5). The
 * loop has no branch, so that the compiler handles 16 bytes at a time. */
static bool has_control(const char *line, size_t n) {
  unsigned found = 0;
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)line[i];
    found |= (c < ' ' && c != '\t') | (c == 0x7f);
  }
  return found;
}

static bool digit(char c) { return c >= '0' && c <= '9'; }

static ferry__fault status_line(ferry__head *head, const char *p, size_t n) {
  size_t code;
  uint8_t version;
  if (n >= 12 && !memcmp(p, "HTTP/1.", 7) && (p[7] == '1' || p[7] == '0') &&
      p[8] == ' ') {
    code = 9;
    version = p[7] == '1' ? 11 : 10;
  } else if (head->http2 && n >= 10 && !memcmp(p, "HTTP/2 ", 7)) {
    code = 7;
    version = 20;
  } else {
    return malformed(FERRY_D_STATUS_LINE);
  }
  if (p[code] < '1' || p[code] > '9' || !digit(p[code + 1]) ||
      !digit(p[code + 2]) || (n > code + 3 && p[code + 3] != ' '))
    return malformed(FERRY_D_STATUS_LINE);
  head->version = version;
  head->status = (uint16_t)((p[code] - '0') * 100 + (p[code + 1] - '0') * 10 +
                            p[code + 2] - '0');
  if (head->status == 101)
    return malformed(FERRY_D_UPGRADE);
  if (head->status < 200 && ++head->informational > FERRY__MAX_1XX)
    return too_large(FERRY_D_INFORMATIONAL);
  head->in_fields = true;
  return taken;
}

static ferry__fault end_of_head(ferry__head *head) {
  if (head->status < 200) {
    head->informational_at = head->aside_length;
    if (!keep_aside(head, head->bytes, head->length))
      return (ferry__fault){FERRY_E_MEMORY, 0};
    head->informational_length = head->aside_length;
    head->status = 0; /* not a final response yet */
    expect_status(head);
    return taken;
  }
  /* RFC 9112, 6.3: both together are a smuggling attempt or a broken server. */
  if (head->chunked && head->content_length >= 0)
    return malformed(FERRY_D_CONFLICTING_LENGTH);
  head->in_fields = false;
  head->complete = true;
  return taken;
}

static ferry__fault length_field(ferry__head *head, const char *p, size_t n) {
  int64_t length = 0;
  if (!n || n > 18)
    return malformed(FERRY_D_LENGTH);
  for (size_t i = 0; i < n; i++) {
    if (!digit(p[i]))
      return malformed(FERRY_D_LENGTH);
    length = length * 10 + (p[i] - '0');
  }
  if (head->content_length >= 0 && head->content_length != length)
    return malformed(FERRY_D_CONFLICTING_LENGTH);
  head->content_length = length;
  return taken;
}

static bool is(const char *p, size_t n, const char *word, size_t length) {
  return n == length && !strncasecmp(p, word, n);
}
#define IS(p, n, word) is(p, n, word, sizeof word - 1)

/* The fields that determine the framing and the decoding. */
static ferry__fault framing_field(ferry__head *head, const char *name,
                                  size_t name_length, const char *value,
                                  size_t n) {
  /* A client must ignore them (RFC 9110, 9.3.6). */
  if (head->tunnel && head->status / 100 == 2)
    return taken;
  if (IS(name, name_length, "Content-Length"))
    return length_field(head, value, n);
  if (IS(name, name_length, "Transfer-Encoding")) {
    if (head->chunked || !IS(value, n, "chunked"))
      return malformed(FERRY_D_TRANSFER_ENCODING);
    head->chunked = true;
  } else if (IS(name, name_length, "Content-Encoding")) {
    /* Several codings are left to the caller. */
    if (head->coding != FERRY__CODING_NONE)
      head->coding = FERRY__CODING_OTHER;
    else if (IS(value, n, "gzip") || IS(value, n, "x-gzip"))
      head->coding = FERRY__CODING_GZIP;
    else if (IS(value, n, "deflate"))
      head->coding = FERRY__CODING_DEFLATE;
    else if (IS(value, n, "br"))
      head->coding = FERRY__CODING_BROTLI;
    else if (IS(value, n, "zstd"))
      head->coding = FERRY__CODING_ZSTD;
    else if (n && !IS(value, n, "identity"))
      head->coding = FERRY__CODING_OTHER;
  }
  return taken;
}

ferry__fault ferry__head_line(ferry__head *head, const char *line,
                              size_t length) {
  head->received += length;
  if (head->received > head->limit)
    return too_large(FERRY_D_HEAD_BYTES);
  bool first = !head->in_fields && !head->complete;
  int broken = first            ? FERRY_D_STATUS_LINE
               : head->complete ? FERRY_D_TRAILER
                                : FERRY_D_HEADER;
  if (length < 2 || line[length - 1] != '\n' || line[length - 2] != '\r')
    return malformed(broken); /* a bare LF */
  size_t n = length - 2;
  if (has_control(line, n))
    return malformed(broken);
  if (first) {
    ferry__fault fault = status_line(head, line, n);
    if (fault.code)
      return fault;
    return keep(head, line, length) ? taken
                                    : (ferry__fault){FERRY_E_MEMORY, 0};
  }
  if (!n) {
    if (head->complete)
      return taken; /* the end of the trailers */
    if (!keep(head, line, length))
      return (ferry__fault){FERRY_E_MEMORY, 0};
    return end_of_head(head);
  }
  size_t colon = 0;
  while (colon < n && ferry__tchar[(unsigned char)line[colon]])
    colon++;
  /* No name, white space before the colon, no colon, or obsolete line
   * folding. */
  if (!colon || colon == n || line[colon] != ':' || colon > UINT16_MAX)
    return malformed(broken);
  size_t value = colon + 1, end = n;
  while (value < end && (line[value] == ' ' || line[value] == '\t'))
    value++;
  while (end > value && (line[end - 1] == ' ' || line[end - 1] == '\t'))
    end--;
  if (end - value > UINT16_MAX)
    return too_large(FERRY_D_HEAD_BYTES);
  if (head->complete) { /* a trailer, which has no effect (RFC 9110, 6.5) */
    if (++head->trailers > FERRY__MAX_FIELDS)
      return too_large(FERRY_D_HEAD_BYTES);
    return keep_aside(head, line, length) ? taken
                                          : (ferry__fault){FERRY_E_MEMORY, 0};
  }
  if (head->count >= FERRY__MAX_FIELDS)
    return too_large(FERRY_D_HEAD_BYTES);
  if (colon >= 14 && colon <= 17) { /* the lengths of the names that matter */
    ferry__fault fault =
        framing_field(head, line, colon, line + value, end - value);
    if (fault.code)
      return fault;
  }
  return keep_field(head, colon, value, end - value) &&
                 keep(head, line, length)
             ? taken
             : (ferry__fault){FERRY_E_MEMORY, 0};
}
