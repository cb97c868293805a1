/* compat.c - everything that depends on the version of libcurl: what it only
 * reports in messages, what it counts, and what it does silently. This was read
 * in the sources of versions 7.88 to 8.22. */
#include "curl/compat.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static unsigned version;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void read_version(void) {
  version = curl_version_info(CURLVERSION_NOW)->version_num;
}

static unsigned libcurl(void) {
  pthread_once(&once, read_version);
  return version;
}

/* 7.88 loses frames if the weight is changed before the stream is open. */
bool ferry__weighs_streams(void) { return libcurl() >= 0x080200; }
bool ferry__begins_http2_anew(void) { return libcurl() < 0x080000; }
bool ferry__uses_freed_fields(void) { return libcurl() < 0x080101; }

/* When a stream's buffer is full, libcurl keeps where the rest is
 * (`pausedata`), and no stream reads on until it is consumed. But a body of
 * unknown length that ends, or any body that a response of 300 and above cuts
 * short, makes http2_data_done_send() read on: the next bytes of the full
 * stream overtake its rest, or replace it. Rewritten in 8.1.0. */
bool ferry__mixes_streams(void) { return libcurl() < 0x080100; }

/* It looks at a connection's requests only if none to the host can be shared;
 * rewritten in 8.5.0. */
bool ferry__offers_busy(void) { return libcurl() < 0x080500; }

/* ---- Sockets ------------------------------------------------------------- */

ferry__transfer *ferry__transfer_of(CURL *easy) {
  ferry__handle *handle = NULL;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&handle);
  return handle ? handle->transfer : NULL;
}

/* Before 8.2 a socket that was never connected. */
bool ferry__closed_silently(int fd) { return fcntl(fd, F_GETFD) < 0; }

/* From 8.9 on libcurl closes TLS connections in the background: it waits for
 * the peer's close_notify, perhaps for ever. The peer has received ours by
 * then. (From 8.20 on libcurl has a socket of its own, too.) */
void ferry__used_by_libcurl(const ferry__socket *s, int what) {
  if (s->ours && what == CURL_POLL_IN)
    shutdown(s->fd, SHUT_RDWR);
}

/* ---- Bytes sent ---------------------------------------------------------- */

/* Up to 8.6 CURLINFO_REQUEST_SIZE is the size of the head, in 8.7 it is 0, and
 * from 8.8 on it includes the body. */
void ferry__read_sent(const ferry__transfer *t, ferry_result *r) {
  CURL *easy = t->handle->easy;
  long request = 0;
  curl_off_t uploaded = 0;
  curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &request);
  if (t->body_kind != FERRY_BODY_NONE)
    curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &uploaded);
  if (libcurl() >= 0x080800)
    request = request > uploaded ? request - (long)uploaded : 0;
  r->head_sent = (uint64_t)request;
  r->body_sent = (uint64_t)uploaded;
}

/* ---- Cookies ------------------------------------------------------------- */

/* From 8.11 to 8.15 the list that a request is made of links the cookies
 * themselves: two threads at once can tie it into a ring. */
bool ferry__reads_unlocked_jar(void) {
  return libcurl() >= 0x080b00 && libcurl() < 0x081000;
}

/* ---- Verbose lines (HTTP/2) ---------------------------------------------- */

/* The server will process no stream above `last`. */
static void going_away(ferry__handle *handle, uint32_t last) {
  ferry_loop *loop = handle->loop;
  for (ferry__transfer *t = loop->transfers->running; t; t = t->next)
    if (t->handle && handle->connection &&
        t->handle->connection == handle->connection) {
      if (t->handle->stream > last)
        t->curl.untouched = true;
      else
        t->handle->left_in = 1;
    }
}

/* The number after `before`, decimal or with 0x. Returns false if there is
 * none. */
static bool number_behind(const char *text, const char *before,
                          uint32_t *number) {
  const char *at = strstr(text, before);
  if (at)
    *number = (uint32_t)strtoul(at + strlen(before), NULL, 0);
  return at != NULL;
}

