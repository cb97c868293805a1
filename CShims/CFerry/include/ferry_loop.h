/* ferry_loop.h - a loop: its options, its start and its end. */
#ifndef CFERRY_LOOP_H
#define CFERRY_LOOP_H

#include "ferry_base.h"
#include "ferry_jar.h"
#include "ferry_result.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Words of a loop ----------------------------------------------------- */

typedef struct ferry_loop ferry_loop;

enum { FERRY_TLS_1_2 = 0, FERRY_TLS_1_3 };

/* With HTTP/2 the transfers of a host share a connection, at most 100 at once.
 * libcurl 7.88 takes an answer that has no Content-Length and is cut short
 * for a whole one now and then; that was mended in 8.0. */
enum {
  FERRY_HTTP2_NEVER = 0,
  FERRY_HTTP2_NEGOTIATED, /* https, where the server agrees (ALPN) */
  /* Everywhere, without asking. Without TLS and with a libcurl before 8.0
   * every transfer has a connection of its own. */
  FERRY_HTTP2_PRIOR_KNOWLEDGE,
};

/* One that refuses, or does not connect in time, is avoided for 1 s, twice as
 * long with each time, up to 60 s, as long as there are others. */
enum {
  FERRY_ADDRESSES_ORDERED = 0, /* the first that connects (RFC 6724, 8305) */
  FERRY_ADDRESSES_ROUND_ROBIN, /* requests go to each in turn */
  FERRY_ADDRESSES_LEAST, /* to the one with the fewest requests at the time */
};

/* What on_body and on_pull may answer instead of a count. */
enum {
  FERRY_CONTINUE = 0,
  FERRY_PAUSE = -1, /* until ferry_resume(), of on_pull also _sending() */
  FERRY_ABORT = -2, /* on_pull: the source failed; on_head: no memory */
  FERRY_PIECE = -3, /* on_pull: `space` holds a ferry_piece, if it has room */
};

/* Bytes that stand in a file. */
typedef struct ferry_piece {
  int64_t offset;
  uint64_t length; /* at least 1 */
  int32_t fd;      /* the core's from here on, which closes it */
} ferry_piece;

/* Inside of on_pull, with its `space`: 1 when a piece of a file costs less than
 * its bytes, as the system sends it without a copy (sendfile(2)). It is sent on
 * the loop's thread, so that it should be in memory: ferry_file_is_cached(). */
int ferry_takes_piece(const void *_Nullable space);

/* [any thread] 1 when all of these bytes of a file are in the system's memory
 * (cachestat(2), of Linux 6.5), 0 when they are not, or nobody knows. */
int ferry_file_is_cached(int32_t fd, int64_t offset, uint64_t length);

/* ---- Options of a loop --------------------------------------------------- */

struct addrinfo;

/* Addresses in the place of those that a name has. */
typedef struct ferry_override {
  const char *_Nonnull name; /* or an address of IPv4 */
  uint16_t port;
  const char *_Nonnull addresses; /* "10.0.0.7,[::1]", at most 16 */
} ferry_override;

