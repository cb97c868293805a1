/* request.c - writes the head of a request (RFC 9112, 3).
 *
 * The fields were checked with the transfer (transfer_make). They are in the
 * form of libcurl's list: «Name:» removes a field that libcurl would add, and
 * «Name;» is a field without a value. */
#include "http1/http1.h"

#include <string.h>
#include <strings.h>

static const char agent[] = "User-Agent: ", coding[] = "Accept-Encoding: ";
static const char length_of[] = "Content-Length: ";

enum { DIGITS = 20 };

static bool is_named(const char *line, const char *name, size_t length) {
  return !strncasecmp(line, name, length) &&
         (line[length] == ':' || line[length] == ';');
}

/* «Name:», which removes a field for libcurl; and an Expect that the server has
 * refused. A value may end with a colon, so the first colon counts. */
bool ferry__request_leaves_out(const ferry__transfer *t, const char *line,
                               size_t length) {
  return memchr(line, ':', length) == line + length - 1 ||
         (t->unexpecting && is_named(line, "Expect", 6));
}

const char *ferry__request_encodings(const ferry_loop *loop,
                                     const ferry__transfer *t) {
  if (!t->extras || t->extras->encodings_kind == FERRY_ENCODINGS_OPTION)
    return loop->encodings;
  return t->extras->encodings_kind == FERRY_ENCODINGS_THESE
             ? t->extras->encodings
             : NULL;
}

static bool has_length(const ferry__transfer *t) {
  return t->body_kind != FERRY_BODY_NONE && !t->chunked;
}

static void note(ferry__request_head *head, const char *line) {
  switch (line[0] | 0x20) {
  case 'h':
    head->host |= is_named(line, "Host", 4);
    break;
  case 'u':
    head->user_agent |= is_named(line, "User-Agent", 10);
    break;
  case 'a':
    head->encodings |= is_named(line, "Accept-Encoding", 15);
    break;
  case 'c':
    if (is_named(line, "Connection", 10) && line[10] == ':')
      head->close |= strcasestr(line + 11, "close") != NULL;
    break;
  case 'e':
    if (is_named(line, "Expect", 6) && line[6] == ':')
      head->expect |= strcasestr(line + 7, "100-continue") != NULL;
  }
}

ferry__request_head ferry__request_survey(const ferry_loop *loop,
                                          const ferry__transfer *t) {
  ferry__request_head head = {0};
  const char *encodings = ferry__request_encodings(loop, t);
  head.size = strlen(t->method) + 1 + strlen(t->target) + 11 +
              6 + t->host->authority_length + 2 + 2;
  for (const struct curl_slist *at = t->headers; at; at = at->next) {
    size_t length = strlen(at->data);
    if (ferry__request_leaves_out(t, at->data, length))
      continue;
    note(&head, at->data);
    head.size += length + 2;
  }
  if (loop->user_agent && !head.user_agent)
    head.size += sizeof agent + strlen(loop->user_agent) + 1;
  if (encodings && *encodings && !head.encodings)
    head.size += sizeof coding + strlen(encodings) + 1;
  if (has_length(t))
    head.size += sizeof length_of + DIGITS + 1;
  head.size++; /* the NUL that put() writes after the last line */
  head.expect &= t->body_kind != FERRY_BODY_NONE;
  return head;
}

static char *put(char *to, const char *text) { return stpcpy(to, text); }

static char *put_number(char *to, uint64_t number) {
  char digits[DIGITS];
  int n = 0;
  do
    digits[n++] = (char)('0' + number % 10);
  while (number /= 10);
  while (n)
    *to++ = digits[--n];
  return to;
}

static char *put_field(char *to, const char *name, const char *value) {
  return put(put(put(to, name), value), "\r\n");
}

static char *put_list(char *to, const ferry__transfer *t) {
  for (const struct curl_slist *at = t->headers; at; at = at->next) {
    size_t length = strlen(at->data);
    if (ferry__request_leaves_out(t, at->data, length))
      continue;
    memcpy(to, at->data, length);
    if (to[length - 1] == ';' && !memchr(to, ':', length))
      to[length - 1] = ':';
    to = put(to + length, "\r\n");
  }
  return to;
}

char *ferry__request_write(const ferry_loop *loop, const ferry__transfer *t,
                           const ferry__request_head *head, char *to) {
  const char *encodings = ferry__request_encodings(loop, t);
  to = put(to, t->method);
  *to++ = ' ';
  to = put(put(to, t->target), " HTTP/1.1\r\n");
  if (!head->host) {
    to = put(to, "Host: ");
    memcpy(to, t->host->authority, t->host->authority_length);
    to = put(to + t->host->authority_length, "\r\n");
  }
  if (loop->user_agent && !head->user_agent)
    to = put_field(to, agent, loop->user_agent);
  if (encodings && *encodings && !head->encodings)
    to = put_field(to, coding, encodings);
  to = put_list(to, t);
  if (has_length(t))
    to = put(put_number(put(to, length_of), t->body_length), "\r\n");
  return put(to, "\r\n");
}
