/* output.c - writing. uv_try_write first; the bytes that the socket does not
 * take are written by one uv_write at a time, from memory that stays in
 * place. */
#include "internal.h"

#include <string.h>

bool lb__drained(const lb_conn *c) {
  return !c->writing && !lb__buf_size(&c->out) &&
         c->source.kind == LB_SOURCE_NONE;
}

static void on_written(uv_write_t *write, int status) {
  lb_conn *c = write->data;
  c->writing = false;
  lb__buf_clear(&c->flight);
  if (c->closing) return;
  if (status < 0) lb__conn_close(c);
  else lb__conn_run(c);
}

static void write_rest(lb_conn *c, const uv_buf_t *bufs, unsigned count) {
  int result = uv_write(&c->write, (uv_stream_t *)&c->tcp, bufs, count,
                        on_written);
  if (result < 0) lb__conn_close(c);
  else c->writing = true;
}

/* Writes `out`, then the span, which stays valid until on_written. */
static void write_plain(lb_conn *c, uv_buf_t span, bool try_first) {
  uv_buf_t bufs[2];
  unsigned count = 0;
  size_t out = lb__buf_size(&c->out);
  size_t done = 0;
  if (out) bufs[count++] = uv_buf_init(lb__buf_data(&c->out), (unsigned)out);
  if (span.len) bufs[count++] = span;
  if (try_first) {
    int result = uv_try_write((uv_stream_t *)&c->tcp, bufs, count);
    if (result < 0 && result != UV_EAGAIN) {
      lb__conn_close(c);
      return;
    }
    if (result > 0) done = (size_t)result;
    if (done == out + span.len) {
      lb__buf_clear(&c->out);
      return;
    }
  }
  count = 0;
  if (done < out) {
    lb_buf rest = c->out;
    rest.start += done;
    c->out = c->flight;
    c->flight = rest;
    bufs[count++] = uv_buf_init(lb__buf_data(&rest),
                                (unsigned)lb__buf_size(&rest));
    done = 0;
  } else {
    lb__buf_clear(&c->out);
    done -= out;
  }
  if (span.len > done)
    bufs[count++] = uv_buf_init(span.base + done,
                                (unsigned)(span.len - done));
  write_rest(c, bufs, count);
}

static void write_encrypted(lb_conn *c, uv_buf_t span) {
  size_t out = lb__buf_size(&c->out);
  if (out) lb__tls_encrypt(c, lb__buf_data(&c->out), out);
  lb__buf_clear(&c->out);
  if (span.len && !c->closing) lb__tls_encrypt(c, span.base, span.len);
  if (!c->closing) lb__tls_push(c);
}

/* Sends the output of TLS: handshake, records, alerts. */
void lb__tls_push(lb_conn *c) {
  char *bytes;
  long size = BIO_get_mem_data(c->ssl_out, &bytes);
  int result;
  uv_buf_t buf;
  if (size <= 0 || c->writing) return;
  buf = uv_buf_init(bytes, (unsigned)size);
  result = uv_try_write((uv_stream_t *)&c->tcp, &buf, 1);
  if (result < 0 && result != UV_EAGAIN) {
    lb__conn_close(c);
    return;
  }
  if (result < 0) result = 0;
  if (result < size) {
    lb__buf_add(&c->flight, bytes + result, (size_t)(size - result));
    buf = uv_buf_init(lb__buf_data(&c->flight),
                      (unsigned)lb__buf_size(&c->flight));
    write_rest(c, &buf, 1);
  }
  BIO_reset(c->ssl_out);
}

/* Everything is written: continues with what waited for that. */
static void finish(lb_conn *c) {
  if (c->script) {
    if (c->wants_drain) c->again = true;
    c->wants_drain = false;
    return;
  }
  if (c->phase != LB_PHASE_REPLY || c->waiting) return;
  if (c->close_after) {
    lb__conn_linger(c);
    return;
  }
  c->phase = LB_PHASE_HEAD;
  c->again = true;
}

void lb__flush(lb_conn *c) {
  bool try_first = true;
  if (c->ssl && !c->ssl_ready) {
    lb__tls_push(c);
    return;
  }
  while (!c->closing && !c->writing) {
    uv_buf_t span = uv_buf_init(NULL, 0);
    if (c->source.kind != LB_SOURCE_NONE && lb__buf_size(&c->out) < LB_BLOCK &&
        lb__source_pull(c, &span) == LB_PULL_END)
      lb__source_end(c);
    if (!lb__buf_size(&c->out) && !span.len) {
      /* TLS may have a reply of its own to send. */
      if (c->ssl) lb__tls_push(c);
      break;
    }
    if (c->ssl) write_encrypted(c, span);
    else write_plain(c, span, try_first);
    /* A fast reader must not occupy the loop: the second round goes through
     * uv_write, whose callback comes in the next turn. */
    try_first = false;
    if (c->ssl && c->source.kind != LB_SOURCE_NONE && !c->writing) {
      uv_buf_t none = uv_buf_init("", 0);
      write_rest(c, &none, 1);
    }
  }
  if (!c->closing && lb__drained(c)) finish(c);
}
