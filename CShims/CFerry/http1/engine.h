/* engine.h - the native HTTP/1.1 engine, as the loop sees it. */
#ifndef FERRY_HTTP1_ENGINE_H
#define FERRY_HTTP1_ENGINE_H

#include "connection/host.h"

enum { FERRY__SPARE_HEADS = 64 };

/* Which contents a file has. */
typedef struct ferry__file_mark {
  uint64_t device, inode, size, changed_ns;
} ferry__file_mark;

typedef struct ferry__http1 {
  ferry__connection *oldest, *newest; /* idle */
  ferry__connection *dialing, *dialing_last;
  unsigned idle_count;
  uint64_t turn;  /* one more each time the loop goes to wait */
  uint64_t read_ns; /* before the sockets of this turn were read */
  char *buffer;   /* to receive into, and to compose requests in */
  struct ssl_ctx_st *tls; /* made when first used */
  ferry__file_mark trust[3]; /* the files that it was made of, or was not */
  uint64_t trust_at;         /* ms: when they were looked at */
  ferry__head *heads[FERRY__SPARE_HEADS]; /* spare ones, with their memory */
  unsigned head_count;
} ferry__http1;

/* Whether the native engine carries it. */
bool ferry__http1_carries(const ferry_loop *loop,
                          const ferry__transfer *transfer);
extern const ferry__engine ferry__http1_engine;
/* Closes what has been idle for too long, and goes on dialing; returns when to
 * look again, 0 = no need to. */
uint64_t ferry__http1_look(ferry_loop *loop, uint64_t now);
void ferry__http1_close(ferry_loop *loop);
/* The connections of a host, those that are dialed too (route.c); none of them
 * may be at work. At the end of the loop, or to make room. */
void ferry__routes_close(ferry__host *host, bool is_end);

#endif
