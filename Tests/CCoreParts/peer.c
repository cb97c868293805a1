/* peer.c - see peer.h. */
#include "peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

char peer_byte(size_t at) { return (char)('a' + at % 23); }

void peer_append(char **bytes, size_t *length, const void *more,
                 size_t count) {
  if (!count)
    return;
  *bytes = realloc(*bytes, *length + count);
  if (!*bytes)
    abort();
  memcpy(*bytes + *length, more, count);
  *length += count;
}

/* ---- Callbacks ----------------------------------------------------------- */

/* -1: it belongs to no transfer of this program. */
static int64_t index_of(peer *p, uint64_t id) {
  if (id > p->before && id <= p->before + p->count)
    return (int64_t)(id - p->before - 1);
  p->strays++;
  return -1;
}

static void note(peer *p, int64_t index, const ferry_result *r) {
  parts_transfer *t = &p->transfers[index];
  p->finished += !t->finished++;
  t->code = r->code;
  t->detail = r->detail;
  t->phase = r->phase;
  t->status = r->status;
  t->version = r->http_version;
  t->attempts = r->attempts;
  t->flags = r->flags;
  t->content_length = r->content_length;
  t->counted = r->body_length;
  t->fields = r->field_count;
  peer_append(&t->head, &t->head_length, r->head, r->head_length);
  peer_append(&t->aside, &t->aside_length, r->informational,
              r->informational_length);
  peer_append(&t->aside, &t->aside_length, r->trailers, r->trailers_length);
  if (!p->plans[index].streams && r->body)
    peer_append(&t->body, &t->body_length, r->body, r->body_length);
}

static void on_finished(void *context, ferry_result *first, size_t count) {
  peer *p = context;
  (void)count;
  pthread_mutex_lock(&p->lock);
  while (first) {
    ferry_result *r = first;
    first = r->next;
    int64_t index = index_of(p, r->id);
    if (index >= 0)
      note(p, index, r);
    ferry_result_free(r);
  }
  pthread_cond_signal(&p->changed);
  pthread_mutex_unlock(&p->lock);
}

static int on_body(void *context, uint64_t id, const void *bytes,
                   size_t length) {
  peer *p = context;
  int answer = FERRY_CONTINUE;
  pthread_mutex_lock(&p->lock);
  int64_t index = index_of(p, id);
  if (index >= 0) {
    parts_transfer *t = &p->transfers[index];
    p->strays += t->finished; /* nothing may come after the result */
    peer_append(&t->body, &t->body_length, bytes, length);
    if (p->plans[index].receiver_pauses && ++p->plans[index].pieces % 2)
      answer = FERRY_PAUSE;
  }
  pthread_mutex_unlock(&p->lock);
  return answer;
}

static int64_t pull(peer_plan *plan, char *space, size_t size) {
  size_t left = plan->total - plan->pulled;
  size_t n = plan->piece < left ? plan->piece : left;
  if (plan->source_pauses && ++plan->pulls % 2)
    return FERRY_PAUSE;
  if (n > size)
    n = size;
  for (size_t i = 0; i < n; i++)
    space[i] = peer_byte(plan->pulled + i);
  plan->pulled += n;
  return (int64_t)n;
}

static int64_t on_pull(void *context, uint64_t id, void *space, size_t size) {
  peer *p = context;
  pthread_mutex_lock(&p->lock);
  int64_t index = index_of(p, id);
  int64_t n = index < 0 ? FERRY_ABORT : pull(&p->plans[index], space, size);
  pthread_mutex_unlock(&p->lock);
  return n;
}

static void on_call(void *context) {
  peer *p = context;
  pthread_mutex_lock(&p->lock);
  p->calls++;
  pthread_cond_signal(&p->changed);
  pthread_mutex_unlock(&p->lock);
}

/* ---- The loop ------------------------------------------------------------ */

static void listen_for(peer *p) {
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  p->listener =
      socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (p->listener < 0 ||
      bind(p->listener, (struct sockaddr *)&address, sizeof address) ||
      listen(p->listener, 128) ||
      getsockname(p->listener, (struct sockaddr *)&address, &size))
    abort();
  snprintf(p->origin, sizeof p->origin, "http://127.0.0.1:%d",
           ntohs(address.sin_port));
}

void peer_open(peer *p, int engine, uint32_t per_host) {
  ferry_options options = {
      .context = p, .on_finished = on_finished, .on_body = on_body,
      .on_pull = on_pull, .on_call = on_call, .max_per_host = per_host,
      .engine = (uint8_t)engine};
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->changed, NULL);
  listen_for(p);
  if (ferry_loop_start(&options, &p->loop))
    abort();
}

void peer_watch(peer *p, parts_transfer *transfers, peer_plan *plans) {
  pthread_mutex_lock(&p->lock);
  p->before += p->count;
  p->count = p->finished = p->strays = 0;
  p->transfers = transfers;
  p->plans = plans;
  pthread_mutex_unlock(&p->lock);
}

static void call(peer *p) {
  pthread_mutex_lock(&p->lock);
  uint64_t calls = p->calls;
  ferry_call(p->loop);
  while (p->calls == calls)
    pthread_cond_wait(&p->changed, &p->lock);
  pthread_mutex_unlock(&p->lock);
}

/* A loop calls back several times between two polls of its sockets, and has a
 * turn before and a turn after each poll. Of four turns the first may have
 * begun earlier; the last two surround a poll that sees the current state. */
void peer_turn(peer *p) {
  ferry_statistics now, then;
  ferry_loop_statistics(p->loop, &then);
  do {
    call(p);
    ferry_loop_statistics(p->loop, &now);
  } while (now.turns < then.turns + 4);
}

unsigned peer_running(peer *p) {
  pthread_mutex_lock(&p->lock);
  unsigned running = p->count - p->finished;
  pthread_mutex_unlock(&p->lock);
  return running;
}

bool peer_wait(peer *p, unsigned milliseconds) {
  struct timespec until;
  int code = 0;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += (long)(milliseconds % 1000) * 1000000;
  until.tv_sec += milliseconds / 1000 + until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_mutex_lock(&p->lock);
  while (p->finished < p->count && !code)
    code = pthread_cond_timedwait(&p->changed, &p->lock, &until);
  bool all = p->finished == p->count;
  pthread_mutex_unlock(&p->lock);
  return all;
}

/* ---- Sockets ------------------------------------------------------------- */

int peer_accept(const peer *p) {
  int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  int on = 1;
  if (fd >= 0)
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

void peer_reset(int fd) {
  struct linger none = {.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  close(fd);
}

void peer_free_transfer(parts_transfer *t) {
  free(t->head);
  free(t->body);
  free(t->aside);
}
