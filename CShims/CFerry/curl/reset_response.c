/* reset_response.c - responses that were overtaken by a reset.
 *
 * A server that refuses an upload (413, 404) responds and closes, with unread
 * bytes of ours. Its system then resets the connection. libcurl writes, fails,
 * and closes the socket that holds the response. The response is read from the
 * socket before that (socket.c) and is handled here as if libcurl had read
 * it. */
#include "curl/libcurl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* The next line with its LF; NULL if it is incomplete. */
static char *line_end(char *from, char *end) {
  char *lf = memchr(from, '\n', (size_t)(end - from));
  return lf ? lf + 1 : NULL;
}

static bool deliver(ferry__transfer *t, char *bytes, size_t length) {
  return !length || ferry__on_write(bytes, 1, length, t->handle) == length;
}

/* Takes a line of the head or the trailers; NULL if it is incomplete or
 * refused. */
static char *take_line(ferry__transfer *t, char *at, char *end) {
  char *next = line_end(at, end);
  size_t length = next ? (size_t)(next - at) : 0;
  bool taken = next && ferry__on_header(at, 1, length, t->handle) == length;
  return taken ? next : NULL;
}

static int digit_of(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  int lower = c | 0x20;
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Parses "1f;name=value" CR LF; -1 = invalid. */
static int64_t chunk_size(const char *text, size_t length) {
  int64_t size = 0;
  size_t i = 0;
  for (; i < length && i < 8 && digit_of(text[i]) >= 0; i++)
    size = size * 16 + digit_of(text[i]);
  return i && (text[i] == '\r' || text[i] == ';') ? size : -1;
}

/* The next chunk: its bytes, and what follows it. -1 = incomplete. */
static int64_t next_chunk(char **at, char *end, char **data) {
  *data = line_end(*at, end);
  int64_t size = *data ? chunk_size(*at, (size_t)(*data - *at)) : -1;
  if (size <= 0 || size > end - *data)
    return size ? -1 : 0;
  *at = line_end(*data + size, end);
  return *at && *at - (*data + size) == 2 ? size : -1;
}

static bool chunks(ferry__transfer *t, char *at, char *end) {
  char *data;
  int64_t size;
  while ((size = next_chunk(&at, end, &data)) > 0)
    if (!deliver(t, data, (size_t)size))
      return false;
  if (size < 0)
    return false;
  while ((at = take_line(t, data, end)) && at - data > 2)
    data = at; /* the trailers and the end */
  return at != NULL;
}

bool ferry__late_answer(ferry__transfer *t) {
  const ferry__head *head = t->head;
  char *at = t->curl.late, *end = at + t->curl.late_length;
  while (!head->complete)
    if (!(at = take_line(t, at, end)))
      return false;
  if (t->curl.head_held)
    return false;
  if (!ferry__has_body(t))
    return true;
  if (head->chunked)
    return chunks(t, at, end);
  int64_t body = head->content_length;
  if (body < 0) /* ends with the connection, which was reset */
    return false;
  return end - at >= body && deliver(t, at, (size_t)body);
}
