/* ferry_loop.h - a loop: its options, its start and its end. */
#ifndef CFERRY_LOOP_H
#define CFERRY_LOOP_H

#include "ferry_base.h"
#include "ferry_jar.h"
#include "ferry_result.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types of a loop ----------------------------------------------------- */

typedef struct ferry_loop ferry_loop;

enum { FERRY_TLS_1_2 = 0, FERRY_TLS_1_3 };

/* With HTTP/2 the transfers of a host share a connection, at most 100 at
 * once. libcurl before 8.0 sometimes takes a truncated response without a
 * Content-Length for a complete one. */
enum {
  FERRY_HTTP2_NEVER = 0,
  FERRY_HTTP2_NEGOTIATED, /* https, where the server agrees (ALPN) */
  /* With every server, without negotiation. Without TLS and with a libcurl
   * before 8.0, every transfer has its own connection. */
  FERRY_HTTP2_PRIOR_KNOWLEDGE,
};

/* An address that refuses, or does not connect in time, is avoided for 1 s,
 * doubling each time up to 60 s, while there are others. */
enum {
  FERRY_ADDRESSES_ORDERED = 0, /* the first that connects (RFC 6724, 8305) */
  FERRY_ADDRESSES_ROUND_ROBIN, /* requests go to each in turn */
  FERRY_ADDRESSES_LEAST, /* to the one with the fewest requests at the time */
};

/* What on_head, on_body and on_pull may return instead of a count. */
enum {
  FERRY_CONTINUE = 0,
  FERRY_PAUSE = -1, /* until ferry_resume(), of on_pull also _sending() */
  FERRY_ABORT = -2, /* on_pull: the source failed; on_head: no memory */
  FERRY_PIECE = -3, /* on_pull: `space` holds a ferry_piece, if it has room */
};

/* A part of a file. */
typedef struct ferry_piece {
  int64_t offset;
  uint64_t length; /* at least 1 */
  int32_t fd;      /* owned by the core from here on, which closes it */
} ferry_piece;

/* Called inside on_pull with its `space`: 1 if a piece of a file costs less
 * than its bytes, because the system sends it without a copy (sendfile(2)).
 * It is sent on the loop's thread, so it should be in the page cache:
 * ferry_file_is_cached(). */
int ferry_takes_piece(const void *_Nullable space);

/* [any thread] 1 if all of these bytes of a file are in the page cache
 * (cachestat(2), since Linux 6.5), 0 if not, or if that is unknown. */
int ferry_file_is_cached(int32_t fd, int64_t offset, uint64_t length);

/* ---- Options of a loop --------------------------------------------------- */

struct addrinfo;

/* Addresses to use instead of a lookup. */
typedef struct ferry_override {
  const char *_Nonnull name; /* or an address of IPv4 */
  uint16_t port;
  const char *_Nonnull addresses; /* "10.0.0.7,[::1]", at most 16 */
} ferry_override;

