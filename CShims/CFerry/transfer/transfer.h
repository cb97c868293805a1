/* transfer.h - one transfer: the head and the body of its answer, what it asks
 * for beyond the usual, when it expires. */
#ifndef FERRY_TRANSFER_H
#define FERRY_TRANSFER_H

#include "loop/loop.h"

/* ---- Heads (head.c) ------------------------------------------------------ */

typedef struct ferry__head {
  char *bytes;
  ferry_field *fields;
  uint32_t length, capacity;
  uint32_t count, field_capacity;
  uint64_t received;      /* bytes of all heads and trailers */
  int64_t content_length; /* -1 = not announced */
  uint32_t limit;
  uint16_t status;
  uint16_t informational, trailers;
  /* Informational heads, then trailers, as they came; 0 bytes of most. */
  char *aside;
  uint32_t aside_length, aside_capacity, informational_length;
  uint32_t informational_at; /* where the last one begins */
  uint8_t version;
  uint8_t coding;   /* FERRY__CODING_… */
  bool chunked, in_fields, complete;
  bool http2; /* so its connection speaks, and the status line has to */
} ferry__head;

enum {
  FERRY__CODING_NONE = 0,
  FERRY__CODING_GZIP,
  FERRY__CODING_DEFLATE,
  FERRY__CODING_BROTLI,
  FERRY__CODING_ZSTD,
  FERRY__CODING_OTHER, /* left as it is */
};

typedef struct ferry__fault {
  int32_t code, detail;
} ferry__fault;

/* What names and methods are made of (tchar of RFC 9110, 5.6.2). */
extern const unsigned char ferry__tchar[256];
/* Forgets all heads; keeps the memory. */
void ferry__head_begin(ferry__head *head, uint32_t limit);
/* The next line must be a status line: another answer follows. */
void ferry__head_expect_status(ferry__head *head);
/* One line with its CR LF. code 0 = taken. Sets complete at the final end. */
ferry__fault ferry__head_line(ferry__head *head, const char *line,
                              size_t length);
void ferry__head_free(ferry__head *head);
/* Of a transfer of which nothing has come. */
extern ferry__head *const ferry__no_head;

/* ---- Decoding (decode.c) ------------------------------------------------- */

typedef struct ferry__decoder {
  struct ferry__decoder *next; /* in the loop's list of spare ones */
  union {
    z_stream zlib;
    struct BrotliDecoderStateStruct *brotli;
    struct ZSTD_DCtx_s *zstd;
  };
  const unsigned char *in; /* of the piece at hand */
  size_t left;
  uint8_t coding;
  bool begun, ended;
  unsigned char first, first_length; /* a lone first byte of «deflate» */
  /* Input left over when the receiver paused inside of a piece. */
  unsigned char *held;
  size_t held_length;
} ferry__decoder;

typedef struct ferry__spares {
  ferry__decoder *first;
  unsigned count;
} ferry__spares;

ferry__decoder *ferry__decoder_take(ferry_loop *loop, uint8_t coding);
void ferry__decoder_give(ferry_loop *loop, ferry__decoder *decoder);
void ferry__decoder_free(ferry__decoder *decoder);
void ferry__decoders_free(ferry_loop *loop);
/* Decodes and delivers; stops where the receiver pauses and holds the rest.
 * False sets transfer->fault. */
bool ferry__decode_write(ferry_loop *loop, ferry__transfer *transfer,
                         const char *bytes, size_t length);
bool ferry__decode_drain(ferry_loop *loop, ferry__transfer *transfer);

/* ---- Engines ------------------------------------------------------------- */

/* What carries transfers. It tells of a head by ferry__head_final, of a body
 * by ferry__receive, asks for the request's body by ferry__source_pull, and
 * tells of the end by ferry__transfer_left. */
typedef struct ferry__engine {
  uint8_t name; /* FERRY_ENGINE_… */
  /* A fault that comes at once may also have ended the transfer already. */
  ferry__fault (*start)(ferry_loop *loop, ferry__transfer *transfer);
  /* It ends here and now: figures are read, its connection is closed. */
  void (*abandon)(ferry_loop *loop, ferry__transfer *transfer);
  /* The receiver takes more; of one that is DRAINING, too. */
  void (*resume)(ferry_loop *loop, ferry__transfer *transfer);
  void (*resume_sending)(ferry_loop *loop, ferry__transfer *transfer);
  /* Bytes of the request's body that have left. */
  uint64_t (*sent)(const ferry__transfer *transfer);
  /* Phases that are told by no event, and what waits for a time; returns when
   * to look again, 0 = no need to. Sets *fault where it cannot go on. */
  uint64_t (*look)(ferry_loop *loop, ferry__transfer *transfer,
                   ferry__fault *fault);
  /* The whole response has come, as far as its head says where it ends. */
  bool (*is_answered)(const ferry__transfer *transfer);
  /* The response is complete, and the rest of the request stays unsent. */
  void (*leave_unsent)(ferry_loop *loop, ferry__transfer *transfer);
  void (*so_far)(const ferry__transfer *transfer, ferry_result *result);
  /* At the end: what it has cost, then, when the result is packed, what the
   * engine keeps for it goes. */
  void (*figures)(ferry_loop *loop, ferry__transfer *transfer);
  void (*release)(ferry_loop *loop, ferry__transfer *transfer);
} ferry__engine;

