/* routes.c - the table of built-in routes, and the simple routes. */
#include "internal.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

static void route_index(lb_conn *c, const lb_head *head, lb_slice rest);

static void route_hello(lb_conn *c, const lb_head *head, lb_slice rest) {
  (void)head, (void)rest;
  lb__reply_bytes(c, 200, "text/plain", NULL, "Hello, ferry", 12);
}

static void route_delay(lb_conn *c, const lb_head *head, lb_slice rest) {
  uint64_t milliseconds;
  (void)head;
  if (!lb__number(rest, &milliseconds) || milliseconds > UINT32_MAX) {
    lb__reply_error(c, 400);
    return;
  }
  c->phase = LB_PHASE_REPLY;
  c->waiting = true;
  lb__conn_wait(c, milliseconds);
}

void lb__route_delayed(lb_conn *c) {
  lb__reply_bytes(c, 200, "text/plain", NULL, "Hello, ferry", 12);
  c->again = true;
}

/* Adds the query's parameters other than `except` as fields. Those that are
 * invalid in a head (control bytes) are omitted. */
static void query_fields(lb_slice query, const char *except, lb_buf *out) {
  lb_slice name;
  lb_slice value;
  while (lb__query_next(&query, &name, &value)) {
    size_t start;
    char *room;
    if (!name.length || lb__equal(name, except)) continue;
    start = out->end - out->start;
    room = lb__buf_room(out, name.length + value.length + 4);
    out->end += lb__unescape(name, true, room);
    lb__buf_text(out, ": ");
    room = lb__buf_room(out, value.length + 2);
    out->end += lb__unescape(value, true, room);
    for (size_t i = out->start + start; i < out->end; i++) {
      if ((unsigned char)out->base[i] >= 0x20) continue;
      out->end = out->start + start;
      break;
    }
    if (out->end != out->start + start) lb__buf_text(out, "\r\n");
  }
}

static void route_status(lb_conn *c, const lb_head *head, lb_slice rest) {
  uint64_t status;
  lb_slice text = {"", 0};
  lb_buf fields = {0};
  char *body;
  size_t length;
  if (!lb__number(rest, &status) || status < 200 || status > 999) {
    lb__reply_error(c, 400);
    return;
  }
  lb__query(head->query, "body", &text);
  body = lb__copy(text.base, text.length);
  length = lb__unescape(text, true, body);
  query_fields(head->query, "body", &fields);
  lb__buf_add(&fields, "", 1);
  lb__reply_bytes(c, (int)status, length ? "text/plain" : NULL,
                  lb__buf_data(&fields), body, length);
  free(body);
  lb__buf_free(&fields);
}

static void route_header(lb_conn *c, const lb_head *head, lb_slice rest) {
  lb_buf fields = {0};
  (void)rest;
  query_fields(head->query, "", &fields);
  lb__buf_add(&fields, "", 1);
  lb__reply_bytes(c, 200, NULL, lb__buf_data(&fields), "Hello, ferry", 12);
  lb__buf_free(&fields);
}

static void redirect(lb_conn *c, int status, lb_slice where) {
  lb__reply_begin(c, status, NULL);
  lb__buf_text(&c->out, "Location: ");
  lb__buf_add(&c->out, where.base, where.length);
  lb__buf_text(&c->out, "\r\n");
  lb__reply_length(c, 0);
  lb__reply_end(c);
}

static void route_redirect(lb_conn *c, const lb_head *head, lb_slice rest) {
  uint64_t hops;
  uint64_t status = lb__query_number(head->query, "status", 302);
  lb_buf where = {0};
  if (!lb__number(rest, &hops) || status < 300 || status > 399) {
    lb__reply_error(c, 400);
    return;
  }
  if (hops == 0) {
    route_hello(c, head, rest);
    return;
  }
  lb__buf_format(&where, "/redirect/%llu", (unsigned long long)hops - 1);
  if (status != 302)
    lb__buf_format(&where, "?status=%llu", (unsigned long long)status);
  redirect(c, (int)status,
           (lb_slice){lb__buf_data(&where), lb__buf_size(&where)});
  lb__buf_free(&where);
}

static void route_redirect_to(lb_conn *c, const lb_head *head,
                              lb_slice rest) {
  uint64_t status = lb__query_number(head->query, "status", 302);
  lb_slice url;
  char *text;
  size_t length;
  (void)rest;
  if (!lb__query(head->query, "url", &url) || status < 300 || status > 399) {
    lb__reply_error(c, 400);
    return;
  }
  text = lb__copy(url.base, url.length);
  length = lb__unescape(url, true, text);
  /* Other control bytes are allowed: a client has to cope with them. */
  if (memchr(text, '\n', length) || memchr(text, '\r', length))
    lb__reply_error(c, 400);
  else
    redirect(c, (int)status, (lb_slice){text, length});
  free(text);
}

