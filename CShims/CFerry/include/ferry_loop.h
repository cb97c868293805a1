/* ferry_loop.h - a loop: its options, start and end. */
#ifndef CFERRY_LOOP_H
#define CFERRY_LOOP_H

#include "ferry_base.h"
#include "ferry_jar.h"
#include "ferry_result.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Constants of a loop ------------------------------------------------- */

typedef struct ferry_loop ferry_loop;

enum { FERRY_TLS_1_2 = 0, FERRY_TLS_1_3 };

/* With HTTP/2 the transfers of a host share a connection, at most 100 at once.
 * libcurl before 8.0 sometimes reports success for a response without
 * Content-Length that was cut short. */
enum {
  FERRY_HTTP2_NEVER = 0,
  FERRY_HTTP2_NEGOTIATED, /* https, if the server agrees (ALPN) */
  /* Always, without negotiation. Without TLS, and with a libcurl before 8.0,
   * every transfer has a connection of its own. */
  FERRY_HTTP2_PRIOR_KNOWLEDGE,
};

/* How the address is chosen if a name has several. An address that refuses, or
 * does not connect in time, is avoided for 1 s, then twice as long each time,
 * up to 60 s, as long as the name has others. */
enum {
  FERRY_ADDRESSES_ORDERED = 0, /* the first that connects (RFC 6724, 8305) */
  FERRY_ADDRESSES_ROUND_ROBIN, /* each in turn */
  FERRY_ADDRESSES_LEAST, /* the one with the fewest requests */
};

/* What on_head, on_body and on_pull may return instead of a count. */
enum {
  FERRY_CONTINUE = 0,
  FERRY_PAUSE = -1, /* until ferry_resume(); after on_pull also until
                     * ferry_resume_sending() */
  FERRY_ABORT = -2, /* on_pull: the source failed; on_head: no memory */
  FERRY_PIECE = -3, /* on_pull: `space` holds a ferry_piece, if it is large
                     * enough */
};

/* A range of bytes in a file. */
typedef struct ferry_piece {
  int64_t offset;
  uint64_t length; /* at least 1 */
  int32_t fd;      /* owned by the core from here on, which closes it */
} ferry_piece;

/* [inside on_pull, with its `space`] Returns 1 if a piece of a file is cheaper
 * than a copy of its bytes, because the system sends it without a copy
 * (sendfile(2)). It is sent on the loop's thread, so the bytes should be in
 * memory: see ferry_file_is_cached(). */
int ferry_takes_piece(const void *_Nullable space);

/* [any thread] Returns 1 if all of these bytes of a file are in the system's
 * page cache (cachestat(2), Linux 6.5), 0 if they are not, or if it is
 * unknown. */
int ferry_file_is_cached(int32_t fd, int64_t offset, uint64_t length);

/* ---- Options of a loop --------------------------------------------------- */

struct addrinfo;

/* Addresses that replace those of a name. */
typedef struct ferry_override {
  const char *_Nonnull name; /* or an IPv4 address */
  uint16_t port;
  const char *_Nonnull addresses; /* "10.0.0.7,[::1]", at most 16 */
} ferry_override;

