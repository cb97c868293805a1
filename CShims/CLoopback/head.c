/* head.c - parses request heads in one pass. Nothing is copied; the slices
 * point into the input. */
#include "internal.h"

#include <string.h>

static const char *line_end(const char *at, const char *end) {
  return memchr(at, '\n', (size_t)(end - at));
}

static lb_slice trimmed(const char *from, const char *to) {
  while (from < to && (*from == ' ' || *from == '\t')) from++;
  while (to > from && (to[-1] == ' ' || to[-1] == '\t' || to[-1] == '\r')) to--;
  return (lb_slice){from, (size_t)(to - from)};
}

static bool parse_request_line(const char *at, const char *end,
                               lb_head *head) {
  const char *space = memchr(at, ' ', (size_t)(end - at));
  const char *second;
  const char *query;
  lb_slice version;
  if (!space || space == at) return false;
  head->method = (lb_slice){at, (size_t)(space - at)};
  second = memchr(space + 1, ' ', (size_t)(end - space - 1));
  if (!second || second == space + 1) return false;
  head->target = (lb_slice){space + 1, (size_t)(second - space - 1)};
  version = trimmed(second + 1, end);
  if (!lb__starts(version, "HTTP/1.")) return false;
  head->keep_alive = !lb__equal(version, "HTTP/1.0");
  head->path = head->target;
  /* The absolute form, as sent to proxies: the path begins after the host. */
  if (head->path.base[0] != '/') {
    const char *host = memmem(head->path.base, head->path.length, "://", 3);
    const char *stop = head->target.base + head->target.length;
    if (host) {
      const char *slash = memchr(host + 3, '/', (size_t)(stop - host - 3));
      if (slash) head->path = (lb_slice){slash, (size_t)(stop - slash)};
    }
  }
  head->query = (lb_slice){"", 0};
  query = memchr(head->path.base, '?', head->path.length);
  if (query) {
    size_t before = (size_t)(query - head->path.base);
    head->query = (lb_slice){query + 1, head->path.length - before - 1};
    head->path.length = before;
  }
  return true;
}

/* Whether a comma-separated list contains this word. */
static bool has_token(lb_slice list, const char *word) {
  const char *at = list.base;
  const char *end = at + list.length;
  while (at < end) {
    const char *comma = memchr(at, ',', (size_t)(end - at));
    const char *stop = comma ? comma : end;
    if (lb__equal_fold(trimmed(at, stop), word)) return true;
    at = stop + 1;
  }
  return false;
}

/* Evaluates the fields that frame the message. */
static bool look_at_field(lb_head *head, lb_slice name, lb_slice value) {
  switch (name.length) {
    case 6:
      if (lb__equal_fold(name, "expect"))
        head->expects_continue = lb__equal_fold(value, "100-continue");
      return true;
    case 10:
      if (lb__equal_fold(name, "connection")) {
        if (has_token(value, "close")) head->keep_alive = false;
        else if (has_token(value, "keep-alive")) head->keep_alive = true;
      }
      return true;
    case 14:
      if (!lb__equal_fold(name, "content-length")) return true;
      if (head->has_length) return false;
      head->has_length = true;
      return lb__number(value, &head->content_length);
    case 17:
      if (!lb__equal_fold(name, "transfer-encoding")) return true;
      head->chunked = lb__equal_fold(value, "chunked");
      return head->chunked;
    default:
      return true;
  }
}

long lb__head_parse(const char *base, size_t length, lb_head *head) {
  const char *end = base + length;
  const char *at = base;
  const char *next;
  head->count = 0;
  head->content_length = 0;
  head->has_length = head->chunked = head->expects_continue = false;
  while (at < end && (*at == '\r' || *at == '\n')) at++;
  head->raw.base = at;
  next = at < end ? line_end(at, end) : NULL;
  if (!next) return length > LB_HEAD_LIMIT ? -431 : 0;
  if (!parse_request_line(at, next, head)) return -400;
  for (;;) {
    const char *colon;
    lb_slice name;
    lb_slice value;
    at = next + 1;
    next = at < end ? line_end(at, end) : NULL;
    if (!next) return length > LB_HEAD_LIMIT ? -431 : 0;
    if (next == at || (next == at + 1 && *at == '\r')) break;
    colon = memchr(at, ':', (size_t)(next - at));
    if (!colon || colon == at) return -400;
    if (head->count == LB_MAX_FIELDS) return -431;
    name = (lb_slice){at, (size_t)(colon - at)};
    value = trimmed(colon + 1, next);
    head->fields[head->count].name = name;
    head->fields[head->count].value = value;
    head->count++;
    if (!look_at_field(head, name, value)) return -400;
  }
  if (head->chunked && head->has_length) return -400;
  head->raw.length = (size_t)(next + 1 - head->raw.base);
  return (long)(next + 1 - base);
}

bool lb__head_field(const lb_head *head, const char *name, lb_slice *value) {
  for (size_t i = 0; i < head->count; i++) {
    if (!lb__equal_fold(head->fields[i].name, name)) continue;
    *value = head->fields[i].value;
    return true;
  }
  return false;
}
