/* transfer.h - one transfer: its engine, the body of its response, its options,
 * and its limits. */
#ifndef FERRY_TRANSFER_H
#define FERRY_TRANSFER_H

#include "transfer/head.h"

/* ---- Engines ------------------------------------------------------------- */

/* An engine carries transfers. It reports a head through ferry__head_final and
 * a body through ferry__receive, asks for the request's body with
 * ferry__source_pull, and reports the end with ferry__transfer_left. */
typedef struct ferry__engine {
  uint8_t name; /* FERRY_ENGINE_… */
  /* If it fails at once, the transfer may already have ended. */
  ferry__fault (*start)(ferry_loop *loop, ferry__transfer *transfer);
  /* Ends the transfer at once: reads its figures and closes its connection. */
  void (*abandon)(ferry_loop *loop, ferry__transfer *transfer);
  /* The receiver can take more bytes; also for a DRAINING transfer. */
  void (*resume)(ferry_loop *loop, ferry__transfer *transfer);
  void (*resume_sending)(ferry_loop *loop, ferry__transfer *transfer);
  /* The bytes of the request's body that have been sent. */
  uint64_t (*sent)(const ferry__transfer *transfer);
  /* Handles phases without events, and timed waits. Returns when to look again,
   * 0 = never. Sets *fault if the transfer cannot continue. */
  uint64_t (*look)(ferry_loop *loop, ferry__transfer *transfer,
                   ferry__fault *fault);
  /* Whether the whole response has arrived, as far as its head defines its
   * end. */
  bool (*is_answered)(const ferry__transfer *transfer);
  /* The response is complete; the rest of the request is not sent. */
  void (*leave_unsent)(ferry_loop *loop, ferry__transfer *transfer);
  /* Writes the figures so far to a result. */
  void (*so_far)(const ferry__transfer *transfer, ferry_result *result);
  /* At the end: `figures` reads the figures. When the result is packed,
   * `release` frees what the engine holds for the transfer. */
  void (*figures)(ferry_loop *loop, ferry__transfer *transfer);
  void (*release)(ferry_loop *loop, ferry__transfer *transfer);
} ferry__engine;

/* ---- Transfers (transfer.c, request.c, body.c) --------------------------- */

enum ferry__state {
  FERRY__NEW,
  FERRY__WAITING,   /* in a queue of the loop or of its host */
  FERRY__RESOLVING, /* admitted, waits for a name */
  FERRY__RUNNING,
  FERRY__DRAINING, /* libcurl is done, the receiver is not */
  FERRY__WRITING,  /* settled, but its sink still writes */
  FERRY__DONE,
};

typedef struct ferry__fifo {
  ferry__transfer *head, *tail;
} ferry__fifo;

/* How long the reply to the PING behind a request is awaited (http2.c). */
enum { FERRY__PING_MS = 3000 };

/* How much of the response has arrived. */
enum ferry__receive_state {
  FERRY__RECEIVE_HEAD,     /* or nothing yet */
  FERRY__RECEIVE_BODY,     /* the final head is complete */
  FERRY__RECEIVE_COMPLETE, /* while the request is still being sent */
  FERRY__RECEIVE_PING,     /* both are complete; the reply to the PING behind
                            * the request is awaited (http2.c) */
};

/* The reasons why no bytes are delivered, as bits. */
enum ferry__pause {
  FERRY__PAUSED_BY_RECEIVER = 1,
  FERRY__PAUSED_BY_RATE = 2,
  FERRY__PAUSED_BY_SINK = 4,
  FERRY__PAUSED_BY_TURN = 8, /* it has decoded enough in this turn */
};

/* Whether the rest of the request's body is available and still needed. */
enum ferry__source_state {
  FERRY__SOURCE_READY,
  FERRY__SOURCE_PAUSED, /* it has no bytes at the moment */
  FERRY__SOURCE_DRY,    /* the same, and libcurl must check if it is done */
  FERRY__SOURCE_LEFT,   /* the rest is not sent: the response is complete */
};

/* State that only libcurl's engine needs. */
typedef struct ferry__carried {
  uint64_t lease; /* of a slot in libcurl; each handle has a new one */
  struct ferry__chunks *chunks; /* parser of the chunked response that libcurl
                                 * reads */
  char *late; /* bytes that were in the socket when it was closed */
  char *kept; /* bytes of a paused response whose request is being sent */
  char *cookie; /* the caller's own cookies, in a loop with a jar */
  uint32_t late_length, kept_length, kept_from;
  int unwatched; /* why its socket is not watched: an errno */
  bool close_notified;
  bool last_chunk; /* libcurl has read it */
  bool withheld;  /* libcurl holds bytes of the response */
  bool nudged;    /* libcurl must check whether it is done */
  bool head_held; /* a challenge that libcurl may handle by itself */
  bool forbidden; /* its address was forbidden, so it was not connected */
  bool untouched; /* the server has not processed its stream */
  bool reached;   /* the server may have processed an earlier attempt */
  bool again;     /* nothing was sent: the transfer must start again */
  bool alone; /* a connection in use was offered: its own shares none */
  bool ended; /* the handle has read the end of a body with trailers */
} ferry__carried;