/* ---- Transfers (transfer.c, request.c, body.c) --------------------------- */

enum ferry__state {
  FERRY__NEW,
  FERRY__WAITING,   /* in a ring, of the loop's or of its host's */
  FERRY__RESOLVING, /* has its place, waits for a name */
  FERRY__RUNNING,
  FERRY__DRAINING, /* libcurl is done, the receiver is not */
  FERRY__WRITING,  /* all is settled but what its sink still writes */
  FERRY__DONE,
};

typedef struct ferry__fifo {
  ferry__transfer *head, *tail;
} ferry__fifo;

/* How far the response has come. */
enum ferry__receive_state {
  FERRY__RECEIVE_HEAD,     /* or nothing yet */
  FERRY__RECEIVE_BODY,     /* the final head is complete */
  FERRY__RECEIVE_COMPLETE, /* while the request is still being sent */
};

/* Why no byte is delivered: bits. */
enum ferry__pause {
  FERRY__PAUSED_BY_RECEIVER = 1,
  FERRY__PAUSED_BY_RATE = 2,
  FERRY__PAUSED_BY_SINK = 4,
};

/* Whether the rest of the request's body is to be had, and wanted. */
enum ferry__source_state {
  FERRY__SOURCE_READY,
  FERRY__SOURCE_PAUSED, /* it has nothing to give at the moment */
  FERRY__SOURCE_DRY,    /* likewise, and libcurl is to look if it is done */
  FERRY__SOURCE_LEFT,   /* the rest is not sent: the response is there */
};

/* What only libcurl's engine needs to know of a transfer. */
typedef struct ferry__carried {
  uint64_t lease; /* of a place in libcurl: another with each handle */
  struct ferry__chunks *chunks; /* what libcurl reads of a chunked response */
  char *late; /* what was left in the socket when it was closed */
  char *kept; /* of a paused response, while its request is being sent */
  char *cookie; /* the caller's own ones, in a loop with a jar */
  uint32_t late_length, kept_length, kept_from;
  int unwatched; /* why its socket is not: an errno */
  bool close_notified;
  bool last_chunk; /* libcurl has read it */
  bool withheld;  /* libcurl holds bytes of the response */
  bool nudged;    /* libcurl is to look whether it is done */
  bool head_held; /* a challenge, which libcurl may answer by itself */
  bool forbidden; /* an address was, and so not connected to */
  bool untouched; /* the server has not looked at its stream */
  bool reached;   /* the server may have looked at an earlier attempt */
  bool again;     /* nothing was sent: to be begun anew */
  uint64_t roused_ms; /* FERRY_DUPLEX over HTTP/2: when it last was */
} ferry__carried;

struct ferry__transfer {
  ferry_result result; /* first: handed over as it is */
  ferry__transfer *next, *prev; /* inbox, ring, host's list, running list */
  ferry__fifo *fifo;            /* the ring it stands in while WAITING */
  ferry__transfer *timer_next, *timer_prev;
  uint64_t timer_at; /* ms; 0 = not in the wheel */
  uint64_t submitted_ns, started_ns;
  uint64_t submitted_ms, started_ms, last_ms, window_ms;
  uint64_t repeated_ms; /* when it was begun once more; 0 = it was not */
  uint64_t window_bytes, uploaded;
  ferry__host *host;
  ferry__host *asked; /* whose name it waits for while RESOLVING */
  const ferry__engine *engine; /* NULL before it starts */
  ferry__handle *handle;         /* libcurl's engine, */
  ferry__connection *connection; /* and the native one */
  ferry__head *head; /* its handle's, or its own */
  ferry__extras *extras; /* in the arena; NULL = none */
  const void *body; /* in the arena */
  ferry_piece piece; /* what is left of one that was pulled; 0 bytes = none */
  uint64_t body_length, pulled;
  struct curl_slist *headers; /* in the arena */
  const char *origin, *target, *method; /* in the arena */
  uint32_t origin_length;
  uint32_t connect_ms, idle_ms, total_ms, deadline_ms;
  uint32_t low_speed_bytes, low_speed_ms, max_head;
  uint64_t max_body;
  uint32_t connections; /* of FERRY_CONNECT */
  uint64_t max_rate, pace_ms;
  int64_t budget; /* bytes that may come now (pace.c) */
  int32_t fd;
  int64_t offset;
  ferry__sink *sink; /* NULL before the first byte for `fd` */
  uint64_t leave_ms; /* when its write is waited for no longer; 0 = never */
  uint32_t flags;
  uint8_t state, priority, body_kind, response_kind, method_kind;
  uint8_t receiving; /* enum ferry__receive_state */
  uint8_t paused;    /* enum ferry__pause */
  uint8_t source;    /* enum ferry__source_state */
  uint8_t earlier;   /* attempts before this one */
  bool fresh;        /* the next attempt has a connection of its own */
  bool unexpecting;  /* and no Expect: the server has refused it (417) */
  bool pending;      /* it waits for a connection (connection/figures.c) */
  bool told;         /* FERRY_DUPLEX: on_answered was called */
  /* While it runs. */
  ferry__fault fault; /* ours, told before libcurl's */
  int phase;
  char *bytes; /* the body being collected, a block */
  size_t capacity;
  char *packed; /* the result's fields, head and perhaps body, a block */
  char *words;  /* behind result.message */
  ferry__decoder *decoder;
  ferry__carried curl;
  char arena[];
};