typedef struct ferry_options {
  void *_Nullable context; /* passed to every callback */

  /* The results of one turn, linked by `next`. Each id is reported once. This
   * callback is required; all others are optional. */
  void (*_Nullable on_finished)(void *_Nullable context,
                               ferry_result *_Nonnull first, size_t count);
  /* The transfer has left the queue. Only with FERRY_NOTIFY_START. */
  void (*_Nullable on_started)(void *_Nullable context, uint64_t id);
  /* The final head has arrived. `so_far` holds status, fields and head only,
   * and is valid until this returns. FERRY_ABORT ends the transfer with
   * FERRY_E_MEMORY. */
  int (*_Nullable on_head)(void *_Nullable context, uint64_t id,
                           const ferry_result *_Nonnull so_far);
  /* An informational head has arrived. `head` has its bytes, including the
   * empty line. An attempt has at most 32. Only with
   * FERRY_NOTIFY_INFORMATIONAL. */
  void (*_Nullable on_informational)(void *_Nullable context, uint64_t id,
                                     const char *_Nonnull head,
                                     size_t length);
  /* The response is complete and its body was delivered, while the request is
   * still being sent. `so_far` also has the trailers, and is valid until this
   * returns. Only with FERRY_DUPLEX, at most once. */
  void (*_Nullable on_answered)(void *_Nullable context, uint64_t id,
                                const ferry_result *_Nonnull so_far);
  /* A part of a streamed body. The callback always consumes all of it.
   * FERRY_PAUSE: no further call before ferry_resume(), and the socket is not
   * read. */
  int (*_Nullable on_body)(void *_Nullable context, uint64_t id,
                           const void *_Nonnull bytes, size_t length);
  /* This many bytes of the body have been written to its descriptor. */
  void (*_Nullable on_written)(void *_Nullable context, uint64_t id,
                               uint64_t bytes);
  /* Write the next bytes of the request's body to `space`. Returns their
   * count, 0 at the end, FERRY_PAUSE, FERRY_ABORT or FERRY_PIECE. */
  int64_t (*_Nullable on_pull)(void *_Nullable context, uint64_t id,
                               void *_Nonnull space, size_t size);
  /* Write the trailers of the request to `space`, as lines with CR LF. Returns
   * the number of bytes, or FERRY_ABORT. Only with FERRY_TRAILERS, and after
   * on_pull has returned the end. */
  int64_t (*_Nullable on_trailers)(void *_Nullable context, uint64_t id,
                                   char *_Nonnull space, size_t size);
  /* Called at the end of the turn that follows ferry_call(). */
  void (*_Nullable on_call)(void *_Nullable context);
  /* The time given to ferry_set_alarm() has come. Transfers submitted in it
   * start in the same turn. */
  void (*_Nullable on_alarm)(void *_Nullable context);
  /* The TLS files have changed. Without `fault`, new connections of our own
   * engine use them. With `fault`, OpenSSL's message, they are unusable, and
   * the old ones stay in use. */
  void (*_Nullable on_trust)(void *_Nullable context,
                             const char *_Nullable fault);
  /* The last callback: the thread is about to end. */
  void (*_Nullable on_stopped)(void *_Nullable context);

  uint32_t max_transfers; /* running at once; 0 = 1,024 */
  uint32_t max_per_host;  /* of these for one scheme, host and port; 0 = 64 */
  uint32_t max_streams;   /* of these on one HTTP/2 connection, if the server
                           * allows as many; 0 and all above 100 = 100 */
  uint32_t idle_ms; /* how long an idle connection is kept; 0 = 60,000. It is
                     * then closed at once if nothing else runs, otherwise with
                     * the next request */
  /* An older connection is not used again. The age varies by up to a tenth, so
   * that connections opened together do not end together. 0 = no bound. libcurl
   * counts whole seconds. */
  uint32_t lifetime_ms;
  /* When no byte has arrived on a connection for this long, the system probes
   * the peer (tcp(7)). Three probes without a reply, a third of this time
   * apart, end the connection. Whole seconds; 0 = no probes. */
  uint32_t keep_alive_ms;

  /* TLS of all transfers of the loop. ca_file NULL = the system's. Our own
   * engine reads ca_file, client_certificate and client_key again when they
   * have changed. It looks when it opens a connection, at most once a
   * second. */
  const char *_Nullable ca_file;
  const char *_Nullable pinned_keys; /* "sha256//…;sha256//…" */
  int insecure;                      /* verify neither chain nor host name */
  /* PEM. Without a key file, the certificate's file must hold the key. */
  const char *_Nullable client_certificate;
  const char *_Nullable client_key;
  const char *_Nullable client_key_password;
  uint8_t minimum_tls; /* FERRY_TLS_1_2 … */
  uint8_t http2;       /* FERRY_HTTP2_… */
  uint8_t engine;      /* FERRY_ENGINE_HTTP1: our own engine carries
                        * the transfers it can; otherwise libcurl carries all */
  /* Stores cookies and sends them; NULL = neither. A Cookie field of the
   * request is sent in any case. */
  ferry_jar *_Nullable jar;

  /* A local socket (unix(7)) that every connection goes to. Host and the name
   * for TLS still come from the URL. HTTP/1.1 only. A transfer with a proxy is
   * FERRY_E_INVALID_REQUEST, one with FERRY_PUBLIC_ONLY is
   * FERRY_E_ADDRESS_FORBIDDEN. NULL = none. */
  const char *_Nullable unix_socket;
  const ferry_override *_Nullable overrides;
  size_t override_count;
  /* How our own engine chooses between several addresses; libcurl takes them in
   * order. */
  uint8_t selection; /* FERRY_ADDRESSES_… */
  /* How many idle connections our own engine keeps to each host that is in use;
   * 0 = none. */
  uint32_t minimum_idle;

  const char *_Nullable user_agent; /* NULL = the field is not sent */
  /* Accept-Encoding of every request, also without FERRY_DECODE; NULL = none */
  const char *_Nullable encodings;

  /* Replaces getaddrinfo(). Runs on a lookup thread. Returns 0 or an EAI_…
   * code, and a list that freeaddrinfo() can free. */
  int (*_Nullable lookup)(const char *_Nonnull host,
                          struct addrinfo *_Nullable *_Nonnull out);
} ferry_options;

/* ---- The life of a loop -------------------------------------------------- */

/* [any thread] Starts a loop. Strings are copied. FERRY_E_INVALID_REQUEST:
 * without on_finished; HTTP/2 with a libcurl that lacks it; the path of a
 * socket that is empty or longer than 107 bytes; an override with anything but
 * addresses. */
int ferry_loop_start(const ferry_options *_Nonnull options,
                     ferry_loop *_Nullable *_Nonnull out);

/* [any thread] Asks the loop to end. Queued and running transfers end with
 * FERRY_E_SHUTDOWN; later submits are refused. Idempotent; does not wait. */
void ferry_loop_stop(ferry_loop *_Nonnull loop);

/* [any thread] Stops the loop, waits for its thread and frees it. No other call
 * may use this loop then or later. On the loop's own thread it does not wait:
 * the loop frees itself when its thread ends. */
void ferry_loop_free(ferry_loop *_Nonnull loop);

/* [any thread] Returns 1 on this loop's thread, otherwise 0. */
int ferry_loop_is_current(const ferry_loop *_Nonnull loop);

/* [any thread] Returns the context of the loop that runs on this thread, or
 * NULL. */
void *_Nullable ferry_current_context(void);

#ifdef __cplusplus
}
#endif
#endif
