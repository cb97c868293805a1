/* ferry_result.h - the answer to a transfer, or its fault. */
#ifndef CFERRY_RESULT_H
#define CFERRY_RESULT_H

#include "ferry_base.h"

#ifdef __cplusplus
extern "C" {
#endif

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
  uint64_t queue;
  uint64_t name;       /* the name was known */
  uint64_t connect;    /* TCP was connected; 0 on a reused connection */
  uint64_t tls;        /* the handshake was done; 0 likewise */
  uint64_t first_byte; /* the first byte of the answer */
  uint64_t total;
} ferry_metrics;

/* What carries a transfer. */
enum {
  FERRY_ENGINE_NONE = 0, /* it ended before one was chosen */
  FERRY_ENGINE_HTTP1,    /* our own HTTP/1.1 */
  FERRY_ENGINE_LIBCURL,
};

enum {
  FERRY_RESULT_REUSED = 1u << 0,       /* on a kept connection */
  FERRY_RESULT_PROCESSED = 1u << 1,    /* the server may have acted on it */
  FERRY_RESULT_CLOSE_FRAMED = 1u << 2, /* the end of the body was a close;
                                        * under TLS with close_notify */
  FERRY_RESULT_DECODED = 1u << 3,      /* gzip or deflate was undone */
  FERRY_RESULT_WRITING = 1u << 4,      /* of FERRY_DESCRIPTOR: a write has not
                                        * returned, see ferry_request.fd */
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
  uint8_t engine;        /* FERRY_ENGINE_… */
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
  /* Informational heads (1xx) that came before the head, and the fields of the
   * trailers behind the body, as they came, lines with CR LF. NULL = none. */
  const char *_Nullable informational;
  const char *_Nullable trailers;
  uint32_t informational_length;
  uint32_t trailers_length;
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

/* Bytes of a head in whose place others stand. */
typedef struct ferry_change {
  uint32_t at; /* in `head` */
  uint32_t length;
  const char *_Nonnull bytes;
} ferry_change;

/* [any thread] A result with the head of another one, some bytes of which are
 * others, and with its body. The body is not copied: `from` is to be freed
 * after the new result. Informational heads and trailers are left out. A
 * change that is not within the head is FERRY_E_INTERNAL. Freed by
 * ferry_result_free(). */
int ferry_result_revise(const ferry_result *_Nonnull from,
                        const ferry_change *_Nullable changes, size_t count,
                        ferry_result *_Nullable *_Nonnull out);

/* [any thread] A result of its own from what on_head was given: status, head
 * and what was measured so far, without a body. For receivers that go on
 * looking at it after the callback. Freed by ferry_result_free(). */
int ferry_result_copy_head(const ferry_result *_Nonnull so_far,
                           ferry_result *_Nullable *_Nonnull out);

/* [any thread] Likewise a result that is a fault. */
int ferry_result_make_fault(uint64_t id, int code, int detail, int phase,
                            ferry_result *_Nullable *_Nonnull out);

#ifdef __cplusplus
}
#endif
#endif
