/* CLoopback.h - an HTTP/1.1 server for tests and benchmarks: a libuv loop on
 * a thread of its own, built-in routes, scripts that misbehave byte by byte.
 *
 * How it is used
 *   loopback_start()   makes a server and its thread.
 *   loopback_port()    says where it listens.
 *   loopback_stop()    ends the thread; counters and records stay readable.
 *   loopback_free()    gives the server back.
 *
 * Threads
 *   Functions marked [any thread] may be called from everywhere, callbacks
 *   included. All callbacks run on the server's thread and must not block.
 *
 * Ownership
 *   1. Bytes given to a function are copied before it returns.
 *   2. Bytes given to a callback live until the callback returns.
 *   A late answer for a request that is gone is nothing.
 *
 * Memory that cannot be had ends the process with a sentence: a server for
 * tests has no better answer.
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

/* [any thread] The authority a client should trust, as PEM; lives as long as
 * the certificate. */
const char *_Nonnull loopback_certificate_authority(
    const loopback_certificate *_Nonnull certificate);

/* [any thread] "sha256//…" of the leaf's public key; lives likewise. */
const char *_Nonnull loopback_certificate_pin(
    const loopback_certificate *_Nonnull certificate);

enum {
  LOOPBACK_CLIENT_CERTIFICATE = 0, /* of the certificate's authority */
  LOOPBACK_CLIENT_KEY,
  LOOPBACK_CLIENT_LOCKED_KEY, /* the same; the password is "ferry" */
};

/* [any thread] A certificate for a client, and its key, as PEM; lives as long
 * as the certificate. */
const char *_Nonnull loopback_certificate_client(
    const loopback_certificate *_Nonnull certificate, int part);

/* [any thread] No server needs it after loopback_start() has returned. */
void loopback_certificate_free(loopback_certificate *_Nonnull certificate);

/* ---- Server -------------------------------------------------------------- */

/* A request as it came. Bodies are complete, or cut at the bound. */
typedef struct loopback_request {
  uint64_t connection; /* 1 for the first accepted */
  const char *_Nonnull head; /* request line, fields, empty line; raw */
  size_t head_length;
  const char *_Nullable body; /* chunked framing undone */
  size_t body_length;         /* bytes present at `body` */
  uint64_t body_total;        /* bytes received */
} loopback_request;

enum {
  LOOPBACK_ACCEPT_ALL = 0,
  LOOPBACK_ACCEPT_NONE, /* listens with a full backlog: connects hang */
  LOOPBACK_REFUSE,      /* bound and not listening: connects are refused */
};

typedef struct loopback_options {
  void *_Nullable context; /* given to every callback */

  /* A request for a handler of loopback_handle(). Answer it once, by
   * loopback_answer() with this id. */
  void (*_Nullable on_request)(void *_Nullable context, uint64_t id,
                               uint64_t handler,
                               const loopback_request *_Nonnull request);
  /* A watch of loopback_watch() has come true; called once for each. */
  void (*_Nullable on_reached)(void *_Nullable context, uint64_t watch);
  /* Last of all; no callback comes after it. Called exactly once for every
   * server that was started. */
  void (*_Nullable on_stopped)(void *_Nullable context);

  const char *_Nonnull address; /* "127.0.0.1", "::1", "/run/socket" */
  uint16_t port;                /* 0 = any free one */
  int accept;                   /* LOOPBACK_ACCEPT_ALL … */
  /* NULL = plain. */
  const loopback_certificate *_Nullable certificate;
  /* ALPN, in order of preference, "h2,http/1.1"; NULL = none. */
  const char *_Nullable protocols;
  int demands_certificate; /* of clients, from the certificate's authority */
  int minimum_tls;         /* 12 or 13; 0 = 12 */
  int maximum_tls;         /* likewise; 0 = 13 */
  uint32_t record_limit;      /* the latest requests kept; 0 = none */
  uint32_t record_body_limit; /* bytes kept of each body */
  uint64_t max_body;          /* bytes of a body collected for an answer */
} loopback_options;

/* [any thread] Returns 0, or a negative errno, and then calls nothing. */
int loopback_start(const loopback_options *_Nonnull options,
                   loopback_server *_Nullable *_Nonnull out);

/* [any thread] */
uint16_t loopback_port(const loopback_server *_Nonnull server);

/* Closes everything and waits for the thread. Idempotent. [any thread]; on
 * the server's own it does not wait. */
void loopback_stop(loopback_server *_Nonnull server);

/* Stops and frees. [any thread] that makes no other call with this server
 * any more; on the server's own it is freed when that thread ends. */
