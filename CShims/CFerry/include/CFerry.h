/* CFerry.h - the transfer core: a libuv loop that drives libcurl's
 * multi-socket interface on a thread of its own.
 *
 * How it is used
 *   ferry_loop_start()  makes a loop and its thread.
 *   ferry_submit()      hands over one transfer, named by an id of the
 *                       caller's choice.
 *   on_finished         brings exactly one result for every accepted id,
 *                       whatever happens: answer, fault, cancel, stop.
 *   ferry_result_free() gives the result back.
 *   ferry_loop_free()   ends the loop.
 *
 * Threads
 *   Functions marked [any thread] may be called from everywhere, callbacks
 *   included; they neither block nor take a lock. All callbacks run on the
 *   loop's thread and must not block: nothing else moves while they run.
 *
 * Ownership, three cases and no fourth
 *   1. Bytes given to ferry_submit() are copied before it returns.
 *   2. Bytes given to a callback live until the callback returns.
 *   3. A ferry_result belongs to the receiver of on_finished until it calls
 *      ferry_result_free(), on any thread, also after the loop has ended.
 *
 * A late ferry_cancel(), ferry_resume() or ferry_set_priority() for an id
 * that has been answered, or was never known, is nothing.
 *
 * Functions return 0 or a negative FERRY_E_… code.
 */
#ifndef CFERRY_H
#define CFERRY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if !defined(__clang__)
#define _Nonnull
#define _Nullable
#endif

/* ---- Codes --------------------------------------------------------------- */

/* What became of a transfer. `detail` (below) says more. */
enum {
  FERRY_OK = 0,
  FERRY_E_MEMORY = -1,             /* out of memory */
  FERRY_E_INTERNAL = -2,           /* libuv or libcurl refused; see message */
  FERRY_E_INVALID_URL = -3,        /* libcurl's parser rejects it */
  FERRY_E_UNSUPPORTED_SCHEME = -4, /* neither http nor https */
  FERRY_E_INVALID_REQUEST = -5,    /* FERRY_D_… method, header, framing */
  FERRY_E_DNS = -6,                /* FERRY_D_DNS_… */
  FERRY_E_CONNECT = -7,            /* FERRY_D_CONNECT_…; os_errno */
  FERRY_E_TLS = -8,                /* FERRY_D_TLS_… */
  FERRY_E_TIMEOUT = -9,            /* FERRY_D_TIMEOUT_… */
  FERRY_E_CONNECTION_RESET = -10,  /* RST, or EPIPE while sending */
  FERRY_E_CONNECTION_CLOSED = -11, /* closed before a whole head came */
  FERRY_E_INCOMPLETE_BODY = -12,   /* closed inside the body */
  FERRY_E_MALFORMED_RESPONSE = -13, /* FERRY_D_… part of the message */
  FERRY_E_HEAD_TOO_LARGE = -14,    /* head bytes, fields or 1xx answers */
  FERRY_E_BODY_TOO_LARGE = -15,    /* more than max_body (decoded) bytes */
  FERRY_E_CONTENT_DECODING = -16,  /* FERRY_D_DECODING_… */
  FERRY_E_HTTP2_STREAM = -17,      /* FERRY_D_HTTP2_… */
  FERRY_E_FILE = -18,              /* writing to the descriptor: os_errno */
  FERRY_E_UPLOAD_SOURCE = -19,     /* on_pull failed or broke its length */
  FERRY_E_CANCELLED = -20,
  FERRY_E_SHUTDOWN = -21,          /* the loop has been stopped */
  FERRY_E_PROXY = -22,             /* FERRY_D_PROXY_… */
  FERRY_E_ADDRESS_FORBIDDEN = -23, /* FERRY_PUBLIC_ONLY; nothing was sent */
  /* A challenge was answered, and what was pulled cannot be pulled again. */
  FERRY_E_BODY_NOT_REPLAYABLE = -24,
};

