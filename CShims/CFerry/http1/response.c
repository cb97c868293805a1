/* response.c - see response.h. */
#include "http1/response.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
  MOST_DIGITS = 16,       /* of a chunk's size; some servers pad it to this
                           * length */
  /* Bytes of chunk extensions, which are ignored. A body has this many without
   * data, .. */
  MOST_EXTENSIONS = 16384,
  FREE_EXTENSIONS = 16 /* .. and each chunk this many and those of its data */
};

void ferry__response_begin(ferry__response *r, ferry__head *head,
                           bool to_head) {
  r->head = head;
  r->left = 0;
  r->line_length = r->extensions = 0;
  r->fault = (ferry__fault){0, 0};
  r->informational = 0;
  r->state = FERRY__IN_HEAD;
  r->digits = 0;
  r->to_head = to_head;
  r->persistent = r->old = false;
}

void ferry__response_free(ferry__response *r) {
  free(r->line);
  r->line = NULL;
  r->line_length = r->line_capacity = 0;
}

bool ferry__response_is_untouched(const ferry__response *r) {
  return r->state == FERRY__IN_HEAD && !r->line_length &&
         !(r->head && r->head->received);
}

static enum ferry__event fail(ferry__response *r, int code, int detail) {
  r->fault = (ferry__fault){code, detail};
  r->state = FERRY__AT_FAULT;
  return FERRY__EVENT_FAULT;
}

static enum ferry__event bad_chunk(ferry__response *r) {
  return fail(r, FERRY_E_MALFORMED_RESPONSE, FERRY_D_CHUNK);
}

/* ---- Lines --------------------------------------------------------------- */

/* Keeps the start of a line. It counts for the limit of the head, so a line
 * without an end cannot grow without bound. */
static bool keep(ferry__response *r, const char *bytes, size_t length) {
  const ferry__head *head = r->head;
  if (head->received + r->line_length + length > head->limit) {
    fail(r, FERRY_E_HEAD_TOO_LARGE, FERRY_D_HEAD_BYTES);
    return false;
  }
  size_t need = r->line_length + length;
  if (need > r->line_capacity) {
    size_t capacity = r->line_capacity ? r->line_capacity : 256;
    while (capacity < need)
      capacity *= 2;
    char *line = realloc(r->line, capacity);
    if (!line) {
      fail(r, FERRY_E_MEMORY, 0);
      return false;
    }
    r->line = line;
    r->line_capacity = (uint32_t)capacity;
  }
  memcpy(r->line + r->line_length, bytes, length);
  r->line_length = (uint32_t)need;
  return true;
}

/* The next complete line, with its LF. NULL: none yet, or a fault. */
static const char *next_line(ferry__response *r, const char **at,
                             const char *end, size_t *length) {
  const char *from = *at;
  const char *lf = memchr(from, '\n', (size_t)(end - from));
  const char *stop = lf ? lf + 1 : end;
  *at = stop;
  if (lf && !r->line_length) {
    *length = (size_t)(stop - from);
    return from;
  }
  if (!keep(r, from, (size_t)(stop - from)) || !lf)
    return NULL;
  *length = r->line_length;
  r->line_length = 0;
  return r->line;
}

/* ---- Heads --------------------------------------------------------------- */

/* Whether a list of tokens contains this one (RFC 9110, 5.6.1). */
static bool lists(const char *value, size_t length, const char *token) {
  size_t size = strlen(token);
  for (size_t i = 0; i < length;) {
    size_t from = i, to;
    while (i < length && value[i] != ',')
      i++;
    to = i++;
    while (from < to && (value[from] == ' ' || value[from] == '\t'))
      from++;
    while (to > from && (value[to - 1] == ' ' || value[to - 1] == '\t'))
      to--;
    if (to - from == size && !strncasecmp(value + from, token, size))
      return true;
  }
  return false;
}

