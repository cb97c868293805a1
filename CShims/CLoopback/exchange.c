/* exchange.c - the ordinary server: request head, body, response, the next
 * request. */
#include "internal.h"

#include <string.h>

/* Finds the matching handler; the list has the latest first. */
static const lb_handler *find_handler(const lb_server *s,
                                      const lb_head *head) {
  for (const lb_handler *h = s->handlers; h; h = h->next) {
    if (h->method && !lb__equal(head->method, h->method)) continue;
    if (h->prefix ? head->path.length >= h->path_length
                  : head->path.length == h->path_length)
      if (!memcmp(head->path.base, h->path, h->path_length)) return h;
  }
  return NULL;
}

/* Hands a complete request to its handler. The response comes by
 * loopback_answer. */
static void ask_handler(lb_conn *c, const lb_head *head,
                        const lb_handler *handler) {
  lb_server *s = c->server;
  loopback_request request = {
      .connection = c->number,
      .head = head->raw.base,
      .head_length = head->raw.length,
      .body = lb__buf_size(&c->body) ? lb__buf_data(&c->body) : NULL,
      .body_length = lb__buf_size(&c->body),
      .body_total = c->body_total,
  };
  c->phase = LB_PHASE_REPLY;
  c->waiting = true;
  c->generation = ++s->generation;
  s->options.on_request(s->options.context,
                        (uint64_t)c->generation << 32 | c->slot,
                        handler->number, &request);
}

/* The request is complete, including its body. */
static void dispatch(lb_conn *c, const lb_head *head) {
  const lb_handler *handler = find_handler(c->server, head);
  lb_slice rest;
  int mode;
  lb_route route;
  c->close_after = !head->keep_alive;
  c->head_only = lb__equal(head->method, "HEAD");
  if (handler) {
    ask_handler(c, head, handler);
    return;
  }
  route = lb__route_find(head, &rest, &mode);
  c->phase = LB_PHASE_REPLY;
  if (route) route(c, head, rest);
  else lb__reply_error(c, 404);
}

static void begin_body(lb_conn *c, const lb_head *head) {
  lb_slice rest;
  c->phase = LB_PHASE_BODY;
  c->body_total = 0;
  lb__buf_clear(&c->body);
  lb__buf_clear(&c->head);
  lb__buf_add(&c->head, head->raw.base, head->raw.length);
  lb__framing_begin(&c->framing, head);
  c->body_mode = LB_BODY_KEEP;
  if (!find_handler(c->server, head) &&
      !lb__route_find(head, &rest, &c->body_mode))
    c->body_mode = LB_BODY_DROP;
  if (head->expects_continue)
    lb__buf_text(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
  if (c->body_mode == LB_BODY_ECHO) {
    c->close_after = !head->keep_alive;
    c->head_only = false;
    lb__route_echo_body(c, head, (lb_slice){NULL, 0});
  } else if (c->body_mode == LB_BODY_HASH) {
    if (!c->hash) c->hash = EVP_MD_CTX_new();
    EVP_DigestInit_ex(c->hash, EVP_sha256(), NULL);
  }
}

static void refuse(lb_conn *c, int status) {
  lb__conn_take(c, c->view_length);
  c->close_after = true;
  c->head_only = false;
  lb__reply_error(c, status);
}

static void take_piece(lb_conn *c, lb_slice piece) {
  c->body_total += piece.length;
  lb__record_body(c, piece);
  switch (c->body_mode) {
    case LB_BODY_KEEP:
      if (c->body_total > c->server->options.max_body) refuse(c, 413);
      else lb__buf_add(&c->body, piece.base, piece.length);
      break;
    case LB_BODY_ECHO:
      if (c->framing.chunked)
        lb__buf_format(&c->out, "%zx\r\n", piece.length);
      lb__buf_add(&c->out, piece.base, piece.length);
      if (c->framing.chunked) lb__buf_text(&c->out, "\r\n");
      break;
    case LB_BODY_HASH:
      EVP_DigestUpdate(c->hash, piece.base, piece.length);
      break;
    default:
      break;
  }
}

static void end_body(lb_conn *c) {
  lb_head *head = &c->server->parsed;
  if (c->body_mode == LB_BODY_ECHO) {
    if (c->framing.chunked) lb__buf_text(&c->out, "0\r\n\r\n");
    lb__reply_end(c);
    return;
  }
  /* Another connection may have used the scratch head meanwhile. */
  lb__head_parse(lb__buf_data(&c->head), lb__buf_size(&c->head), head);
  dispatch(c, head);
}

/* Returns false if more input is needed. */
static bool advance_body(lb_conn *c) {
  lb_slice piece;
  size_t used;
  int what = lb__framing_next(
      &c->framing, (lb_slice){c->view, c->view_length}, &used, &piece);
  if (what == LB_BODY_PIECE) take_piece(c, piece);
  /* A refusal has consumed all input. */
  if (c->phase == LB_PHASE_BODY && used) lb__conn_take(c, used);
  if (what == LB_BODY_END) end_body(c);
  if (what == LB_BODY_BAD) refuse(c, 400);
  return what != LB_BODY_MORE;
}

static void advance_head(lb_conn *c, long length) {
  lb_server *s = c->server;
  const lb_head *head = &s->parsed;
  lb_script *script =
      s->scripts ? lb__script_for_path(s, head->path) : NULL;
  c->record = lb__record_add(c, head);
  if (script) {
    lb__framing_begin(&c->framing, head);
    lb__conn_take(c, (size_t)length);
    lb__script_begin(c, script);
    /* The head has been read already. */
    if (script->count && script->steps[0].kind == LOOPBACK_EXPECT_HEAD) {
      c->step = 1;
      c->step_moved = true;
    }
    c->again = true;
    return;
  }
  if (head->chunked || head->content_length) {
    begin_body(c, head);
    lb__conn_take(c, (size_t)length);
    return;
  }
  c->body_total = 0;
  lb__buf_clear(&c->body);
  dispatch(c, head);
  lb__conn_take(c, (size_t)length);
}

void lb__exchange_advance(lb_conn *c) {
  while (!c->closing && !c->script) {
    long length;
    if (c->phase == LB_PHASE_BODY) {
      /* Stop while the client does not read the echo. */
      c->stalled = lb__buf_size(&c->out) >= LB_INPUT_LIMIT;
      if (c->stalled || !advance_body(c)) return;
      continue;
    }
    if (c->phase != LB_PHASE_HEAD || !c->view_length) return;
    c->stalled = lb__buf_size(&c->out) >= LB_INPUT_LIMIT;
    if (c->stalled) return;
    length = lb__head_parse(c->view, c->view_length, &c->server->parsed);
    if (!length) return;
    if (length < 0) refuse(c, (int)-length);
    else advance_head(c, length);
  }
}
