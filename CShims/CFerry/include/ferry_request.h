/* ferry_request.h - what a transfer sends and how it receives. */
#ifndef CFERRY_REQUEST_H
#define CFERRY_REQUEST_H

#include "ferry_base.h"

/* The three queues of waiting transfers. */
enum { FERRY_LOW = 0, FERRY_NORMAL = 1, FERRY_HIGH = 2 };

/* ---- Constants of a request ---------------------------------------------- */

enum {
  FERRY_BODY_NONE = 0, /* and no Content-Length; see FERRY_BODY_BYTES */
  FERRY_BODY_BYTES, /* body, body_length, which may be 0 */
  FERRY_BODY_PULL,  /* on_pull; body_length or FERRY_UNKNOWN_LENGTH */
};
#define FERRY_UNKNOWN_LENGTH UINT64_MAX

enum {
  FERRY_COLLECT = 0, /* the body is delivered with the result */
  FERRY_STREAM,      /* on_head, then on_body as bytes arrive */
  FERRY_DESCRIPTOR,  /* written to fd */
};

enum {
  /* The request may be sent a second time if a kept connection turns out to be
   * dead before the first byte of a response (RFC 9110, 9.2.2). Without this
   * flag it is never sent again, nor once a part of its body was pulled. */
  FERRY_IDEMPOTENT = 1u << 0,
  /* Decode Content-Encoding gzip, deflate, br and zstd, except in a 206. */
  FERRY_DECODE = 1u << 1,
  /* Call on_started when the transfer leaves the queue. */
  FERRY_NOTIFY_START = 1u << 2,
  /* Call on_head for FERRY_DESCRIPTOR too. */
  FERRY_NOTIFY_HEAD = 1u << 3,
  /* Connect to addresses of the public internet only. The check is made on the
   * address connected to, regardless of its name or spelling, also on a kept
   * connection; of several addresses only the public ones are tried. With a
   * proxy, the proxy's own address is exempt, and names that the proxy looks up
   * cannot be checked. In that case a target that is a private address, or
   * localhost, is refused. With FERRY_PROXY_SOCKS5 and FERRY_PROXY_SOCKS4 the
   * names are looked up here and checked. */
  FERRY_PUBLIC_ONLY = 1u << 4,
  /* With FERRY_STREAM: after on_head the body is held until ferry_resume(),
   * which delivers it to on_body, or ferry_write_to(). */
  FERRY_HOLD_BODY = 1u << 5,
  /* Send nothing: the transfer succeeds when there is a connection, which is
   * kept for other transfers. If libcurl would have to carry it, it is
   * FERRY_E_INVALID_REQUEST. See ferry_request.connections. */
  FERRY_CONNECT = 1u << 6,
  /* Read the response while the request is sent; either may end first.
   * on_answered reports a complete response to an incomplete request. idle_ms
   * also counts while the source has no bytes. Only the native engine carries
   * such a transfer, also over HTTP/2. If libcurl would have to carry it, it is
   * FERRY_E_INVALID_REQUEST. */
  FERRY_DUPLEX = 1u << 7,
  /* Send trailers after the body, which on_trailers supplies. The body must be
   * FERRY_BODY_PULL with FERRY_UNKNOWN_LENGTH. Without FERRY_DUPLEX such a
   * transfer uses HTTP/1.1, because libcurl sends no trailers over HTTP/2: with
   * FERRY_HTTP2_NEGOTIATED HTTP/1.1 is negotiated for it, and with
   * FERRY_HTTP2_PRIOR_KNOWLEDGE it is FERRY_E_INVALID_REQUEST. */
  FERRY_TRAILERS = 1u << 8,
  /* Call on_informational for each informational head (1xx) that arrives. */
  FERRY_NOTIFY_INFORMATIONAL = 1u << 9,
  /* Start before all others and beyond the limits, up to 64 more at once. For a
   * transfer that others wait for while they hold their places. */
  FERRY_UNLIMITED = 1u << 10,
};

/* ---- Rarely used options ------------------------------------------------- */

enum {
  FERRY_PROXY_HTTP = 1,    /* plain to the proxy; CONNECT for https */
  FERRY_PROXY_SOCKS5,      /* names are looked up here */
  FERRY_PROXY_SOCKS5_NAMES, /* names are looked up by the proxy */
  FERRY_PROXY_SOCKS4,      /* names are looked up here; IPv4 only */
  FERRY_PROXY_SOCKS4_NAMES /* SOCKS 4a: names are looked up by the proxy */
};

/* The proxy of a transfer. Strings end with a NUL and are copied. */
typedef struct ferry_proxy {
  const char *_Nonnull address; /* "name:port", "[::1]:port" */
  /* NULL = none. Without `schemes` they are sent at once, without a challenge,
   * and `user` must not contain a colon. */
  const char *_Nullable user;
  const char *_Nullable password;
  uint8_t kind;    /* FERRY_PROXY_… */
  uint8_t schemes; /* of an HTTP proxy, as in ferry_credentials; 0 = Basic */
} ferry_proxy;

