/* inflate.c - gzip (RFC 1952) and deflate (RFC 1950, and bare RFC 1951 as
 * some servers send it), by zlib and not by libcurl: libcurl reports a
 * stream that was cut short as success when Content-Length agrees with the
 * cut, and a second gzip member as a failed write. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

enum { SCRATCH = 65536, SPARE = 16 };

ferry__inflate *ferry__inflate_take(ferry_loop *loop, uint8_t coding) {
  ferry__inflate *inflate = loop->inflates;
  int window = coding == FERRY__CODING_GZIP ? 15 + 16 : 15;
  if (!loop->scratch && !(loop->scratch = malloc(SCRATCH)))
    return NULL;
  if (inflate) {
    loop->inflates = inflate->next;
    loop->inflate_count--;
    if (inflateReset2(&inflate->stream, window) != Z_OK) {
      inflateEnd(&inflate->stream);
      free(inflate);
      return NULL;
    }
  } else {
    inflate = calloc(1, sizeof *inflate);
    if (!inflate)
      return NULL;
    if (inflateInit2(&inflate->stream, window) != Z_OK) {
      free(inflate);
      return NULL;
    }
  }
  inflate->coding = coding;
  inflate->begun = inflate->ended = false;
  inflate->first_length = 0;
  return inflate;
}

void ferry__inflate_give(ferry_loop *loop, ferry__inflate *inflate) {
  free(inflate->held);
  inflate->held = NULL;
  inflate->held_length = 0;
  if (loop->inflate_count >= SPARE || loop->closing) {
    inflateEnd(&inflate->stream);
    free(inflate);
    return;
  }
  inflate->next = loop->inflates;
  loop->inflates = inflate;
  loop->inflate_count++;
}

static bool corrupt(ferry__transfer *t) {
  t->fault = (ferry__fault){FERRY_E_CONTENT_DECODING,
                            FERRY_D_DECODING_CORRUPT};
  return false;
}

/* Keeps the input that is left until the receiver goes on. */
static bool hold(ferry__transfer *t) {
  ferry__inflate *inflate = t->inflate;
  size_t length = inflate->stream.avail_in;
  unsigned char *held = malloc(length ? length : 1);
  if (!held) {
    t->fault = (ferry__fault){FERRY_E_MEMORY, 0};
    return false;
  }
  memcpy(held, inflate->stream.next_in, length);
  free(inflate->held);
  inflate->held = held;
  inflate->held_length = length;
  return true;
}

/* One call of zlib and what follows from it. *more = false: input used up. */
static bool step(ferry_loop *loop, ferry__transfer *t, bool *more) {
  z_stream *z = &t->inflate->stream;
  z->next_out = loop->scratch;
  z->avail_out = SCRATCH;
  int code = inflate(z, Z_NO_FLUSH);
  if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
    return corrupt(t);
  t->inflate->ended = code == Z_STREAM_END;
  size_t length = SCRATCH - z->avail_out;
  if (length &&
      !ferry__body_deliver(loop, t, (const char *)loop->scratch, length))
    return false;
  *more = z->avail_in || !z->avail_out;
  return true;
}

static bool run(ferry_loop *loop, ferry__transfer *t) {
  ferry__inflate *inflate = t->inflate;
  z_stream *z = &inflate->stream;
  bool more = true;
  while (more) {
    if (inflate->ended) {
      if (!z->avail_in)
        break;
      /* Another member may follow in gzip; anything else is not the body. */
      if (inflate->coding != FERRY__CODING_GZIP)
        return corrupt(t);
      inflate->ended = false;
      if (inflateReset(z) != Z_OK)
        return corrupt(t);
    }
    if (!step(loop, t, &more))
      return false;
    if (t->paused && more)
      return hold(t);
  }
  return true;
}

/* «deflate» is zlib's format by the RFC and bare deflate data by some
 * servers: the first two bytes tell (RFC 1950, 2.2). */
static bool choose_format(ferry__inflate *inflate, const unsigned char *bytes,
                          size_t length) {
  unsigned char two[2];
  size_t have = 0;
  if (inflate->first_length)
    two[have++] = inflate->first;
  for (size_t i = 0; i < length && have < 2; i++)
    two[have++] = bytes[i];
  if (have < 2)
    return false;
  bool zlib = (two[0] & 0x0f) == Z_DEFLATED &&
              ((unsigned)two[0] << 8 | two[1]) % 31 == 0;
  if (!zlib)
    inflateReset2(&inflate->stream, -15);
  return true;
}

bool ferry__inflate_write(ferry_loop *loop, ferry__transfer *t,
                          const char *bytes, size_t length) {
  ferry__inflate *inflate = t->inflate;
  z_stream *z = &inflate->stream;
  if (!inflate->begun && inflate->coding == FERRY__CODING_DEFLATE) {
    if (!choose_format(inflate, (const unsigned char *)bytes, length)) {
      if (length) {
        inflate->first = (unsigned char)bytes[0];
        inflate->first_length = 1;
      }
      return true;
    }
    if (inflate->first_length) { /* one byte makes no output yet */
      z->next_in = &inflate->first;
      z->avail_in = 1;
      if (!run(loop, t))
        return false;
    }
  }
  inflate->begun = true;
  z->next_in = (unsigned char *)(uintptr_t)bytes;
  z->avail_in = (unsigned)length;
  return run(loop, t);
}

bool ferry__inflate_drain(ferry_loop *loop, ferry__transfer *t) {
  ferry__inflate *inflate = t->inflate;
  unsigned char *held = inflate->held;
  if (!held)
    return true;
  inflate->stream.next_in = held;
  inflate->stream.avail_in = (unsigned)inflate->held_length;
  inflate->held = NULL;
  inflate->held_length = 0;
  bool good = run(loop, t); /* may hold again: a copy of what is left */
  free(held);
  return good;
}