/* The finer cause, where the code has one; 0 otherwise. */
enum {
  FERRY_D_NONE = 0,
  /* FERRY_E_INVALID_REQUEST */
  FERRY_D_METHOD,
  FERRY_D_HEADER_NAME,
  FERRY_D_HEADER_VALUE,
  FERRY_D_FRAMING, /* Content-Length or Transfer-Encoding of the caller's */
  /* FERRY_E_DNS */
  FERRY_D_DNS_NOT_FOUND,
  FERRY_D_DNS_TEMPORARY,
  FERRY_D_DNS_FAILED,
  /* FERRY_E_CONNECT */
  FERRY_D_CONNECT_REFUSED,
  FERRY_D_CONNECT_UNREACHABLE,
  FERRY_D_CONNECT_FAILED,
  /* FERRY_E_TLS */
  FERRY_D_TLS_EXPIRED,
  FERRY_D_TLS_HOSTNAME,
  FERRY_D_TLS_UNTRUSTED,
  FERRY_D_TLS_PIN_MISMATCH,
  FERRY_D_TLS_HANDSHAKE,
  FERRY_D_TLS_CONFIGURATION, /* CA file unreadable, and the like */
  /* FERRY_E_TIMEOUT */
  FERRY_D_TIMEOUT_QUEUE, /* the deadline passed while it waited */
  FERRY_D_TIMEOUT_DNS,
  FERRY_D_TIMEOUT_CONNECT,
  FERRY_D_TIMEOUT_TLS,
  FERRY_D_TIMEOUT_WRITE, /* the peer stopped reading */
  FERRY_D_TIMEOUT_RESPONSE_HEAD,
  FERRY_D_TIMEOUT_READ, /* the peer stopped inside the body */
  FERRY_D_TIMEOUT_LOW_SPEED,
  FERRY_D_TIMEOUT_TOTAL,
  FERRY_D_TIMEOUT_DEADLINE,
  /* FERRY_E_MALFORMED_RESPONSE */
  FERRY_D_STATUS_LINE,
  FERRY_D_HEADER,
  FERRY_D_LENGTH,
  FERRY_D_CONFLICTING_LENGTH,
  FERRY_D_TRANSFER_ENCODING,
  FERRY_D_CHUNK,
  FERRY_D_TRAILER,
  FERRY_D_UPGRADE, /* 101, which nobody asked for */
  /* FERRY_E_HEAD_TOO_LARGE */
  FERRY_D_HEAD_BYTES,
  FERRY_D_INFORMATIONAL, /* too many 1xx answers */
  /* FERRY_E_CONTENT_DECODING */
  FERRY_D_DECODING_TRUNCATED,
  FERRY_D_DECODING_CORRUPT,
  /* FERRY_E_PROXY */
  FERRY_D_PROXY_AUTH_REQUIRED, /* 407, or no method of SOCKS agreed on */
  FERRY_D_PROXY_REFUSED,       /* CONNECT got another status: see status */
  FERRY_D_PROXY_UNREACHABLE,   /* its name, its port, the way there */
  FERRY_D_PROXY_HANDSHAKE,     /* it broke off, or SOCKS refused */
  /* FERRY_E_HTTP2_STREAM: the code of RFC 9113, 7 */
  FERRY_D_HTTP2_REFUSED, /* certainly not processed */
  FERRY_D_HTTP2_CANCEL,
  FERRY_D_HTTP2_INTERNAL,
  FERRY_D_HTTP2_ENHANCE_YOUR_CALM,
  FERRY_D_HTTP2_OTHER,
};

/* How far a transfer had come. */
enum {
  FERRY_PHASE_QUEUED = 0,
  FERRY_PHASE_DNS,
  FERRY_PHASE_CONNECT,
  FERRY_PHASE_TLS,
  FERRY_PHASE_SEND,      /* request head and body */
  FERRY_PHASE_WAIT_HEAD, /* all sent, or nothing of the answer yet */
  FERRY_PHASE_HEAD,
  FERRY_PHASE_BODY,
  FERRY_PHASE_DONE,
};