struct ferry__transfer {
  ferry__entry entry; /* must be first: what the loop knows of it */
  ferry_result result; /* passed to the caller as it is */
  ferry__transfer *next, *prev; /* queue, host's list, running list */
  ferry__fifo *fifo;            /* its queue while WAITING */
  uint64_t submitted_ns, started_ns;
  uint64_t submitted_ms, started_ms, last_ms, window_ms;
  uint64_t repeated_ms; /* when it was repeated; 0 = it was not */
  uint64_t window_bytes, uploaded;
  ferry__host *host;
  ferry__host *asked; /* whose name it waits for while RESOLVING */
  const ferry__engine *engine; /* NULL before it starts */
  ferry__handle *handle;         /* of libcurl's engine */
  ferry__connection *connection; /* of the native engine */
  ferry__head *head; /* the handle's, or the transfer's own */
  ferry__extras *extras; /* in the arena; NULL = none */
  const void *body; /* in the arena */
  ferry_piece piece; /* the rest of a pulled piece; 0 bytes = none */
  uint64_t body_length, pulled;
  struct curl_slist *headers; /* in the arena */
  const char *origin, *target, *method; /* in the arena */
  uint32_t origin_length;
  uint32_t connect_ms, idle_ms, total_ms, deadline_ms;
  uint32_t low_speed_bytes, low_speed_ms, max_head;
  uint64_t max_body;
  uint32_t connections; /* for FERRY_CONNECT */
  uint64_t max_rate, pace_ms;
  int64_t budget; /* bytes that may be received now (pace.c) */
  int32_t fd;
  int64_t offset;
  ferry__sink *sink; /* NULL before the first byte for `fd` */
  uint64_t leave_ms; /* when to stop waiting for its write; 0 = never */
  uint32_t flags;
  uint8_t state, priority, body_kind, response_kind, method_kind;
  uint8_t receiving; /* enum ferry__receive_state */
  uint8_t paused;    /* enum ferry__pause */
  uint8_t source;    /* enum ferry__source_state */
  uint8_t earlier;   /* attempts before this one */
  bool chunked;      /* its body is sent in chunks, in every attempt */
  bool expects;      /* it has a body, and an Expect of the caller's */
  bool fresh;        /* the next attempt uses a new connection */
  bool unexpecting;  /* sends no Expect: the server has refused it (417) */
  bool secure;       /* its host is reached over TLS */
  bool pending;      /* it waits for a connection (connection/figures.c) */
  bool told;         /* FERRY_DUPLEX: on_answered was called */
  /* Used while it runs: */
  ferry__fault fault; /* ours, reported in preference to libcurl's */
  int phase;
  char *bytes; /* the body being collected, a block */
  size_t capacity;
  char *packed; /* the result's fields, head and perhaps body, in a block */
  char *words;  /* storage of result.message */
  ferry__decoder *decoder;
  ferry__carried curl;
  char arena[];
};

enum { FERRY__GET, FERRY__HEAD, FERRY__POST, FERRY__OTHER };

/* The end of every list of fields that has no Accept of its own. */
extern struct curl_slist ferry__no_accept;
/* [local.c] The length of the prefix "http+unix://" or "https+unix://" of a
 * URL; 0 if it has none. */
size_t ferry__local_prefix(const char *url, size_t length);
/* Sets *path to the path that an authority names, malloc'ed. Returns FERRY_OK,
 * FERRY_E_INVALID_URL or FERRY_E_MEMORY. */
int ferry__local_path(const char *authority, size_t length, char **path);
/* The reverse: the authority of a path, normalised and malloc'ed; NULL if there
 * is not enough memory. */
char *ferry__local_authority(const char *path);

/* [url.c] To lower case, except the zone of an address: the names of interfaces
 * differ by case. */
void ferry__lower_host(char *text, size_t length);

/* [any thread] Checks and copies a request; *out is NULL if it is refused. */
ferry__fault ferry__transfer_make(const ferry_request *request,
                                  ferry__transfer **out);
/* Starts the transfer on its engine. */
void ferry__transfer_run(ferry_loop *loop, ferry__transfer *transfer,
                         const ferry__engine *engine);
/* Ends a transfer in any state. */
void ferry__transfer_end(ferry_loop *loop, ferry__transfer *transfer,
                         ferry__fault fault);