enum {
  FERRY_SCHEME_BASIC = 1u << 0,
  FERRY_SCHEME_DIGEST = 1u << 1,
  FERRY_SCHEME_NTLM = 1u << 2,
  FERRY_SCHEME_NEGOTIATE = 1u << 3,
};

/* Credentials for the server's challenges (401), within the transfer. The best
 * of these schemes that the server offers is used. The credentials are not sent
 * before a challenge, and the body is sent again after it. A pulled body cannot
 * be sent again: with Basic alone the credentials are sent at once; with a
 * better scheme the body is held back; if the server asks for more, the
 * transfer ends with FERRY_E_BODY_NOT_REPLAYABLE. The same holds for a proxy
 * (407) with its own user and schemes. A tunnel is complete before the body is
 * sent, so nothing is held back there, and no credentials are sent without a
 * challenge. Refused if libcurl was built with none of the schemes
 * (ferry_features()). The result is that of the last response, and `attempts`
 * does not count the rounds. */
typedef struct ferry_credentials {
  const char *_Nonnull user;
  const char *_Nonnull password;
  uint8_t schemes; /* FERRY_SCHEME_… */
} ferry_credentials;

enum {
  FERRY_ENCODINGS_OPTION = 0, /* as in the loop's options */
  FERRY_ENCODINGS_NONE,
  FERRY_ENCODINGS_THESE, /* `encodings` */
};

/* Options that few requests use. */
typedef struct ferry_extras {
  const ferry_proxy *_Nullable proxy;
  const ferry_credentials *_Nullable credentials;
  const char *_Nullable encodings; /* copied */
  uint8_t encodings_kind;          /* FERRY_ENCODINGS_… */
} ferry_extras;

/* ---- A request ----------------------------------------------------------- */

typedef struct ferry_request {
  /* Not 0. Using the id of a transfer that has not ended ends the process. */
  uint64_t id;
  const char *_Nullable url; /* absolute, escaped; a fragment is ignored */
  size_t url_length;
  const char *_Nullable method; /* HEAD must not have a body; CONNECT is
                                 * refused */
  size_t method_length;
  /* Fields, packed. Each is uint32_t name length, uint32_t value length (native
   * byte order, unaligned), name, value. */
  const void *_Nullable headers;
  size_t headers_length;
  const void *_Nullable body;
  uint64_t body_length;
  uint8_t body_kind;     /* FERRY_BODY_… */
  uint8_t priority;      /* FERRY_LOW … FERRY_HIGH */
  uint8_t response_kind; /* FERRY_COLLECT … */
  /* For FERRY_DESCRIPTOR. The descriptor stays the caller's, who must not close
   * it before the result. Threads of its device write through a duplicate, so
   * it may block; EAGAIN is an error. The result is delivered when no write is
   * in progress. But a cancel, the deadline and the end of the loop wait at
   * most 0.1 s for a write. FERRY_RESULT_WRITING then says that the write
   * continues without the transfer. The write owns its bytes and the duplicate
   * until it returns, if ever. Until then the file's lock is held, and bytes of
   * this body may still appear at their offset in the file. No further write of
   * this transfer follows. */
  int32_t fd;
  int64_t offset; /* of the first byte in the file; -1 = the current position */
  uint32_t flags;        /* FERRY_IDEMPOTENT … */
  /* Milliseconds, 0 = none. deadline_ms counts from the submit, or from when a
   * loop that is held by a callback sees it; the others count from the start.
   * Time in which a callback holds the loop does not count, except for the
   * deadline: one that passes meanwhile takes effect up to 0.2 s later.
   * idle_ms: no byte in either direction, and no reply of the resolver; with
   * HTTP/2 the bytes of the stream count. It is suspended while the transfer is
   * paused, but not if the whole response has arrived and only the rest of the
   * request is missing, because its source has no bytes or the peer does not
   * read them: when it passes then, the response is delivered. */
  uint32_t connect_ms;
  uint32_t idle_ms;
  uint32_t total_ms;
  uint32_t deadline_ms;
  /* The transfer fails if fewer than low_speed_bytes per second arrived over
   * low_speed_ms. */
  uint32_t low_speed_bytes;
  uint32_t low_speed_ms;
  uint32_t max_head; /* bytes of all heads, with 1xx and trailers; 0 = 64 KiB.
                      * At most 1 GiB, and 1,000 fields in any case */
  uint64_t max_body; /* bytes delivered, after decoding; 0 = no bound */
  uint64_t max_rate; /* average of bytes received per second; 0 = no bound */
  /* FERRY_CONNECT: no connection is opened if this many are already idle or
   * being opened. */
  uint32_t connections;
  const ferry_extras *_Nullable extras;
} ferry_request;

#endif
