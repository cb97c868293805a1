/* engine.c - which transfers the native engine carries, and how a transfer
 * reaches its connection. */
#include "http1/http1.h"

#include <stdlib.h>

/* libcurl does what this engine does not: HTTP/2 except for exchanges, requests
 * through a forward proxy, challenges, and cookie jars. */
bool ferry__http1_carries(const ferry_loop *loop, const ferry__transfer *t) {
  const ferry_options *o = &loop->options;
  const ferry__extras *x = t->extras;
  if (o->engine != FERRY_ENGINE_HTTP1)
    return false;
  /* Neither applies to a local socket. */
  if (!t->host->local &&
      (o->jar ||
       (o->http2 == FERRY_HTTP2_PRIOR_KNOWLEDGE &&
        !(t->flags & FERRY_DUPLEX)) ||
       (o->http2 == FERRY_HTTP2_NEGOTIATED && t->host->secure &&
        !(t->flags & (FERRY_TRAILERS | FERRY_DUPLEX)))))
    return false;
  if (!x)
    return true;
  return !x->schemes && !x->proxy_schemes &&
         (!x->proxy || x->proxy_kind != FERRY_PROXY_HTTP || t->host->secure);
}

/* ---- Heads --------------------------------------------------------------- */

bool ferry__head_take(ferry_loop *loop, ferry__transfer *t) {
  ferry__http1 *http1 = loop->http1;
  ferry__head *head = http1->head_count ? http1->heads[--http1->head_count]
                                        : calloc(1, sizeof *head);
  if (!head)
    return false;
  ferry__head_begin(head, t->max_head);
  t->head = head;
  return true;
}

void ferry__head_give(ferry_loop *loop, ferry__transfer *t) {
  ferry__http1 *http1 = loop->http1;
  ferry__head *head = t->head;
  t->head = ferry__no_head;
  if (head == ferry__no_head)
    return;
  if (http1->head_count < FERRY__SPARE_HEADS && head->capacity <= 16384 &&
      head->aside_capacity <= 16384) {
    http1->heads[http1->head_count++] = head;
    return;
  }
  ferry__head_free(head);
  free(head);
}

/* ---- The engine ---------------------------------------------------------- */

/* Its connection is closed: bytes that come on it would belong to no
 * transfer. */
static void abandon(ferry_loop *loop, ferry__transfer *t) {
  ferry__connection *c = t->connection;
  (void)loop;
  ferry__origin_served(t);
  if (!c)
    return;
  c->why = t->fault.code == FERRY_E_SHUTDOWN ? FERRY_CLOSED_SHUTDOWN
                                             : FERRY_CLOSED_CANCELLED;
  if (t->fault.code == FERRY_E_TIMEOUT)
    ferry__connection_is_silent(c, t->fault);
  ferry__exchange_so_far(t, &t->result);
  c->transfer = NULL;
  t->connection = NULL;
  ferry__connection_close(c);
}

static void resume(ferry_loop *loop, ferry__transfer *t) {
  if (t->state == FERRY__DRAINING)
    ferry__transfer_left(loop, t, (ferry__fault){FERRY_OK, 0});
  else if (t->connection)
    ferry__exchange_resume(t->connection);
}

static void resume_sending(ferry_loop *loop, ferry__transfer *t) {
  (void)loop;
  if (t->connection)
    ferry__exchange_resume_sending(t->connection);
}

static uint64_t sent(const ferry__transfer *t) {
  const ferry__connection *c = t->connection;
  if (c && c->http2)
    return c->body_at;
  return c && c->sent > c->head_size ? c->sent - c->head_size : 0;
}

static uint64_t look(ferry_loop *loop, ferry__transfer *t,
                     ferry__fault *fault) {
  if (!t->connection)
    return 0;
  if (t->connection->watch_errno) { /* its events would be lost */
    t->result.os_errno = t->connection->watch_errno;
    *fault = (ferry__fault){FERRY_E_INTERNAL, 0};
    return 0;
  }
  return ferry__exchange_look(t->connection, ferry__now(loop));
}

static bool is_answered(const ferry__transfer *t) {
  return t->receiving >= FERRY__RECEIVE_COMPLETE;
}

/* All figures were set when the exchange ended. */
static void figures(ferry_loop *loop, ferry__transfer *t) {
  (void)loop, (void)t;
}

static void leave_unsent(ferry_loop *loop, ferry__transfer *t) {
  (void)loop;
  ferry__exchange_leave_unsent(t->connection);
}

const ferry__engine ferry__http1_engine = {
    .name = FERRY_ENGINE_HTTP1,
    .start = ferry__route_start,
    .abandon = abandon,
    .resume = resume,
    .resume_sending = resume_sending,
    .sent = sent,
    .look = look,
    .is_answered = is_answered,
    .leave_unsent = leave_unsent,
    .so_far = ferry__exchange_so_far,
    .figures = figures,
    .release = ferry__head_give,
};

void ferry__http1_close(ferry_loop *loop) {
  ferry__http1 *http1 = loop->http1;
  for (ferry__host *host = loop->hosts->oldest; host; host = host->newer)
    ferry__routes_close(host, true);
  SSL_CTX_free(http1->tls);
  http1->tls = NULL;
  while (http1->head_count) {
    ferry__head *head = http1->heads[--http1->head_count];
    ferry__head_free(head);
    free(head);
  }
  free(http1->buffer);
  http1->buffer = NULL;
}
