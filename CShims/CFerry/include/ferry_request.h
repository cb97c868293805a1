/* ferry_request.h - what a transfer is to send and to receive. */
#ifndef CFERRY_REQUEST_H
#define CFERRY_REQUEST_H

#include "ferry_base.h"

/* The three rings of waiting transfers. */
enum { FERRY_LOW = 0, FERRY_NORMAL = 1, FERRY_HIGH = 2 };

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
  /* Undo Content-Encoding gzip, deflate, br and zstd. */
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
   * refused, and with FERRY_PROXY_SOCKS5 and FERRY_PROXY_SOCKS4 the names that
   * we look up are held to it. */
  FERRY_PUBLIC_ONLY = 1u << 4,
  /* With FERRY_STREAM: after on_head the body waits for ferry_resume(), and
   * then goes to on_body, or for ferry_write_to(). */
  FERRY_HOLD_BODY = 1u << 5,
  /* Sends nothing: the transfer ends well when there is a connection, which is
   * kept for others. Never carried by libcurl: there it is
   * FERRY_E_INVALID_REQUEST. See ferry_request.connections. */
  FERRY_CONNECT = 1u << 6,
  /* The response is read while the request is sent, and either may end first:
   * on_answered tells when it is whole and the request is not. idle_ms counts
   * while the source has nothing to give, too. */
  FERRY_DUPLEX = 1u << 7,
  /* Fields follow a body of FERRY_BODY_PULL and FERRY_UNKNOWN_LENGTH:
   * on_trailers is asked for them at its end. Sent over HTTP/1.1 only, as
   * libcurl sends none over HTTP/2: with FERRY_HTTP2_NEGOTIATED that is agreed
   * on for this transfer, with FERRY_HTTP2_PRIOR_KNOWLEDGE it is
   * FERRY_E_INVALID_REQUEST. */
  FERRY_TRAILERS = 1u << 8,
  /* Call on_informational for each informational head (1xx) that comes. */
  FERRY_NOTIFY_INFORMATIONAL = 1u << 9,
};

/* ---- What few requests say ----------------------------------------------- */

enum {
  FERRY_PROXY_HTTP = 1,    /* plain to the proxy; CONNECT for https */
  FERRY_PROXY_SOCKS5,      /* names are looked up here */
  FERRY_PROXY_SOCKS5_NAMES, /* names are looked up by the proxy */
  FERRY_PROXY_SOCKS4,      /* names are looked up here; IPv4 alone */
  FERRY_PROXY_SOCKS4_NAMES /* 4a: names are looked up by the proxy */
};

/* Strings end with a NUL and are copied. */
typedef struct ferry_proxy {
  const char *_Nonnull address; /* "name:port", "[::1]:port" */
  /* NULL = none. Without `schemes` they are sent at once, without a challenge,
   * and `user` has no colon. */
  const char *_Nullable user;
  const char *_Nullable password;
  uint8_t kind;    /* FERRY_PROXY_… */
  uint8_t schemes; /* of an HTTP proxy: as of ferry_credentials; 0 = Basic */
} ferry_proxy;

enum {
  FERRY_SCHEME_BASIC = 1u << 0,
  FERRY_SCHEME_DIGEST = 1u << 1,
  FERRY_SCHEME_NTLM = 1u << 2,
  FERRY_SCHEME_NEGOTIATE = 1u << 3,
};

/* What challenges of the server (401) are answered with, within the transfer:
 * the best of these schemes that is asked for. Nothing of them is sent before,
 * and the body goes out again after a challenge. One that is pulled cannot:
 * it is held back for the best scheme of all, Basic being sent at once; where
 * the server asks for more, FERRY_E_BODY_NOT_REPLAYABLE. Likewise those of a
 * proxy (407) with its own user and schemes; a tunnel stands before the body
 * leaves, so that there nothing is held back, and nothing sent unasked.
 * Refused when libcurl was built for none of the schemes (ferry_features()).
 * The result is the last answer's, and `attempts` does not count the rounds. */
typedef struct ferry_credentials {
  const char *_Nonnull user;
  const char *_Nonnull password;
  uint8_t schemes; /* FERRY_SCHEME_… */
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
   * the result. Threads of its device write, through a duplicate of it, so that
   * it may block; EAGAIN is a fault. The result comes when nothing is written
   * any more. But a cancel, the deadline and the end of the loop wait no
   * longer than 0.1 s for a write that is under way: FERRY_RESULT_WRITING then
   * says that it goes on without the transfer. It owns its bytes and the
   * duplicate until it returns, if ever: the file's lock is held so long, and
   * bytes of this body may appear in their place in the file. No other write
   * of this transfer follows it. */
  int32_t fd;
  int64_t offset; /* of the first byte in it; -1 = wherever it stands */
  uint32_t flags;        /* FERRY_IDEMPOTENT … */
  /* Milliseconds, 0 = none. deadline_ms counts from the submit, or from when
   * the loop hears of it where it is held; the others from the start. Time in
   * which a callback holds the loop does not count, but for the deadline: one
   * that passes meanwhile does so up to 0.2 s after it. idle_ms: no byte in
   * either direction, and no answer of the resolver; of HTTP/2 those of the
   * stream count. It stands still while the transfer is paused, but for an
   * answer that is whole while its source has nothing to give: that is
   * delivered then. */
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
  /* FERRY_CONNECT: none is opened where so many are unused, or being opened,
   * already. */
  uint32_t connections;
  const ferry_extras *_Nullable extras;
} ferry_request;

#endif
