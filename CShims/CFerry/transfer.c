/* transfer.c - the life of one transfer on the loop's thread: started, fed
 * by libcurl's callbacks, ended exactly once. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

static void link_running(ferry_loop *loop, ferry__transfer *t) {
  t->prev = NULL;
  t->next = loop->running;
  if (loop->running)
    loop->running->prev = t;
  loop->running = t;
}

static void unlink_running(ferry_loop *loop, ferry__transfer *t) {
  if (t->prev)
    t->prev->next = t->next;
  else
    loop->running = t->next;
  if (t->next)
    t->next->prev = t->prev;
}

/* Into libcurl. code 0 = done. */
static ferry__fault enter_libcurl(ferry_loop *loop, ferry__transfer *t) {
  ferry__shard *shard = ferry__shard_for(loop, t->host);
  ferry__handle *handle = shard ? ferry__handle_take(loop, shard) : NULL;
  t->handle = handle;
  if (!handle)
    return (ferry__fault){FERRY_E_MEMORY, 0};
  shard->running++;
  if (!ferry__handle_prepare(handle, t) ||
      curl_multi_add_handle(shard->multi, handle->easy))
    return (ferry__fault){FERRY_E_INTERNAL, 0};
  ferry__shard_touch(shard);
  return (ferry__fault){FERRY_OK, 0};
}

/* Its host's name is known. */
static void begin(ferry_loop *loop, ferry__transfer *t) {
  t->state = FERRY__RUNNING;
  t->phase = FERRY_PHASE_CONNECT;
  t->last_ms = ferry__now(loop);
  t->result.metrics.name = ferry__us(t->started_ns, loop->now_ns);
  link_running(loop, t);
  ferry__fault fault = enter_libcurl(loop, t);
  if (fault.code)
    ferry__transfer_end(loop, t, fault);
}

/* Whose name has to be looked up before it can go; NULL when all is known. */
static ferry__host *unnamed(ferry_loop *loop, const ferry__transfer *t) {
  ferry__host *via = t->extras ? t->extras->via : NULL;
  if (via && !ferry__name_known(loop, via))
    return via;
  bool ours = !via || t->extras->proxy_kind == FERRY_PROXY_SOCKS5;
  return ours && !ferry__name_known(loop, t->host) ? t->host : NULL;
}

/* The fault of a proxy's name is the proxy's. */
static ferry__fault name_fault(const ferry__transfer *t, const ferry__host *of,
                               ferry__fault fault) {
  if (fault.code == FERRY_E_DNS && t->extras && t->extras->via == of)
    return (ferry__fault){FERRY_E_PROXY, FERRY_D_PROXY_UNREACHABLE};
  return fault;
}

/* Ends one that has its place and is not in libcurl yet. */
static void give_up(ferry_loop *loop, ferry__transfer *t, ferry__fault fault) {
  ferry__leave(loop, t->host);
  t->fault = fault;
  ferry__finish(loop, t);
}

static void watch_limits(ferry_loop *loop, ferry__transfer *t) {
  ferry__fault fault = {0, 0};
  uint64_t next = ferry__timeout_check(loop, t, &fault);
  if (fault.code)
    ferry__transfer_end(loop, t, fault);
  else if (next)
    ferry__wheel_set(loop, t, next);
}

/* To the names it needs, then on its way. */
static void go(ferry_loop *loop, ferry__transfer *t) {
  ferry__host *host = unnamed(loop, t);
  if (!host) {
    ferry__fault fault =
        t->extras ? ferry__extras_route(t) : (ferry__fault){FERRY_OK, 0};
    if (fault.code) {
      t->phase = FERRY_PHASE_CONNECT;
      give_up(loop, t, fault);
    } else {
      begin(loop, t);
    }
  } else if (!host->looking_up) {
    /* Neither known nor to be asked for: nobody would come back to it. */
    give_up(loop, t,
            name_fault(t, host,
                       (ferry__fault){FERRY_E_DNS, FERRY_D_DNS_FAILED}));
  } else {
    t->state = FERRY__RESOLVING;
    t->phase = FERRY_PHASE_DNS;
    t->asked = host;
    ferry__fifo_push(&host->resolving, t);
    ferry__count(&loop->counters.resolving, 1);
  }
  watch_limits(loop, t);
}

void ferry__transfer_start(ferry_loop *loop, ferry__transfer *t) {
  t->started_ns = loop->now_ns;
  t->started_ms = t->last_ms = ferry__now(loop);
  if ((t->flags & FERRY_NOTIFY_START) && loop->options.on_started)
    loop->options.on_started(loop->options.context, t->result.id);
  go(loop, t);
}