/* The engine is done: everything has arrived, or `fault` says what failed. */
void ferry__transfer_left(ferry_loop *loop, ferry__transfer *transfer,
                          ferry__fault fault);
/* The receiver can take more bytes. */
void ferry__transfer_resume(ferry_loop *loop, ferry__transfer *transfer);
/* The source is asked again. The engine calls this directly before it does. */
static inline void ferry__source_ready(ferry__transfer *transfer) {
  if (transfer->source != FERRY__SOURCE_LEFT)
    transfer->source = FERRY__SOURCE_READY;
}
/* Pauses it until a later turn, so that other transfers get theirs. */
void ferry__transfer_rest(ferry_loop *loop, ferry__transfer *transfer);
/* Once a turn: continues with the one that has rested longest. */
void ferry__transfers_go_on(ferry_loop *loop);
/* Removes one of the reasons (enum ferry__pause) for its pause. */
void ferry__transfer_unpause(ferry_loop *loop, ferry__transfer *transfer,
                             unsigned reason);
/* The source has more bytes of the request's body. */
void ferry__transfer_resume_sending(ferry_loop *loop,
                                    ferry__transfer *transfer);
/* Sends the rest of a streamed body to a descriptor. */
void ferry__transfer_divert(ferry_loop *loop, ferry__transfer *transfer,
                            int32_t fd, int64_t offset, uint64_t most);
/* Moves head and body from the handle to the result (result.c). */
void ferry__result_pack(ferry_loop *loop, ferry__transfer *transfer);
/* Adds a result to this turn's list (result.c). */
void ferry__finish(ferry_loop *loop, ferry__transfer *transfer);
/* Delivers the results of this turn (result.c). */
void ferry__deliver(ferry_loop *loop);

/* ---- What engines report (body.c) and read (source.c) -------------------- */

/* The final head has arrived: determines the body and calls on_head. Returns
 * false and sets transfer->fault on an error. */
bool ferry__head_final(ferry_loop *loop, ferry__transfer *transfer);
/* An informational head is complete. */
void ferry__head_informational(ferry_loop *loop, ferry__transfer *transfer);
/* FERRY_DUPLEX: the response is complete, but its coded body is cut short, and
 * no part of it is held. This is reported before the request has ended. */
bool ferry__is_cut(const ferry__transfer *transfer);
/* FERRY_DUPLEX: reports the end of the response once nothing of it is held. */
void ferry__tell_answered(ferry_loop *loop, ferry__transfer *transfer);
/* What an error code of HTTP/2 means (RFC 9113, 7): FERRY_D_HTTP2_…. */
int ferry__http2_detail(unsigned code);
/* Whether a body follows the head, by method, status and length. */
bool ferry__has_body(const ferry__transfer *transfer);
/* Takes bytes as received. Returns false and sets transfer->fault on an
 * error. */
bool ferry__receive(ferry_loop *loop, ferry__transfer *transfer,
                    const char *bytes, size_t length);
/* Reserves room for more bytes of a collected body. Returns false and sets
 * transfer->fault on an error. */
bool ferry__body_reserve(ferry_loop *loop, ferry__transfer *transfer,
                         size_t length);
/* Pulls the next bytes of the request's body. Returns a count, 0 at the end,
 * FERRY_PAUSE, or FERRY_ABORT with transfer->fault. */
int64_t ferry__source_pull(ferry_loop *loop, ferry__transfer *transfer,
                           char *space, size_t size);
/* The same, for callers that can send a piece of a file: may also return
 * FERRY_PIECE, with the piece in transfer->piece. */
int64_t ferry__source_pull_any(ferry_loop *loop, ferry__transfer *transfer,
                               char *space, size_t size);
/* Asks for the trailers of the request. Returns the number of bytes, or
 * FERRY_ABORT with transfer->fault. */
int64_t ferry__trailers_ask(ferry_loop *loop, ferry__transfer *transfer,
                            char *space, size_t size);
/* Reports how many bytes of the piece were sent. */
void ferry__piece_took(ferry__transfer *transfer, uint64_t count);
/* Drops the rest of the piece. */
void ferry__piece_drop(ferry__transfer *transfer);
/* The number of bytes that were read from the source and passed on. */
uint64_t ferry__pulled(const ferry__transfer *transfer);
/* Delivers decoded bytes. Returns false and sets transfer->fault on an
 * error. */
bool ferry__body_deliver(ferry_loop *loop, ferry__transfer *transfer,
                         const char *bytes, size_t length);

/* ---- Rates (pace.c) ------------------------------------------------------ */

/* Returns false if these bytes have to wait: then the transfer is paused. */
bool ferry__pace_take(ferry_loop *loop, ferry__transfer *transfer,
                      size_t count);
/* For a transfer that is paused by its rate: resumes it if the rate allows it,
 * which may end it. Returns when to look again, 0 = never. */