static bool begins(const char *text, const char *with) {
  return !strncmp(text, with, strlen(with));
}

int ferry__on_line(CURL *easy, curl_infotype type, char *line, size_t size,
                   void *data) {
  ferry__handle *handle = data;
  uint32_t number = 0;
  char text[256]; /* lines may end with a URL; the start is enough */
  (void)easy;
  if (!handle->transfer)
    return 0;
  if (type == CURLINFO_DATA_IN)
    ferry__chunks_take(handle->transfer, line, size);
  if (type != CURLINFO_TEXT)
    return 0;
  if (size >= sizeof text)
    size = sizeof text - 1;
  memcpy(text, line, size);
  text[size] = 0;
  if (begins(text, "Using Stream ID: ")) /* up to 8.2 */
    number_behind(text, "ID: ", &handle->stream);
  else if (begins(text, "[HTTP/2] [") && strstr(text, "] OPENED stream"))
    number_behind(text, "/2] [", &handle->stream);
  else if (strstr(text, "GOAWAY") &&
           number_behind(text, "last_stream=", &number))
    going_away(handle, number);
  else if (begins(text, "Connection #") && strstr(text, " left intact"))
    handle->left = 1;
  else if (begins(text, "REFUSED_STREAM") ||
           begins(text, "Downgrades to") || /* HTTP_1_1_REQUIRED */
           (begins(text, "HTTP/2 stream ") && strstr(text, " refused by ")))
    handle->refused = 1;
  else if (begins(text, "HTTP/2 stream "))
    /* «was not closed cleanly: … (err 7)», from 8.19 on «reset by server (error
     * 0x7 …)». The error buffer may hold an earlier message of nghttp2. */
    (void)(number_behind(text, "(err ", &handle->stream_error) ||
           number_behind(text, "(error ", &handle->stream_error));
  return 0;
}

/* libcurl sends again on a new connection. After REFUSED_STREAM it says so, but
 * before 8.19 not on a connection that had served others: there it leaves no
 * message, while a broken connection usually leaves one. From 8.0 to 8.6 a
 * broken connection leaves none, either. From 8.19 on it says so in any
 * case. */
bool ferry__was_refused(const ferry__handle *handle) {
  unsigned v = libcurl();
  bool tells_breaks = v < 0x080000 || (v >= 0x080700 && v < 0x081300);
  return handle->refused || (tells_breaks && handle->stream &&
                             !handle->left_in && !handle->words[0]);
}

/* ---- Error messages ------------------------------------------------------ */

static bool says(const char *words, const char *part) {
  return strstr(words, part) != NULL;
}

int ferry__received_words(const char *words) {
  if (says(words, "nghttp2"))
    return FERRY__WORDS_HTTP2;
  if (says(words, "chunked-encoding") || says(words, "chunk hex-length") ||
      says(words, "chunk size") || says(words, "hexadecimal"))
    return says(words, "memory") ? FERRY__WORDS_CHUNK_MEMORY
                                 : FERRY__WORDS_CHUNK;
  if (says(words, "header"))
    return FERRY__WORDS_HEAD_TOO_LARGE;
  return says(words, "eof") || says(words, "EOF") ? FERRY__WORDS_CLOSED
                                                  : FERRY__WORDS_OTHER;
}

bool ferry__says_too_large(const char *words) {
  return says(words, "too large");
}

bool ferry__says_hostname(const char *words) {
  return says(words, "does not match") || says(words, "no alternative");
}

/* OpenSSL's message, for when the number of the verdict was lost. */
bool ferry__says_expired(const char *words) {
  return says(words, "expired") || says(words, "not yet valid");
}

bool ferry__says_alert(const char *words) {
  return says(words, "alert") &&
         (says(words, "certificate") || says(words, "unknown ca") ||
          says(words, "access denied") || says(words, "decrypt error"));
}

bool ferry__says_length(const char *words) {
  return says(words, "Content-Length");
}

bool ferry__says_stream_end(const char *words) {
  return says(words, "end of the underlying stream");
}

bool ferry__says_no_head(const char *words) {
  return says(words, "before getting");
}
