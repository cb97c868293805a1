/* The parts of the core that parse a server's bytes and a caller's request, in
 * isolation: without a loop, a socket or libcurl. */
#ifndef CCOREPARTS_H
#define CCOREPARTS_H

#include <CFerry.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The result of parsing a head. */
typedef struct parts_head {
  int32_t code, detail; /* the fault; 0 = none so far */
  bool complete, chunked;
  uint16_t status;
  int64_t content_length; /* -1 = not announced */
  uint64_t received;
  uint32_t length, count;
  char *_Nullable bytes;
  ferry_field *_Nullable fields;
} parts_head;

/* Parses line by line, up to the end of the head, a fault, or the last whole
 * line. */
void parts_head_read(parts_head *_Nonnull head, const char *_Nullable bytes,
                     size_t length, uint32_t limit);
void parts_head_free(parts_head *_Nonnull head);

/* The version of the libcurl that is loaded. */
const char *_Nonnull parts_libcurl(void);
/* What the next byte of a response belongs to. */
enum {
  PARTS_ANOTHER,
  PARTS_CHUNK_SIZE,   /* its first digit */
  PARTS_CHUNK_DIGITS, /* what may follow that digit */
  PARTS_CHUNK_LINE,   /* an extension, or the LF after a CR */
  PARTS_CHUNK_END,    /* the line's end after the data of a chunk */
  PARTS_TRAILERS,
};

/* The result of the HTTP/1.1 parser for a server's bytes and the end of its
 * connection. */
typedef struct parts_response {
  int32_t code, detail; /* the fault */
  bool complete;        /* the final head */
  bool ended, ended_by_close, persistent;
  uint16_t status;
  int part; /* at the end of the input */
  uint32_t informational, heads;
  size_t taken; /* bytes of the input used up to the end or the fault */
  uint64_t head_received;
  size_t body_length;
  char *_Nullable body;
} parts_response;

/* In pieces whose lengths and pauses are determined by `chance`; 0 = in one
 * piece, without pauses. */
void parts_response_read(parts_response *_Nonnull response,
                         const char *_Nullable bytes, size_t length,
                         bool to_head, uint64_t chance);
void parts_response_free(parts_response *_Nonnull response);

enum { PARTS_GZIP, PARTS_DEFLATE, PARTS_BROTLI, PARTS_ZSTD };

/* The result of decoding a compressed body. */
typedef struct parts_body {
  int32_t code, detail;
  bool ended; /* the stream has reached its own end */
  size_t length;
  unsigned char *_Nullable bytes;
} parts_body;

/* In pieces whose lengths and pauses are determined by `chance`; 0 = in one
 * piece, without pauses. */
void parts_decode(parts_body *_Nonnull body, int coding,
                   const unsigned char *_Nullable bytes, size_t length,
                   uint64_t chance, uint64_t limit);
/* Compresses bytes: bare = deflate without zlib's frame. */
void parts_encode(parts_body *_Nonnull body, int coding, bool bare,
                   const unsigned char *_Nullable bytes, size_t length);
void parts_body_free(parts_body *_Nonnull body);

/* The host that the core connects to for a URL, and the target that it
 * requests. */
typedef struct parts_route {
  int32_t code;
  char *_Nullable origin, *_Nullable target;
} parts_route;

void parts_route_make(parts_route *_Nonnull route,
                      const char *_Nonnull url, size_t length);
void parts_route_free(parts_route *_Nonnull route);

/* The next expiry of a transfer, in ms, and its progress. */
typedef struct parts_limits {
  uint64_t now, held_from, held_until;
  uint64_t began, last, window, window_bytes, moved;
  uint32_t connect, idle, total, deadline, low_speed, low_speed_bytes;
  int32_t phase;
  bool waits, receiver_paused, source_paused, answered;
} parts_limits;

typedef struct parts_expiry {
  uint64_t at; /* when to look again; 0 = never */
  int32_t detail;
  bool now, unsent, window;
} parts_expiry;

void parts_expiry_of(parts_expiry *_Nonnull expiry,
                     const parts_limits *_Nonnull limits);

