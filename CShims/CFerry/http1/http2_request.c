/* http2_request.c - the request of an exchange over HTTP/2: its fields
 * (RFC 9113, 8.3), its body, and the frames. */
#include "http1/http2.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
  PSEUDO = 4,
  ADDED = 3,
  DIGITS = 20,
  FRAME = 16384 + 9, /* the largest that nghttp2 makes */
};

/* ---- Fields -------------------------------------------------------------- */

/* Fields, and the memory for their names. */
typedef struct fields {
  nghttp2_nv *list;
  size_t count;
  char *text; /* where the next name goes */
} fields;

typedef struct slice {
  const char *at;
  size_t length;
} slice;

static slice text(const char *at) { return (slice){at, strlen(at)}; }

static bool make(fields *f, size_t count, size_t bytes) {
  f->count = 0;
  f->list = malloc(count * sizeof *f->list + bytes);
  f->text = (char *)(f->list + count);
  return f->list != NULL;
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? c | 0x20 : c; }

/* nghttp2 copies both. The name must be in lower case. */
static void add(fields *f, slice name, slice value) {
  for (size_t i = 0; i < name.length; i++)
    f->text[i] = lower(name.at[i]);
  f->list[f->count++] = (nghttp2_nv){
      .name = (uint8_t *)f->text,
      .namelen = name.length,
      .value = (uint8_t *)value.at,
      .valuelen = value.length,
  };
  f->text += name.length;
}

/* "Name: value", or "Name;" without a value. */
static void split(const char *line, size_t length, slice *name, slice *value) {
  const char *colon = memchr(line, ':', length);
  const char *end = line + length;
  *name = (slice){line, colon ? (size_t)(colon - line) : length - 1};
  *value = (slice){end, 0};
  if (!colon)
    return;
  while (++colon < end && (*colon == ' ' || *colon == '\t'))
    ;
  while (end > colon && (end[-1] == ' ' || end[-1] == '\t'))
    end--;
  *value = (slice){colon, (size_t)(end - colon)};
}

static bool is(slice name, const char *other) {
  return name.length == strlen(other) &&
         !strncasecmp(name.at, other, name.length);
}