/* The three rings of waiting transfers. */
enum { FERRY_LOW = 0, FERRY_NORMAL = 1, FERRY_HIGH = 2 };

/* ---- Results ------------------------------------------------------------- */

/* Where a field stands in `head`. Names keep the case of the wire. */
typedef struct ferry_field {
  uint32_t name;
  uint32_t value;
  uint16_t name_length;
  uint16_t value_length; /* white space around it left out */
} ferry_field;

/* Microseconds. queue and total are counted from the submit, the others
 * from the start; 0 = did not happen. */
typedef struct ferry_metrics {
  uint32_t queue;
  uint32_t name;       /* the name was known */
  uint32_t connect;    /* TCP was connected; 0 on a reused connection */
  uint32_t tls;        /* the handshake was done; 0 likewise */
  uint32_t first_byte; /* the first byte of the answer */
  uint32_t total;
} ferry_metrics;

enum {
  FERRY_RESULT_REUSED = 1u << 0,       /* on a kept connection */
  FERRY_RESULT_PROCESSED = 1u << 1,    /* the server may have acted on it */
  FERRY_RESULT_CLOSE_FRAMED = 1u << 2, /* the end of the body was a close;
                                        * under TLS with close_notify */
  FERRY_RESULT_DECODED = 1u << 3,      /* gzip or deflate was undone */
};

typedef struct ferry_result {
  struct ferry_result *_Nullable next; /* the next one of this turn */
  uint64_t id;
  int32_t code;      /* FERRY_OK or FERRY_E_… */
  int32_t detail;    /* FERRY_D_… */
  int32_t phase;     /* FERRY_PHASE_…; of a success DONE */
  int32_t curl_code; /* CURLcode, 0 when libcurl had no part in it */
  int32_t os_errno;
  uint16_t status;       /* 0 when no status line came */
  uint8_t http_version;  /* 10, 11, 20 */
  uint8_t attempts;      /* times the request was (begun to be) sent */
  uint32_t flags;        /* FERRY_RESULT_… */
  uint32_t field_count;
  uint32_t head_length;
  uint16_t peer_port;
  char peer[46];         /* the address connected to, as text; "" if none */
  int64_t content_length;  /* as announced; -1 when it was not */
  uint64_t head_sent;      /* bytes of the request's head */
  uint64_t body_sent;      /* bytes of its body */
  uint64_t head_received;  /* bytes of all heads, 1xx included */
  uint64_t body_received;  /* bytes of the body before decoding */
  ferry_metrics metrics;
  /* The last head, raw: status line, fields, empty line. */
  const char *_Nullable head;
  const ferry_field *_Nullable fields;
  /* A collected body, decoded; 64 readable bytes follow it. NULL when it is
   * empty, was streamed or went to a descriptor; body_length counts the
   * delivered bytes in every case. */
  char *_Nullable body;
  uint64_t body_length;
  const char *_Nullable message; /* libcurl's or our words for a fault */
} ferry_result;

/* [any thread] Frees one result; `next` is not followed. */
void ferry_result_free(ferry_result *_Nonnull result);

/* [any thread] Makes a result without a network, for stand-ins: status,
 * head (raw, parsed by the same rules as one from the wire) and body are
 * copied. Freed by ferry_result_free(). */
int ferry_result_make(uint64_t id, const char *_Nonnull head,
                      size_t head_length, const void *_Nullable body,
                      size_t body_length,
                      ferry_result *_Nullable *_Nonnull out);

/* [any thread] A result of its own from what on_head was given: status, head
 * and what was measured so far, without a body. For receivers that go on
 * looking at it after the callback. Freed by ferry_result_free(). */
int ferry_result_copy_head(const ferry_result *_Nonnull so_far,
                           ferry_result *_Nullable *_Nonnull out);

/* [any thread] Likewise a result that is a fault. */
int ferry_result_make_fault(uint64_t id, int code, int detail, int phase,
                            ferry_result *_Nullable *_Nonnull out);

