/* reply.c - the head of a response, and its end. */
#include "internal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *reason_of(int status) {
  static const struct {
    int status;
    const char *reason;
  } reasons[] = {
      {100, "Continue"},
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {206, "Partial Content"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {303, "See Other"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {409, "Conflict"},
      {413, "Content Too Large"},
      {416, "Range Not Satisfiable"},
      {418, "I'm a Teapot"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
  };
  for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
    if (reasons[i].status == status) return reasons[i].reason;
  return "Status";
}

/* "Date: …\r\n", made once a second. */
static const char *date_line(lb_server *s) {
  uint64_t now = uv_now(&s->loop);
  if (now >= s->date_until || !s->date[0]) {
    struct timespec wall;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &wall);
    gmtime_r(&wall.tv_sec, &parts);
    strftime(s->date, sizeof(s->date),
             "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts);
    s->date_until = now + 1000 - (uint64_t)(wall.tv_nsec / 1000000);
  }
  return s->date;
}

void lb__reply_begin(lb_conn *c, int status, const char *reason) {
  if (status == 200 && !reason) {
    lb__buf_text(&c->out, "HTTP/1.1 200 OK\r\n");
  } else {
    lb__buf_format(&c->out, "HTTP/1.1 %d %s\r\n", status,
                   reason ? reason : reason_of(status));
  }
  lb__buf_text(&c->out, date_line(c->server));
}

static void end_head(lb_conn *c) {
  if (c->close_after) lb__buf_text(&c->out, "Connection: close\r\n");
  lb__buf_text(&c->out, "\r\n");
}

void lb__reply_length(lb_conn *c, uint64_t length) {
  char digits[20];
  size_t at = sizeof(digits);
  do {
    digits[--at] = (char)('0' + length % 10);
    length /= 10;
  } while (length);
  lb__buf_text(&c->out, "Content-Length: ");
  lb__buf_add(&c->out, digits + at, sizeof(digits) - at);
  lb__buf_text(&c->out, "\r\n");
  end_head(c);
}

void lb__reply_chunked(lb_conn *c) {
  lb__buf_text(&c->out, "Transfer-Encoding: chunked\r\n");
  end_head(c);
}

/* After a short response the connection is at once free for the next pipelined
 * request; others wait until they are written. */
void lb__reply_end(lb_conn *c) {
  c->waiting = false;
  if (c->head_only) lb__source_end(c);
  if (c->source.kind == LB_SOURCE_NONE && !c->close_after &&
      lb__buf_size(&c->out) < LB_BLOCK)
    c->phase = LB_PHASE_HEAD;
  else
    c->phase = LB_PHASE_REPLY;
}

void lb__reply_bytes(lb_conn *c, int status, const char *type,
                     const char *fields, const void *bytes, size_t length) {
  lb__reply_begin(c, status, NULL);
  if (type) {
    lb__buf_text(&c->out, "Content-Type: ");
    lb__buf_text(&c->out, type);
    lb__buf_text(&c->out, "\r\n");
  }
  if (fields) lb__buf_text(&c->out, fields);
  /* 1xx, 204 and 304 have no body and no fields about one. */
  if (status < 200 || status == 204 || status == 304) end_head(c);
  else {
    lb__reply_length(c, length);
    if (!c->head_only) lb__buf_add(&c->out, bytes, length);
  }
  lb__reply_end(c);
}

void lb__reply_error(lb_conn *c, int status) {
  char text[80];
  int length = snprintf(text, sizeof(text), "%d %s\n", status,
                        reason_of(status));
  lb__reply_bytes(c, status, "text/plain", NULL, text, (size_t)length);
}