enum { FERRY__GET, FERRY__HEAD, FERRY__POST, FERRY__OTHER };

/* The end of every list that has no Accept of its own. */
extern struct curl_slist ferry__no_accept;
/* [any thread] Checks and copies a request; *out is NULL when refused. */
/* [local.c] How long "http+unix://" is that a URL begins with; 0 = it does
 * not. */
size_t ferry__local_prefix(const char *url, size_t length);
/* The path that an authority stands for, malloc'ed; FERRY_E_INVALID_URL. */
int ferry__local_path(const char *authority, size_t length, char **path);
/* And back, in one spelling, malloc'ed; NULL: no memory. */
char *ferry__local_authority(const char *path);

ferry__fault ferry__transfer_make(const ferry_request *request,
                                  ferry__transfer **out);
/* Begins: its engine has it. */
void ferry__transfer_run(ferry_loop *loop, ferry__transfer *transfer,
                         const ferry__engine *engine);
/* Ends a transfer in any state. */
void ferry__transfer_end(ferry_loop *loop, ferry__transfer *transfer,
                         ferry__fault fault);
/* Its engine is done with it: all has come, or `fault`. */
void ferry__transfer_left(ferry_loop *loop, ferry__transfer *transfer,
                          ferry__fault fault);
/* Its receiver takes more. */
void ferry__transfer_resume(ferry_loop *loop, ferry__transfer *transfer);
/* One of the reasons (enum ferry__pause) why it was paused has gone. */
void ferry__transfer_unpause(ferry_loop *loop, ferry__transfer *transfer,
                             unsigned reason);
void ferry__transfer_resume_sending(ferry_loop *loop,
                                    ferry__transfer *transfer);
/* The rest of a streamed body goes to a descriptor. */
void ferry__transfer_divert(ferry_loop *loop, ferry__transfer *transfer,
                            int32_t fd, int64_t offset, uint64_t most);
/* Head and body leave the handle and become the result's (result.c). */
void ferry__result_pack(ferry_loop *loop, ferry__transfer *transfer);
/* Puts a result into this turn's list (result.c). */
void ferry__finish(ferry_loop *loop, ferry__transfer *transfer);
/* Hands over the results of this turn (result.c). */
void ferry__deliver(ferry_loop *loop);

/* ---- What engines report (body.c), and ask for (source.c) ---------------- */

/* The head is the last one: what the body will be, and on_head. False sets
 * transfer->fault. */
bool ferry__head_final(ferry_loop *loop, ferry__transfer *transfer);
/* An informational head is complete. */
void ferry__head_informational(ferry_loop *loop, ferry__transfer *transfer);
/* FERRY_DUPLEX: tells of the end of a response of which nothing is held. */
void ferry__tell_answered(ferry_loop *loop, ferry__transfer *transfer);
/* Whether one follows the head, by the method, the status and the length. */
bool ferry__has_body(const ferry__transfer *transfer);
/* Bytes as they came. False sets transfer->fault. */
bool ferry__receive(ferry_loop *loop, ferry__transfer *transfer,
                    const char *bytes, size_t length);
/* Room for so many more bytes of a collected body. False likewise. */
bool ferry__body_reserve(ferry_loop *loop, ferry__transfer *transfer,
                         size_t length);
/* The next bytes of the request's body: a count, 0 at the end, FERRY_PAUSE, or
 * FERRY_ABORT with transfer->fault. */
int64_t ferry__source_pull(ferry_loop *loop, ferry__transfer *transfer,
                           char *space, size_t size);
