/* connection.h - a connection, from its slot to its last byte (connection.c,
 * slot.c, output.c, tls.c). */
#ifndef LOOPBACK_CONNECTION_H
#define LOOPBACK_CONNECTION_H

#include "base.h"
#include "buffer.h"
#include "head.h"
#include "script.h"
#include "source.h"

enum {
  LB_PHASE_HEAD = 0, /* between requests */
  LB_PHASE_BODY,     /* inside a request's body */
  LB_PHASE_REPLY,    /* a response is being sent or awaited */
  LB_PHASE_LINGER,   /* FIN sent, waiting for the client's */
};
enum { LB_BODY_DROP = 0, LB_BODY_KEEP, LB_BODY_ECHO, LB_BODY_HASH };

struct lb_conn {
  uv_tcp_t tcp;
  uv_timer_t timer;
  uv_write_t write;
  lb_server *server;
  uint32_t slot;
  uint32_t generation; /* of the response awaited from a handler, or 0 */
  uint64_t number;     /* 1 for the first accepted */
  struct lb_conn *next_free;
  unsigned handles; /* not yet closed */
  int phase;
  int body_mode;
  bool closing;
  bool reading;
  bool stalled; /* input waits until there is less output */
  bool writing;       /* a uv_write is under way */
  bool running;
  bool again;
  bool waiting;       /* waits for the timer or a handler */
  bool close_after;   /* the response ends the connection */
  bool stop_reading;  /* as the script says */
  bool ended;         /* the client has closed its side */
  bool head_only;     /* HEAD: the body is omitted */
  const char *view;   /* the input being parsed: `in`, or the shared buffer */
  size_t view_length;
  bool view_is_in;
  lb_buf in;
  lb_buf out;
  lb_buf flight; /* being written by uv_write */
  lb_buf head;   /* of the request whose body is being read */
  lb_buf body;
  uint64_t body_total;
  lb_framing framing;
  uint64_t record; /* 1 + index, 0 = none */
  EVP_MD_CTX *hash;
  lb_source source;
  lb_script *script;
  size_t step;
  bool step_begun;
  bool wants_drain; /* the step continues when all is written */
  bool step_moved; /* something was read or awaited since the script started */
  uint64_t step_left;
  SSL *ssl;
  BIO *ssl_in;
  BIO *ssl_out;
  bool ssl_ready;
  bool timer_fired;
};

void lb__conn_open(lb_server *s, uv_stream_t *listener);
void lb__conn_run(lb_conn *c);
void lb__conn_close(lb_conn *c);
void lb__conn_reset(lb_conn *c);
void lb__conn_shutdown(lb_conn *c);
void lb__conn_linger(lb_conn *c);
void lb__conn_take(lb_conn *c, size_t size);
void lb__conn_timer(lb_conn *c, uint64_t milliseconds);
/* The same, but never for less than this time. */
void lb__conn_wait(lb_conn *c, uint64_t milliseconds);

/* slot.c */
lb_conn *lb__conn_make(lb_server *s);
void lb__conn_recycle(lb_conn *c);
void lb__conn_free(lb_conn *c);

/* output.c */
void lb__flush(lb_conn *c);
bool lb__drained(const lb_conn *c);

/* tls.c */
SSL_CTX *lb__tls_context(const loopback_options *options);
/* Sets the authority that clients' certificates must have. 0 or -1. */
int lb__certificate_trust(const loopback_certificate *certificate,
                          SSL_CTX *ctx);
bool lb__tls_begin(lb_conn *c);
void lb__tls_feed(lb_conn *c, const char *bytes, size_t size);
void lb__tls_encrypt(lb_conn *c, const char *bytes, size_t size);
void lb__tls_push(lb_conn *c);
void lb__tls_goodbye(lb_conn *c);
/* Sends KeyUpdate messages; false if that is not possible. */
bool lb__tls_update_keys(lb_conn *c, uint64_t count);
void lb__tls_end(lb_conn *c);
int lb__certificate_use(const loopback_certificate *certificate, SSL_CTX *ctx);

#endif
