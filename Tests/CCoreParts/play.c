/* play.c - plays a program with the native engine and its server. */
#include "peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
  TRANSFERS = 6,
  CONNECTIONS = 24,
  MOST_MS = 10000,
  MOST_RECEIVED = 1 << 22,
  LARGE = 300000,
};

typedef struct play {
  peer *peer;
  parts_played *out;
  peer_plan plans[TRANSFERS];
  int fds[CONNECTIONS];
  bool stopped[CONNECTIONS];
  unsigned current;
  const char *at, *end;
  bool waits;
} play;

/* ---- Requests ------------------------------------------------------------ */

static char next_byte(play *p) { return p->at < p->end ? *p->at++ : 0; }

static char *field(char *to, const char *name, const char *value) {
  uint32_t lengths[] = {(uint32_t)strlen(name), (uint32_t)strlen(value)};
  memcpy(to, lengths, sizeof lengths);
  return stpcpy(stpcpy(to + sizeof lengths, name), value);
}

/* The letter selects its body; the bits of the digit select other options. */
static void submit(play *p, char letter) {
  static char body[LARGE];
  unsigned bits = (unsigned char)next_byte(p), index = p->out->transfer_count;
  if (index == TRANSFERS)
    return;
  char url[80], headers[128], *end = headers;
  peer_plan *plan = &p->plans[index];
  parts_transfer *t = &p->out->transfers[index];
  ferry_request request = {
      .id = p->peer->before + index + 1, .url = url,
      .flags = bits & 1 ? FERRY_IDEMPOTENT : 0, .max_head = 4096,
      .deadline_ms = bits & 8 ? 5 : 200, .max_body = 100000,
      .headers = headers};
  size_t size = bits & 128 ? LARGE : 40;
  bool posts = letter == 'P' || letter == 'L' || letter == 'U';
  t->method = posts ? "POST" : letter == 'H' ? "HEAD" : "GET";
  t->repeatable = bits & 1;
  t->expects = posts && (bits & 2);
  if (t->expects)
    end = field(end, "Expect", "100-continue");
  if (bits & 4)
    end = field(end, "Connection", "close");
  t->closes = bits & 4;
  if (letter == 'P') {
    if (!body[0])
      for (size_t i = 0; i < LARGE; i++)
        body[i] = peer_byte(i);
    request.body = body;
    request.body_kind = FERRY_BODY_BYTES;
    request.body_length = size;
  } else if (posts) {
    request.body_kind = FERRY_BODY_PULL;
    request.body_length = letter == 'L' ? size : FERRY_UNKNOWN_LENGTH;
    plan->total = size;
    plan->piece = size / 3 + 1;
    plan->source_pauses = bits & 64;
  }
  plan->streams = letter == 'F' || letter == 'S' || letter == 'L';
  plan->receiver_pauses = letter != 'F'; /* if it streams */
  request.response_kind = plan->streams ? FERRY_STREAM : FERRY_COLLECT;
  request.method = t->method;
  request.method_length = strlen(t->method);
  request.headers_length = (size_t)(end - headers);
  request.url_length = (size_t)snprintf(url, sizeof url, "%s/%u",
                                        p->peer->origin, index);
  pthread_mutex_lock(&p->peer->lock);
  p->peer->count = ++p->out->transfer_count;
  pthread_mutex_unlock(&p->peer->lock);
  if (ferry_submit(p->peer->loop, &request, NULL))
    abort();
}

static void resume(play *p) {
  for (unsigned i = 1; i <= p->out->transfer_count; i++)
    ferry_resume(p->peer->loop, p->peer->before + i);
}

/* ---- Connections --------------------------------------------------------- */

static void receive(play *p, unsigned index) {
  parts_connection *c = &p->out->connections[index];
  char bytes[16384];
  ssize_t n;
  while (p->fds[index] >= 0 && c->received_length < MOST_RECEIVED &&
         (n = recv(p->fds[index], bytes, sizeof bytes, 0)) > 0)
    peer_append(&c->received, &c->received_length, bytes, (size_t)n);
}

static void turn(play *p, unsigned times) {
  while (times--) {
    peer_turn(p->peer);
    int fd;
    while ((fd = peer_accept(p->peer)) >= 0) {
      if (p->out->connection_count == CONNECTIONS) {
        p->out->crowded = true;
        peer_reset(fd);
        continue;
      }
      p->current = p->out->connection_count++;
      p->fds[p->current] = fd;
    }
    for (unsigned i = 0; i < p->out->connection_count; i++)
      if (!p->stopped[i])
        receive(p, i);
  }
}

static void finish(play *p, unsigned index, bool reset) {
  if (p->fds[index] < 0)
    return;
  receive(p, index);
  if (reset)
    peer_reset(p->fds[index]);
  else
    close(p->fds[index]);
  p->fds[index] = -1;
}

static int current(play *p) {
  if (!p->out->connection_count)
    turn(p, 2);
  return p->out->connection_count ? p->fds[p->current] : -1;
}