uint64_t ferry__pace_look(ferry_loop *loop, ferry__transfer *transfer);

/* ---- Sinks (sink.c) ------------------------------------------------------ */

/* Takes all bytes; may pause the transfer. Returns false and sets
 * transfer->fault on an error. */
bool ferry__sink_put(ferry_loop *loop, ferry__transfer *transfer,
                     const char *bytes, size_t length);
/* Writes bytes that have waited long enough. Returns when to look again, 0 =
 * never. */
uint64_t ferry__sink_look(ferry__transfer *transfer);
/* No more bytes follow. Returns false if a write or a close is still pending.
 * Then the transfer is WRITING until that is done, and the sink ends it. */
bool ferry__sink_rests(ferry__transfer *transfer);
/* Ends a transfer that is WRITING with this fault, unless it already has one. A
 * write that has begun keeps its bytes and its descriptor until it returns. If
 * it has just returned, the transfer stays WRITING for a moment. */
void ferry__sink_leave(ferry_loop *loop, ferry__transfer *transfer,
                       ferry__fault fault);
void ferry__sink_free(ferry_loop *loop, ferry__transfer *transfer);

/* ---- Rarely used options (extras.c) -------------------------------------- */

/* The rarely used options of a request. In the arena, except `via`. */
struct ferry__extras {
  const char *proxy_origin, *proxy; /* "http://name:port", "name:port" */
  const char *proxy_user, *proxy_password;
  const char *user, *password;
  const char *encodings;
  struct curl_slist *proxy_headers;
  ferry__host *via; /* the proxy's name */
  uint64_t identity; /* the user of its connection; 0 = any */
  uint8_t proxy_kind, proxy_schemes, schemes, encodings_kind;
  char choice[72];
  struct curl_slist chosen; /* for CURLOPT_CONNECT_TO; data NULL = none */
};

/* [any thread] *size is the memory that a copy needs. */
ferry__fault ferry__extras_check(const ferry_extras *extras, size_t *size);
/* [any thread] Copies the texts to `text`; returns the position after them.
 * `tunnels` says whether the request goes through CONNECT. */
char *ferry__extras_copy(const ferry_extras *extras, ferry__extras *to,
                         bool tunnels, char *text);
/* [any thread] Adds the fields for the proxy to the identity, because they,
 * too, bind a connection to the user who sends them. */
void ferry__extras_identify(ferry__extras *extras);

/* ---- Limits of one transfer (timeout.c) ---------------------------------- */

typedef struct ferry__clock { /* ms */
  uint64_t now;
  uint64_t held_from, held_until; /* when the loop was held last */
} ferry__clock;

/* The progress of a transfer, as its engine knows it. */
typedef struct ferry__progress {
  uint64_t moved; /* bytes in both directions */
  bool source_paused, answered;
  bool sending; /* bytes of the source wait for the socket */
} ferry__progress;

enum {
  FERRY__EXPIRES_LATER,  /* at `at`, or never */
  FERRY__EXPIRES_NOW,    /* a limit has passed: `detail` */
  FERRY__EXPIRES_UNSENT, /* the response is complete; the rest of the request
                          * is not waited for any longer */
};

typedef struct ferry__expiry {
  uint64_t at; /* ms; 0 = never */
  int32_t detail;
  uint8_t kind;
  bool window; /* the window of the minimum speed starts again */
} ferry__expiry;

/* The next moment at which one of its limits may pass. Has no side effects. */
ferry__expiry ferry__expiry_of(const ferry__clock *clock,
                               const ferry__transfer *transfer,
                               const ferry__progress *progress);
/* Ends it if one of its limits has passed; otherwise the wheel checks it again
 * when one may. */
void ferry__watch_limits(ferry_loop *loop, ferry__transfer *transfer);

/* ---- State of all transfers of a loop ------------------------------------ */

/* Ids of transfers that rest, first in, first out. Some may have ended. */
typedef struct ferry__rest {
  uint64_t *ids;
  size_t first, count, capacity; /* `count` with those before `first` */
  uint64_t turn;     /* ferry_loop.waits when some continued last */
  uint64_t began_ns; /* when they did */
} ferry__rest;

struct ferry__transfers {
  ferry__transfer *running; /* RUNNING and DRAINING, doubly linked */
  ferry_result *finished, **finished_last;
  size_t finished_count;
  const void *piece_space;   /* `space` of the current pull, if it takes a
                              * piece */
  ferry__spares decoders[2]; /* for zlib and for libzstd */
  unsigned char *scratch;    /* output buffer of the decoders */
  uint64_t turn, decoded;    /* bytes made in this turn (ferry_loop.waits) */
  unsigned sink_count;
  ferry__rest rest;
};

#endif
