/* body.c - where both engines report a response: its final head, and the bytes
 * of its body, which go into one buffer, to the receiver piece by piece, or to
 * a descriptor, and are counted. */
#include "transfer/transfer.h"

#include <string.h>

enum { FIRST_MOST = 1 << 20 }; /* an announced length is trusted up to this */

static bool fail(ferry__transfer *t, int code, int detail) {
  t->fault = (ferry__fault){code, detail};
  return false;
}

bool ferry__has_body(const ferry__transfer *t) {
  const ferry__head *head = t->head;
  return t->method_kind != FERRY__HEAD && head->status != 204 &&
         head->status != 304 && head->content_length != 0;
}

static bool begin_body(ferry_loop *loop, ferry__transfer *t) {
  const ferry__head *head = t->head;
  bool body = ferry__has_body(t);
  /* A part is one of the coded bytes, and may begin anywhere. */
  bool decode = body && (t->flags & FERRY_DECODE) && head->status != 206 &&
                head->coding != FERRY__CODING_NONE &&
                head->coding != FERRY__CODING_OTHER;
  if (body && t->max_body && !decode && head->content_length > 0 &&
      (uint64_t)head->content_length > t->max_body)
    return fail(t, FERRY_E_BODY_TOO_LARGE, 0);
  /* An HTTP/2 stream has an end of its own. */
  if (body && !head->chunked && head->content_length < 0 &&
      head->version < 20) {
    t->result.flags |= FERRY_RESULT_CLOSE_FRAMED;
  }
  if (decode && !t->decoder) {
    t->decoder = ferry__decoder_take(loop, head->coding);
    if (!t->decoder)
      return fail(t, FERRY_E_MEMORY, 0);
    t->result.flags |= FERRY_RESULT_DECODED;
  }
  return true;
}

/* ---- The final head ------------------------------------------------------ */

/* The response is the proxy's own, or forwarded by it; it did not come from the
 * server through a tunnel. */
static bool is_proxys(const ferry__transfer *t) {
  return t->extras && t->extras->proxy_kind == FERRY_PROXY_HTTP &&
         !t->secure;
}

static ferry_result so_far_of(const ferry__transfer *t) {
  const ferry__head *head = t->head;
  ferry_result so_far = t->result;
  so_far.phase = t->phase;
  so_far.head_received = head->received;
  so_far.engine = t->engine->name;
  t->engine->so_far(t, &so_far);
  so_far.metrics.queue = ferry__us(t->submitted_ns, t->started_ns);
  so_far.metrics.total = ferry__us(t->submitted_ns, uv_hrtime());
  if (!so_far.metrics.first_byte)
    so_far.metrics.first_byte = ferry__us(t->started_ns, uv_hrtime());
  so_far.status = head->status;
  so_far.http_version = head->version;
  so_far.content_length = head->content_length;
  so_far.head = head->bytes;
  so_far.head_length = head->length;
  so_far.fields = head->fields;
  if (head->informational_length)
    so_far.informational = head->aside;
  so_far.informational_length = head->informational_length;
  so_far.field_count = head->count;
  return so_far;
}

static bool notify_head(ferry_loop *loop, ferry__transfer *t) {
  if (!loop->options.on_head || (t->response_kind != FERRY_STREAM &&
                                 !(t->flags & FERRY_NOTIFY_HEAD)))
    return true;
  ferry_result so_far = so_far_of(t);
  if (loop->options.on_head(loop->options.context, t->result.id, &so_far) !=
      FERRY_ABORT)
    return true;
  t->fault = (ferry__fault){FERRY_E_MEMORY, 0};
  return false;
}

