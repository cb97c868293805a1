/* ferry_result.h - the response of a transfer, or its error. */
#ifndef CFERRY_RESULT_H
#define CFERRY_RESULT_H

#include "ferry_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The position of a field in `head`. Names keep their case. */
typedef struct ferry_field {
  uint32_t name;
  uint32_t value;
  uint16_t name_length;
  uint16_t value_length; /* without surrounding white space */
} ferry_field;

/* Microseconds. queue and total are counted from the submit, the others from
 * the start. 0 = did not happen. */
typedef struct ferry_metrics {
  uint64_t queue;
  uint64_t name;       /* the name was resolved */
  uint64_t connect;    /* TCP was connected; 0 on a reused connection */
  uint64_t tls;        /* the handshake was done; 0 on a reused connection */
  uint64_t first_byte; /* the first byte of the response */
  uint64_t total;
} ferry_metrics;

/* The engine that carried a transfer. */
enum {
  FERRY_ENGINE_NONE = 0, /* it ended before one was chosen */
  FERRY_ENGINE_HTTP1,    /* our own engine */
  FERRY_ENGINE_LIBCURL,
};

enum {
  FERRY_RESULT_REUSED = 1u << 0,       /* on a kept connection */
  FERRY_RESULT_PROCESSED = 1u << 1,    /* the server may have acted on it */
  FERRY_RESULT_CLOSE_FRAMED = 1u << 2, /* the body ended with the connection;
                                        * under TLS with close_notify */
  FERRY_RESULT_DECODED = 1u << 3,      /* the Content-Encoding was decoded */
  FERRY_RESULT_WRITING = 1u << 4,      /* FERRY_DESCRIPTOR: a write has not
                                        * returned, see ferry_request.fd */
};

typedef struct ferry_result {
  struct ferry_result *_Nullable next; /* the next result of this turn */
  uint64_t id;
  int32_t code;      /* FERRY_OK or FERRY_E_… */
  int32_t detail;    /* FERRY_D_… */
  int32_t phase;     /* FERRY_PHASE_…; DONE after a success */
  int32_t curl_code; /* CURLcode; 0 if libcurl was not involved */
  int32_t os_errno;
  uint16_t status;       /* 0 if no status line arrived */
  uint8_t http_version;  /* 10, 11, 20 */
  uint8_t attempts;      /* how often the request was sent, even in part */
  uint8_t engine;        /* FERRY_ENGINE_… */
  uint32_t flags;        /* FERRY_RESULT_… */
  uint32_t field_count;
  uint32_t head_length;
  uint16_t peer_port;
  char peer[46];         /* the address connected to, as text; "" if none */
  int64_t content_length;  /* as announced; -1 if not announced */
  uint64_t head_sent;      /* bytes of the request's head */
  uint64_t body_sent;      /* bytes of its body */
  uint64_t head_received;  /* bytes of all heads, 1xx included */
  uint64_t body_received;  /* bytes of the body before decoding */
  ferry_metrics metrics;
  /* The raw final head: status line, fields, empty line. */
  const char *_Nullable head;
  const ferry_field *_Nullable fields;
  /* A collected body, decoded, followed by 64 readable bytes. NULL if it is
   * empty, was streamed or was written to a descriptor. body_length counts the
   * delivered bytes in each case. */
  char *_Nullable body;
  uint64_t body_length;
  /* Informational heads (1xx) that arrived before the head, and the trailers
   * after the body, as received, lines with CR LF. NULL = none. */
  const char *_Nullable informational;
  const char *_Nullable trailers;
  uint32_t informational_length;
  uint32_t trailers_length;
  const char *_Nullable message; /* the message of libcurl or the core for an
                                  * error */
} ferry_result;

/* [any thread] Frees one result; `next` is not followed. */
void ferry_result_free(ferry_result *_Nonnull result);

/* [any thread] Makes a result without a network, for stand-ins. Status, head
 * (raw, parsed by the same rules as one from the network) and body are copied.
 * The caller frees it with ferry_result_free(). */
int ferry_result_make(uint64_t id, const char *_Nonnull head,
                      size_t head_length, const void *_Nullable body,
                      size_t body_length,
                      ferry_result *_Nullable *_Nonnull out);

/* A replacement for some bytes of a head. */
typedef struct ferry_change {
  uint32_t at; /* in `head` */
  uint32_t length;
  const char *_Nonnull bytes;
} ferry_change;

/* [any thread] Makes a result with the head of another one, in which some bytes
 * are replaced, and with its body. The body is not copied: `from` must be freed
 * after the new result. Informational heads and trailers are left out. A change
 * that is not within the head is FERRY_E_INTERNAL. The caller frees it with
 * ferry_result_free(). */
int ferry_result_revise(const ferry_result *_Nonnull from,
                        const ferry_change *_Nullable changes, size_t count,
                        ferry_result *_Nullable *_Nonnull out);

/* [any thread] Copies what on_head or on_answered was given: status, head,
 * trailers and the measurements so far, without a body. For receivers that keep
 * it after the callback. The caller frees it with ferry_result_free(). */
int ferry_result_copy_head(const ferry_result *_Nonnull so_far,
                           ferry_result *_Nullable *_Nonnull out);

/* [any thread] Makes a result that is an error, with these of its `flags`. The
 * caller frees it with ferry_result_free(). */
int ferry_result_make_fault(uint64_t id, int code, int detail, int phase,
                            uint32_t flags,
                            ferry_result *_Nullable *_Nonnull out);

#ifdef __cplusplus
}
#endif
#endif
