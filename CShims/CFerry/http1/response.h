/* response.h - the parser of HTTP/1.1 responses (RFC 9112).
 *
 * It has no socket and no transfer: bytes go in, in pieces of any size, and
 * events come out. head.c checks the lines of heads and trailers, as it does
 * for libcurl, so that both engines are equally strict. The result does not
 * depend on how the bytes were split. */
#ifndef FERRY_RESPONSE_H
#define FERRY_RESPONSE_H

#include "transfer/transfer.h"

enum ferry__event {
  FERRY__EVENT_MORE,          /* all bytes are consumed, the response
                               * continues */
  FERRY__EVENT_INFORMATIONAL, /* a 1xx head; `informational` has its status */
  FERRY__EVENT_HEAD,          /* the final head is complete */
  FERRY__EVENT_BODY,          /* a piece of the body */
  FERRY__EVENT_HELD,          /* body bytes are available, but held back */
  FERRY__EVENT_END,           /* the response is complete */
  FERRY__EVENT_FAULT,         /* see `fault`; no event follows it */
};

/* What the next byte belongs to. */
enum ferry__part_of {
  FERRY__IN_HEAD,
  FERRY__IN_BODY,       /* Content-Length */
  FERRY__IN_OPEN_BODY,  /* up to the end of the connection */
  FERRY__IN_CHUNK_SIZE,
  FERRY__IN_CHUNK_EXTENSION,
  FERRY__AT_CHUNK_LF,   /* in the line of a chunk's size */
  FERRY__IN_CHUNK,
  FERRY__AT_CHUNK_END,  /* the CR after a chunk's data */
  FERRY__AT_CHUNK_END_LF,
  FERRY__IN_TRAILERS,
  FERRY__AT_END,
  FERRY__AT_FAULT,
};

typedef struct ferry__response {
  ferry__head *head;
  uint64_t left; /* of the body or the chunk */
  char *line;    /* the start of an incomplete line */
  uint32_t line_length, line_capacity;
  uint32_t extensions; /* bytes of chunk extensions beyond those that are
                        * free */
  ferry__fault fault;
  uint16_t informational;
  uint8_t state;   /* enum ferry__part_of */
  uint8_t digits;  /* of the chunk's size */
  bool to_head;    /* the request is a HEAD: no body follows */
  bool old;        /* a 1xx head was HTTP/1.0, which has none */
  bool persistent; /* set with the head: the connection stays open (9.3) */
} ferry__response;

/* Prepares for one response. `head` has been initialised
 * (ferry__head_begin). */
void ferry__response_begin(ferry__response *response, ferry__head *head,
                           bool to_head);
/* Consumes bytes from *at, up to `end`, and stops at the first event. With
 * FERRY__EVENT_BODY the piece is a part of the input. `hold`: stop before the
 * next piece of the body. */
enum ferry__event ferry__response_next(ferry__response *response,
                                       const char **at, const char *end,
                                       bool hold, const char **piece,
                                       size_t *length);
/* The connection has ended: FERRY__EVENT_END if that ends the body, else
 * FERRY__EVENT_FAULT. `whole`: the end certainly comes from the peer (under TLS
 * by close_notify). */
enum ferry__event ferry__response_close(ferry__response *response, bool whole);
/* Whether no byte of the response has arrived. */
bool ferry__response_is_untouched(const ferry__response *response);
void ferry__response_free(ferry__response *response);

#endif
