/* engine.c - libcurl as an engine: a transfer goes into a multi handle, and
 * leaves it with a CURLcode. */
#include "curl/libcurl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A request that it cannot carry is refused without a handle, because a handle
 * still has the message and the figures of its last transfer. */
static ferry__fault refuse(const ferry_loop *loop, ferry__transfer *t) {
  char words[512] = "libcurl cannot open connections ahead";
  ferry__fault fault = {FERRY_E_INVALID_REQUEST, FERRY_D_NONE};
  const char *path = t->host->local;
  if (t->flags & FERRY_DUPLEX) {
    /* It cannot tell whether the response is complete before the request is. */
    t->words = strdup("libcurl carries no full duplex exchanges");
    return fault;
  }
  if ((t->flags & FERRY_TRAILERS) && !path &&
      loop->options.http2 == FERRY_HTTP2_PRIOR_KNOWLEDGE) {
    t->words = strdup("libcurl sends no trailers over HTTP/2");
    return fault;
  }
  if (!(t->flags & FERRY_CONNECT)) {
    if (!path || ferry__local_fits(path))
      return (ferry__fault){FERRY_OK, 0};
    fault = (ferry__fault){FERRY_E_CONNECT, FERRY_D_CONNECT_FAILED};
    t->result.os_errno = ENAMETOOLONG;
    snprintf(words, sizeof words, "Failed to connect to %s: %s", path,
             strerror(ENAMETOOLONG));
  }
  t->words = strdup(words);
  return fault;
}

/* Hands the transfer to libcurl. code 0 = done. */
static ferry__fault start(ferry_loop *loop, ferry__transfer *t) {
  ferry__origin_served(t); /* libcurl does not report when it has a
                            * connection */
  ferry__fault fault = refuse(loop, t);
  if (fault.code)
    return fault;
  ferry__shard *shard = ferry__shard_for(loop, t);
  ferry__handle *handle = shard ? ferry__handle_take(loop, shard) : NULL;
  t->handle = handle;
  if (!handle)
    return (ferry__fault){FERRY_E_MEMORY, 0};
  t->curl.lease = ++loop->curl->leases;
  shard->running++;
  bool before = loop->starved;
  loop->starved = false;
  if (!ferry__handle_prepare(handle, t) ||
      curl_multi_add_handle(shard->multi, handle->easy))
    return (ferry__fault){
        loop->starved ? FERRY_E_MEMORY : FERRY_E_INTERNAL, 0};
  loop->starved |= before;
  ferry__shard_touch(shard);
  return (ferry__fault){FERRY_OK, 0};
}

/* Takes the transfer out of libcurl; its handle is kept for the figures. */
static void leave(ferry_loop *loop, ferry__transfer *t) {
  ferry__shard *shard = t->handle->shard;
  curl_multi_remove_handle(shard->multi, t->handle->easy);
  shard->running--;
  if (shard->index < loop->curl->first_free)
    loop->curl->first_free = shard->index;
  if (!shard->running) {
    shard->idle_since = ferry__now(loop);
    ferry__arm(loop, shard->idle_since + loop->options.idle_ms);
  }
  ferry__shard_touch(shard);
}

/* If libcurl has paused receiving, it stays so: resuming an upload must not
 * release a response that is held. */
static void go_on(ferry_loop *loop, ferry__transfer *t) {
  /* What libcurl held is delivered to our callbacks in this call. If they
   * refuse it, or libcurl itself does (a trailer without a colon), only this
   * call reports it, and libcurl would continue without those bytes. */
  bool withheld = t->curl.withheld && !t->paused;
  if (withheld)
    t->curl.withheld = false;
  CURLcode code = curl_easy_pause(
      t->handle->easy, t->curl.withheld ? CURLPAUSE_RECV : CURLPAUSE_CONT);
  if (t->fault.code) {
    ferry__transfer_end(loop, t, t->fault);
    return;
  }
  /* If there is a message, it had failed before, and the message can be
   * read. */
  if (code && withheld && !t->handle->words[0]) {
    ferry__transfer_completed(loop, t, code);
    return;
  }
  t->handle->shard->due = 1; /* 7.88.1 may not set its timer itself */
  ferry__shard_touch(t->handle->shard);
}