void ferry__transfer_named(ferry_loop *loop, ferry__transfer *t,
                           ferry__fault fault) {
  ferry__host *host = t->asked;
  ferry__fifo_remove(&host->resolving, t);
  ferry__count(&loop->counters.resolving, -1);
  t->state = FERRY__NEW;
  if (fault.code)
    give_up(loop, t, name_fault(t, host, fault));
  else
    go(loop, t);
}

/* ---- libcurl's callbacks ------------------------------------------------- */

/* The answer is the proxy's own, or passed on by it, and not the server's
 * through a tunnel. */
static bool is_proxys(const ferry__transfer *t) {
  return t->extras && t->extras->proxy_kind == FERRY_PROXY_HTTP &&
         !t->host->secure;
}

static void notify_head(ferry_loop *loop, ferry__transfer *t) {
  const ferry__head *head = &t->handle->head;
  ferry_result so_far;
  if (!loop->options.on_head || (t->response_kind != FERRY_STREAM &&
                                 !(t->flags & FERRY_NOTIFY_HEAD)))
    return;
  so_far = t->result;
  so_far.phase = t->phase;
  so_far.attempts =
      (uint8_t)(t->handle->attempts > 255 ? 255 : t->handle->attempts);
  so_far.head_received = head->received;
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
  loop->options.on_head(loop->options.context, t->result.id, &so_far);
}

/* What libcurl may answer by itself: whether it does shows afterwards, by a
 * body or the end, or by another request. */
static bool is_challenge(const ferry__transfer *t, int status) {
  const ferry__extras *x = t->extras;
  return x && x->schemes &&
         ((status == 401 && (x->targets & FERRY_FOR_SERVER)) ||
          (status == 407 && (x->targets & FERRY_FOR_PROXY)));
}

