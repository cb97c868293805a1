/* connection.c - the life of a connection: accepted, read, run, closed.
 *
 * Only lb__conn_run() advances a connection. It is called after an event
 * (bytes, a written buffer, the timer, a response), never from within itself:
 * code that would call it again sets `again` instead. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf) {
  lb_conn *c = handle->data;
  (void)suggested;
  *buf = uv_buf_init(c->server->read_space, LB_READ_SIZE);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf) {
  lb_conn *c = stream->data;
  if (size == 0) return;
  if (atomic_load(&c->server->pending)) lb__commands_run(c->server);
  if (c->closing) return;
  if (size < 0) {
    uv_read_stop(stream);
    c->reading = false;
    c->ended = true;
    if (size == UV_EOF) lb__conn_run(c);
    else lb__conn_close(c);
    return;
  }
  lb__count(&c->server->bytes, (uint64_t)size);
  if (c->server->watches) lb__watches_look(c->server);
  if (c->ssl) {
    lb__tls_feed(c, buf->base, (size_t)size);
    if (!c->closing) lb__conn_run(c);
  } else if (lb__buf_size(&c->in)) {
    lb__buf_add(&c->in, buf->base, (size_t)size);
    lb__conn_run(c);
  } else {
    /* The fast path works in the shared buffer; only the rest of an incomplete
     * request is copied. */
    c->view = buf->base;
    c->view_length = (size_t)size;
    c->view_is_in = false;
    lb__conn_run(c);
    if (!c->closing) lb__buf_add(&c->in, c->view, c->view_length);
    c->view = NULL;
    c->view_length = 0;
  }
}

void lb__conn_take(lb_conn *c, size_t size) {
  c->view += size;
  c->view_length -= size;
  if (!c->view_is_in) return;
  c->in.start += size;
  if (!c->view_length) lb__buf_clear(&c->in);
}

/* Continues reading unless there is enough unread input or unwritten output. */
static void update_reading(lb_conn *c) {
  size_t unread = c->view_is_in ? lb__buf_size(&c->in) : c->view_length;
  bool wanted = !c->stop_reading && !c->ended && unread < LB_INPUT_LIMIT &&
                lb__buf_size(&c->out) < LB_INPUT_LIMIT;
  if (wanted == c->reading) return;
  if (!wanted) uv_read_stop((uv_stream_t *)&c->tcp);
  else if (uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read)) {
    lb__conn_close(c);
    return;
  }
  c->reading = wanted;
}

static void advance(lb_conn *c) {
  if (c->ssl && !c->ssl_ready) return;
  if (c->phase == LB_PHASE_LINGER) {
    lb__conn_take(c, c->view_length);
    return;
  }
  if (c->script) lb__script_advance(c);
  if (!c->script && !c->closing) lb__exchange_advance(c);
}

/* An ordinary connection whose client has closed ends when nothing is left to
 * write: a client that closes while a response is awaited has gone; one that
 * closes while it is written may read the rest. A script decides this
 * itself. */
static bool is_over(const lb_conn *c) {
  return c->ended && !c->script && lb__drained(c);
}

void lb__conn_run(lb_conn *c) {
  if (c->closing) return;
  if (c->running) {
    c->again = true;
    return;
  }
  c->running = true;
  if (!c->view) {
    c->view_is_in = true;
    c->view = c->in.base ? lb__buf_data(&c->in) : "";
    c->view_length = lb__buf_size(&c->in);
  }
  do {
    c->again = c->stalled = false;
    advance(c);
    if (!c->closing) lb__flush(c);
    /* Output that was written at once is reported by no event. */
    if (c->stalled && lb__buf_size(&c->out) < LB_INPUT_LIMIT) c->again = true;
  } while (c->again && !c->closing);
  if (!c->closing && is_over(c)) lb__conn_close(c);
  if (!c->closing) update_reading(c);
  c->running = false;
  if (c->view_is_in) c->view = NULL;
}

static void on_timer(uv_timer_t *timer) {
  lb_conn *c = timer->data;
  if (c->phase == LB_PHASE_LINGER) {
    lb__conn_close(c);
    return;
  }
  c->timer_fired = true;
  if (c->waiting && !c->script) lb__route_delayed(c);
  lb__conn_run(c);
}

void lb__conn_timer(lb_conn *c, uint64_t milliseconds) {
  c->timer_fired = false;
  /* The loop's clock does not advance during a turn; a timer must count from
   * now. */
  uv_update_time(&c->server->loop);
  uv_timer_start(&c->timer, on_timer, milliseconds, 0);
}

void lb__conn_wait(lb_conn *c, uint64_t milliseconds) {
  /* libuv's clock is in whole milliseconds, rounded down: a timer that is
   * started late in one of them fires up to a millisecond early. */
  lb__conn_timer(c, milliseconds ? milliseconds + 1 : 0);
}

static void on_closed(uv_handle_t *handle) {
  lb_conn *c = handle->data;
  if (--c->handles == 0) lb__conn_recycle(c);
}

void lb__conn_close(lb_conn *c) {
  if (c->closing) return;
  c->closing = true;
  c->generation = 0;
  uv_close((uv_handle_t *)&c->tcp, on_closed);
  uv_close((uv_handle_t *)&c->timer, on_closed);
  atomic_store_explicit(&c->server->open,
                        atomic_load_explicit(&c->server->open,
                                             memory_order_relaxed) - 1,
                        memory_order_relaxed);
  if (c->server->watches) lb__watches_look(c->server);
}

void lb__conn_reset(lb_conn *c) {
  struct linger now = {.l_onoff = 1, .l_linger = 0};
  uv_os_fd_t fd;
  if (!uv_fileno((uv_handle_t *)&c->tcp, &fd))
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  lb__conn_close(c);
}

void lb__conn_shutdown(lb_conn *c) {
  uv_os_fd_t fd;
  if (!uv_fileno((uv_handle_t *)&c->tcp, &fd)) shutdown(fd, SHUT_WR);
}

/* An orderly end: FIN, then what the client still sends is read and dropped. A
 * close with unread bytes would reset the connection and lose the response. */
void lb__conn_linger(lb_conn *c) {
  lb__conn_take(c, c->view_length);
  lb__tls_goodbye(c);
  lb__conn_shutdown(c);
  if (c->ended) {
    lb__conn_close(c);
    return;
  }
  c->phase = LB_PHASE_LINGER;
  c->waiting = false;
  lb__conn_timer(c, LB_LINGER_MS);
}

void lb__conn_open(lb_server *s, uv_stream_t *listener) {
  lb_conn *c = lb__conn_make(s);
  lb_script *script;
  c->handles = 2;
  /* Neither can fail on Linux; accept can. */
  uv_tcp_init(&s->loop, &c->tcp);
  uv_timer_init(&s->loop, &c->timer);
  lb__count(&s->open, 1);
  if (uv_accept(listener, (uv_stream_t *)&c->tcp)) {
    lb__conn_close(c);
    return;
  }
  uv_tcp_nodelay(&c->tcp, 1);
  lb__count(&s->connections, 1);
  c->number = atomic_load_explicit(&s->connections, memory_order_relaxed);
  script = s->scripts ? lb__script_for_connection(s, c->number) : NULL;
  if (s->tls && !(script && lb__script_plain(script)) && !lb__tls_begin(c)) {
    lb__conn_close(c);
    return;
  }
  if (script) lb__script_begin(c, script);
  if (s->watches) lb__watches_look(s);
  lb__conn_run(c);
}
