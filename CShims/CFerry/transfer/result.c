/* result.c - turns a transfer into its result: one block for small results,
 * otherwise the body's own buffer. */
#include "transfer/transfer.h"

#include <stdlib.h>
#include <string.h>

int ferry__http2_detail(unsigned code) {
  switch (code) {
  case 2:
    return FERRY_D_HTTP2_INTERNAL;
  case 7:
    return FERRY_D_HTTP2_REFUSED;
  case 8:
    return FERRY_D_HTTP2_CANCEL;
  case 11:
    return FERRY_D_HTTP2_ENHANCE_YOUR_CALM;
  default:
    return FERRY_D_HTTP2_OTHER;
  }
}

enum { SMALL = 1024 }; /* smaller bodies are copied, not handed over */

static void put(ferry_result *result, char *at, const ferry_field *fields,
                uint32_t count, const char *head, uint32_t length) {
  size_t size = count * sizeof *fields;
  if (size) /* otherwise there may be no table yet */
    memcpy(at, fields, size);
  memcpy(at + size, head, length);
  result->fields = (const ferry_field *)at;
  result->field_count = count;
  result->head = at + size;
  result->head_length = length;
}

static void put_head(ferry__transfer *t, char *at, const ferry__head *head) {
  put(&t->result, at, head->fields, (uint32_t)head->count, head->bytes,
      (uint32_t)head->length);
}

static void put_aside(ferry__transfer *t, char *at, const ferry__head *head) {
  ferry_result *r = &t->result;
  if (!head->aside_length)
    return;
  memcpy(at, head->aside, head->aside_length);
  r->informational_length = head->informational_length;
  r->trailers_length = head->aside_length - head->informational_length;
  r->informational = r->informational_length ? at : NULL;
  r->trailers = r->trailers_length ? at + r->informational_length : NULL;
}

void ferry__result_pack(ferry_loop *loop, ferry__transfer *t) {
  const ferry__head *head = t->head;
  size_t size = head->count * sizeof(ferry_field) + head->length +
                head->aside_length,
         capacity;
  if (t->bytes && t->fault.code) { /* an incomplete body is not delivered */
    ferry__pool_give(&loop->pool, t->bytes);
    t->bytes = NULL;
  }
  size_t body = t->bytes ? t->result.body_length : 0;
  bool copy = body && body <= SMALL;
  if (!head->length)
    return;
  t->packed = ferry__pool_take(
      &loop->pool, size + (copy ? body + FERRY__SPARE : 0), &capacity);
  if (!t->packed) {
    t->fault = (ferry__fault){FERRY_E_MEMORY, 0};
    return;
  }
  put_head(t, t->packed, head);
  put_aside(t, t->packed + size - head->aside_length, head);
  if (copy) {
    t->result.body = t->packed + size;
    memcpy(t->result.body, t->bytes, body);
    memset(t->result.body + body, 0, FERRY__SPARE);
    ferry__pool_give(&loop->pool, t->bytes);
    t->bytes = NULL;
  } else if (body) {
    t->result.body = t->bytes;
    memset(t->bytes + body, 0, FERRY__SPARE);
  }
}

void ferry__finish(ferry_loop *loop, ferry__transfer *t) {
  ferry_result *r = &t->result;
  ferry__wheel_remove(loop, t);
  ferry__table_remove(&loop->table, r->id);
  t->state = FERRY__DONE;
  r->code = t->fault.code;
  r->detail = t->fault.detail;
  r->phase = t->phase;
  r->message = t->words;
  loop->hooks->let_go(t);
  if (t->decoder)
    ferry__decoder_give(loop, t->decoder);
  t->decoder = NULL;
  ferry__sink_free(loop, t);
  ferry__piece_drop(t);
  uint64_t began = t->started_ns ? t->started_ns : loop->now_ns;
  r->metrics.queue = ferry__us(t->submitted_ns, began);
  r->metrics.total = ferry__us(t->submitted_ns, loop->now_ns);
  r->next = NULL;
  *loop->transfers->finished_last = r;
  loop->transfers->finished_last = &r->next;
  loop->transfers->finished_count++;
  ferry__count(&loop->counters.finished, 1);
}

void ferry__deliver(ferry_loop *loop) {
  ferry_result *first = loop->transfers->finished;
  size_t count = loop->transfers->finished_count;
  if (!first)
    return;
  loop->transfers->finished = NULL;
  loop->transfers->finished_last = &loop->transfers->finished;
  loop->transfers->finished_count = 0;
  loop->options.on_finished(loop->options.context, first, count);
}

void ferry_result_free(ferry_result *result) {
  ferry__transfer *t = (ferry__transfer *)((char *)result -
                                           offsetof(ferry__transfer, result));
  if (t->packed)
    ferry__block_free(t->packed);
  if (t->bytes)
    ferry__block_free(t->bytes);
  free(t->words);
  free(t);
}