bool ferry__head_final(ferry_loop *loop, ferry__transfer *t) {
  t->head_held = false;
  if (t->handle->head.status == 407 && is_proxys(t)) {
    t->fault = (ferry__fault){FERRY_E_PROXY, FERRY_D_PROXY_AUTH_REQUIRED};
    return false;
  }
  if (!ferry__body_begin(loop, t))
    return false;
  notify_head(loop, t);
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

size_t ferry__on_header(char *line, size_t size, size_t count, void *data) {
  ferry__handle *handle = data;
  ferry__transfer *t = handle->transfer;
  bool before = handle->head.complete;
  (void)size;
  t->last_ms = ferry__now(handle->loop);
  if (handle->tunnelling)
    return tunnel_line(handle, t, line, count) ? count : 0;
  if (t->phase < FERRY_PHASE_HEAD)
    t->phase = FERRY_PHASE_HEAD;
  ferry__fault fault = ferry__head_line(&handle->head, line, count);
  if (fault.code) {
    t->fault = fault;
    return 0;
  }
  if (!handle->head.in_fields && !handle->head.complete)
    t->phase = FERRY_PHASE_WAIT_HEAD; /* that was an informational one */
  if (handle->head.complete && !before) {
    t->phase = FERRY_PHASE_BODY;
    t->head_held = is_challenge(t, handle->head.status);
    if (!t->head_held && !ferry__head_final(handle->loop, t))
      return 0;
  }
  return count;
}

size_t ferry__on_write(char *bytes, size_t size, size_t count, void *data) {
  ferry__handle *handle = data;
  ferry__transfer *t = handle->transfer;
  (void)size;
  if (t->receive_paused)
    return CURL_WRITEFUNC_PAUSE; /* and comes again with these bytes */
  if (t->head_held && !ferry__head_final(handle->loop, t))
    return 0;
  t->last_ms = ferry__now(handle->loop);
  t->result.body_received += count;
  bool good = t->inflate
                  ? ferry__inflate_write(handle->loop, t, bytes, count)
                  : ferry__body_deliver(handle->loop, t, bytes, count);
  return good ? count : 0;
}

size_t ferry__on_read(char *space, size_t size, size_t count, void *data) {
  ferry__handle *handle = data;
  ferry__transfer *t = handle->transfer;
  ferry_options *o = &handle->loop->options;
  uint64_t left = t->body_length - t->pulled;
  size *= count;
  t->last_ms = ferry__now(handle->loop);
  if (left < size)
    size = (size_t)left;
  if (!size)
    return 0;
  int64_t n =
      o->on_pull ? o->on_pull(o->context, t->result.id, space, size) : -2;
  if (n == FERRY_PAUSE) {
    t->send_paused = true;
    return CURL_READFUNC_PAUSE;
  }
  bool early = n == 0 && t->body_length != FERRY_UNKNOWN_LENGTH;
  if (n == 0 && !early)
    t->body_length = t->pulled; /* known now */
  if (n < 0 || (uint64_t)n > size || early) {
    t->fault = (ferry__fault){FERRY_E_UPLOAD_SOURCE, 0};
    return CURL_READFUNC_ABORT;
  }
  t->pulled += (uint64_t)n;
  return (size_t)n;
}

void ferry__transfer_resume(ferry_loop *loop, ferry__transfer *t) {
  bool paused = t->receive_paused || t->send_paused;
  if (!paused || (t->state != FERRY__RUNNING && t->state != FERRY__DRAINING))
    return;
  t->receive_paused = t->send_paused = false;
  t->last_ms = ferry__now(loop);
  t->window_ms = 0; /* begins anew at the next look */
  if (t->inflate && t->inflate->held) {
    if (!ferry__inflate_drain(loop, t)) {
      ferry__transfer_end(loop, t, t->fault);
      return;
    }
    if (t->receive_paused)
      return; /* paused again before what was held has gone */
  }
  if (t->state == FERRY__DRAINING) {
    ferry__transfer_completed(loop, t, CURLE_OK);
    return;
  }
  /* What libcurl held goes to our callback here. When that refuses it, only
   * this call is told, and libcurl would go on without those bytes. */
  curl_easy_pause(t->handle->easy, CURLPAUSE_CONT);
  if (t->fault.code) {
    ferry__transfer_end(loop, t, t->fault);
    return;
  }
  t->handle->shard->due = 1; /* 7.88.1 may not ask for it itself */
  ferry__shard_touch(t->handle->shard);
}

/* ---- The end ------------------------------------------------------------- */

/* Out of libcurl, the handle still at hand for its figures. */
static void leave_libcurl(ferry_loop *loop, ferry__transfer *t) {
  ferry__shard *shard = t->handle->shard;
  curl_multi_remove_handle(shard->multi, t->handle->easy);
  shard->running--;
  if (shard->index < loop->first_free)
    loop->first_free = shard->index;
  if (!shard->running) {
    shard->idle_since = ferry__now(loop);
    ferry__arm(loop, shard->idle_since + loop->options.idle_ms);
  }
  ferry__shard_touch(shard);
}

static uint32_t microseconds(CURL *easy, CURLINFO info) {
  curl_off_t us = 0;
  curl_easy_getinfo(easy, info, &us);
  return us < 0 ? 0 : us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

static void read_figures(ferry__transfer *t) {
  ferry_result *r = &t->result;
  const ferry__head *head = &t->handle->head;
  CURL *easy = t->handle->easy;
  long sent = 0, connects = 0, os_errno = 0;
  curl_off_t uploaded = 0;
  uint32_t name = r->metrics.name;
  r->attempts = (uint8_t)(t->earlier + t->handle->attempts);
  r->head_received = head->received;
  r->status = head->status;
  r->http_version = head->version;
  r->content_length = head->content_length;
  if (t->fault.code == FERRY_E_PROXY && !r->status) {
    long answered = 0;
    curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &answered);
    r->status = (uint16_t)answered;
  }
  if (!r->attempts && !t->fault.code)
    return;
  curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &sent);
  curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connects);
  if (t->body_kind != FERRY_BODY_NONE)
    curl_easy_getinfo(easy, CURLINFO_SIZE_UPLOAD_T, &uploaded);
  r->head_sent = (uint64_t)sent;
  r->body_sent = (uint64_t)uploaded;
  /* What a proxy refuses with 407 never came to the server. */
  if (r->attempts && sent + uploaded > 0 && t->fault.code != FERRY_E_TLS &&
      t->fault.code != FERRY_E_PROXY && !t->untouched)
    r->flags |= FERRY_RESULT_PROCESSED;
  if (r->attempts && !connects)
    r->flags |= FERRY_RESULT_REUSED;
  /* libcurl's clock begins where ours had found the name. */
  if (connects) {
    r->metrics.connect = name + microseconds(easy, CURLINFO_CONNECT_TIME_T);
    if (t->host->secure)
      r->metrics.tls = name + microseconds(easy, CURLINFO_APPCONNECT_TIME_T);
  }
  if (head->received)
    r->metrics.first_byte =
        name + microseconds(easy, CURLINFO_STARTTRANSFER_TIME_T);
  if (t->fault.code && !r->os_errno) {
    curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os_errno);
    r->os_errno = (int32_t)os_errno;
  }
}