/* What was kept of a paused response is delivered first. */
static void resume(ferry_loop *loop, ferry__transfer *t) {
  if (t->curl.kept) {
    if (!ferry__kept_drain(loop, t)) {
      ferry__transfer_end(loop, t, t->fault);
      return;
    }
    if (t->curl.kept || (t->decoder && t->decoder->held))
      return; /* paused again, and the source is not asked */
  }
  ferry__source_ready(t);
  if (t->state == FERRY__RUNNING)
    go_on(loop, t);
  else
    ferry__transfer_completed(loop, t, CURLE_OK);
}

/* ---- The end ------------------------------------------------------------- */

static void give_handle(ferry__transfer *t) {
  /* A handle that has handled challenges is not kept, either. */
  bool healthy = !t->fault.code && t->handle->attempts <= 1 &&
                 !t->curl.late && t->source != FERRY__SOURCE_LEFT &&
                 !t->host->local &&
                 !(t->extras &&
                   (t->extras->schemes || t->extras->proxy_schemes));
  ferry__handle_give(t->handle, healthy);
  t->handle = NULL;
  t->head = ferry__no_head;
}

/* Nothing of it was sent or processed: start again with another handle. */
static void begin_again(ferry_loop *loop, ferry__transfer *t) {
  leave(loop, t);
  t->earlier = (uint8_t)(t->earlier + t->handle->attempts);
  t->curl.reached |= t->handle->reached && !t->curl.untouched;
  ferry__handle_give(t->handle, false);
  t->handle = NULL;
  t->head = ferry__no_head;
  t->curl.again = t->curl.untouched = t->curl.ended = false;
  t->curl.unwatched = 0;
  if (t->source == FERRY__SOURCE_PAUSED && !t->pulled) /* it is asked again */
    t->source = FERRY__SOURCE_READY;
  free(t->curl.late); /* of the connection that it leaves */
  t->curl.late = NULL;
  ferry__connects_again(loop, t);
  ferry__fault fault = start(loop, t);
  if (fault.code)
    ferry__transfer_end(loop, t, fault);
}

/* The next byte is the first one of a head. */
static bool is_between_heads(const ferry__head *head) {
  return !head->in_fields && !head->complete;
}

void ferry__transfer_completed(ferry_loop *loop, ferry__transfer *t,
                               CURLcode code) {
  if (t->curl.untouched && code && !t->fault.code && !t->pulled &&
      !t->head->received && ferry__may_attempt(t))
    t->curl.again = t->fresh = true;
  if (t->curl.again && code && !t->fault.code) {
    begin_again(loop, t);
    return;
  }
  bool running = t->state == FERRY__RUNNING;
  /* What happens to the rest of the request no longer affects the response. */
  if (code == CURLE_SEND_ERROR && !t->fault.code && ferry__is_answered(t)) {
    code = CURLE_OK;
    t->source = FERRY__SOURCE_LEFT;
    ferry__check_length(t);
  }
  if (code == CURLE_SEND_ERROR && t->curl.late && !t->fault.code &&
      is_between_heads(t->head) && ferry__late_answer(t))
    code = CURLE_OK;
  if (code == CURLE_SEND_ERROR && running && !t->fault.code &&
      ferry__may_repeat(t))
    t->curl.again = t->fresh = true;
  if (t->curl.again && code && !t->fault.code) { /* also after a late 417 */
    begin_again(loop, t);
    return;
  }
  /* libcurl knows only that a callback refused, as ferry__on_open() does. */
  if (t->fault.code)
    t->handle->words[0] = 0;
  if (!code)
    t->handle->words[0] = 0; /* a reset after a response is not its cause */
  t->result.curl_code = (int32_t)code;
  if (running)
    leave(loop, t);
  if (code && !t->fault.code) {
    long os_errno = 0;
    curl_easy_getinfo(t->handle->easy, CURLINFO_OS_ERRNO, &os_errno);
    t->result.os_errno = (int32_t)os_errno;
    t->fault = ferry__fault_of(t, code, t->handle->words);
    if (t->fault.code == FERRY_E_TLS &&
        t->fault.detail != FERRY_D_TLS_CONFIGURATION)
      t->phase = FERRY_PHASE_TLS; /* its socket is closed already */
    if (t->fault.code == FERRY_E_ADDRESS_FORBIDDEN)
      t->handle->words[0] = 0; /* «could not connect» is not the reason */
    else if (code == CURLE_COULDNT_CONNECT && ferry__local(loop, t->host))
      snprintf(t->handle->words, sizeof t->handle->words,
               "Failed to connect to %s: %s", ferry__local(loop, t->host),
               strerror((int)os_errno));
  }
  if (t->phase == FERRY_PHASE_SEND)
    ferry__look_at_phase(t);
  if (!t->fault.code && t->curl.head_held)
    ferry__take_head(loop, t);
  /* libcurl accepts a head that ends with its connection. */
  if (!t->fault.code && !t->head->complete)
    t->fault = (ferry__fault){FERRY_E_CONNECTION_CLOSED, 0};
  if (!t->fault.code && (t->result.flags & FERRY_RESULT_CLOSE_FRAMED) &&
      t->host->secure && !t->curl.close_notified)
    t->fault = (ferry__fault){FERRY_E_INCOMPLETE_BODY, 0};
  if (!t->fault.code && t->curl.kept) {
    t->state = FERRY__DRAINING;
    return;
  }
  ferry__transfer_left(loop, t, t->fault);
}