/* RFC 9112, 9.3: «close» decides, wherever it stands. */
static bool is_persistent(const ferry__head *head) {
  bool kept = head->version == 11;
  for (uint32_t i = 0; i < head->count; i++) {
    const ferry_field *f = &head->fields[i];
    if (f->name_length != 10 ||
        strncasecmp(head->bytes + f->name, "Connection", 10))
      continue;
    const char *value = head->bytes + f->value;
    if (lists(value, f->value_length, "close"))
      return false;
    if (lists(value, f->value_length, "keep-alive"))
      kept = true;
  }
  return kept;
}

/* Determines the length of the body (RFC 9112, 6.3). A head with both a length
 * and a coding was refused. */
static void frame(ferry__response *r) {
  const ferry__head *head = r->head;
  r->persistent = !r->old && is_persistent(head);
  if (r->to_head || head->status == 204 || head->status == 304) {
    r->state = FERRY__AT_END;
  } else if (head->chunked) {
    r->state = FERRY__IN_CHUNK_SIZE;
    r->digits = 0;
    /* HTTP/1.0 has no chunks: who sent them, and where they end, is
     * uncertain. */
    r->persistent &= head->version == 11;
  } else if (head->content_length >= 0) {
    r->left = (uint64_t)head->content_length;
    r->state = r->left ? FERRY__IN_BODY : FERRY__AT_END;
  } else {
    r->state = FERRY__IN_OPEN_BODY;
    r->persistent = false;
  }
}

/* The bytes so far cannot begin an HTTP status line, whatever follows. A server
 * of another protocol may wait for us before it ends its line. The kept part of
 * the line has been checked already. */
static bool is_foreign(const ferry__response *r, const char *at,
                       const char *end) {
  static const char start[] = {'H', 'T', 'T', 'P', '/'};
  for (uint32_t i = r->line_length; i < sizeof start && at < end; i++)
    if (*at++ != start[i])
      return true;
  return false;
}

static enum ferry__event head_lines(ferry__response *r, const char **at,
                                    const char *end) {
  ferry__head *head = r->head;
  while (*at < end) {
    size_t length;
    if (!head->in_fields && is_foreign(r, *at, end))
      return fail(r, FERRY_E_MALFORMED_RESPONSE, FERRY_D_STATUS_LINE);
    const char *line = next_line(r, at, end, &length);
    if (!line)
      return r->fault.code ? FERRY__EVENT_FAULT : FERRY__EVENT_MORE;
    uint16_t status = head->status;
    uint8_t version = head->version;
    bool in_fields = head->in_fields;
    ferry__fault fault = ferry__head_line(head, line, length);
    if (fault.code)
      return fail(r, fault.code, fault.detail);
    if (head->complete) {
      frame(r);
      return FERRY__EVENT_HEAD;
    }
    if (in_fields && !head->in_fields) { /* another head has begun */
      r->informational = status;
      r->old |= version == 10;
      return FERRY__EVENT_INFORMATIONAL;
    }
  }
  return FERRY__EVENT_MORE;
}

static enum ferry__event trailer_lines(ferry__response *r, const char **at,
                                       const char *end) {
  while (*at < end) {
    size_t length;
    const char *line = next_line(r, at, end, &length);
    if (!line)
      return r->fault.code ? FERRY__EVENT_FAULT : FERRY__EVENT_MORE;
    bool last = length == 2 && line[0] == '\r';
    ferry__fault fault = ferry__head_line(r->head, line, length);
    if (fault.code)
      return fail(r, fault.code, fault.detail);
    if (last) {
      r->state = FERRY__AT_END;
      return FERRY__EVENT_END;
    }
  }
  return FERRY__EVENT_MORE;
}

/* ---- Chunks (RFC 9112, 7.1) ---------------------------------------------- */