/* ---- Words of a request -------------------------------------------------- */

enum {
  FERRY_BODY_NONE = 0, /* and no Content-Length; see FERRY_BODY_BYTES */
  FERRY_BODY_BYTES, /* body, body_length, which may be 0 */
  FERRY_BODY_PULL,  /* on_pull; body_length or FERRY_UNKNOWN_LENGTH */
};
#define FERRY_UNKNOWN_LENGTH UINT64_MAX

enum {
  FERRY_COLLECT = 0, /* the body arrives with the result */
  FERRY_STREAM,      /* on_head, then on_body as it comes */
  FERRY_DESCRIPTOR,  /* written to fd */
};

enum {
  /* May be sent a second time when a kept connection turns out to be dead
   * before any byte of an answer (RFC 9110, 9.2.2). Without it never, and
   * never once a part of its body was pulled. */
  FERRY_IDEMPOTENT = 1u << 0,
  /* Undo Content-Encoding gzip and deflate. */
  FERRY_DECODE = 1u << 1,
  /* Call on_started when the transfer leaves the queue. */
  FERRY_NOTIFY_START = 1u << 2,
  /* Call on_head for FERRY_DESCRIPTOR too. */
  FERRY_NOTIFY_HEAD = 1u << 3,
  /* Connect to addresses of the public internet only. What counts is the
   * address connected to, whatever its name or its spelling, on a kept
   * connection too; of several only the public ones are tried. With a proxy
   * the proxy's own address is exempt, and what the proxy looks up is out of
   * sight: then a target that is a private address itself, or localhost, is
   * refused, and with FERRY_PROXY_SOCKS5 the names that we look up are held
   * to it. */
  FERRY_PUBLIC_ONLY = 1u << 4,
  /* With FERRY_STREAM: after on_head the body waits for ferry_resume(), and
   * then goes to on_body, or for ferry_write_to(). */
  FERRY_HOLD_BODY = 1u << 5,
};

/* ---- What few requests say ----------------------------------------------- */

enum {
  FERRY_PROXY_HTTP = 1,    /* plain to the proxy; CONNECT for https */
  FERRY_PROXY_SOCKS5,      /* names are looked up here */
  FERRY_PROXY_SOCKS5_NAMES /* names are looked up by the proxy */
};

/* Strings end with a NUL and are copied. */
typedef struct ferry_proxy {
  const char *_Nonnull address; /* "name:port", "[::1]:port" */
  /* Sent at once, without a challenge; NULL = none. No colon in `user`. */
  const char *_Nullable user;
  const char *_Nullable password;
  uint8_t kind; /* FERRY_PROXY_… */
} ferry_proxy;

enum {
  FERRY_SCHEME_BASIC = 1u << 0,
  FERRY_SCHEME_DIGEST = 1u << 1,
  FERRY_SCHEME_NTLM = 1u << 2,
  FERRY_SCHEME_NEGOTIATE = 1u << 3,
};

enum { FERRY_FOR_SERVER = 1u << 0, FERRY_FOR_PROXY = 1u << 1 };

/* What challenges (401, 407) are answered with, within the transfer: the
 * best of these schemes that is asked for. Nothing of them is sent before,
 * and the body goes out again after a challenge. One that is pulled cannot:
 * it is held back for the best scheme of all, Basic being sent at once; where
 * the server asks for more, FERRY_E_BODY_NOT_REPLAYABLE. Refused when libcurl was built for none of the
 * schemes (ferry_features()). The result is the last answer's, and `attempts`
 * does not count the rounds. */
typedef struct ferry_credentials {
  const char *_Nonnull user;
  const char *_Nonnull password;
  uint8_t schemes; /* FERRY_SCHEME_… */
  uint8_t targets; /* FERRY_FOR_… */
} ferry_credentials;

enum {
  FERRY_ENCODINGS_OPTION = 0, /* as the loop's options say */
  FERRY_ENCODINGS_NONE,
  FERRY_ENCODINGS_THESE, /* `encodings` */
};