int ferry_result_make(uint64_t id, const char *text, size_t length,
                      const void *body, size_t body_length,
                      ferry_result **out) {
  ferry__head head = {0};
  size_t capacity, size;
  int code = FERRY_E_MEMORY;
  ferry__transfer *t = calloc(1, sizeof *t);
  *out = NULL;
  if (!t)
    return code;
  ferry__head_begin(&head, UINT32_MAX);
  head.http2 = true; /* whatever version the status line names */
  for (size_t at = 0; at < length;) {
    const char *end = memchr(text + at, '\n', length - at);
    size_t line = end ? (size_t)(end - text) + 1 - at : length - at;
    ferry__fault fault = ferry__head_line(&head, text + at, line);
    if ((code = fault.code))
      goto fail;
    at += line;
  }
  code = FERRY_E_MALFORMED_RESPONSE;
  if (!head.complete)
    goto fail;
  code = FERRY_E_MEMORY;
  size = head.count * sizeof(ferry_field) + head.length;
  t->packed = ferry__block_make(size, &capacity);
  if (!t->packed)
    goto fail;
  put_head(t, t->packed, &head);
  if (body_length) {
    t->bytes = ferry__block_make(body_length + FERRY__SPARE, &capacity);
    if (!t->bytes)
      goto fail;
    memcpy(t->bytes, body, body_length);
    memset(t->bytes + body_length, 0, FERRY__SPARE);
    t->result.body = t->bytes;
  }
  t->result.id = id;
  t->result.phase = FERRY_PHASE_DONE;
  t->result.status = head.status;
  t->result.http_version = head.version;
  t->result.attempts = 1;
  t->result.content_length = head.content_length;
  t->result.head_received = head.received;
  t->result.body_received = t->result.body_length = body_length;
  ferry__head_free(&head);
  *out = &t->result;
  return FERRY_OK;

fail:
  ferry__head_free(&head);
  ferry_result_free(&t->result);
  return code;
}

int ferry_result_revise(const ferry_result *from, const ferry_change *changes,
                        size_t count, ferry_result **out) {
  size_t capacity, size = from->field_count * sizeof(ferry_field);
  ferry__transfer *t = calloc(1, sizeof *t);
  *out = NULL;
  if (!t)
    return FERRY_E_MEMORY;
  t->result = *from;
  t->result.next = NULL;
  t->result.message = NULL;
  t->result.informational = t->result.trailers = NULL;
  t->result.informational_length = t->result.trailers_length = 0;
  t->packed = ferry__block_make(size + from->head_length, &capacity);
  if (!t->packed) {
    free(t);
    return FERRY_E_MEMORY;
  }
  put(&t->result, t->packed, from->fields, from->field_count, from->head,
      from->head_length);
  for (size_t i = 0; i < count; i++) {
    const ferry_change *change = &changes[i];
    if (change->at > from->head_length ||
        change->length > from->head_length - change->at) {
      ferry_result_free(&t->result);
      return FERRY_E_INTERNAL;
    }
    memcpy(t->packed + size + change->at, change->bytes, change->length);
  }
  *out = &t->result;
  return FERRY_OK;
}

int ferry_result_copy_head(const ferry_result *so_far, ferry_result **out) {
  size_t size, capacity;
  ferry__transfer *t = calloc(1, sizeof *t);
  *out = NULL;
  if (!t)
    return FERRY_E_MEMORY;
  t->result = *so_far;
  t->result.next = NULL;
  t->result.body = NULL;
  t->result.message = NULL;
  size = so_far->field_count * sizeof(ferry_field) + so_far->head_length;
  t->packed = ferry__block_make(size + so_far->informational_length +
                                    so_far->trailers_length,
                                &capacity);
  if (!t->packed) {
    free(t);
    return FERRY_E_MEMORY;
  }
  put(&t->result, t->packed, so_far->fields, so_far->field_count,
      so_far->head, so_far->head_length);
  if (so_far->informational_length)
    t->result.informational = memcpy(t->packed + size, so_far->informational,
                                     so_far->informational_length);
  size += so_far->informational_length;
  if (so_far->trailers_length)
    t->result.trailers =
        memcpy(t->packed + size, so_far->trailers, so_far->trailers_length);
  *out = &t->result;
  return FERRY_OK;
}

int ferry_result_make_fault(uint64_t id, int code, int detail, int phase,
                            uint32_t flags, ferry_result **out) {
  ferry__transfer *t = calloc(1, sizeof *t);
  *out = NULL;
  if (!t)
    return FERRY_E_MEMORY;
  t->result.id = id;
  t->result.code = code;
  t->result.detail = detail;
  t->result.phase = phase;
  t->result.flags = flags;
  t->result.content_length = -1;
  *out = &t->result;
  return FERRY_OK;
}