typedef struct ferry_options {
  void *_Nullable context; /* given to every callback */

  /* The results of one turn, linked by `next`; each id appears once.
   * Required; the other callbacks are optional. */
  void (*_Nullable on_finished)(void *_Nullable context,
                               ferry_result *_Nonnull first, size_t count);
  /* The transfer has left the queue. Only with FERRY_NOTIFY_START. */
  void (*_Nullable on_started)(void *_Nullable context, uint64_t id);
  /* The final head has arrived. `so_far` contains only status, fields and
   * head, and is valid until this returns. FERRY_ABORT ends the transfer
   * with FERRY_E_MEMORY. */
  int (*_Nullable on_head)(void *_Nullable context, uint64_t id,
                           const ferry_result *_Nonnull so_far);
  /* A piece of a streamed body, always consumed completely. FERRY_PAUSE: no
   * further call before ferry_resume(), and the socket is not read. */
  int (*_Nullable on_body)(void *_Nullable context, uint64_t id,
                           const void *_Nonnull bytes, size_t length);
  /* This many bytes of the body have been written to its descriptor. */
  void (*_Nullable on_written)(void *_Nullable context, uint64_t id,
                               uint64_t bytes);
  /* Write the next bytes of the request's body to `space`. Returns their
   * count, 0 at the end, FERRY_PAUSE, FERRY_ABORT or FERRY_PIECE. */
  int64_t (*_Nullable on_pull)(void *_Nullable context, uint64_t id,
                               void *_Nonnull space, size_t size);
  /* Called at the end of the turn after ferry_call(). */
  void (*_Nullable on_call)(void *_Nullable context);
  /* The time of ferry_set_alarm() has come. Transfers that are submitted
   * here are sent in the same turn. */
  void (*_Nullable on_alarm)(void *_Nullable context);
  /* The TLS files have changed, and apply to new connections of the native
   * engine. With `fault`, OpenSSL's message, they cannot be used, and the
   * old ones stay in use. */
  void (*_Nullable on_trust)(void *_Nullable context,
                             const char *_Nullable fault);
  /* Called last: the thread is about to end, and no callback follows. */
  void (*_Nullable on_stopped)(void *_Nullable context);

  uint32_t max_transfers; /* active at once; 0 = 1,024 */
  uint32_t max_per_host;  /* of these for one scheme, host and port; 0 = 64 */
  uint32_t max_streams;   /* of these on one connection of HTTP/2, if the server
                           * allows as many; 0 and all above 100 = 100 */
  uint32_t idle_ms; /* a kept connection's life; 0 = 60,000. Closed then when
                     * nothing runs beside it, else with the next request */
  /* An older connection is not reused. The limit varies by up to a tenth, so
   * that connections that were opened together do not end together; 0 = no
   * limit. libcurl counts whole seconds. */
  uint32_t lifetime_ms;
  /* After this time without a byte on a connection, the system probes it
   * (tcp(7)). Three probes without a reply, a third of that time apart, end
   * the connection. In whole seconds; 0 = no probes. */
  uint32_t keep_alive_ms;

  /* TLS, for all transfers of the loop. ca_file NULL = the system's. For
   * connections of the native engine, ca_file, client_certificate and
   * client_key are read again when they have changed. This is checked when a
   * connection is opened, at most once a second. */
  const char *_Nullable ca_file;
  const char *_Nullable pinned_keys; /* "sha256//…;sha256//…" */
  int insecure;                      /* verify neither chain nor name */
  /* In PEM; without a key file the certificate's file contains the key. */
  const char *_Nullable client_certificate;
  const char *_Nullable client_key;
  const char *_Nullable client_key_password;
  uint8_t minimum_tls; /* FERRY_TLS_1_2 … */
  uint8_t http2;       /* FERRY_HTTP2_… */
  uint8_t engine;      /* FERRY_ENGINE_HTTP1: our own HTTP/1.1 engine carries
                        * what it can; otherwise libcurl carries all */
  /* Cookies are stored and sent; NULL = neither. A Cookie field of a request
   * itself is always sent. */
  ferry_jar *_Nullable jar;

  /* A Unix socket (unix(7)) to which every connection goes. The URL still
   * determines the Host field and the name for TLS. HTTP/1.1 only. A
   * transfer with a proxy is FERRY_E_INVALID_REQUEST, one with
   * FERRY_PUBLIC_ONLY is FERRY_E_ADDRESS_FORBIDDEN. NULL = none. */
  const char *_Nullable unix_socket;
  const ferry_override *_Nullable overrides;
  size_t override_count;
  /* How the native engine chooses among several addresses; libcurl uses them
   * in order. */
  uint8_t selection; /* FERRY_ADDRESSES_… */
  /* The number of unused connections of the native engine to keep for each
   * host in use; 0 = none. */
  uint32_t minimum_idle;

  const char *_Nullable user_agent; /* NULL = none is sent */
  /* Accept-Encoding of every request, also of those without FERRY_DECODE;
   * NULL = none. */
  const char *_Nullable encodings;

  /* Replaces getaddrinfo(); runs on a lookup thread. Returns 0 or an EAI_…
   * code, and a list that freeaddrinfo() can free. */
  int (*_Nullable lookup)(const char *_Nonnull host,
                          struct addrinfo *_Nullable *_Nonnull out);
} ferry_options;

/* ---- A loop, from start to end ------------------------------------------- */

/* [any thread] Starts a loop. Strings are copied. FERRY_E_INVALID_REQUEST
 * without on_finished, with HTTP/2 if libcurl was built without it, with a
 * socket path that is empty or longer than 107 bytes, or with an invalid
 * override. */
int ferry_loop_start(const ferry_options *_Nonnull options,
                     ferry_loop *_Nullable *_Nonnull out);

/* [any thread] Requests the end of the loop: waiting and active transfers
 * end with FERRY_E_SHUTDOWN, later submits are refused. Idempotent; does not
 * wait. */
void ferry_loop_stop(ferry_loop *_Nonnull loop);

/* [any thread] Stops the loop, waits for its thread and frees it. No other
 * call with this loop may be active or follow. On the loop's own thread it
 * does not wait: the loop frees itself when its thread ends. */
void ferry_loop_free(ferry_loop *_Nonnull loop);

/* [any thread] 1 on this loop's thread. */
int ferry_loop_is_current(const ferry_loop *_Nonnull loop);

/* [any thread] The context of the loop on whose thread this is called; NULL
 * on other threads. */
void *_Nullable ferry_current_context(void);

#ifdef __cplusplus
}
#endif
#endif
