/* JSON with simdjson: parsing, reading parsed documents, and checking schemas,
 * whose patterns use RE2.
 *
 * CFerryJSONTape.h describes documents, CFerryJSONNotes.h finds their members,
 * CFerryJSONSchema.h describes schemas. All functions may be called on any
 * thread at any time; they throw no exceptions.
 */
#ifndef CFERRYJSON_H
#define CFERRYJSON_H

#include "CFerryJSONNotes.h"
#include "CFerryJSONSchema.h"
#include "CFerryJSONTape.h"

#ifdef __clang__
#pragma clang assume_nonnull begin
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The maximum nesting of containers; a deeper document is refused. */
#define FERRY_JSON_DEPTH 1024

/* Readable bytes that a text needs after it to be parsed in place. */
#define FERRY_JSON_PADDING 64

/* ---- Parsing ---- */

enum ferry_json_error {
  FERRY_JSON_OK = 0,
  FERRY_JSON_EMPTY = -1,
  FERRY_JSON_TOO_LARGE = -2,
  FERRY_JSON_NO_MEMORY = -3,
  FERRY_JSON_TOO_DEEP = -4,
  FERRY_JSON_UTF8 = -5,
  FERRY_JSON_CONTROL = -6,   /* a control character within a string */
  FERRY_JSON_UNCLOSED = -7,  /* an unterminated string */
  FERRY_JSON_ESCAPE = -8,    /* an invalid escape, or a lone surrogate */
  FERRY_JSON_NUMBER = -9,    /* an invalid number, or one beyond the doubles */
  FERRY_JSON_LITERAL = -10,  /* a misspelled true, false or null */
  FERRY_JSON_STRUCTURE = -11 /* any other error in the structure */
};

/* A parsed document together with the parser that owns its memory. */
typedef struct ferry_json ferry_json;

/* Parses one text in UTF-8; a byte order mark is allowed. `spare` is the number
 * of bytes after it that may be read (their values do not matter); with fewer
 * than FERRY_JSON_PADDING the text is copied first. The text is not needed
 * after this returns. Returns 0 and a document, which the caller releases, or
 * an error and the offset of its byte. */
int ferry_json_parse(const uint8_t *_Nullable text, size_t count, size_t spare,
                     ferry_json *_Nullable *_Nonnull document, size_t *offset);

/* Returns the parser to the pool; the tape is invalid from here on. */
void ferry_json_release(ferry_json *document);

ferry_json_tape ferry_json_tape_of(const ferry_json *document);

/* The offset in the text of the value at `index`. `*cursor` is 0 at first, and
 * keeps the position for the next value. Takes time proportional to the
 * distance between the two. */
typedef struct ferry_json_cursor {
  size_t index;
  size_t structural;
} ferry_json_cursor;

size_t ferry_json_offset(const ferry_json *document, const uint8_t *text,
                         size_t index, ferry_json_cursor *cursor);

/* The number of parsers in the pool; for tests. */
size_t ferry_json_pooled(void);

/* Frees parsers that have been in the pool for a minute, as if this many
 * seconds had passed; for tests. */
void ferry_json_pool_look(int64_t seconds);

/* Sets how long a parser stays in the pool, by default 60,000 milliseconds; for
 * tests. */
void ferry_json_pool_wait(int64_t milliseconds);

/* ---- Process-wide state for Swift ---- */

/* What is known about a type, identified by an address; 0 if nothing is known
 * yet. */
uintptr_t ferry_json_known_type(const void *type);

/* Sets it permanently, and returns the current value: another thread may have
 * been first. */
uintptr_t ferry_json_know_type(const void *type, uintptr_t known);

/* The end of the thread's stack that a recursion over a document must not use.
 * Everything, until it is known. */
typedef struct ferry_json_reserve {
  uintptr_t begin;
  size_t size;
} ferry_json_reserve;

extern __thread ferry_json_reserve ferry__json_reserve
    __attribute__((tls_model("initial-exec")));

bool ferry__json_stack_is_low(uintptr_t frame);

/* Whether the calling thread has so little stack left that a recursion over a
 * document must end. */
static inline bool ferry_json_stack_is_low(void) {
  /* A frame on another stack than the thread's own is far outside. */
  uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
  return frame - ferry__json_reserve.begin < ferry__json_reserve.size &&
         ferry__json_stack_is_low(frame);
}

/* ---- Writing ---- */

/* Writes a string without its quotes; `out` must have room for six times its
 * bytes. Returns the number of bytes written. */
size_t ferry_json_escape(uint8_t *out, const uint8_t *bytes, size_t count,
                         bool escapes_slashes);

/* Writes an integer; `out` must have room for 21 bytes. */
size_t ferry_json_write_integer(uint8_t *out, uint64_t magnitude,
                                bool is_negative);

#ifdef __cplusplus
}
#endif

#ifdef __clang__
#pragma clang assume_nonnull end
#endif

#endif