/* Fields of the connection (RFC 9113, 8.2.2). The host is a pseudo-field. */
static bool is_left_out(slice name, slice value) {
  static const char *const names[] = {"host",       "connection",
                                      "keep-alive", "proxy-connection",
                                      "upgrade",    "transfer-encoding"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (is(name, names[i]))
      return true;
  return is(name, "te") && !is(value, "trailers");
}

static slice authority_of(const ferry__transfer *t) {
  slice name, value;
  for (const struct curl_slist *at = t->headers; at; at = at->next) {
    split(at->data, strlen(at->data), &name, &value);
    if (is(name, "host") && value.length)
      return value;
  }
  return (slice){t->host->authority, t->host->authority_length};
}

static void add_all(fields *f, const ferry_loop *loop,
                    const ferry__transfer *t,
                    const ferry__request_head *head, const char *length) {
  const char *encodings = ferry__request_encodings(loop, t);
  slice name, value;
  add(f, text(":method"), text(t->method));
  add(f, text(":scheme"), text(t->host->secure ? "https" : "http"));
  add(f, text(":authority"), authority_of(t));
  add(f, text(":path"), text(t->target));
  if (loop->user_agent && !head->user_agent)
    add(f, text("user-agent"), text(loop->user_agent));
  if (encodings && *encodings && !head->encodings)
    add(f, text("accept-encoding"), text(encodings));
  for (const struct curl_slist *at = t->headers; at; at = at->next) {
    size_t size = strlen(at->data);
    if (ferry__request_leaves_out(t, at->data, size))
      continue;
    split(at->data, size, &name, &value);
    if (!is_left_out(name, value))
      add(f, name, value);
  }
  if (*length)
    add(f, text("content-length"), text(length));
}

static bool submit_trailers(ferry__connection *c, uint32_t *flags) {
  ferry__transfer *t = c->transfer;
  char *lines = malloc(FERRY__TRAILERS);
  fields f = {0};
  size_t count = 0;
  t->fault = (ferry__fault){FERRY_E_MEMORY, 0};
  int64_t length = lines ? ferry__trailers_ask(c->loop, t, lines,
                                               FERRY__TRAILERS)
                         : -1;
  bool good = length >= 0;
  for (int64_t i = 0; i < length; i++)
    count += lines[i] == '\n';
  if (count && (good = make(&f, count, (size_t)length))) {
    slice name, value;
    for (const char *at = lines; at < lines + length;) {
      const char *end = memchr(at, '\n', (size_t)(lines + length - at));
      split(at, (size_t)(end - 1 - at), &name, &value);
      if (!is_left_out(name, value))
        add(&f, name, value);
      at = end + 1;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    good = !nghttp2_submit_trailer(c->http2->session, c->http2->stream, f.list,
                                   f.count);
  }
  free(f.list);
  free(lines);
  if (good)
    t->fault = (ferry__fault){FERRY_OK, 0};
  return good;
}

/* ---- The body ------------------------------------------------------------ */

static ssize_t pull_bytes(ferry__connection *c, uint8_t *to, size_t size) {
  const ferry__transfer *t = c->transfer;
  size_t left = (size_t)(t->body_length - c->body_at);
  size_t length = left < size ? left : size;
  memcpy(to, (const char *)t->body + c->body_at, length);
  c->body_at += length;
  return (ssize_t)length;
}

static ssize_t pull(nghttp2_session *session, int32_t id, uint8_t *to,
                    size_t size, uint32_t *flags, nghttp2_data_source *source,
                    void *user) {
  ferry__connection *c = user;
  ferry__transfer *t = ferry__http2_transfer(c, id);
  (void)session, (void)source;
  if (!t || c->sending != FERRY__SEND_BODY ||
      t->source == FERRY__SOURCE_PAUSED)
    return NGHTTP2_ERR_DEFERRED;
  bool pulls = t->body_kind == FERRY_BODY_PULL;
  int64_t n = pulls ? ferry__source_pull(c->loop, t, (char *)to, size)
                    : pull_bytes(c, to, size);
  if (n == FERRY_PAUSE)
    return NGHTTP2_ERR_DEFERRED;
  if (n < 0) {
    ferry__http2_note(c->http2, t->fault);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }
  c->http2->moved = true;
  if (n && (pulls ? t->body_length == FERRY_UNKNOWN_LENGTH ||
                        ferry__pulled(t) < t->body_length
                  : c->body_at < t->body_length))
    return (ssize_t)n;
  *flags |= NGHTTP2_DATA_FLAG_EOF;
  if ((t->flags & FERRY_TRAILERS) && !submit_trailers(c, flags)) {
    ferry__http2_note(c->http2, t->fault);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }
  c->sending = FERRY__SEND_LAST;
  return (ssize_t)n;
}

/* ---- The frames ---------------------------------------------------------- */

int32_t ferry__http2_submit(ferry__connection *c) {
  const ferry_loop *loop = c->loop;
  const ferry__transfer *t = c->transfer;
  ferry__request_head head = ferry__request_survey(loop, t);
  const nghttp2_data_provider body = {.read_callback = pull};
  char length[DIGITS + 1] = "";
  size_t count = PSEUDO + ADDED;
  fields f;
  if (t->body_kind != FERRY_BODY_NONE && !t->chunked)
    snprintf(length, sizeof length, "%llu",
             (unsigned long long)t->body_length);
  for (const struct curl_slist *at = t->headers; at; at = at->next)
    count++;
  if (!make(&f, count, head.size + 128))
    return NGHTTP2_ERR_NOMEM;
  add_all(&f, loop, t, &head, length);
  int32_t stream = nghttp2_submit_request(
      c->http2->session, NULL, f.list, f.count,
      t->body_kind == FERRY_BODY_NONE ? NULL : &body, NULL);
  free(f.list);
  return stream;
}

/* Writes as many frames as the buffer has room for. Returns their length, or a
 * negative code. */
ssize_t ferry__http2_compose(ferry__http2 *h, char *buffer) {
  size_t length = 0;
  while (length + FRAME <= FERRY__HTTP1_BUFFER) {
    const uint8_t *bytes;
    ssize_t n = nghttp2_session_mem_send(h->session, &bytes);
    if (n < 0 || n > FRAME)
      return -1;
    if (!n)
      break;
    memcpy(buffer + length, bytes, (size_t)n);
    length += (size_t)n;
  }
  return (ssize_t)length;
}

int ferry__http2_send(ferry__connection *c) {
  ferry__http2 *h = c->http2;
  char *buffer = ferry__http1_buffer(c->loop);
  if (!buffer) {
    ferry__exchange_fail(c, (ferry__fault){FERRY_E_MEMORY, 0});
    return -1;
  }
  if (c->sending == FERRY__SEND_BODY)
    nghttp2_session_resume_data(h->session, h->stream);
  h->moved = c->sending == FERRY__SEND_HEAD;
  ssize_t length = ferry__http2_compose(h, buffer);
  if (length < 0)
    ferry__http2_note(h, (ferry__fault){FERRY_E_MEMORY, 0});
  if (h->fault.code) {
    ferry__exchange_fail(c, h->fault);
    return -1;
  }
  if (!length)
    return 0;
  if (c->sending == FERRY__SEND_HEAD)
    c->head_size += (uint64_t)length;
  c->quiet = !h->moved;
  return ferry__exchange_send(c, buffer, (size_t)length) ? 1 : -1;
}

bool ferry__http2_has_more(const ferry__connection *c) {
  return nghttp2_session_want_write(c->http2->session);
}
