/* routes_body.c - routes that generate a body of any size. */
#include "internal.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANGE_NONE, RANGE_GOOD, RANGE_UNSATISFIABLE };

/* Parses one range (RFC 9110, 14.1.2); a request for several gets the full
 * response. */
static int parse_range(lb_slice value, uint64_t total, uint64_t *first,
                       uint64_t *last) {
  const char *dash;
  lb_slice from;
  lb_slice to;
  if (!lb__starts(value, "bytes=")) return RANGE_NONE;
  value.base += 6;
  value.length -= 6;
  dash = memchr(value.base, '-', value.length);
  if (!dash) return RANGE_NONE;
  from = (lb_slice){value.base, (size_t)(dash - value.base)};
  to = (lb_slice){dash + 1, value.length - from.length - 1};
  if (!from.length) {
    uint64_t suffix;
    if (!lb__number(to, &suffix)) return RANGE_NONE;
    if (!suffix || !total) return RANGE_UNSATISFIABLE;
    *first = suffix < total ? total - suffix : 0;
    *last = total - 1;
    return RANGE_GOOD;
  }
  if (!lb__number(from, first)) return RANGE_NONE;
  *last = UINT64_MAX;
  if (to.length && (!lb__number(to, last) || *last < *first))
    return RANGE_NONE;
  if (*first >= total) return RANGE_UNSATISFIABLE;
  if (*last >= total) *last = total - 1;
  return RANGE_GOOD;
}

/* A range is sent only if the validator is strong and equal. */
static bool if_range_holds(const lb_head *head, const char *etag) {
  lb_slice value;
  if (!lb__head_field(head, "If-Range", &value)) return true;
  return etag[0] == '"' && lb__equal(value, etag);
}

static void write_etag(lb_conn *c, const char *etag) {
  lb__buf_text(&c->out, "ETag: ");
  lb__buf_text(&c->out, etag);
  lb__buf_text(&c->out, "\r\n");
}

/* The ETag of N bytes; "?etag=x" sets another one. Weak ones are kept. */
static void make_etag(const lb_head *head, uint64_t total, char *etag,
                      size_t size) {
  lb_slice given;
  if (lb__query(head->query, "etag", &given) && given.length < 60) {
    char text[64];
    size_t length = lb__unescape(given, true, text);
    bool quoted = length && (text[0] == '"' || text[0] == 'W');
    for (size_t i = 0; i < length; i++)
      if ((unsigned char)text[i] < 0x20) length = i;
    snprintf(etag, size, quoted ? "%.*s" : "\"%.*s\"", (int)length, text);
    return;
  }
  snprintf(etag, size, "\"ferry-%llu\"", (unsigned long long)total);
}

void lb__route_bytes(lb_conn *c, const lb_head *head, lb_slice rest) {
  uint64_t total;
  uint64_t first = 0;
  uint64_t size;
  uint64_t last;
  uint64_t cut;
  lb_slice value;
  char etag[96];
  int range = RANGE_NONE;
  if (!lb__number(rest, &total)) {
    lb__reply_error(c, 400);
    return;
  }
  make_etag(head, total, etag, sizeof(etag));
  if (lb__head_field(head, "If-None-Match", &value) &&
      lb__equal(value, etag)) {
    lb__reply_begin(c, 304, NULL);
    write_etag(c, etag);
    lb__buf_text(&c->out, c->close_after ? "Connection: close\r\n\r\n"
                                         : "\r\n");
    lb__reply_end(c);
    return;
  }
  size = total;
  if (lb__head_field(head, "Range", &value) && if_range_holds(head, etag))
    range = parse_range(value, total, &first, &last);
  if (range == RANGE_UNSATISFIABLE) {
    lb__reply_begin(c, 416, NULL);
    lb__buf_format(&c->out, "Content-Range: bytes */%llu\r\n",
                   (unsigned long long)total);
    lb__reply_length(c, 0);
    lb__reply_end(c);
    return;
  }
  /* A range that is ignored may have left its numbers. */
  if (range == RANGE_NONE) first = 0;
  lb__reply_begin(c, range == RANGE_GOOD ? 206 : 200, NULL);
  if (range == RANGE_GOOD) {
    size = last - first + 1;
    lb__buf_format(&c->out, "Content-Range: bytes %llu-%llu/%llu\r\n",
                   (unsigned long long)first, (unsigned long long)last,
                   (unsigned long long)total);
  }
  lb__buf_text(&c->out, "Content-Type: application/octet-stream\r\n"
                        "Accept-Ranges: bytes\r\n");
  write_etag(c, etag);
  lb__reply_length(c, size);
  cut = lb__query_number(head->query, "cut", UINT64_MAX);
  if (cut < size) {
    size = cut;
    c->close_after = true;
  }
  c->source.kind = LB_SOURCE_PATTERN;
  c->source.zeros = lb__query_number(head->query, "zeros", 0) != 0;
  c->source.offset = first;
  c->source.left = size;
  lb__reply_end(c);
}