static void settle(ferry_loop *loop, ferry__transfer *t) {
  /* Nor does one live on that has answered challenges. */
  bool healthy = !t->fault.code && t->handle->attempts <= 1 &&
                 !t->late && !(t->extras && t->extras->schemes);
  if (t->fault.code && t->handle->words[0])
    t->words = strdup(t->handle->words);
  read_figures(t);
  ferry__result_pack(loop, t);
  t->host->large = t->result.body_length > FERRY__LONG_BODY;
  ferry__handle_give(t->handle, healthy);
  t->handle = NULL;
  unlink_running(loop, t);
  ferry__leave(loop, t->host);
  ferry__finish(loop, t);
}

/* Nothing of it was sent, or looked at: once more, with another handle. */
static void begin_again(ferry_loop *loop, ferry__transfer *t) {
  leave_libcurl(loop, t);
  t->earlier = (uint8_t)(t->earlier + t->handle->attempts);
  ferry__handle_give(t->handle, false);
  t->again = t->untouched = false;
  t->phase = FERRY_PHASE_CONNECT;
  ferry__fault fault = enter_libcurl(loop, t);
  if (fault.code)
    ferry__transfer_end(loop, t, fault);
}

void ferry__transfer_completed(ferry_loop *loop, ferry__transfer *t,
                               CURLcode code) {
  if (t->untouched && code && !t->fault.code && !t->fresh && !t->pulled &&
      !t->handle->head.received)
    t->again = t->fresh = true;
  if (t->again && code && !t->fault.code) {
    begin_again(loop, t);
    return;
  }
  bool running = t->state == FERRY__RUNNING;
  if (code == CURLE_SEND_ERROR && t->late && !t->fault.code &&
      !t->handle->head.received && ferry__late_answer(t))
    code = CURLE_OK;
  t->result.curl_code = (int32_t)code;
  if (running)
    leave_libcurl(loop, t);
  if (code && !t->fault.code) {
    long os_errno = 0;
    curl_easy_getinfo(t->handle->easy, CURLINFO_OS_ERRNO, &os_errno);
    t->result.os_errno = (int32_t)os_errno;
    t->fault = ferry__fault_of(t, code, t->handle->words);
    if (t->fault.code == FERRY_E_TLS &&
        t->fault.detail != FERRY_D_TLS_CONFIGURATION)
      t->phase = FERRY_PHASE_TLS; /* its socket is closed already */
    if (t->fault.code == FERRY_E_ADDRESS_FORBIDDEN)
      t->handle->words[0] = 0; /* «could not connect» is not why */
  }
  if (t->phase == FERRY_PHASE_SEND)
    ferry__look_at_phase(t);
  if (!t->fault.code && t->head_held)
    ferry__head_final(loop, t);
  /* For libcurl a head may end with its connection. */
  if (!t->fault.code && !t->handle->head.complete)
    t->fault = (ferry__fault){FERRY_E_CONNECTION_CLOSED, 0};
  if (!t->fault.code && (t->result.flags & FERRY_RESULT_CLOSE_FRAMED) &&
      t->host->secure && !t->close_notified)
    t->fault = (ferry__fault){FERRY_E_INCOMPLETE_BODY, 0};
  if (!t->fault.code && t->inflate) {
    if (t->inflate->held) {
      /* All is here, but the receiver has not taken it yet. */
      t->state = FERRY__DRAINING;
      return;
    }
    if (t->result.body_received && !t->inflate->ended)
      t->fault = (ferry__fault){FERRY_E_CONTENT_DECODING,
                                FERRY_D_DECODING_TRUNCATED};
  }
  if (!t->fault.code)
    t->phase = FERRY_PHASE_DONE;
  settle(loop, t);
}

void ferry__transfer_end(ferry_loop *loop, ferry__transfer *t,
                         ferry__fault fault) {
  t->fault = fault;
  switch (t->state) {
  case FERRY__WAITING:
    ferry__dequeue(loop, t);
    break;
  case FERRY__RESOLVING:
    ferry__fifo_remove(&t->asked->resolving, t);
    ferry__count(&loop->counters.resolving, -1);
    ferry__leave(loop, t->host);
    break;
  case FERRY__RUNNING:
    if (t->handle) {
      ferry__look_at_phase(t);
      leave_libcurl(loop, t);
      settle(loop, t);
      return;
    }
    unlink_running(loop, t);
    ferry__leave(loop, t->host);
    break;
  case FERRY__DRAINING:
    settle(loop, t);
    return;
  }
  ferry__finish(loop, t);
}