void loopback_free(loopback_server *_Nonnull server);

/* ---- Handlers ------------------------------------------------------------ */

/* [any thread] Requests of this method (NULL = any) and path go to
 * on_request with the number `handler`. A path that ends in `*` is a prefix.
 * The latest that fits wins, before every built-in route. */
void loopback_handle(loopback_server *_Nonnull server, uint64_t handler,
                     const char *_Nullable method, const char *_Nonnull path);

/* [any thread] Answers a request. `head` is "Name: value\r\n" lines, may be
 * empty; Content-Length is added unless `head` frames the body itself. */
void loopback_answer(loopback_server *_Nonnull server, uint64_t id, int status,
                     const char *_Nullable reason, const char *_Nonnull head,
                     size_t head_length, const void *_Nullable body,
                     size_t body_length);

/* ---- Scripts ------------------------------------------------------------- */

enum {
  LOOPBACK_EXPECT_HEAD = 1, /* read a request up to its empty line */
  LOOPBACK_EXPECT_BODY,     /* read the body that the last head announced */
  LOOPBACK_EXPECT_BYTES,    /* read `count` bytes */
  LOOPBACK_EXPECT_CLOSE,    /* read until the client closes */
  LOOPBACK_SEND,            /* `bytes`, `count` times */
  LOOPBACK_PATTERN,         /* `count` bytes of the pattern of /bytes */
  LOOPBACK_DRIP,            /* `bytes`, `count` of them each `milliseconds` */
  LOOPBACK_PAUSE,           /* `milliseconds` */
  LOOPBACK_WAIT,            /* for loopback_signal(`bytes`) */
  LOOPBACK_MARK,            /* tell watches of `bytes` */
  LOOPBACK_CLOSE,           /* close_notify (TLS), then close */
  LOOPBACK_DROP,            /* close without close_notify */
  LOOPBACK_RESET,           /* RST */
  LOOPBACK_HALF_CLOSE,      /* FIN, and go on reading */
  LOOPBACK_STOP_READING,
  LOOPBACK_SERVE,            /* go on as the ordinary server */
  LOOPBACK_RESTART,          /* from the first step */
  LOOPBACK_START_TLS,        /* the handshake is here, not at the start */
  LOOPBACK_PLAIN,            /* no TLS on this connection */
  LOOPBACK_STALL_HANDSHAKE,  /* take the ClientHello, never answer */
  LOOPBACK_CLOSE_HANDSHAKE,  /* take the ClientHello, close */
  LOOPBACK_KEEP_OPEN,        /* silent, until the client closes */
};

typedef struct loopback_step {
  int kind; /* LOOPBACK_EXPECT_HEAD … */
  const void *_Nullable bytes;
  size_t length;
  uint64_t count;
  uint32_t milliseconds;
} loopback_step;

/* [any thread] When the steps run out the connection stays open and silent.
 * With a path (a prefix) the script begins at a request for it, whose head
 * counts as read: a leading EXPECT_HEAD is satisfied by it. Without one it
 * begins when connection number `first` … `last` is accepted. `uses` bounds
 * how often it is taken, 0 = no bound. The earliest that fits is taken. */
void loopback_script(loopback_server *_Nonnull server,
                     const loopback_step *_Nonnull steps, size_t count,
                     const char *_Nullable path, uint64_t first, uint64_t last,
                     uint64_t uses);

/* [any thread] Lets every present and later LOOPBACK_WAIT for `name` pass. */
void loopback_signal(loopback_server *_Nonnull server,
                     const char *_Nonnull name);

/* ---- Counters, watches, records ------------------------------------------ */

typedef struct loopback_counters {
  uint64_t connections; /* accepted */
  uint64_t open;        /* of these, not closed */
  uint64_t requests;    /* heads read */
  uint64_t bytes;       /* received, before decryption */
  uint64_t handshakes;  /* finished */
} loopback_counters;

/* [any thread] */
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

/* [any thread] Calls on_reached(watch) once, when it is so. */
void loopback_watch(loopback_server *_Nonnull server, uint64_t watch, int kind,
                    uint64_t value, const char *_Nullable name);

/* [any thread] Visits the kept requests, oldest first, on this thread and
 * under the records' lock: call nothing of this server from `visit`. */
void loopback_requests(
    loopback_server *_Nonnull server, void *_Nullable context,
    void (*_Nonnull visit)(void *_Nullable context,
                           const loopback_request *_Nonnull request));

#ifdef __cplusplus
}
#endif
#endif
