/* CLoopback.h - an HTTP/1.1 server for tests and benchmarks: a libuv loop on a
 * thread of its own, built-in routes, scripts that misbehave byte by byte.
 *
 * How it is used
 *   loopback_start()   makes a server and its thread.
 *   loopback_port()    returns the port that it listens on.
 *   loopback_stop()    ends the thread; counters and records stay readable.
 *   loopback_free()    frees the server.
 *
 * Threads
 *   Functions marked [any thread] may be called from everywhere, callbacks
 *   included. All callbacks run on the server's thread and must not block.
 *
 * Ownership
 *   1. Bytes given to a function are copied before it returns.
 *   2. Bytes given to a callback live until the callback returns.
 *   A late response to a request that has ended is ignored.
 *
 * If memory runs out, the process ends with a message: a test server cannot do
 * better.
 */
#ifndef CLOOPBACK_H
#define CLOOPBACK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if !defined(__clang__)
#define _Nonnull
#define _Nullable
#endif

typedef struct loopback_server loopback_server;
typedef struct loopback_certificate loopback_certificate;

/* ---- Certificates -------------------------------------------------------- */

enum {
  LOOPBACK_CERTIFICATE_VALID = 0,
  LOOPBACK_CERTIFICATE_EXPIRED,
  LOOPBACK_CERTIFICATE_NOT_YET_VALID,
  LOOPBACK_CERTIFICATE_WRONG_HOST,  /* its only name is wrong.example */
  LOOPBACK_CERTIFICATE_UNTRUSTED,   /* signed by another authority */
  LOOPBACK_CERTIFICATE_SELF_SIGNED, /* signed by itself */
};

/* [any thread] Makes an authority and a leaf (EC P-256). Returns 0 or -1. */
int loopback_certificate_make(
    int kind, loopback_certificate *_Nullable *_Nonnull out);

/* [any thread] The authority a client should trust, as PEM. Valid until
 * loopback_certificate_free(). */
const char *_Nonnull loopback_certificate_authority(
    const loopback_certificate *_Nonnull certificate);

/* [any thread] "sha256//…" of the leaf's public key. Valid until
 * loopback_certificate_free(). */
const char *_Nonnull loopback_certificate_pin(
    const loopback_certificate *_Nonnull certificate);

enum {
  LOOPBACK_CLIENT_CERTIFICATE = 0, /* of the certificate's authority */
  LOOPBACK_CLIENT_KEY,
  LOOPBACK_CLIENT_LOCKED_KEY, /* the same, encrypted; the password is "ferry" */
};

/* [any thread] A client certificate and its key, as PEM. Valid until
 * loopback_certificate_free(). */
const char *_Nonnull loopback_certificate_client(
    const loopback_certificate *_Nonnull certificate, int part);

/* [any thread] Frees a certificate. A server needs it only until
 * loopback_start() has returned. */
void loopback_certificate_free(loopback_certificate *_Nonnull certificate);

/* ---- Server -------------------------------------------------------------- */

/* A request as received. The body is complete, or cut at the limit. */
typedef struct loopback_request {
  uint64_t connection; /* 1 for the first accepted */
  const char *_Nonnull head; /* request line, fields, empty line; raw */
  size_t head_length;
  const char *_Nullable body; /* without chunked framing */
  size_t body_length;         /* bytes present at `body` */
  uint64_t body_total;        /* bytes received */
} loopback_request;

enum {
  LOOPBACK_ACCEPT_ALL = 0,
  LOOPBACK_ACCEPT_NONE, /* listens with a full backlog: connects hang */
  LOOPBACK_REFUSE,      /* bound but not listening: connects are refused */
};

typedef struct loopback_options {
  void *_Nullable context; /* passed to every callback */

  /* A request for a handler of loopback_handle(). Respond once, with
   * loopback_answer() and this id. */
  void (*_Nullable on_request)(void *_Nullable context, uint64_t id,
                               uint64_t handler,
                               const loopback_request *_Nonnull request);
  /* The condition of a loopback_watch() is true; called once for each. */
  void (*_Nullable on_reached)(void *_Nullable context, uint64_t watch);
  /* The last callback. Called exactly once for every server that was
   * started. */
  void (*_Nullable on_stopped)(void *_Nullable context);

  const char *_Nonnull address; /* "127.0.0.1", "::1", "/run/socket" */
  uint16_t port;                /* 0 = any free port */
  int accept;                   /* LOOPBACK_ACCEPT_ALL … */
  /* NULL = plain. */
  const loopback_certificate *_Nullable certificate;
  /* ALPN protocols in order of preference, "h2,http/1.1"; NULL = none. */
  const char *_Nullable protocols;
  int demands_certificate; /* require a client certificate from the
                            * certificate's authority */
  int minimum_tls;         /* 12 or 13; 0 = 12 */
  int maximum_tls;         /* 12 or 13; 0 = 13 */
  uint32_t record_limit;      /* how many of the latest requests are kept; 0 =
                               * none */
  uint32_t record_body_limit; /* bytes kept of each body */
  uint64_t max_body;          /* bytes of a body collected for a response */
} loopback_options;

/* [any thread] Starts a server. Returns 0, or a negative errno; then no
 * callback is ever called. */
int loopback_start(const loopback_options *_Nonnull options,
                   loopback_server *_Nullable *_Nonnull out);

/* [any thread] Returns the port that the server listens on. */
uint16_t loopback_port(const loopback_server *_Nonnull server);