bool ferry__head_final(ferry_loop *loop, ferry__transfer *t) {
  t->receiving = FERRY__RECEIVE_BODY;
  if (t->head->status == 407 && is_proxys(t)) {
    t->fault = (ferry__fault){FERRY_E_PROXY, FERRY_D_PROXY_AUTH_REQUIRED};
    return false;
  }
  if (!begin_body(loop, t) || !notify_head(loop, t))
    return false;
  if ((t->flags & FERRY_HOLD_BODY) && t->response_kind == FERRY_STREAM)
    t->paused |= FERRY__PAUSED_BY_RECEIVER;
  return true;
}

void ferry__head_informational(ferry_loop *loop, ferry__transfer *t) {
  const ferry__head *head = t->head;
  if (!(t->flags & FERRY_NOTIFY_INFORMATIONAL) ||
      !loop->options.on_informational)
    return;
  loop->options.on_informational(
      loop->options.context, t->result.id, head->aside + head->informational_at,
      head->informational_length - head->informational_at);
}

/* ---- The end, before the request's --------------------------------------- */

bool ferry__is_cut(const ferry__transfer *t) {
  const ferry__decoder *decoder = t->decoder;
  return (t->flags & FERRY_DUPLEX) && decoder && !decoder->held &&
         t->receiving >= FERRY__RECEIVE_COMPLETE && !decoder->ended &&
         t->result.body_received;
}

void ferry__tell_answered(ferry_loop *loop, ferry__transfer *t) {
  if (!(t->flags & FERRY_DUPLEX) || t->told || t->curl.kept ||
      t->receiving < FERRY__RECEIVE_COMPLETE || !loop->options.on_answered)
    return;
  if (t->decoder && t->decoder->held)
    return;
  ferry_result so_far = so_far_of(t);
  so_far.trailers_length =
      t->head->aside_length - t->head->informational_length;
  if (so_far.trailers_length)
    so_far.trailers = t->head->aside + t->head->informational_length;
  t->told = true;
  loop->options.on_answered(loop->options.context, t->result.id, &so_far);
}

/* ---- The body ------------------------------------------------------------ */

bool ferry__body_reserve(ferry_loop *loop, ferry__transfer *t,
                         size_t length) {
  size_t used = t->result.body_length, need = used + length + FERRY__SPARE;
  if (need <= t->capacity)
    return true;
  size_t want = t->capacity * 2;
  if (!t->bytes && !t->decoder) {
    int64_t announced = t->head->content_length;
    want = announced > FIRST_MOST ? FIRST_MOST
           : announced > 0        ? (size_t)announced + FERRY__SPARE
                                  : 0;
  }
  if (want < need)
    want = need;
  char *bytes =
      ferry__pool_grow(&loop->pool, t->bytes, used, want, &t->capacity);
  if (!bytes)
    return fail(t, FERRY_E_MEMORY, 0);
  t->bytes = bytes;
  return true;
}

bool ferry__receive(ferry_loop *loop, ferry__transfer *t, const char *bytes,
                    size_t length) {
  t->last_ms = ferry__now(loop);
  t->result.body_received += length;
  return t->decoder ? ferry__decode_write(loop, t, bytes, length)
                    : ferry__body_deliver(loop, t, bytes, length);
}

bool ferry__body_deliver(ferry_loop *loop, ferry__transfer *t,
                         const char *bytes, size_t length) {
  if (t->max_body && t->result.body_length + length > t->max_body)
    return fail(t, FERRY_E_BODY_TOO_LARGE, 0);
  if (t->response_kind == FERRY_COLLECT) {
    if (!ferry__body_reserve(loop, t, length))
      return false;
    memcpy(t->bytes + t->result.body_length, bytes, length);
  } else if (t->response_kind == FERRY_DESCRIPTOR) {
    if (!ferry__sink_put(loop, t, bytes, length))
      return false;
  } else if (loop->options.on_body) {
    if (loop->options.on_body(loop->options.context, t->result.id, bytes,
                              length) == FERRY_PAUSE)
      t->paused |= FERRY__PAUSED_BY_RECEIVER;
  }
  t->result.body_length += length;
  return true;
}
