/* internal.h - what the files of CLoopback share. Everything here belongs to
 * the server's thread unless a line says otherwise. */
#ifndef LOOPBACK_INTERNAL_H
#define LOOPBACK_INTERNAL_H

#include "CLoopback.h"

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#define LB_READ_SIZE (256 * 1024)  /* one read, shared by all connections */
#define LB_INPUT_LIMIT (256 * 1024) /* unread input at which reading rests */
#define LB_BLOCK (64 * 1024)        /* output made in one go */
#define LB_HEAD_LIMIT (64 * 1024)
#define LB_MAX_FIELDS 256
#define LB_LINGER_MS 2000

/* ---- buffer.c: memory that is there, or the process ends ----------------- */

typedef struct lb_buf {
  char *base;
  size_t start; /* first byte of the content */
  size_t end;
  size_t capacity;
} lb_buf;

void *lb__alloc(size_t size);
void *lb__copy(const void *bytes, size_t size); /* a zero byte follows */
char *lb__buf_room(lb_buf *buf, size_t size);
void lb__buf_add(lb_buf *buf, const void *bytes, size_t size);
void lb__buf_text(lb_buf *buf, const char *text);
void lb__buf_format(lb_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void lb__buf_clear(lb_buf *buf);
void lb__buf_free(lb_buf *buf);
static inline size_t lb__buf_size(const lb_buf *buf) {
  return buf->end - buf->start;
}
static inline char *lb__buf_data(const lb_buf *buf) {
  return buf->base + buf->start;
}

/* ---- head.c, text.c ------------------------------------------------------ */

typedef struct lb_slice {
  const char *base;
  size_t length;
} lb_slice;

typedef struct lb_head {
  lb_slice raw; /* request line to empty line */
  lb_slice method;
  lb_slice target;
  lb_slice path;
  lb_slice query; /* without its question mark */
  struct {
    lb_slice name;
    lb_slice value;
  } fields[LB_MAX_FIELDS];
  size_t count;
  uint64_t content_length;
  bool has_length;
  bool chunked;
  bool keep_alive;
  bool expects_continue;
} lb_head;

/* The length of the head, 0 when it is incomplete, or a negative status. */
long lb__head_parse(const char *base, size_t length, lb_head *head);
bool lb__head_field(const lb_head *head, const char *name, lb_slice *value);

bool lb__equal(lb_slice slice, const char *text);
bool lb__equal_fold(lb_slice slice, const char *text);
bool lb__starts(lb_slice slice, const char *text);
bool lb__number(lb_slice slice, uint64_t *out); /* all digits, no overflow */
size_t lb__unescape(lb_slice slice, bool plus, char *out); /* <= length */
/* The next `name=value` of a query, both still escaped. */
bool lb__query_next(lb_slice *query, lb_slice *name, lb_slice *value);
bool lb__query(lb_slice query, const char *name, lb_slice *value);
uint64_t lb__query_number(lb_slice query, const char *name, uint64_t other);
void lb__json_string(lb_buf *out, lb_slice text);
bool lb__is_utf8(lb_slice text);

/* ---- body.c: the framing of a request's body ----------------------------- */

typedef struct lb_framing {
  bool chunked;
  int state;
  uint64_t left; /* of the body, or of this chunk */
  size_t line;   /* bytes of a chunk line so far */
} lb_framing;

enum { LB_BODY_MORE = 0, LB_BODY_PIECE, LB_BODY_END, LB_BODY_BAD };

void lb__framing_begin(lb_framing *framing, const lb_head *head);
/* Takes *used bytes of the input; PIECE: *piece is content. */
int lb__framing_next(lb_framing *framing, lb_slice input, size_t *used,
                     lb_slice *piece);

/* ---- source.c: output that is made when there is room -------------------- */

enum {
  LB_SOURCE_NONE = 0,
  LB_SOURCE_PATTERN,
  LB_SOURCE_BLOB,
  LB_SOURCE_REPEAT,
  LB_SOURCE_CHUNKED,
  LB_SOURCE_DEFLATE,
  LB_SOURCE_DRIP,
};
enum { LB_PULL_END = 0, LB_PULL_SPAN, LB_PULL_OUT, LB_PULL_WAIT };

typedef struct lb_source {
  int kind;
  bool zeros;          /* zero bytes instead of the pattern */
  uint64_t offset;     /* in the pattern, in the blob */
  uint64_t left;       /* bytes still to make */
  const char *bytes;   /* BLOB, REPEAT, DRIP */
  size_t length;       /* of bytes */
  char *owned;         /* freed at the end */
  uint64_t piece;      /* CHUNKED, DRIP: bytes at once */
  uint64_t interval;   /* DRIP, ms */
  bool ended;          /* DEFLATE, CHUNKED: the last bytes are made */
  struct z_stream_s *deflate;
} lb_source;

struct lb_conn;

/* The pattern is the 37 bytes a–z, 0–9 and a line feed, again and again: a
 * period that fits no block size, so that misplaced bytes show. */
#define LB_PATTERN_PERIOD 37
lb_slice lb__pattern(uint64_t offset, uint64_t limit, bool zeros);
int lb__source_pull(struct lb_conn *c, uv_buf_t *span);
void lb__source_end(struct lb_conn *c);
bool lb__deflate_begin(lb_source *source, int window_bits, uint64_t count,
                       bool zeros);
int lb__deflate_pull(struct lb_conn *c);
void lb__deflate_end(lb_source *source);

/* ---- script.c ------------------------------------------------------------ */

typedef struct lb_step {
  int kind;
  char *bytes; /* SEND: repeated up to about LB_BLOCK */
  size_t length;
  uint64_t total; /* SEND: bytes in all; others: count */
  uint32_t milliseconds;
} lb_step;

typedef struct lb_script {
  struct lb_script *next;
  unsigned references;
  char *path;
  uint64_t first;
  uint64_t last;
  uint64_t uses; /* still left; UINT64_MAX = no bound */
  size_t count;
  lb_step steps[];
} lb_script;

/* ---- connections --------------------------------------------------------- */

typedef struct loopback_server lb_server;

enum {
  LB_PHASE_HEAD = 0, /* between requests */
  LB_PHASE_BODY,     /* inside a request's body */
  LB_PHASE_REPLY,    /* an answer is under way */
  LB_PHASE_LINGER,   /* FIN sent, waiting for the client's */
};
enum { LB_BODY_DROP = 0, LB_BODY_KEEP, LB_BODY_ECHO, LB_BODY_HASH };

typedef struct lb_conn {
  uv_tcp_t tcp;
  uv_timer_t timer;
  uv_write_t write;
  lb_server *server;
  uint32_t slot;
  uint32_t generation; /* of the answer awaited from a handler, or 0 */
  uint64_t number;     /* 1 for the first accepted */
  struct lb_conn *next_free;
  unsigned handles; /* not yet closed */
  int phase;
  int body_mode;
  bool closing;
  bool reading;
  bool writing;       /* a uv_write is under way */
  bool running;
  bool again;
  bool waiting;       /* for the timer or a handler */
  bool close_after;   /* the answer ends the connection */
  bool stop_reading;  /* by script */
  bool ended;         /* the client has closed its side */
  bool head_only;     /* HEAD: the body is left out */
  const char *view;   /* the input at work on: `in`, or the shared buffer */
  size_t view_length;
  bool view_is_in;
  lb_buf in;
  lb_buf out;
  lb_buf flight; /* held by uv_write */
  lb_buf head;   /* of a request whose body is being read */
  lb_buf body;
  uint64_t body_total;
  lb_framing framing;
  uint64_t record; /* 1 + index, 0 = none */
  EVP_MD_CTX *hash;
  lb_source source;
  lb_script *script;
  size_t step;
  bool step_begun;
  bool wants_drain; /* the step goes on when all is written */
  bool step_moved; /* something was read or awaited since the start */
  uint64_t step_left;
  SSL *ssl;
  BIO *ssl_in;
  BIO *ssl_out;
  bool ssl_ready;
  bool timer_fired;
} lb_conn;

void lb__conn_open(lb_server *s, uv_stream_t *listener);
void lb__conn_run(lb_conn *c);
void lb__conn_close(lb_conn *c);
void lb__conn_reset(lb_conn *c);
void lb__conn_shutdown(lb_conn *c);
void lb__conn_linger(lb_conn *c);
void lb__conn_take(lb_conn *c, size_t size);
void lb__conn_timer(lb_conn *c, uint64_t milliseconds);

/* slot.c */
lb_conn *lb__conn_make(lb_server *s);
void lb__conn_recycle(lb_conn *c);
void lb__conn_free(lb_conn *c);

/* output.c */
void lb__flush(lb_conn *c);
bool lb__drained(const lb_conn *c);

/* tls.c */
SSL_CTX *lb__tls_context(const loopback_options *options);
/* The authority that clients' certificates must be of. 0 or -1. */
int lb__certificate_trust(const loopback_certificate *certificate,
                          SSL_CTX *ctx);
bool lb__tls_begin(lb_conn *c);
void lb__tls_feed(lb_conn *c, const char *bytes, size_t size);
void lb__tls_encrypt(lb_conn *c, const char *bytes, size_t size);
void lb__tls_push(lb_conn *c);
void lb__tls_goodbye(lb_conn *c);
void lb__tls_end(lb_conn *c);
int lb__certificate_use(const loopback_certificate *certificate, SSL_CTX *ctx);

/* exchange.c, routes*.c, reply.c */
typedef void (*lb_route)(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__exchange_advance(lb_conn *c);
lb_route lb__route_find(const lb_head *head, lb_slice *rest, int *body_mode);
void lb__route_delayed(lb_conn *c);
const char *lb__reason(int status);
/* The status line, Date; then fields by lb__buf_…(&c->out, …). */
void lb__reply_begin(lb_conn *c, int status, const char *reason);
/* Content-Length, Connection, empty line. */
void lb__reply_length(lb_conn *c, uint64_t length);
void lb__reply_chunked(lb_conn *c);
/* The answer is all in `out` or `source`. */
void lb__reply_end(lb_conn *c);
void lb__reply_bytes(lb_conn *c, int status, const char *type,
                     const char *fields, const void *bytes, size_t length);
void lb__reply_error(lb_conn *c, int status);
void lb__route_bytes(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_chunked(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_drip(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_until_close(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_echo(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_echo_body(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_headers(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_upload(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_gzip(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_deflate(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_auth(lb_conn *c, const lb_head *head, lb_slice rest);

/* script.c, script_steps.c */
void lb__script_begin(lb_conn *c, lb_script *script);
void lb__script_end(lb_conn *c);
void lb__script_advance(lb_conn *c);
void lb__script_unref(lb_script *script);
lb_script *lb__script_for_connection(lb_server *s, uint64_t number);
lb_script *lb__script_for_path(lb_server *s, lb_slice path);
bool lb__script_plain(const lb_script *script);
void lb__signal(lb_server *s, const char *name);
bool lb__is_signalled(const lb_server *s, const char *name);

/* ---- the server ---------------------------------------------------------- */

typedef struct lb_handler {
  struct lb_handler *next;
  uint64_t number;
  char *method;
  char *path;
  size_t path_length;
  bool prefix;
} lb_handler;

typedef struct lb_name {
  struct lb_name *next;
  uint64_t count;
  char name[];
} lb_name;

typedef struct lb_watch {
  struct lb_watch *next;
  uint64_t id;
  int kind;
  uint64_t value;
  char *name;
} lb_watch;

typedef struct lb_record {
  lb_buf head;
  lb_buf body;
  uint64_t index;
  uint64_t connection;
  uint64_t body_total;
} lb_record;

typedef struct lb_command {
  struct lb_command *next;
  void (*run)(lb_server *s, struct lb_command *command);
  uint64_t id;
  uint64_t value;
  int kind;
  char *text;  /* owned */
  char *text2; /* owned */
  char *bytes; /* owned */
  size_t length;
  lb_script *script; /* owned */
} lb_command;

struct loopback_server {
  uv_loop_t loop;
  uv_async_t wake;
  uv_tcp_t listener;
  pthread_t thread;
  uint16_t port;
  int bound;     /* LOOPBACK_ACCEPT_NONE, LOOPBACK_REFUSE: the socket */
  int filler[4]; /* what fills its backlog */
  loopback_options options;
  SSL_CTX *tls;

  /* [any thread] Commands wait. Looked at before bytes and connections are
   * taken: what came after a command was posted must find it done, and the
   * order in which epoll names descriptors does not promise that. */
  _Atomic bool pending;

  pthread_mutex_t lock; /* [any thread] guards what follows */
  pthread_cond_t changed;
  lb_command *first_command;
  lb_command *last_command;
  bool deaf;     /* takes no more commands */
  bool finished; /* the thread has ended, or as good as */
  bool orphan;   /* freed on its own thread */

  pthread_mutex_t record_lock; /* [any thread] guards the records */
  lb_record *records;
  uint64_t record_count;

  /* Written by the server's thread alone, read by all. */
  _Atomic uint64_t connections;
  _Atomic uint64_t open;
  _Atomic uint64_t requests;
  _Atomic uint64_t bytes;
  _Atomic uint64_t handshakes;

  bool stopping;
  lb_conn **slots;
  uint32_t slot_count;
  uint32_t *free_slots;
  uint32_t free_slot_count;
  lb_conn *free_conns;
  unsigned free_conn_count;
  lb_handler *handlers;
  lb_script *scripts;
  lb_name *signals;
  lb_name *marks;
  lb_watch *watches;
  uint32_t generation; /* counts what was asked of handlers */
  lb_head parsed; /* scratch of the request being looked at */
  char date[48];
  uint64_t date_until;
  char read_space[LB_READ_SIZE];
};

void lb__count(_Atomic uint64_t *counter, uint64_t more);
void lb__watches_look(lb_server *s);
void lb__mark(lb_server *s, const char *name);
uint64_t lb__record_add(lb_conn *c, const lb_head *head);
void lb__record_body(lb_conn *c, lb_slice piece);
void lb__post(lb_server *s, lb_command *command);
void lb__commands_run(lb_server *s);
void lb__server_stop(lb_server *s);
int lb__listen(lb_server *s);

#endif
