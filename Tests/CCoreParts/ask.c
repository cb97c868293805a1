/* ask.c - one response, as each engine receives it from a connection. */
#include "peer.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_MS = 10000, STEP_MS = 10, PIECES = 16, TURNS = 2 };

static uint64_t draw(uint64_t *chance) {
  *chance = *chance * 6364136223846793005u + 1442695040888963407u;
  return *chance >> 33;
}

/* The connection with its request; -1 = none arrived, or the transfer has ended
 * without one. */
static int take_request(peer *p) {
  struct pollfd waits = {.fd = p->listener, .events = POLLIN};
  char request[4096];
  size_t length = 0;
  int fd, left = MOST_MS / STEP_MS;
  while (poll(&waits, 1, STEP_MS) <= 0)
    if (!peer_running(p) || !left--)
      return -1;
  if ((fd = peer_accept(p)) < 0)
    return -1;
  waits.fd = fd;
  while (length < sizeof request &&
         !memmem(request, length, "\r\n\r\n", 4)) {
    ssize_t n = poll(&waits, 1, MOST_MS) <= 0
                    ? 0
                    : recv(fd, request + length, sizeof request - length, 0);
    if (n <= 0)
      break;
    length += (size_t)n;
  }
  return fd;
}

static void settle(peer *p, unsigned turns) {
  while (turns--)
    peer_turn(p);
}

/* The engine reads each piece before the next one is sent. */
static void respond(peer *p, int fd, const char *bytes, size_t length,
                    uint64_t chance) {
  for (unsigned i = 1; length; i++) {
    size_t piece = chance && i < PIECES ? 1 + draw(&chance) % 48 : length;
    if (piece > length)
      piece = length;
    if (send(fd, bytes, piece, MSG_NOSIGNAL) < 0)
      return;
    bytes += piece;
    length -= piece;
    settle(p, TURNS);
  }
  settle(p, TURNS);
}

static void ask(peer *p, parts_asked *out, bool to_head, const char *bytes,
                size_t length, uint64_t chance) {
  peer_plan plan = {0};
  ferry_request request = {
      .url = p->origin, .url_length = strlen(p->origin),
      .method = to_head ? "HEAD" : "GET", .method_length = to_head ? 4 : 3,
      .deadline_ms = MOST_MS, .max_head = 4096};
  char byte;
  peer_watch(p, &out->transfer, &plan);
  request.id = p->before + 1;
  pthread_mutex_lock(&p->lock);
  p->count = 1;
  pthread_mutex_unlock(&p->lock);
  if (ferry_submit(p->loop, &request, NULL))
    abort();
  int fd = take_request(p);
  if (fd >= 0) {
    respond(p, fd, bytes, length, chance);
    out->early = !peer_running(p);
    out->kept = recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
    shutdown(fd, SHUT_WR);
  }
  out->overdue = !peer_wait(p, MOST_MS * 2);
  if (fd >= 0)
    peer_reset(fd);
  settle(p, TURNS);
  peer_watch(p, NULL, NULL);
}

static peer native, libcurl;
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

void parts_ask(parts_asked *out, int engine, bool to_head, const char *bytes,
               size_t length, uint64_t chance) {
  peer *p = engine == FERRY_ENGINE_HTTP1 ? &native : &libcurl;
  *out = (parts_asked){0};
  pthread_mutex_lock(&one);
  if (!p->loop)
    peer_open(p, engine, 0);
  ask(p, out, to_head, bytes, length, chance);
  pthread_mutex_unlock(&one);
}

void parts_asked_free(parts_asked *asked) {
  peer_free_transfer(&asked->transfer);
}
