/* engine.h - the native engine, as the loop sees it. */
#ifndef FERRY_HTTP1_ENGINE_H
#define FERRY_HTTP1_ENGINE_H

#include "connection/host.h"

enum { FERRY__SPARE_HEADS = 64 };

/* Identifies the contents of a file. */
typedef struct ferry__file_mark {
  uint64_t device, inode, size, changed_ns;
} ferry__file_mark;

struct ferry__http1 {
  ferry__connection *oldest, *newest; /* idle */
  ferry__connection *dialing, *dialing_last;
  unsigned idle_count;
  char *buffer;   /* for receiving, and for composing requests */
  struct ssl_ctx_st *tls; /* made on first use */
  ferry__file_mark trust[3]; /* of the files that `tls` was made from, or failed
                              * with */
  uint64_t trust_at;         /* ms: when they were last checked */
  ferry__head *heads[FERRY__SPARE_HEADS]; /* spare ones, which keep their
                                           * memory */
  unsigned head_count;
};

/* Whether the native engine can carry the transfer. */
bool ferry__http1_carries(const ferry_loop *loop,
                          const ferry__transfer *transfer);
extern const ferry__engine ferry__http1_engine;
/* Closes connections that were idle for too long, and continues dialing.
 * Returns when to look again, 0 = never. */
uint64_t ferry__http1_look(ferry_loop *loop, uint64_t now);
void ferry__http1_close(ferry_loop *loop);
/* Closes the connections of a host, including those being dialed (routes.c).
 * None of them may be busy. Called at the end of the loop, or to make room. */
void ferry__routes_close(ferry__host *host, bool is_end);

#endif