void lb__route_chunked(lb_conn *c, const lb_head *head, lb_slice rest) {
  uint64_t count;
  uint64_t piece = lb__query_number(head->query, "chunk", 8192);
  if (!lb__number(rest, &count) || !piece || piece > 1024 * 1024) {
    lb__reply_error(c, 400);
    return;
  }
  lb__reply_begin(c, 200, NULL);
  lb__buf_text(&c->out, "Content-Type: application/octet-stream\r\n");
  lb__reply_chunked(c);
  c->source.kind = LB_SOURCE_CHUNKED;
  c->source.left = count;
  c->source.piece = piece;
  lb__reply_end(c);
}

void lb__route_drip(lb_conn *c, const lb_head *head, lb_slice rest) {
  uint64_t piece = lb__query_number(head->query, "chunk", 1);
  uint64_t interval = lb__query_number(head->query, "interval", 100);
  uint64_t count = lb__query_number(head->query, "bytes", 10);
  (void)rest;
  if (!piece || piece > 1024 * 1024 || interval > UINT32_MAX) {
    lb__reply_error(c, 400);
    return;
  }
  lb__reply_begin(c, 200, NULL);
  lb__buf_text(&c->out, "Content-Type: application/octet-stream\r\n");
  lb__reply_length(c, count);
  c->source.kind = LB_SOURCE_DRIP;
  c->source.left = count;
  c->source.piece = piece;
  c->source.interval = interval;
  if (count && !c->head_only) lb__conn_timer(c, interval);
  lb__reply_end(c);
}

void lb__route_until_close(lb_conn *c, const lb_head *head, lb_slice rest) {
  uint64_t count;
  (void)head;
  if (!lb__number(rest, &count)) {
    lb__reply_error(c, 400);
    return;
  }
  c->close_after = true;
  lb__reply_begin(c, 200, NULL);
  lb__buf_text(&c->out, "Content-Type: application/octet-stream\r\n"
                        "Connection: close\r\n\r\n");
  c->source.kind = LB_SOURCE_PATTERN;
  c->source.left = count;
  lb__reply_end(c);
}

/* The expected "Basic …" value for the credentials in the path. */
static char *expected_credentials(lb_slice rest) {
  char *pair = lb__copy(rest.base, rest.length);
  char *slash = memchr(pair, '/', rest.length);
  size_t user;
  size_t password;
  unsigned char *text;
  if (!slash) {
    free(pair);
    return NULL;
  }
  user = lb__unescape((lb_slice){rest.base, (size_t)(slash - pair)}, false,
                      pair);
  password = lb__unescape(
      (lb_slice){rest.base + (slash - pair) + 1,
                 rest.length - (size_t)(slash - pair) - 1},
      false, pair + user + 1);
  pair[user] = ':';
  text = lb__alloc(6 + 4 * ((user + password + 1) / 3 + 1) + 1);
  memcpy(text, "Basic ", 6);
  EVP_EncodeBlock(text + 6, (unsigned char *)pair,
                  (int)(user + password + 1));
  free(pair);
  return (char *)text;
}

void lb__route_auth(lb_conn *c, const lb_head *head, lb_slice rest) {
  char *expected = expected_credentials(rest);
  lb_slice given;
  if (!expected) {
    lb__reply_error(c, 400);
    return;
  }
  if (lb__head_field(head, "Authorization", &given) &&
      lb__equal(given, expected))
    lb__reply_bytes(c, 200, "text/plain", NULL, "Hello, ferry", 12);
  else
    lb__reply_bytes(c, 401, "text/plain",
                    "WWW-Authenticate: Basic realm=\"ferry\"\r\n", "", 0);
  free(expected);
}