/* [any thread] Closes everything and waits for the thread. Idempotent. On the
 * server's own thread it does not wait. */
void loopback_stop(loopback_server *_Nonnull server);

/* [any thread] Stops and frees the server. No other call may use it then or
 * later. On the server's own thread it is freed when that thread ends. */
void loopback_free(loopback_server *_Nonnull server);

/* ---- Handlers ------------------------------------------------------------ */

/* [any thread] Passes requests of this method (NULL = any) and path to
 * on_request with the number `handler`. A path that ends with `*` is a prefix.
 * The latest matching handler is used, before every built-in route. */
void loopback_handle(loopback_server *_Nonnull server, uint64_t handler,
                     const char *_Nullable method, const char *_Nonnull path);

/* [any thread] Responds to a request. `head` has "Name: value\r\n" lines, and
 * may be empty. Content-Length is added unless `head` frames the body
 * itself. */
void loopback_answer(loopback_server *_Nonnull server, uint64_t id, int status,
                     const char *_Nullable reason, const char *_Nonnull head,
                     size_t head_length, const void *_Nullable body,
                     size_t body_length);

/* ---- Scripts ------------------------------------------------------------- */

enum {
  LOOPBACK_EXPECT_HEAD = 1, /* read a request's head */
  LOOPBACK_EXPECT_BODY,     /* read the body that the last head announced */
  LOOPBACK_EXPECT_BYTES,    /* read `count` bytes */
  LOOPBACK_EXPECT_CLOSE,    /* read until the client closes */
  LOOPBACK_SEND,            /* `bytes`, `count` times */
  LOOPBACK_PATTERN,         /* `count` bytes of the pattern of /bytes */
  LOOPBACK_DRIP,            /* `bytes`, `count` of them each `milliseconds` */
  LOOPBACK_PAUSE,           /* `milliseconds` */
  LOOPBACK_WAIT,            /* wait for loopback_signal(`bytes`) */
  LOOPBACK_MARK,            /* report the mark `bytes` to its watches */
  LOOPBACK_CLOSE,           /* close_notify (TLS), then close */
  LOOPBACK_DROP,            /* close without close_notify */
  LOOPBACK_RESET,           /* RST */
  LOOPBACK_HALF_CLOSE,      /* FIN, and continue reading */
  LOOPBACK_STOP_READING,
  LOOPBACK_SERVE,            /* continue as the ordinary server */
  LOOPBACK_RESTART,          /* start again from the first step */
  LOOPBACK_START_TLS,        /* do the TLS handshake here, not at the start */
  LOOPBACK_PLAIN,            /* no TLS on this connection */
  LOOPBACK_STALL_HANDSHAKE,  /* read the ClientHello, never respond */
  LOOPBACK_CLOSE_HANDSHAKE,  /* read the ClientHello, then close */
  LOOPBACK_KEEP_OPEN,        /* stay silent until the client closes */
  LOOPBACK_KEY_UPDATES,      /* `count` messages of TLS 1.3 without data */
};

typedef struct loopback_step {
  int kind; /* LOOPBACK_EXPECT_HEAD … */
  const void *_Nullable bytes;
  size_t length;
  uint64_t count;
  uint32_t milliseconds;
} loopback_step;

/* [any thread] Adds a script. After its last step the connection stays open and
 * silent. With a path (a prefix) the script starts at a request for it, whose
 * head counts as read: a leading EXPECT_HEAD is already satisfied. Without a
 * path it starts when connection number `first` … `last` is accepted. `uses`
 * limits how often it is used, 0 = no limit. The earliest matching script is
 * used. */
void loopback_script(loopback_server *_Nonnull server,
                     const loopback_step *_Nonnull steps, size_t count,
                     const char *_Nullable path, uint64_t first, uint64_t last,
                     uint64_t uses);

/* [any thread] Releases every present and later LOOPBACK_WAIT for `name`. */
void loopback_signal(loopback_server *_Nonnull server,
                     const char *_Nonnull name);

/* ---- Counters, watches, records ------------------------------------------ */

typedef struct loopback_counters {
  uint64_t connections; /* accepted */
  uint64_t open;        /* of these, not closed */
  uint64_t requests;    /* heads read */
  uint64_t bytes;       /* received, before decryption */
  uint64_t handshakes;  /* TLS handshakes finished */
} loopback_counters;

/* [any thread] Reads the counters. */
void loopback_count(const loopback_server *_Nonnull server,
                    loopback_counters *_Nonnull out);

enum {
  LOOPBACK_WATCH_CONNECTIONS = 1, /* at least `value` */
  LOOPBACK_WATCH_OPEN,            /* at most `value` */
  LOOPBACK_WATCH_REQUESTS,        /* at least */
  LOOPBACK_WATCH_BYTES,           /* at least */
  LOOPBACK_WATCH_HANDSHAKES,      /* at least */
  LOOPBACK_WATCH_MARK,            /* `name` reached at least `value` times */
};

/* [any thread] Calls on_reached(watch) once, as soon as the condition is
 * true. */
void loopback_watch(loopback_server *_Nonnull server, uint64_t watch, int kind,
                    uint64_t value, const char *_Nullable name);

/* [any thread] Calls `visit` for each kept request, oldest first, on this
 * thread and with the records locked: `visit` must not call any function of
 * this server. */
void loopback_requests(
    loopback_server *_Nonnull server, void *_Nullable context,
    void (*_Nonnull visit)(void *_Nullable context,
                           const loopback_request *_Nonnull request));

#ifdef __cplusplus
}
#endif
#endif