typedef struct ferry_options {
  void *_Nullable context; /* given to every callback */

  /* The results of one turn, linked by `next`; each id comes once. Required,
   * the other callbacks are not. */
  void (*_Nullable on_finished)(void *_Nullable context,
                               ferry_result *_Nonnull first, size_t count);
  /* The transfer left the queue. Only with FERRY_NOTIFY_START. */
  void (*_Nullable on_started)(void *_Nullable context, uint64_t id);
  /* The final head came. `so_far` holds status, fields and head only, and
   * lives until this returns. FERRY_ABORT ends the transfer with
   * FERRY_E_MEMORY. */
  int (*_Nullable on_head)(void *_Nullable context, uint64_t id,
                           const ferry_result *_Nonnull so_far);
  /* An informational head came: raw, with its empty line. At most 32 of one
   * attempt do. Only with FERRY_NOTIFY_INFORMATIONAL. */
  void (*_Nullable on_informational)(void *_Nullable context, uint64_t id,
                                     const char *_Nonnull head,
                                     size_t length);
  /* The response is whole, and its body was delivered; the request is still
   * being sent. `so_far` has its trailers, too, and lives until this returns.
   * Only with FERRY_DUPLEX, once at most. Of a response over HTTP/2 without
   * Content-Length libcurl does not tell before the request has ended. */
  void (*_Nullable on_answered)(void *_Nullable context, uint64_t id,
                                const ferry_result *_Nonnull so_far);
  /* A piece of a streamed body, always taken whole. FERRY_PAUSE: no further
   * call before ferry_resume(), and the socket is left unread. */
  int (*_Nullable on_body)(void *_Nullable context, uint64_t id,
                           const void *_Nonnull bytes, size_t length);
  /* So many bytes of the body have been written to its descriptor. */
  void (*_Nullable on_written)(void *_Nullable context, uint64_t id,
                               uint64_t bytes);
  /* Fill `space` with the next bytes of the request's body. Returns their
   * count, 0 at the end, FERRY_PAUSE, FERRY_ABORT or FERRY_PIECE. */
  int64_t (*_Nullable on_pull)(void *_Nullable context, uint64_t id,
                               void *_Nonnull space, size_t size);
  /* Fill `space` with the trailers of the request, lines with CR LF. Returns
   * the count of bytes, or FERRY_ABORT. Only with FERRY_TRAILERS, and after
   * on_pull has told of the end. */
  int64_t (*_Nullable on_trailers)(void *_Nullable context, uint64_t id,
                                   char *_Nonnull space, size_t size);
  /* At the end of the turn that follows ferry_call(). */
  void (*_Nullable on_call)(void *_Nullable context);
  /* The time given to ferry_set_alarm() has come. What is submitted in it
   * leaves in the same turn. */
  void (*_Nullable on_alarm)(void *_Nullable context);
  /* The files of TLS have changed, and new connections of our own engine go by
   * them; with `fault`, OpenSSL's words, they cannot be used, and the old ones
   * hold on. */
  void (*_Nullable on_trust)(void *_Nullable context,
                             const char *_Nullable fault);
  /* Last of all: the thread is about to end, nothing comes after it. */
  void (*_Nullable on_stopped)(void *_Nullable context);

  uint32_t max_transfers; /* at work at once; 0 = 1,024 */
  uint32_t max_per_host;  /* of these for one scheme, host and port; 0 = 64 */
  uint32_t max_streams;   /* of these on one connection of HTTP/2, if the server
                           * allows as many; 0 and all above 100 = 100 */
  uint32_t idle_ms; /* a kept connection's life; 0 = 60,000. Closed then when
                     * nothing runs beside it, else with the next request */
  /* An older connection is not used again, give or take a tenth, so that those
   * that were opened together do not end together; 0 = no bound. libcurl counts
   * whole seconds. */
  uint32_t lifetime_ms;
  /* On a connection without a byte for so long the system asks the other side
   * whether it is there (tcp(7)); three questions without a reply, a third of
   * that time apart, end the connection. Whole seconds; 0 = it never asks. */
  uint32_t keep_alive_ms;

  /* TLS, for all transfers of the loop. ca_file NULL = the system's. For
   * connections of our own engine ca_file, client_certificate and client_key
   * are read again when they have changed; that is looked at when one is
   * opened, once a second at most. */
  const char *_Nullable ca_file;
  const char *_Nullable pinned_keys; /* "sha256//…;sha256//…" */
  int insecure;                      /* verify neither chain nor name */
  /* PEM; a certificate without a key file brings its key along. */
  const char *_Nullable client_certificate;
  const char *_Nullable client_key;
  const char *_Nullable client_key_password;
  uint8_t minimum_tls; /* FERRY_TLS_1_2 … */
  uint8_t http2;       /* FERRY_HTTP2_… */
  uint8_t engine;      /* FERRY_ENGINE_HTTP1: our own HTTP/1.1 engine carries
                        * what it can; otherwise libcurl carries all */
  /* Cookies are kept and sent; NULL = neither. A Cookie among a request's own
   * fields is sent in any case. */
  ferry_jar *_Nullable jar;

  /* A socket of this machine (unix(7)) that every connection goes to; the URL
   * still says what Host and TLS name. HTTP/1.1 only. A transfer with a proxy
   * is FERRY_E_INVALID_REQUEST, one with FERRY_PUBLIC_ONLY is
   * FERRY_E_ADDRESS_FORBIDDEN. NULL = none */
  const char *_Nullable unix_socket;
  const ferry_override *_Nullable overrides;
  size_t override_count;
  /* Which address of several our own engine takes; libcurl has them in their
   * order. */
  uint8_t selection; /* FERRY_ADDRESSES_… */
  /* Connections of our own engine that are kept unused at a host as long as it
   * is in use; 0 = none. */
  uint32_t minimum_idle;

  const char *_Nullable user_agent; /* NULL = none is sent */
  /* Accept-Encoding of every request, also of those without FERRY_DECODE;
   * NULL = none */
  const char *_Nullable encodings;

  /* Takes getaddrinfo()'s place; runs on a lookup thread. Returns 0 or an
   * EAI_… code, and a list that freeaddrinfo() can free. */
  int (*_Nullable lookup)(const char *_Nonnull host,
                          struct addrinfo *_Nullable *_Nonnull out);
} ferry_options;

/* ---- A loop, from start to end ------------------------------------------- */

/* [any thread] Starts a loop. Strings are copied. FERRY_E_INVALID_REQUEST
 * without on_finished, with HTTP/2 where libcurl was built without, with the
 * path of a socket that is empty or longer than 107 bytes, or with an override
 * that holds anything but addresses. */
int ferry_loop_start(const ferry_options *_Nonnull options,
                     ferry_loop *_Nullable *_Nonnull out);

/* [any thread] Asks the loop to end: what waits or runs is answered with
 * FERRY_E_SHUTDOWN, later submits are refused. Idempotent, does not wait. */
void ferry_loop_stop(ferry_loop *_Nonnull loop);

/* Stops the loop, waits for its thread and frees it. [any thread] that
 * makes no other call with this loop any more. On the loop's own thread it
 * does not wait: the loop frees itself when its thread ends. */
void ferry_loop_free(ferry_loop *_Nonnull loop);

/* [any thread] 1 when called on this loop's thread. */
int ferry_loop_is_current(const ferry_loop *_Nonnull loop);

/* [any thread] The context of the loop on whose thread this is called;
 * NULL elsewhere. */
void *_Nullable ferry_current_context(void);

#ifdef __cplusplus
}
#endif
#endif