/* Likewise, of who can send a piece of a file as it is: FERRY_PIECE, and it
 * stands in transfer->piece. */
int64_t ferry__source_pull_any(ferry_loop *loop, ferry__transfer *transfer,
                               char *space, size_t size);
/* The trailers of the request: bytes, or FERRY_ABORT with transfer->fault. */
int64_t ferry__trailers_ask(ferry_loop *loop, ferry__transfer *transfer,
                            char *space, size_t size);
/* So many bytes of the piece were sent. */
void ferry__piece_took(ferry__transfer *transfer, uint64_t count);
/* Nobody wants the rest of it. */
void ferry__piece_drop(ferry__transfer *transfer);
/* Bytes that the source has given and that went on. */
uint64_t ferry__pulled(const ferry__transfer *transfer);
/* Decoded bytes. False sets transfer->fault. */
bool ferry__body_deliver(ferry_loop *loop, ferry__transfer *transfer,
                         const char *bytes, size_t length);

/* ---- Rates (pace.c) ------------------------------------------------------ */

/* False when so many bytes have to wait: then the transfer is paused. */
bool ferry__pace_take(ferry_loop *loop, ferry__transfer *transfer,
                      size_t count);
/* Of one that is paused by its rate: goes on where it may, which may end the
 * transfer; returns when to look again, 0 = no need to. */
uint64_t ferry__pace_look(ferry_loop *loop, ferry__transfer *transfer);

/* ---- Sinks (sink.c) ------------------------------------------------------ */

/* Takes a piece whole; may pause the transfer. False sets transfer->fault. */
bool ferry__sink_put(ferry_loop *loop, ferry__transfer *transfer,
                     const char *bytes, size_t length);
/* Writes what has waited long enough; returns when to look again, 0 = no
 * need to. */
uint64_t ferry__sink_look(ferry__transfer *transfer);
/* Nothing more comes: false when something is yet to be written, or to be
 * closed. Then the transfer is WRITING until that is done, and finished by the
 * sink. */
bool ferry__sink_rests(ferry__transfer *transfer);
/* Ends a transfer that is WRITING with this fault, unless it has one. The write
 * that is under way keeps its bytes and its descriptor until it returns. Where
 * it has just returned, the transfer is WRITING for a moment more. */
void ferry__sink_leave(ferry_loop *loop, ferry__transfer *transfer,
                       ferry__fault fault);
void ferry__sink_free(ferry_loop *loop, ferry__transfer *transfer);

/* ---- What few requests say (extras.c) ------------------------------------ */

/* In the arena, but for `via`. */
struct ferry__extras {
  const char *proxy_origin, *proxy; /* "http://name:port", "name:port" */
  const char *proxy_user, *proxy_password;
  const char *user, *password;
  const char *encodings;
  struct curl_slist *proxy_headers;
  ferry__host *via; /* the proxy's name */
  uint64_t identity; /* who its connection is; 0 = anybody */
  uint8_t proxy_kind, proxy_schemes, schemes, encodings_kind;
  char choice[72];
  struct curl_slist chosen; /* for CURLOPT_CONNECT_TO; data NULL = none */
};

/* [any thread] *size is what copying takes. */
ferry__fault ferry__extras_check(const ferry_extras *extras, size_t *size);
/* [any thread] The texts go to `text`; returns what follows them. */
char *ferry__extras_copy(const ferry_extras *extras, ferry__extras *to,
                         char *text);
/* [any thread] What the proxy is told makes a connection its sender's, too. */
void ferry__extras_identify(ferry__extras *extras);

/* ---- Limits of one transfer (timeout.c) ---------------------------------- */

typedef struct ferry__clock { /* ms */
  uint64_t now;
  uint64_t held_from, held_until; /* the last time that the loop was held */
} ferry__clock;

/* What its engine knows. */
typedef struct ferry__progress {
  uint64_t moved; /* bytes in both directions */
  bool source_paused, answered;
} ferry__progress;

enum {
  FERRY__EXPIRES_LATER,  /* at `at`, if at all */
  FERRY__EXPIRES_NOW,    /* a limit has passed: `detail` */
  FERRY__EXPIRES_UNSENT, /* answered, and its source is waited for no longer */
};

typedef struct ferry__expiry {
  uint64_t at; /* ms; 0 = never */
  int32_t detail;
  uint8_t kind;
  bool window; /* the window of the lowest speed begins anew */
} ferry__expiry;

/* The next moment at which one of its limits may pass. It changes nothing. */
ferry__expiry ferry__expiry_of(const ferry__clock *clock,
                               const ferry__transfer *transfer,
                               const ferry__progress *progress);
/* Ends it when one of its limits has passed; else the wheel has it looked at
 * when one may. */
void ferry__watch_limits(ferry_loop *loop, ferry__transfer *transfer);

#endif
