/* callbacks.c - what libcurl tells and asks while a transfer is under way:
 * lines of a head, pieces of a body, and the next bytes of ours. */
#include "core.h"
#include "curl/jar.h"

#include <string.h>

/* The answer is the proxy's own, or passed on by it, and not the server's
 * through a tunnel. */
static bool is_proxys(const ferry__transfer *t) {
  return t->extras && t->extras->proxy_kind == FERRY_PROXY_HTTP &&
         !t->host->secure;
}

static bool notify_head(ferry_loop *loop, ferry__transfer *t) {
  const ferry__head *head = t->head;
  ferry_result so_far;
  if (!loop->options.on_head || (t->response_kind != FERRY_STREAM &&
                                 !(t->flags & FERRY_NOTIFY_HEAD)))
    return true;
  so_far = t->result;
  so_far.phase = t->phase;
  so_far.head_received = head->received;
  so_far.engine = t->engine->name;
  t->engine->so_far(t, &so_far);
  so_far.metrics.queue = ferry__us(t->submitted_ns, t->started_ns);
  so_far.metrics.total = ferry__us(t->submitted_ns, uv_hrtime());
  so_far.metrics.first_byte = ferry__us(t->started_ns, uv_hrtime());
  so_far.status = head->status;
  so_far.http_version = head->version;
  so_far.content_length = head->content_length;
  so_far.head = head->bytes;
  so_far.head_length = head->length;
  so_far.fields = head->fields;
  so_far.field_count = head->count;
  if (loop->options.on_head(loop->options.context, t->result.id, &so_far) !=
      FERRY_ABORT)
    return true;
  t->fault = (ferry__fault){FERRY_E_MEMORY, 0};
  return false;
}

/* What libcurl may answer by itself: whether it does shows afterwards, by a
 * body or the end, or by another request. */
static bool is_challenge(const ferry__transfer *t, int status) {
  const ferry__extras *x = t->extras;
  return x && ((status == 401 && x->schemes) ||
               (status == 407 && x->proxy_schemes));
}

bool ferry__head_final(ferry_loop *loop, ferry__transfer *t) {
  t->head_held = false;
  if (t->head->status == 407 && is_proxys(t)) {
    t->fault = (ferry__fault){FERRY_E_PROXY, FERRY_D_PROXY_AUTH_REQUIRED};
    return false;
  }
  if (!ferry__body_begin(loop, t) || !notify_head(loop, t))
    return false;
  if ((t->flags & FERRY_HOLD_BODY) && t->response_kind == FERRY_STREAM)
    t->held = t->receive_paused = true;
  return true;
}

/* The proxy's answer to CONNECT: libcurl reads it, and here it is bounded. */
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

/* Trailers that came while the body was held come in one piece. */
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
  if (handle->loop->options.jar) /* it has what libcurl took from this line */
    ferry__jar_line(handle->loop->options.jar, line, count);
  if (t->phase < FERRY_PHASE_HEAD)
    t->phase = FERRY_PHASE_HEAD;
  ferry__fault fault = before ? trailers(t->head, line, count)
                              : ferry__head_line(t->head, line, count);
  if (fault.code) {
    t->fault = fault;
    return 0;
  }
  if (!t->head->in_fields && !t->head->complete)
    t->phase = FERRY_PHASE_WAIT_HEAD; /* that was an informational one */
  if (t->head->complete && !before) {
    t->phase = FERRY_PHASE_BODY;
    t->head_held = is_challenge(t, t->head->status);
    ferry__head_ended(t);
    if (!t->head_held && !ferry__head_final(handle->loop, t))
      return 0;
  }
  return count;
}

/* These bytes, and what libcurl has read behind them, come again; but what it
 * holds it loses when it cannot write any more. */
static size_t withhold(ferry__transfer *t, const char *bytes, size_t count) {
  if (ferry__keep(t, bytes, count))
    return count;
  t->withheld = true;
  return CURL_WRITEFUNC_PAUSE;
}

size_t ferry__on_write(char *bytes, size_t size, size_t count, void *data) {
  ferry__handle *handle = data;
  ferry__transfer *t = handle->transfer;
  (void)size;
  ferry__jar_release(handle->loop);
  if (t->receive_paused)
    return withhold(t, bytes, count);
  if (t->head_held && !ferry__head_final(handle->loop, t))
    return 0;
  if (t->receive_paused) /* by that head */
    return withhold(t, bytes, count);
  if (t->max_rate && !ferry__pace_take(handle->loop, t, count))
    return withhold(t, bytes, count);
  return ferry__receive(handle->loop, t, bytes, count) ? count : 0;
}

int64_t ferry__source_pull(ferry_loop *loop, ferry__transfer *t, char *space,
                           size_t size) {
  ferry_options *o = &loop->options;
  uint64_t left = t->body_length - t->pulled;
  t->last_ms = ferry__now(loop);
  if (left < size)
    size = (size_t)left;
  if (!size)
    return 0;
  int64_t n = o->on_pull
                  ? o->on_pull(o->context, t->result.id, space, size)
                  : FERRY_ABORT;
  if (n == FERRY_PAUSE) {
    t->send_paused = true;
    return FERRY_PAUSE;
  }
  bool early = n == 0 && t->body_length != FERRY_UNKNOWN_LENGTH;
  if (n == 0 && !early)
    t->body_length = t->pulled; /* known now */
  if (n < 0 || (uint64_t)n > size || early) {
    t->fault = (ferry__fault){FERRY_E_UPLOAD_SOURCE, 0};
    return FERRY_ABORT;
  }
  t->pulled += (uint64_t)n;
  return n;
}

size_t ferry__on_read(char *space, size_t size, size_t count, void *data) {
  ferry__handle *handle = data;
  ferry__transfer *t = handle->transfer;
  ferry__jar_release(handle->loop);
  if (t->dry) {
    t->dry = false;
    t->send_paused = true;
    return CURL_READFUNC_PAUSE;
  }
  int64_t n = ferry__source_pull(handle->loop, t, space, size * count);
  return n == FERRY_PAUSE ? CURL_READFUNC_PAUSE
         : n < 0          ? CURL_READFUNC_ABORT
                          : (size_t)n;
}