/* What few requests say. */
typedef struct ferry_extras {
  const ferry_proxy *_Nullable proxy;
  const ferry_credentials *_Nullable credentials;
  const char *_Nullable encodings; /* copied */
  uint8_t encodings_kind;          /* FERRY_ENCODINGS_… */
} ferry_extras;

/* ---- A request ----------------------------------------------------------- */

typedef struct ferry_request {
  /* Not 0, and not one that is still unanswered: that ends the process. */
  uint64_t id;
  const char *_Nullable url; /* absolute, escaped; a fragment is left out */
  size_t url_length;
  const char *_Nullable method; /* HEAD takes no body; CONNECT is refused */
  size_t method_length;
  /* Fields, packed: for each one uint32_t name length, uint32_t value
   * length (native byte order, unaligned), name, value. */
  const void *_Nullable headers;
  size_t headers_length;
  const void *_Nullable body;
  uint64_t body_length;
  uint8_t body_kind;     /* FERRY_BODY_… */
  uint8_t priority;      /* FERRY_LOW … FERRY_HIGH */
  uint8_t response_kind; /* FERRY_COLLECT … */
  /* FERRY_DESCRIPTOR. It stays the caller's, who must not close it before
   * the result. Threads of libuv's write to it, so that it may block; EAGAIN
   * is a fault. */
  int32_t fd;
  int64_t offset; /* of the first byte in it; -1 = wherever it stands */
  uint32_t flags;        /* FERRY_IDEMPOTENT … */
  /* Milliseconds, 0 = none. deadline_ms counts from the submit, the others
   * from the start. idle_ms: no byte in either direction. */
  uint32_t connect_ms;
  uint32_t idle_ms;
  uint32_t total_ms;
  uint32_t deadline_ms;
  /* Fault when fewer than low_speed_bytes a second came over low_speed_ms. */
  uint32_t low_speed_bytes;
  uint32_t low_speed_ms;
  uint32_t max_head; /* bytes of all heads, 1xx and trailers included; 0 =
                      * 64 KiB. 1,000 fields are the most in any case */
  uint64_t max_body; /* bytes delivered, after decoding; 0 = no bound */
  uint64_t max_rate; /* bytes received a second, on average; 0 = no bound */
  const ferry_extras *_Nullable extras;
} ferry_request;

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

/* What on_body and on_pull may answer instead of a count. */
enum {
  FERRY_CONTINUE = 0,
  FERRY_PAUSE = -1, /* until ferry_resume(), of on_pull also _sending() */
  FERRY_ABORT = -2, /* on_pull: the source failed; on_head: no memory */
};

/* ---- Cookies ------------------------------------------------------------- */

/* A jar of cookies (RFC 6265) that loops may share. */
typedef struct ferry_jar ferry_jar;

/* [any thread] */
int ferry_jar_make(ferry_jar *_Nullable *_Nonnull out);

/* [any thread] The last of the maker and of the loops that use it frees it. */
void ferry_jar_free(ferry_jar *_Nonnull jar);

/* [any thread] Puts one in, as a line of the form that ferry_jar_list()
 * shows, or as "Set-Cookie: …", in the place of one with its name, domain and
 * path. What is none is left out without a word. */
int ferry_jar_set(ferry_jar *_Nonnull jar, const char *_Nonnull line);

/* [any thread] */
int ferry_jar_clear(ferry_jar *_Nonnull jar);

/* [any thread] Visits all on this thread, each as seven texts with tabs
 * between them: domain (behind "#HttpOnly_" for one that is), TRUE when its
 * subdomains get it too, path, TRUE when it needs TLS, seconds since 1970 or
 * 0, name, value. */
int ferry_jar_list(ferry_jar *_Nonnull jar, void *_Nullable context,
                   void (*_Nonnull visit)(void *_Nullable context,
                                          const char *_Nonnull line));

/* ---- Options of a loop --------------------------------------------------- */

