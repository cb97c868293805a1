/* callbacks.c - libcurl's callbacks during a transfer: it delivers lines of the
 * head and pieces of the body, and asks for the next bytes of the request's
 * body. */
#include "curl/libcurl.h"
#include "curl/jar.h"

#include <string.h>
#include <strings.h>

/* A challenge that libcurl may handle by itself. Whether it does shows later:
 * the body or the end follows, or another request. */
static bool is_challenge(const ferry__transfer *t, int status) {
  const ferry__extras *x = t->extras;
  return x && ((status == 401 && x->schemes) ||
               (status == 407 && x->proxy_schemes));
}

/* Whether the server has refused the expectation. Then the request is sent
 * again without it, by another handle (RFC 9110, 10.1.1): libcurl by itself
 * would repeat the field as well, however many attempts there were. */
static bool gives_up_expectation(ferry__transfer *t) {
  if (t->head->status != 417 || !t->expects || t->pulled)
    return false;
  t->expects = false;
  t->unexpecting = true;
  for (struct curl_slist *at = t->headers; at; at = at->next)
    if (!strncasecmp(at->data, "Expect:", 7) && at->data[7]) {
      t->curl.again |= strcasestr(at->data + 7, "100-continue") != NULL;
      at->data[7] = 0; /* libcurl adds none by itself, either */
    }
  t->fresh |= t->curl.again;
  return t->curl.again;
}

/* libcurl does not handle the head, so this response is the last. */
bool ferry__take_head(ferry_loop *loop, ferry__transfer *t) {
  t->curl.head_held = false;
  if (!ferry__head_final(loop, t))
    return false;
  if ((t->result.flags & FERRY_RESULT_CLOSE_FRAMED) && t->host->secure)
    ferry__watch_close_notify(t);
  return true;
}

/* The proxy's response to CONNECT: libcurl reads it, and its size is limited
 * here. */
static bool tunnel_line(ferry__handle *handle, ferry__transfer *t,
                        const char *line, size_t length) {
  handle->tunnel_bytes += (uint32_t)length;
  if (handle->tunnel_bytes > FERRY__MAX_HEAD) {
    t->fault = (ferry__fault){FERRY_E_HEAD_TOO_LARGE, FERRY_D_HEAD_BYTES};
    return false;
  }
  if (length > 12 && !memcmp(line, "HTTP/1.", 7))
    handle->tunnel_granted = line[9] == '2';
  else if (line[0] == '\r' || line[0] == '\n')
    handle->tunnelled = handle->tunnel_granted;
  return true;
}

/* Trailers that arrived while the body was held are delivered in one piece. */
static ferry__fault trailers(ferry__head *head, const char *lines,
                             size_t length) {
  ferry__fault fault = {0};
  for (size_t n; length && !fault.code; lines += n, length -= n) {
    const char *end = memchr(lines, '\n', length);
    n = end ? (size_t)(end - lines) + 1 : length;
    fault = ferry__head_line(head, lines, n);
  }
  return fault;
}

size_t ferry__on_header(char *line, size_t size, size_t count, void *data) {
  ferry__handle *handle = data;
  ferry__transfer *t = handle->transfer;
  bool before = t->head->complete;
  (void)size;
  ferry__jar_release(handle->loop);
  t->last_ms = ferry__now(handle->loop);
  if (handle->tunnelling)
    return tunnel_line(handle, t, line, count) ? count : 0;
  if (handle->loop->options.jar) /* the jar now has what libcurl took from this
                                  * line */
    ferry__jar_line(handle->loop->options.jar, line, count);
  ferry__fault fault = before ? trailers(t->head, line, count)
                              : ferry__head_line(t->head, line, count);
  /* A line that is no status line does not belong to a head. */
  if (t->phase < FERRY_PHASE_HEAD && fault.detail != FERRY_D_STATUS_LINE)
    t->phase = FERRY_PHASE_HEAD;
  if (fault.code) {
    t->fault = fault;
    return 0;
  }
  if (!t->head->in_fields && !t->head->complete) {
    /* The head was informational. */
    t->phase = ferry__is_sending(t) ? FERRY_PHASE_SEND : FERRY_PHASE_WAIT_HEAD;
    ferry__head_informational(handle->loop, t);
  }
  if (t->head->complete && !before) {
    if (gives_up_expectation(t))
      return 0;
    t->phase = FERRY_PHASE_BODY;
    t->curl.head_held = is_challenge(t, t->head->status);
    ferry__head_ended(t);
    if (!t->curl.head_held && !ferry__take_head(handle->loop, t))
      return 0;
  }
  return count;
}

/* libcurl delivers these bytes, and those it has read after them, again later.
 * But it loses what it holds if it can no longer write. */
static size_t withhold(ferry__transfer *t, const char *bytes, size_t count) {
  if (ferry__keep(t, bytes, count))
    return count;
  t->curl.withheld = true;
  return CURL_WRITEFUNC_PAUSE;
}

size_t ferry__on_write(char *bytes, size_t size, size_t count, void *data) {
  ferry__handle *handle = data;
  ferry__transfer *t = handle->transfer;
  (void)size;
  ferry__jar_release(handle->loop);
  if (t->paused)
    return withhold(t, bytes, count);
  if (t->curl.head_held && !ferry__take_head(handle->loop, t))
    return 0;
  if (t->paused) /* in on_head */
    return withhold(t, bytes, count);
  if (t->max_rate && !ferry__pace_take(handle->loop, t, count))
    return withhold(t, bytes, count);
  return ferry__receive(handle->loop, t, bytes, count) ? count : 0;
}

size_t ferry__on_read(char *space, size_t size, size_t count, void *data) {
  ferry__handle *handle = data;
  ferry__transfer *t = handle->transfer;
  ferry__jar_release(handle->loop);
  if (t->source == FERRY__SOURCE_DRY) {
    t->source = FERRY__SOURCE_PAUSED;
    return CURL_READFUNC_PAUSE;
  }
  int64_t n = ferry__source_pull(handle->loop, t, space, size * count);
  t->curl.ended |= !n && (t->flags & FERRY_TRAILERS);
  return n == FERRY_PAUSE ? CURL_READFUNC_PAUSE
         : n < 0          ? CURL_READFUNC_ABORT
                          : (size_t)n;
}

/* libcurl takes them one by one, and frees them. */
int ferry__on_trailers(struct curl_slist **list, void *data) {
  ferry__handle *handle = data;
  char space[FERRY__TRAILERS + 1];
  int64_t n = ferry__trailers_ask(handle->loop, handle->transfer, space,
                                  FERRY__TRAILERS);
  if (n < 0)
    return CURL_TRAILERFUNC_ABORT;
  space[n] = 0;
  for (char *line = space, *end; *line; line = end + 2) {
    end = strstr(line, "\r\n");
    *end = 0;
    struct curl_slist *longer = curl_slist_append(*list, line);
    if (!longer) {
      handle->transfer->fault = (ferry__fault){FERRY_E_MEMORY, 0};
      return CURL_TRAILERFUNC_ABORT;
    }
    *list = longer;
  }
  return CURL_TRAILERFUNC_OK;
}
