/* ferry_codes.h - how a transfer ended, and how far it had got. */
#ifndef CFERRY_CODES_H
#define CFERRY_CODES_H

#include "ferry_base.h"

/* The outcome of a transfer. `detail` has the finer cause: FERRY_D_…, below. */
enum {
  FERRY_OK = 0,
  FERRY_E_MEMORY = -1,             /* out of memory */
  FERRY_E_INTERNAL = -2, /* libuv, libcurl or the system (os_errno) failed */
  FERRY_E_INVALID_URL = -3,        /* libcurl's parser rejects it */
  FERRY_E_UNSUPPORTED_SCHEME = -4, /* neither http nor https */
  FERRY_E_INVALID_REQUEST = -5,    /* FERRY_D_… method, header, framing */
  FERRY_E_DNS = -6,                /* FERRY_D_DNS_… */
  FERRY_E_CONNECT = -7,            /* FERRY_D_CONNECT_…; os_errno */
  FERRY_E_TLS = -8,                /* FERRY_D_TLS_… */
  FERRY_E_TIMEOUT = -9,            /* FERRY_D_TIMEOUT_… */
  FERRY_E_CONNECTION_RESET = -10,  /* RST, or EPIPE while sending */
  FERRY_E_CONNECTION_CLOSED = -11, /* closed before the whole head arrived */
  FERRY_E_INCOMPLETE_BODY = -12,   /* closed inside the body */
  FERRY_E_MALFORMED_RESPONSE = -13, /* FERRY_D_… part of the message */
  FERRY_E_HEAD_TOO_LARGE = -14,    /* head bytes, fields or 1xx responses */
  FERRY_E_BODY_TOO_LARGE = -15,    /* more than max_body (decoded) bytes */
  FERRY_E_CONTENT_DECODING = -16,  /* FERRY_D_DECODING_… */
  FERRY_E_HTTP2_STREAM = -17,      /* FERRY_D_HTTP2_… */
  FERRY_E_FILE = -18,              /* writing to the descriptor: os_errno */
  FERRY_E_UPLOAD_SOURCE = -19,     /* on_pull failed, or its length was wrong */
  FERRY_E_CANCELLED = -20,
  FERRY_E_SHUTDOWN = -21,          /* the loop has been stopped */
  FERRY_E_PROXY = -22,             /* FERRY_D_PROXY_… */
  FERRY_E_ADDRESS_FORBIDDEN = -23, /* FERRY_PUBLIC_ONLY; nothing was sent */
  /* The server sent a challenge after a part of the body had been pulled, and a
   * pulled body cannot be sent again. */
  FERRY_E_BODY_NOT_REPLAYABLE = -24,
};

/* The finer cause, where the code has one; otherwise 0. */
enum {
  FERRY_D_NONE = 0,
  /* FERRY_E_INVALID_REQUEST */
  FERRY_D_METHOD,
  FERRY_D_HEADER_NAME,
  FERRY_D_HEADER_VALUE,
  FERRY_D_FRAMING, /* the caller's Content-Length, Transfer-Encoding or Hosts */
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
  FERRY_D_TLS_CONFIGURATION, /* CA file unreadable, for example */
  /* FERRY_E_TIMEOUT */
  FERRY_D_TIMEOUT_QUEUE, /* the deadline passed in the queue */
  FERRY_D_TIMEOUT_DNS,
  FERRY_D_TIMEOUT_CONNECT,
  FERRY_D_TIMEOUT_TLS,
  FERRY_D_TIMEOUT_WRITE, /* the peer stopped reading */
  FERRY_D_TIMEOUT_RESPONSE_HEAD,
  FERRY_D_TIMEOUT_READ, /* the peer stopped within the body */
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
  FERRY_D_UPGRADE, /* 101 without a request for an upgrade */
  /* FERRY_E_HEAD_TOO_LARGE */
  FERRY_D_HEAD_BYTES,
  FERRY_D_INFORMATIONAL, /* too many 1xx responses */
  /* FERRY_E_CONTENT_DECODING */
  FERRY_D_DECODING_TRUNCATED,
  FERRY_D_DECODING_CORRUPT,
  /* FERRY_E_PROXY */
  FERRY_D_PROXY_AUTH_REQUIRED, /* 407, or SOCKS offered no usable method */
  FERRY_D_PROXY_REFUSED,       /* CONNECT got another status: see status */
  FERRY_D_PROXY_UNREACHABLE,   /* not resolved, or no connection to it */
  FERRY_D_PROXY_HANDSHAKE,     /* closed during the handshake, or SOCKS
                                * refused */
  /* FERRY_E_HTTP2_STREAM: the error code (RFC 9113, section 7) */
  FERRY_D_HTTP2_REFUSED, /* certainly not processed */
  FERRY_D_HTTP2_CANCEL,
  FERRY_D_HTTP2_INTERNAL,
  FERRY_D_HTTP2_ENHANCE_YOUR_CALM,
  FERRY_D_HTTP2_OTHER,
};

/* How far a transfer had got. */
enum {
  FERRY_PHASE_QUEUED = 0,
  FERRY_PHASE_DNS,
  FERRY_PHASE_CONNECT,
  FERRY_PHASE_TLS,
  FERRY_PHASE_SEND,      /* request head and body */
  FERRY_PHASE_WAIT_HEAD, /* all sent, or no byte of the response yet */
  FERRY_PHASE_HEAD,
  FERRY_PHASE_BODY,
  FERRY_PHASE_DONE,
};

#endif