struct addrinfo;

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
  /* A piece of a streamed body, always taken whole. FERRY_PAUSE: no further
   * call before ferry_resume(), and the socket is left unread. */
  int (*_Nullable on_body)(void *_Nullable context, uint64_t id,
                           const void *_Nonnull bytes, size_t length);
  /* So many bytes of the body have been written to its descriptor. */
  void (*_Nullable on_written)(void *_Nullable context, uint64_t id,
                               uint64_t bytes);
  /* Fill `space` with the next bytes of the request's body. Returns their
   * count, 0 at the end, FERRY_PAUSE or FERRY_ABORT. */
  int64_t (*_Nullable on_pull)(void *_Nullable context, uint64_t id,
                               void *_Nonnull space, size_t size);
  /* At the end of the turn that follows ferry_call(). */
  void (*_Nullable on_call)(void *_Nullable context);
  /* Last of all: the thread is about to end, nothing comes after it. */
  void (*_Nullable on_stopped)(void *_Nullable context);

  uint32_t max_transfers; /* at work at once; 0 = 1,024 */
  uint32_t max_per_host;  /* of these for one scheme, host and port; 0 = 64 */
  uint32_t idle_ms; /* a kept connection's life; 0 = 60,000. Closed then when
                     * nothing runs beside it, else with the next request */

  /* TLS, for all transfers of the loop. ca_file NULL = the system's. */
  const char *_Nullable ca_file;
  const char *_Nullable pinned_keys; /* "sha256//…;sha256//…" */
  int insecure;                      /* verify neither chain nor name */
  /* PEM; a certificate without a key file brings its key along. */
  const char *_Nullable client_certificate;
  const char *_Nullable client_key;
  const char *_Nullable client_key_password;
  uint8_t minimum_tls; /* FERRY_TLS_1_2 … */
  uint8_t http2;       /* FERRY_HTTP2_… */
  /* Cookies are kept and sent; NULL = neither. A Cookie among a request's own
   * fields is sent in any case. */
  ferry_jar *_Nullable jar;

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
 * without on_finished, or with HTTP/2 where libcurl was built without. */
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

/* ---- Transfers ----------------------------------------------------------- */

/* [any thread] Accepts a transfer, or refuses it: FERRY_E_INVALID_URL,
 * FERRY_E_UNSUPPORTED_SCHEME, FERRY_E_INVALID_REQUEST (with *detail),
 * FERRY_E_SHUTDOWN, FERRY_E_MEMORY. A refused id gets no result. What only
 * libcurl's parser sees of a URL comes as a result. */
int ferry_submit(ferry_loop *_Nonnull loop,
                 const ferry_request *_Nonnull request,
                 int *_Nullable detail);

/* [any thread] Ends a transfer with FERRY_E_CANCELLED, unless it has ended. */
void ferry_cancel(ferry_loop *_Nonnull loop, uint64_t id);

/* [any thread] After FERRY_PAUSE: goes on receiving and sending, both. A
 * resume that overtakes its pause is not lost. The end of a paused stream is
 * told without one, unless decoded bytes are still held back. */
void ferry_resume(ferry_loop *_Nonnull loop, uint64_t id);

/* [any thread] Likewise after FERRY_PAUSE of on_pull, and of that alone: an
 * answer that is held or paused meanwhile stays so. */
void ferry_resume_sending(ferry_loop *_Nonnull loop, uint64_t id);

/* [any thread] Leaves the socket unread until ferry_resume(). What libcurl
 * has read already may still be delivered. */
void ferry_pause(ferry_loop *_Nonnull loop, uint64_t id);

/* [any thread] Sends the rest of a body of FERRY_STREAM to a descriptor (see
 * ferry_request.fd), and resumes. `most`: more bytes than this from here on are
 * FERRY_E_BODY_TOO_LARGE; 0 = as the request says. */
void ferry_write_to(ferry_loop *_Nonnull loop, uint64_t id, int32_t fd,
                    int64_t offset, uint64_t most);