/* ---- The engine ---------------------------------------------------------- */

static void abandon(ferry_loop *loop, ferry__transfer *t) {
  if (!t->handle) /* no handle could be made */
    return;
  ferry__look_at_phase(t);
  leave(loop, t);
}

static uint64_t sent(const ferry__transfer *t) {
  curl_off_t bytes = 0;
  if (t->handle)
    curl_easy_getinfo(t->handle->easy, CURLINFO_SIZE_UPLOAD_T, &bytes);
  return (uint64_t)bytes;
}


/* No event of the socket would arrive: the transfer would only end by one of
 * its limits, and would blame a slow server. */
static ferry__fault unwatched(ferry__transfer *t) {
  t->result.os_errno = t->curl.unwatched;
  return t->phase < FERRY_PHASE_SEND
             ? (ferry__fault){FERRY_E_CONNECT, FERRY_D_CONNECT_FAILED}
             : (ferry__fault){FERRY_E_INTERNAL, 0};
}

static uint64_t look(ferry_loop *loop, ferry__transfer *t,
                     ferry__fault *fault) {
  (void)loop;
  if (t->curl.unwatched && t->state == FERRY__RUNNING) {
    *fault = unwatched(t);
    return 0;
  }
  ferry__look_at_phase(t);
  if (t->curl.nudged)
    ferry__nudge(t);
  return 0;
}

static void figures(ferry_loop *loop, ferry__transfer *t) {
  if (t->fault.code && t->handle && t->handle->words[0])
    t->words = strdup(t->handle->words);
  ferry__read_figures(t);
  if (t->result.flags & FERRY_RESULT_REUSED)
    ferry__count(&t->host->figures.reused, 1);
  ferry__jar_check(loop, t);
}

static void release(ferry_loop *loop, ferry__transfer *t) {
  (void)loop;
  if (t->handle)
    give_handle(t);
  ferry__chunks_forget(t);
  free(t->curl.late);
  free(t->curl.kept);
  free(t->curl.cookie);
  t->curl.late = t->curl.kept = t->curl.cookie = NULL;
}

const ferry__engine ferry__curl_engine = {
    .name = FERRY_ENGINE_LIBCURL,
    .start = start,
    .abandon = abandon,
    .resume = resume,
    .resume_sending = go_on,
    .sent = sent,
    .look = look,
    .is_answered = ferry__is_answered,
    .leave_unsent = ferry__leave_unsent,
    .so_far = ferry__read_so_far,
    .figures = figures,
    .release = release,
};