/* Takes libcurl's receive buffers. Returns false if there is no room for
 * them. */
bool parts_buffers_open(void);
char *_Nullable parts_buffer_take(void);
void parts_buffer_give(char *_Nonnull buffer);
bool parts_buffer_is_one(const char *_Nullable block);
size_t parts_buffer_size(void);

/* The number of pages of these bytes that are in memory; -1 if the system does
 * not tell (mincore(2)). */
long parts_resident_pages(const char *_Nonnull bytes, size_t length);

/* [any thread] Frees the blocks that the process keeps for loops: a loop takes
 * each list whole, and frees it when it ends. */
void parts_pool_empty(void);

/* Whether blocks that were given back stay available to loops while a thread
 * without a loop allocates this many. */
bool parts_blocks_stay_for_loops(unsigned made_between);

/* Whether a block that grows from one byte to `most` in steps that double keeps
 * its bytes, and leaves none behind. */
bool parts_block_keeps_its_bytes(size_t most);

/* The outcome of a transfer; `flags` are those of its result. */
typedef struct parts_transfer {
  unsigned finished; /* number of results */
  int32_t code, detail, phase;
  uint16_t status;
  uint8_t version, attempts;
  uint32_t flags, fields;
  int64_t content_length;
  uint64_t counted; /* bytes of the body, by the result */
  size_t head_length, body_length, aside_length;
  char *_Nullable head, *_Nullable body;
  char *_Nullable aside; /* informational heads and trailers */
  const char *_Nullable method;
  bool repeatable, expects, closes;
} parts_transfer;

/* The outcome of an engine for a server's bytes and the end of its
 * connection. */
typedef struct parts_asked {
  parts_transfer transfer;
  bool early;   /* the transfer ended before the connection did */
  bool kept;    /* and the connection was open then */
  bool overdue; /* the transfer did not end at all */
} parts_asked;

/* One GET or HEAD on a connection of its own. `chance` splits the bytes, 0 = in
 * one piece; the engine reads each piece before the next one is sent. */
void parts_ask(parts_asked *_Nonnull asked, int engine, bool to_head,
               const char *_Nullable bytes, size_t length, uint64_t chance);
void parts_asked_free(parts_asked *_Nonnull asked);

/* A connection, as seen by the server. */
typedef struct parts_connection {
  size_t sent_length, received_length;
  char *_Nullable sent, *_Nullable received;
  bool reset; /* by the server's program */
} parts_connection;

/* Whether a socket that libcurl closed silently is watched again under its
 * number, which another socket has by now. */
bool parts_watches_another(void);

/* The outcome of a program. */
typedef struct parts_played {
  unsigned transfer_count, connection_count;
  parts_transfer *_Nullable transfers; /* the path of the first one is /0 */
  parts_connection *_Nullable connections;
  bool crowded;    /* there were more connections than entries */
  unsigned strays; /* callbacks for no transfer, or after its result */
  unsigned running;
  uint64_t left_transfers, left_sockets;
} parts_played;

/* Plays a program: requests to the native engine, and what its server does.
 *
 *   G H F S   GET, HEAD, GET streamed, GET streamed with pauses
 *   P L U     POST from memory, pulled, pulled without a length
 *             each with a byte: 1 idempotent, 2 Expect, 4 Connection: close,
 *             8 a short deadline, 64 the source pauses, 128 a large body
 *   k. p. r   cancels one, pauses one, resumes all
 *   a         lets the engine and the server catch up
 *   0 to 9    chooses a connection; it was the newest one before
 *   l n. w.   sends the rest of the line, so many bytes, a whole response
 *   h c x q   ends, closes, resets a connection; stops reading, and goes on
 *   z         at the end, deadlines pass before the connections are closed */
void parts_play(parts_played *_Nonnull played, const char *_Nullable bytes,
                size_t length);
/* The number of these bytes that equal those of a request's body at this
 * offset. */
size_t parts_as_pulled(const char *_Nullable bytes, size_t length, size_t at);
void parts_played_free(parts_played *_Nonnull played);

#endif