static int digit_of(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  int lower = c | 0x20;
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static bool size_byte(ferry__response *r, char c) {
  int digit = digit_of(c);
  if (digit >= 0) {
    r->left = r->digits ? r->left << 4 | (unsigned)digit : (unsigned)digit;
    return ++r->digits <= MOST_DIGITS && r->left <= INT64_MAX;
  }
  if (!r->digits)
    return false;
  r->digits = 0;
  if (c == '\r')
    r->state = FERRY__AT_CHUNK_LF;
  else if (c == ';' || c == ' ' || c == '\t') /* some servers pad the size */
    r->state = FERRY__IN_CHUNK_EXTENSION;
  else
    return false;
  return true;
}

static bool extension_byte(ferry__response *r, char c) {
  if (c == '\r')
    r->state = FERRY__AT_CHUNK_LF;
  else if (((unsigned char)c < ' ' && c != '\t') || c == 0x7f)
    return false;
  return ++r->extensions <= MOST_EXTENSIONS;
}

/* A server may pad every size, or sign every chunk. But a body that is mostly
 * extensions costs time, and never reaches a limit of its size. */
static void pay_extensions(ferry__response *r) {
  uint64_t paid = r->left + FREE_EXTENSIONS;
  r->extensions = r->extensions > paid ? r->extensions - (uint32_t)paid : 0;
}

/* Takes a byte between the data of two chunks. Returns false on a fault. */
static bool framing_byte(ferry__response *r, char c) {
  switch (r->state) {
  case FERRY__IN_CHUNK_SIZE:
    return size_byte(r, c);
  case FERRY__IN_CHUNK_EXTENSION:
    return extension_byte(r, c);
  case FERRY__AT_CHUNK_LF:
    pay_extensions(r);
    r->state = r->left ? FERRY__IN_CHUNK : FERRY__IN_TRAILERS;
    return c == '\n';
  case FERRY__AT_CHUNK_END:
    r->state = FERRY__AT_CHUNK_END_LF;
    return c == '\r';
  default: /* FERRY__AT_CHUNK_END_LF */
    r->state = FERRY__IN_CHUNK_SIZE;
    return c == '\n';
  }
}

/* ---- The parser ---------------------------------------------------------- */

static enum ferry__event body_piece(ferry__response *r, const char **at,
                                    const char *end, bool hold,
                                    const char **piece, size_t *length) {
  size_t n = (size_t)(end - *at);
  if (!n)
    return FERRY__EVENT_MORE;
  if (hold)
    return FERRY__EVENT_HELD;
  if (r->state != FERRY__IN_OPEN_BODY) {
    if (n > r->left)
      n = (size_t)r->left;
    r->left -= n;
    if (!r->left)
      r->state =
          r->state == FERRY__IN_BODY ? FERRY__AT_END : FERRY__AT_CHUNK_END;
  }
  *piece = *at;
  *length = n;
  *at += n;
  return FERRY__EVENT_BODY;
}

enum ferry__event ferry__response_next(ferry__response *r, const char **at,
                                       const char *end, bool hold,
                                       const char **piece, size_t *length) {
  for (;;) {
    switch (r->state) {
    case FERRY__IN_HEAD:
      return head_lines(r, at, end);
    case FERRY__IN_BODY:
    case FERRY__IN_OPEN_BODY:
    case FERRY__IN_CHUNK:
      return body_piece(r, at, end, hold, piece, length);
    case FERRY__IN_TRAILERS:
      return trailer_lines(r, at, end);
    case FERRY__AT_END:
      return FERRY__EVENT_END;
    case FERRY__AT_FAULT:
      return FERRY__EVENT_FAULT;
    default:
      if (*at == end)
        return FERRY__EVENT_MORE;
      if (!framing_byte(r, *(*at)++))
        return bad_chunk(r);
    }
  }
}

enum ferry__event ferry__response_close(ferry__response *r, bool whole) {
  switch (r->state) {
  case FERRY__AT_END:
    return FERRY__EVENT_END;
  case FERRY__AT_FAULT:
    return FERRY__EVENT_FAULT;
  case FERRY__IN_OPEN_BODY:
    if (whole) {
      r->state = FERRY__AT_END;
      return FERRY__EVENT_END;
    }
    return fail(r, FERRY_E_INCOMPLETE_BODY, 0);
  case FERRY__IN_HEAD:
    return fail(r, FERRY_E_CONNECTION_CLOSED, 0);
  default:
    return fail(r, FERRY_E_INCOMPLETE_BODY, 0);
  }
}