static void give(play *p, const char *bytes, size_t length) {
  int fd = current(p);
  ssize_t n = fd < 0 ? -1 : send(fd, bytes, length, MSG_NOSIGNAL);
  parts_connection *c = &p->out->connections[p->current];
  if (n > 0)
    peer_append(&c->sent, &c->sent_length, bytes, (size_t)n);
}

/* ---- The program --------------------------------------------------------- */

static const char *const whole[] = {
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 204 No Content\r\n\r\n",
    ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
     "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"),
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\n\r\n",
    "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy",
};

static void send_line(play *p) {
  const char *lf = memchr(p->at, '\n', (size_t)(p->end - p->at));
  const char *from = p->at;
  p->at = lf ? lf + 1 : p->end;
  give(p, from, (size_t)(p->at - from));
}

static void send_bytes(play *p) {
  size_t length = (unsigned char)next_byte(p) & 63;
  const char *from = p->at;
  if (length > (size_t)(p->end - from))
    length = (size_t)(p->end - from);
  p->at += length;
  give(p, from, length);
}

static void step(play *p) {
  char letter = *p->at++;
  int fd;
  switch (letter) {
  case 'G': case 'H': case 'F': case 'S':
  case 'P': case 'L': case 'U':
    submit(p, letter);
    break;
  case 'a':
    turn(p, 2);
    break;
  case 'l':
    send_line(p);
    break;
  case 'n':
    send_bytes(p);
    break;
  case 'w': {
    const char *bytes = whole[next_byte(p) & 7];
    give(p, bytes, strlen(bytes));
    break;
  }
  case 'r':
    resume(p);
    break;
  case 'k':
    if (p->out->transfer_count)
      ferry_cancel(p->peer->loop, p->peer->before + 1 +
                                      (unsigned char)next_byte(p) %
                                          p->out->transfer_count);
    break;
  case 'p':
    if (p->out->transfer_count)
      ferry_pause(p->peer->loop, p->peer->before + 1 +
                                     (unsigned char)next_byte(p) %
                                         p->out->transfer_count);
    break;
  case 'h':
    if ((fd = current(p)) >= 0)
      shutdown(fd, SHUT_WR);
    break;
  case 'c': case 'x':
    if (current(p) >= 0) {
      p->out->connections[p->current].reset = letter == 'x';
      finish(p, p->current, letter == 'x');
    }
    break;
  case 'q':
    if (current(p) >= 0)
      p->stopped[p->current] ^= true;
    break;
  case 'z':
    p->waits = true;
    break;
  default:
    if (letter >= '0' && letter <= '9' &&
        (unsigned)(letter - '0') < p->out->connection_count)
      p->current = (unsigned)(letter - '0');
  }
}

/* The server closes: transfers that are still running end. */
static void end(play *p) {
  unsigned most = MOST_MS;
  turn(p, 2);
  if (p->waits)
    peer_wait(p->peer, 20);
  for (unsigned i = 0; i < p->out->connection_count; i++)
    if (p->fds[i] >= 0)
      shutdown(p->fds[i], SHUT_WR);
  for (;;) {
    ferry_statistics figures;
    resume(p);
    turn(p, 2);
    for (unsigned i = 0; i < p->out->connection_count; i++)
      finish(p, i, true);
    turn(p, 1);
    ferry_loop_statistics(p->peer->loop, &figures);
    p->out->running = peer_running(p->peer);
    p->out->left_transfers = figures.running + figures.waiting;
    p->out->left_sockets = figures.sockets;
    if (!(p->out->running | p->out->left_transfers | p->out->left_sockets) ||
        !most--)
      break;
    if (most < MOST_MS - 20)
      usleep(1000);
  }
}

static peer the_peer;
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

void parts_play(parts_played *out, const char *bytes, size_t length) {
  play p = {.peer = &the_peer, .out = out, .at = bytes, .end = bytes + length};
  *out = (parts_played){0};
  out->transfers = calloc(TRANSFERS, sizeof *out->transfers);
  out->connections = calloc(CONNECTIONS, sizeof *out->connections);
  if (!out->transfers || !out->connections)
    abort();
  pthread_mutex_lock(&one);
  if (!the_peer.loop)
    peer_open(&the_peer, FERRY_ENGINE_HTTP1, 2);
  peer_watch(&the_peer, out->transfers, p.plans);
  while (p.at < p.end)
    step(&p);
  end(&p);
  out->strays = the_peer.strays;
  peer_watch(&the_peer, NULL, NULL);
  pthread_mutex_unlock(&one);
}

size_t parts_as_pulled(const char *bytes, size_t length, size_t at) {
  size_t n = 0;
  while (n < length && bytes[n] == peer_byte(at + n))
    n++;
  return n;
}

void parts_played_free(parts_played *played) {
  for (unsigned i = 0; i < TRANSFERS; i++)
    peer_free_transfer(&played->transfers[i]);
  for (unsigned i = 0; i < CONNECTIONS; i++) {
    free(played->connections[i].sent);
    free(played->connections[i].received);
  }
  free(played->transfers);
  free(played->connections);
}
