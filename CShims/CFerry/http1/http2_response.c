/* http2_response.c - the response of an exchange over HTTP/2: what nghttp2
 * reports becomes the head and the body of the transfer.
 *
 * The callbacks only take note of what ends an exchange, because the session
 * must not be freed while it calls them. */
#include "http1/http2.h"

#include <stdlib.h>
#include <string.h>

enum {
  WINDOW = 262144,    /* bytes that the receiver need not have taken */
  PIECE = 16384,      /* of held bytes, in one step */
  MOST_HEAD = 1 << 22 /* of a request: more than any that is accepted */
};

static int note(ferry__http2 *h, ferry__fault fault) {
  ferry__http2_note(h, fault);
  return NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* ---- Heads --------------------------------------------------------------- */

/* Takes the line that HTTP/1.1 would have for it. */
static int take_line(ferry__connection *c, const char *start,
                     size_t start_length, const char *middle,
                     const uint8_t *end, size_t end_length,
                     const char *close) {
  char space[1024], *line = space, *to;
  size_t length = start_length + strlen(middle) + end_length + strlen(close);
  if (length > sizeof space && !(line = malloc(length)))
    return note(c->http2, (ferry__fault){FERRY_E_MEMORY, 0});
  memcpy(line, start, start_length);
  to = line + start_length;
  memcpy(to, middle, strlen(middle));
  to += strlen(middle);
  memcpy(to, end, end_length);
  memcpy(to + end_length, close, strlen(close));
  ferry__fault fault = ferry__head_line(c->transfer->head, line, length);
  if (line != space)
    free(line);
  return fault.code ? note(c->http2, fault) : 0;
}

static int on_begin_headers(nghttp2_session *session,
                            const nghttp2_frame *frame, void *user) {
  ferry__connection *c = user;
  ferry__transfer *t = ferry__http2_transfer(c, frame->hd.stream_id);
  (void)session;
  if (!t)
    return 0;
  ferry__exchange_note_arrival(c);
  if (t->phase < FERRY_PHASE_HEAD)
    t->phase = FERRY_PHASE_HEAD;
  return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
                     const uint8_t *name, size_t name_length,
                     const uint8_t *value, size_t value_length, uint8_t flags,
                     void *user) {
  ferry__connection *c = user;
  (void)session, (void)flags;
  if (!ferry__http2_transfer(c, frame->hd.stream_id))
    return 0;
  ferry__exchange_note_arrival(c);
  if (name_length && name[0] == ':')
    return take_line(c, "HTTP/2 ", 7, "", value, value_length, " \r\n");
  return take_line(c, (const char *)name, name_length, ": ", value,
                   value_length, "\r\n");
}

/* nghttp2 would ignore the field. */
static int on_invalid_header(nghttp2_session *session,
                             const nghttp2_frame *frame, nghttp2_rcbuf *name,
                             nghttp2_rcbuf *value, uint8_t flags, void *user) {
  ferry__connection *c = user;
  (void)session, (void)name, (void)value, (void)flags;
  const ferry__transfer *t = ferry__http2_transfer(c, frame->hd.stream_id);
  return t ? note(c->http2, (ferry__fault){FERRY_E_MALFORMED_RESPONSE,
                                         t->head->complete ? FERRY_D_TRAILER
                                                           : FERRY_D_HEADER})
           : 0;
}

static void take_informational(ferry__connection *c, uint16_t status) {
  ferry__transfer *t = c->transfer;
  t->phase = t->body_kind == FERRY_BODY_NONE ||
                     c->sending == FERRY__SEND_DONE
                 ? FERRY_PHASE_WAIT_HEAD
                 : FERRY_PHASE_SEND;
  ferry__head_informational(c->loop, t);
  if (c->sending == FERRY__SEND_AWAIT && status == 100)
    c->sending = FERRY__SEND_BODY;
}

static int end_head(ferry__connection *c) {
  ferry__transfer *t = c->transfer;
  uint16_t status = t->head->status;
  bool trails = t->head->complete;
  int code = take_line(c, "", 0, "", (const uint8_t *)"", 0, "\r\n");
  if (code || trails)
    return code;
  if (!t->head->complete) {
    take_informational(c, status);
    return 0;
  }
  c->response.state = FERRY__IN_CHUNK; /* an end would be too early */
  if (ferry__exchange_is_refused(c)) {
    c->http2->refused = true;
    return 0;
  }
  ferry__exchange_note_head(c);
  return ferry__head_final(c->loop, t) ? 0 : note(c->http2, t->fault);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame,
                    void *user) {
  ferry__connection *c = user;
  (void)session;
  if (!ferry__http2_transfer(c, frame->hd.stream_id) ||
      (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
    return 0;
  int code = frame->hd.type == NGHTTP2_HEADERS ? end_head(c) : 0;
  if (!code && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
    c->http2->ended = true;
  return code;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code,
                    void *user) {
  ferry__http2 *h = ((ferry__connection *)user)->http2;
  (void)session;
  if (id == h->stream) {
    h->closed = true;
    h->code = code;
  }
  return 0;
}

/* ---- The body of the response -------------------------------------------- */

/* Whether the receiver takes no more bytes now. */
static bool holds_back(ferry__connection *c) {
  ferry__transfer *t = c->transfer;
  return t->paused || (t->max_rate && !ferry__pace_take(c->loop, t, 0));
}

static bool deliver(ferry__connection *c, const char *bytes, size_t length) {
  ferry__transfer *t = c->transfer;
  if (t->max_rate)
    ferry__pace_take(c->loop, t, length);
  if (!ferry__receive(c->loop, t, bytes, length)) {
    note(c->http2, t->fault);
    return false;
  }
  nghttp2_session_consume(c->http2->session, c->http2->stream, length);
  return true;
}

/* Their window is not opened again until the receiver has taken them. */
static int hold(ferry__connection *c, const uint8_t *bytes, size_t length) {
  char *held = realloc(c->held, c->held_length + length);
  if (!held)
    return note(c->http2, (ferry__fault){FERRY_E_MEMORY, 0});
  memcpy(held + c->held_length, bytes, length);
  c->held = held;
  c->held_length += (uint32_t)length;
  return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id,
                   const uint8_t *bytes, size_t length, void *user) {
  ferry__connection *c = user;
  (void)flags;
  if (!ferry__http2_transfer(c, id) || c->http2->refused)
    return nghttp2_session_consume(session, id, length);
  ferry__exchange_note_arrival(c);
  if (c->held_length || holds_back(c))
    return hold(c, bytes, length);
  return deliver(c, (const char *)bytes, length)
             ? 0
             : NGHTTP2_ERR_CALLBACK_FAILURE;
}

bool ferry__http2_deliver_held(ferry__connection *c) {
  uint32_t done = 0;
  while (done < c->held_length && !holds_back(c)) {
    uint32_t left = c->held_length - done;
    uint32_t length = left < PIECE ? left : PIECE;
    if (!deliver(c, c->held + done, length))
      return false;
    done += length;
  }
  c->held_length -= done;
  if (!c->held_length) {
    free(c->held);
    c->held = NULL;
  } else if (done) {
    memmove(c->held, c->held + done, c->held_length);
  }
  return true;
}

/* ---- The session --------------------------------------------------------- */

int ferry__http2_make_session(ferry__connection *c, ferry__http2 *h) {
  static const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW},
  };
  nghttp2_session_callbacks *calls = NULL;
  nghttp2_option *option = NULL;
  int code = nghttp2_session_callbacks_new(&calls);
  if (!code)
    code = nghttp2_option_new(&option);
  if (!code) {
    nghttp2_session_callbacks_set_on_begin_headers_callback(calls,
                                                            on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback2(
        calls, on_invalid_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_close);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_max_send_header_block_length(option, MOST_HEAD);
    /* The parser of heads removes the white space. */
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(option,
                                                                     1);
    code = nghttp2_session_client_new2(&h->session, calls, c, option);
  }
  nghttp2_session_callbacks_del(calls);
  nghttp2_option_del(option);
  if (!code)
    code = nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings,
                                   sizeof settings / sizeof *settings);
  if (!code)
    code = nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE,
                                                 0, WINDOW);
  return code;
}