static void route_json(lb_conn *c, const lb_head *head, lb_slice rest) {
  static const char *const tags[] = {"swift", "linux", "ferry", "loop"};
  static char text[4096];
  static size_t length;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  (void)head, (void)rest;
  pthread_mutex_lock(&lock);
  if (!length) {
    lb_buf made = {0};
    for (int i = 0; i < 12; i++)
      lb__buf_format(
          &made,
          "%c{\"id\":%d,\"name\":\"Passenger %d\",\"active\":%s,"
          "\"score\":%d.5,\"tags\":[\"%s\",\"%s\",\"%s\"],"
          "\"address\":{\"street\":\"Quay %d\",\"city\":\"Harbour\","
          "\"zip\":\"2%04d\"}}",
          i ? ',' : '[', i + 1, i + 1, i % 2 ? "false" : "true", i * 7,
          tags[i % 4], tags[(i + 1) % 4], tags[(i + 2) % 4], i + 3, i * 37);
    lb__buf_text(&made, "]");
    memcpy(text, lb__buf_data(&made), lb__buf_size(&made));
    length = lb__buf_size(&made);
    lb__buf_free(&made);
  }
  pthread_mutex_unlock(&lock);
  lb__reply_bytes(c, 200, "application/json", NULL, text, length);
}

static void route_close(lb_conn *c, const lb_head *head, lb_slice rest) {
  c->close_after = true;
  route_hello(c, head, rest);
}

/* The first match is used. A path that ends with `/` is a prefix. */
static const struct {
  const char *path;
  int body_mode;
  lb_route route;
  const char *about;
} table[] = {
    {"/hello", LB_BODY_DROP, route_hello, "12 bytes"},
    {"/bytes/", LB_BODY_DROP, lb__route_bytes,
     "N bytes; Range, If-Range; ?cut=N ?zeros=1 ?etag=E"},
    {"/json", LB_BODY_DROP, route_json, "an array of 12 objects, 2 KB"},
    {"/delay/", LB_BODY_DROP, route_delay, "after N ms"},
    {"/status/", LB_BODY_DROP, route_status, "status N; ?body=T ?Name=value"},
    {"/echo", LB_BODY_KEEP, lb__route_echo, "the request as JSON"},
    {"/echo/body", LB_BODY_ECHO, lb__route_echo_body, "the body, streamed"},
    {"/headers", LB_BODY_DROP, lb__route_headers, "the fields as JSON"},
    {"/header", LB_BODY_DROP, route_header, "?Name=value as fields"},
    {"/redirect/", LB_BODY_DROP, route_redirect, "N hops; ?status=S"},
    {"/redirect-to", LB_BODY_DROP, route_redirect_to, "?url=U ?status=S"},
    {"/basic-auth/", LB_BODY_DROP, lb__route_auth, "USER/PASSWORD"},
    {"/chunked/", LB_BODY_DROP, lb__route_chunked, "N bytes; ?chunk=SIZE"},
    {"/gzip/", LB_BODY_DROP, lb__route_gzip,
     "N bytes; ?zeros=1 ?cut=1 ?corrupt=1"},
    {"/deflate/", LB_BODY_DROP, lb__route_deflate,
     "like /gzip/; ?raw=1"},
    {"/br/", LB_BODY_DROP, lb__route_brotli, "like /gzip/"},
    {"/zstd/", LB_BODY_DROP, lb__route_zstd, "like /gzip/"},
    {"/drip", LB_BODY_DROP, lb__route_drip,
     "?bytes=N ?interval=MS ?chunk=SIZE"},
    {"/upload", LB_BODY_HASH, lb__route_upload, "counts and hashes the body"},
    {"/close", LB_BODY_DROP, route_close, "closes after the response"},
    {"/until-close/", LB_BODY_DROP, lb__route_until_close,
     "N bytes without a length"},
    {"/", LB_BODY_DROP, route_index, "this list"},
};
#define TABLE_SIZE (sizeof(table) / sizeof(*table))

static void route_index(lb_conn *c, const lb_head *head, lb_slice rest) {
  lb_buf text = {0};
  (void)head;
  if (rest.length) {
    lb__reply_error(c, 404);
    return;
  }
  for (size_t i = 0; i < TABLE_SIZE; i++)
    lb__buf_format(&text, "%-16s %s\n", table[i].path, table[i].about);
  lb__reply_bytes(c, 200, "text/plain", NULL, lb__buf_data(&text),
                  lb__buf_size(&text));
  lb__buf_free(&text);
}

lb_route lb__route_find(const lb_head *head, lb_slice *rest, int *body_mode) {
  for (size_t i = 0; i < TABLE_SIZE; i++) {
    size_t length = strlen(table[i].path);
    bool prefix = table[i].path[length - 1] == '/';
    if (prefix ? head->path.length < length : head->path.length != length)
      continue;
    if (memcmp(head->path.base, table[i].path, length)) continue;
    *rest = (lb_slice){head->path.base + length, head->path.length - length};
    *body_mode = table[i].body_mode;
    return table[i].route;
  }
  return NULL;
}