/* [any thread] Moves a waiting transfer to the end of another ring. */
void ferry_set_priority(ferry_loop *_Nonnull loop, uint64_t id, int priority);

/* [any thread] Has on_call called once, soon; calls run together. One just
 * before the stop may come to nothing: on_stopped tells. */
void ferry_call(ferry_loop *_Nonnull loop);

/* ---- Figures ------------------------------------------------------------- */

/* Gauges and counters of a loop; each is exact, together they may differ by
 * a turn. */
typedef struct ferry_statistics {
  uint64_t waiting;     /* in the rings */
  uint64_t resolving;   /* of these, for a name */
  uint64_t running;     /* inside libcurl */
  uint64_t sockets;     /* open */
  uint64_t handles;     /* easy handles, idle ones included */
  uint64_t submitted;   /* since the start, like all that follow */
  uint64_t finished;
  uint64_t connections; /* opened */
  uint64_t lookups;
  uint64_t guarded;     /* idle connections ended because bytes came */
  uint64_t turns;
  uint64_t longest_turn_us;
} ferry_statistics;

/* [any thread], until ferry_loop_free(). */
void ferry_loop_statistics(const ferry_loop *_Nonnull loop,
                           ferry_statistics *_Nonnull out);

/* ---- What this machine has ----------------------------------------------- */

/* What the libcurl of this machine was built for. */
enum {
  FERRY_FEATURE_HTTP2 = 1u << 0,
  FERRY_FEATURE_NTLM = 1u << 1,
  FERRY_FEATURE_NEGOTIATE = 1u << 2,
  FERRY_FEATURE_PUBLIC_SUFFIXES = 1u << 3, /* no cookies for all of .com */
};

/* [any thread] FERRY_FEATURE_… */
unsigned ferry_features(void);

/* [any thread] 1 when FERRY_PUBLIC_ONLY connects to this address ("1.2.3.4",
 * "::1", "[::1]"), 0 when it does not, -1 when it is not an address. */
int ferry_address_is_public(const char *_Nonnull text);

/* [any thread] "libcurl/7.88.1 OpenSSL/3.0.19 libuv/1.44.2 zlib/1.2.13" */
const char *_Nonnull ferry_version(void);

/* ---- URLs ---------------------------------------------------------------- */

/* A URL, taken apart by libcurl's parser: what it takes for the host is the
 * host. `host`, `target` point into `text`; nothing ends in a NUL. */
typedef struct ferry_url {
  const char *_Nonnull text; /* the whole, without user and password and
                              * without a default port */
  size_t text_length;
  const char *_Nonnull host; /* lower case, punycode, decimal addresses; one
                              * of IPv6 in its brackets */
  size_t host_length;
  const char *_Nonnull target; /* path and query */
  size_t target_length;
  uint16_t port;        /* the scheme's own where none is written */
  uint8_t is_secure;    /* https, or else http */
  uint8_t has_userinfo; /* user or password stood in it */
} ferry_url;

/* [any thread] Takes an absolute URL apart. FERRY_E_INVALID_URL,
 * FERRY_E_UNSUPPORTED_SCHEME (also without any), FERRY_E_MEMORY. */
int ferry_url_parts(const char *_Nonnull url, size_t length,
                    ferry_url *_Nullable *_Nonnull out);

/* [any thread] Resolves a reference against an absolute base (RFC 3986, 5),
 * as a Location is (RFC 9110, 10.2.2): a fragment is inherited. Space and
 * bytes beyond ASCII are escaped, control characters are refused, and so is
 * what parsers disagree about. Codes as above; `has_userinfo` speaks of the
 * reference alone. */
int ferry_url_resolve(const char *_Nonnull base, size_t base_length,
                      const char *_Nonnull reference, size_t reference_length,
                      ferry_url *_Nullable *_Nonnull out);

/* [any thread] */
void ferry_url_free(ferry_url *_Nullable url);

#ifdef __cplusplus
}
#endif
#endif
