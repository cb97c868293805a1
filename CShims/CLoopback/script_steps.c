/* script_steps.c - the steps of scripts. A step is DONE, or it is BLOCKED: then
 * lb__conn_run() returns to it after the next event. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { BLOCKED = 0, DONE = 1 };

/* Waits for the client, which may have gone. */
static int blocked(lb_conn *c) {
  if (c->ended) lb__conn_close(c);
  return BLOCKED;
}

/* Starts a sending step, or checks whether it is fully written. */
static int sending(lb_conn *c, lb_source source) {
  if (!c->step_begun) {
    c->step_begun = true;
    c->source = source;
    if (source.kind == LB_SOURCE_DRIP) lb__conn_timer(c, source.interval);
  } else if (lb__drained(c)) {
    return DONE;
  }
  c->wants_drain = true;
  return BLOCKED;
}

static int send_bytes(lb_conn *c, const lb_step *step) {
  return sending(c, (lb_source){
                        .kind = LB_SOURCE_REPEAT,
                        .bytes = step->bytes,
                        .length = step->length,
                        .left = step->total,
                    });
}

static int drip(lb_conn *c, const lb_step *step) {
  return sending(c, (lb_source){
                        .kind = LB_SOURCE_DRIP,
                        .bytes = step->bytes,
                        .length = step->length,
                        .left = step->length,
                        .piece = step->total ? step->total : 1,
                        .interval = step->milliseconds,
                    });
}

static int expect_head(lb_conn *c) {
  lb_head *head = &c->server->parsed;
  long length = c->view_length
                    ? lb__head_parse(c->view, c->view_length, head)
                    : 0;
  if (!length) return blocked(c);
  if (length < 0) {
    /* Not HTTP/1; but up to an empty line it counts as a head. */
    const char *end = memmem(c->view, c->view_length, "\r\n\r\n", 4);
    if (!end) return blocked(c);
    memset(&c->framing, 0, sizeof(c->framing));
    lb__conn_take(c, (size_t)(end - c->view) + 4);
    return DONE;
  }
  c->record = lb__record_add(c, head);
  lb__framing_begin(&c->framing, head);
  lb__conn_take(c, (size_t)length);
  return DONE;
}

static int expect_body(lb_conn *c) {
  for (;;) {
    lb_slice piece;
    size_t used;
    int what = lb__framing_next(
        &c->framing, (lb_slice){c->view, c->view_length}, &used, &piece);
    if (what == LB_BODY_PIECE) lb__record_body(c, piece);
    if (used) lb__conn_take(c, used);
    if (what == LB_BODY_END) return DONE;
    if (what == LB_BODY_MORE) return blocked(c);
    if (what == LB_BODY_BAD) {
      lb__conn_close(c);
      return BLOCKED;
    }
  }
}

static int expect_bytes(lb_conn *c, uint64_t count) {
  size_t size;
  if (!c->step_begun) c->step_left = count;
  c->step_begun = true;
  size = c->view_length < c->step_left ? c->view_length
                                       : (size_t)c->step_left;
  if (size) {
    lb__record_body(c, (lb_slice){c->view, size});
    lb__conn_take(c, size);
  }
  c->step_left -= size;
  return c->step_left ? blocked(c) : DONE;
}

/* Does nothing until the client closes. */
static int hold(lb_conn *c) {
  if (c->view_length) lb__conn_take(c, c->view_length);
  return blocked(c);
}

static int pause_step(lb_conn *c, const lb_step *step) {
  if (!c->step_begun) {
    c->step_begun = true;
    lb__conn_wait(c, step->milliseconds);
  }
  return c->timer_fired ? DONE : blocked(c);
}

/* FIN, not RST: unread bytes in the socket would turn the one into the
 * other. */
static int close_step(lb_conn *c, bool goodbye) {
  char space[4096];
  uv_os_fd_t fd;
  if (goodbye) lb__tls_goodbye(c);
  if (c->closing) return BLOCKED;
  if (!uv_fileno((uv_handle_t *)&c->tcp, &fd))
    for (int i = 0; i < 256; i++)
      if (recv(fd, space, sizeof(space), MSG_DONTWAIT) <= 0) break;
  lb__conn_close(c);
  return BLOCKED;
}

