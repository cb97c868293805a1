#include "CCoreParts.h"
#include "core.h"
#include "http1/response.h"

#include <stdlib.h>
#include <string.h>

static uint64_t draw(uint64_t *chance) {
  *chance = *chance * 6364136223846793005u + 1442695040888963407u;
  return *chance >> 33;
}

static void append(parts_response *out, const char *bytes, size_t length) {
  char *body = realloc(out->body, out->body_length + length + 1);
  if (!body)
    abort();
  memcpy(body + out->body_length, bytes, length);
  out->body = body;
  out->body_length += length;
}

/* Parses one piece of the input, in a separate copy, so that reading past its
 * end is detected. Returns how much of it was used. */
static size_t feed(ferry__response *r, parts_response *out, const char *bytes,
                   size_t length, uint64_t *chance) {
  char *copy = malloc(length ? length : 1);
  if (!copy)
    abort();
  memcpy(copy, bytes, length);
  const char *at = copy, *end = copy + length, *piece = NULL;
  size_t n = 0;
  enum ferry__event event;
  do {
    bool hold = *chance && draw(chance) % 3 == 0;
    event = ferry__response_next(r, &at, end, hold, &piece, &n);
    if (event == FERRY__EVENT_BODY)
      append(out, piece, n);
    out->informational += event == FERRY__EVENT_INFORMATIONAL;
    out->heads += event == FERRY__EVENT_HEAD;
  } while (event != FERRY__EVENT_MORE && event != FERRY__EVENT_END &&
           event != FERRY__EVENT_FAULT);
  out->ended = event == FERRY__EVENT_END;
  size_t taken = (size_t)(at - copy);
  free(copy);
  return taken;
}

static int part_of(const ferry__response *r) {
  switch (r->state) {
  case FERRY__IN_CHUNK_SIZE:
    return r->digits ? PARTS_CHUNK_DIGITS : PARTS_CHUNK_SIZE;
  case FERRY__IN_CHUNK_EXTENSION:
  case FERRY__AT_CHUNK_LF:
    return PARTS_CHUNK_LINE;
  case FERRY__AT_CHUNK_END:
  case FERRY__AT_CHUNK_END_LF:
    return PARTS_CHUNK_END;
  case FERRY__IN_TRAILERS:
    return PARTS_TRAILERS;
  default:
    return PARTS_ANOTHER;
  }
}

void parts_response_read(parts_response *out, const char *bytes, size_t length,
                         bool to_head, uint64_t chance) {
  ferry__head head = {0};
  ferry__response r = {0};
  *out = (parts_response){0};
  ferry__head_begin(&head, 4096);
  ferry__response_begin(&r, &head, to_head);
  while (length && !out->ended && !r.fault.code) {
    size_t piece = chance ? 1 + draw(&chance) % 7 : length;
    if (piece > length)
      piece = length;
    size_t taken = feed(&r, out, bytes, piece, &chance);
    out->taken += taken;
    if (out->ended || r.fault.code)
      break;
    bytes += piece;
    length -= piece;
  }
  out->part = part_of(&r);
  if (!out->ended && !r.fault.code)
    out->ended_by_close =
        ferry__response_close(&r, true) == FERRY__EVENT_END;
  out->code = r.fault.code;
  out->detail = r.fault.detail;
  out->status = head.status;
  out->complete = head.complete;
  out->persistent = r.persistent;
  out->head_received = head.received;
  ferry__response_free(&r);
  ferry__head_free(&head);
}

void parts_response_free(parts_response *response) { free(response->body); }
