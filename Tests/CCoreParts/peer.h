/* peer.h - a loop, and a server that follows a program, on the program's thread
 * and through a socket of 127.0.0.1. */
#ifndef CCOREPARTS_PEER_H
#define CCOREPARTS_PEER_H

#include "CCoreParts.h"

#include <pthread.h>

/* The plan of a transfer, followed by the peer's callbacks. */
typedef struct peer_plan {
  bool receiver_pauses, source_pauses, streams;
  unsigned pieces, pulls;
  size_t piece, pulled, total;
} peer_plan;

typedef struct peer {
  ferry_loop *loop;
  int listener;
  char origin[40];
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t calls, before; /* before: ids of earlier programs end here */
  parts_transfer *transfers;
  peer_plan *plans;
  unsigned count, finished, strays;
} peer;

/* Starts the loop and listens; any failure ends the process. */
void peer_open(peer *peer, int engine, uint32_t per_host);
/* Sets the transfers from here on; NULL: none. */
void peer_watch(peer *peer, parts_transfer *transfers, peer_plan *plans);
/* Waits until the loop has handled everything that is in its sockets now. */
void peer_turn(peer *peer);
/* Waits until all transfers have ended. Returns false after this time. */
bool peer_wait(peer *peer, unsigned milliseconds);
unsigned peer_running(peer *peer);
/* The byte at this offset of each request's body. */
char peer_byte(size_t at);
/* Accepts the next connection of the queue, -1 = none. */
int peer_accept(const peer *peer);
/* Closes it with a reset, so that nothing of it remains in the system. */
void peer_reset(int fd);
void peer_append(char **bytes, size_t *length, const void *more, size_t count);
void peer_free_transfer(parts_transfer *transfer);

#endif
