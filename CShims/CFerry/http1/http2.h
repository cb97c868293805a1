/* http2.h - exchanges over HTTP/2, on the native engine's connections. */
#ifndef FERRY_HTTP1_HTTP2_H
#define FERRY_HTTP1_HTTP2_H

#include "http1/http1.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>

struct ferry__http2 {
  nghttp2_session *session;
  int32_t stream; /* of the exchange */
  uint32_t code;  /* with which its stream was closed */
  bool closed;    /* the stream */
  bool ended;     /* the response is complete */
  bool refused;   /* the server has refused the expectation (417) */
  bool moved;     /* the frames to send have bytes of the request */
  bool received;  /* the server has read the whole request */
  uint64_t last;  /* the last 8 bytes that have arrived */
  ferry__fault fault; /* noted by a callback */
};

/* Takes note of a fault, unless there is an earlier one. */
void ferry__http2_note(ferry__http2 *http2, ferry__fault fault);
/* The transfer, if the stream is its own; otherwise NULL. */
static inline ferry__transfer *
ferry__http2_transfer(const ferry__connection *c, int32_t stream) {
  return c->http2->stream == stream ? c->transfer : NULL;
}

/* [http2_response.c] Creates the session. Returns 0, or a code of nghttp2. */
int ferry__http2_make_session(ferry__connection *connection,
                              ferry__http2 *http2);
/* [http2_response.c] Gives the held bytes to the receiver, as far as it takes
 * them. Returns false if it has noted a fault. */
bool ferry__http2_deliver_held(ferry__connection *connection);
/* [http2_request.c] Submits the request. Returns the number of its stream, or a
 * negative code. */
int32_t ferry__http2_submit(ferry__connection *connection);
/* [http2_request.c] Writes as many frames as the buffer has room for
 * (FERRY__HTTP1_BUFFER). Returns their length, or a negative code. */
ssize_t ferry__http2_compose(ferry__http2 *http2, char *buffer);

#endif