static int start_tls(lb_conn *c) {
  char *early;
  size_t size = c->view_length;
  if (c->ssl) return DONE;
  if (!lb__tls_begin(c)) {
    lb__conn_close(c);
    return BLOCKED;
  }
  early = lb__copy(c->view, size);
  lb__conn_take(c, size);
  if (size) lb__tls_feed(c, early, size);
  free(early);
  /* The script continues by itself when the handshake is done. */
  return DONE;
}

static int key_updates(lb_conn *c, uint64_t count) {
  if (c->step_begun) {
    if (lb__drained(c)) return DONE;
  } else {
    c->step_begun = true;
    if (!lb__tls_update_keys(c, count)) {
      lb__conn_close(c);
      return BLOCKED;
    }
  }
  c->wants_drain = true;
  return BLOCKED;
}

static int run_step(lb_conn *c, const lb_step *step) {
  switch (step->kind) {
    case LOOPBACK_EXPECT_HEAD:
      return expect_head(c);
    case LOOPBACK_EXPECT_BODY:
      return expect_body(c);
    case LOOPBACK_EXPECT_BYTES:
      return expect_bytes(c, step->total);
    case LOOPBACK_EXPECT_CLOSE:
      if (c->view_length) lb__conn_take(c, c->view_length);
      return c->ended ? DONE : BLOCKED;
    case LOOPBACK_SEND:
      return send_bytes(c, step);
    case LOOPBACK_PATTERN:
      return sending(c, (lb_source){.kind = LB_SOURCE_PATTERN,
                                    .left = step->total});
    case LOOPBACK_DRIP:
      return drip(c, step);
    case LOOPBACK_PAUSE:
      return pause_step(c, step);
    case LOOPBACK_WAIT:
      return lb__is_signalled(c->server, step->bytes) ? DONE : blocked(c);
    case LOOPBACK_MARK:
      lb__mark(c->server, step->bytes);
      return DONE;
    case LOOPBACK_CLOSE:
      return close_step(c, true);
    case LOOPBACK_DROP:
      return close_step(c, false);
    case LOOPBACK_RESET:
      lb__conn_reset(c);
      return BLOCKED;
    case LOOPBACK_HALF_CLOSE:
      lb__tls_goodbye(c);
      if (!c->closing) lb__conn_shutdown(c);
      return DONE;
    case LOOPBACK_STOP_READING:
      c->stop_reading = true;
      return DONE;
    case LOOPBACK_SERVE:
      lb__script_end(c);
      c->phase = LB_PHASE_HEAD;
      return BLOCKED;
    case LOOPBACK_START_TLS:
      return start_tls(c);
    case LOOPBACK_STALL_HANDSHAKE:
    case LOOPBACK_KEEP_OPEN:
      return hold(c);
    case LOOPBACK_CLOSE_HANDSHAKE:
      return c->view_length ? close_step(c, false) : blocked(c);
    case LOOPBACK_KEY_UPDATES:
      return key_updates(c, step->total);
    default:
      return DONE;
  }
}

/* Steps that wait for the client or for time: a script that restarts without
 * any of them would never release the loop. */
static bool moves(int kind) {
  return kind == LOOPBACK_EXPECT_HEAD || kind == LOOPBACK_EXPECT_BYTES ||
         kind == LOOPBACK_PAUSE || kind == LOOPBACK_DRIP;
}

void lb__script_advance(lb_conn *c) {
  while (c->script && !c->closing && !(c->ssl && !c->ssl_ready)) {
    const lb_step *step;
    if (c->step == c->script->count) {
      hold(c);
      return;
    }
    step = &c->script->steps[c->step];
    if (step->kind == LOOPBACK_RESTART) {
      if (!c->step_moved) {
        hold(c);
        return;
      }
      c->step = 0;
      c->step_begun = c->step_moved = false;
      continue;
    }
    if (run_step(c, step) == BLOCKED) return;
    c->step_moved |= moves(step->kind);
    c->step_begun = false;
    c->step++;
  }
}
