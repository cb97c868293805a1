/* JSON on simdjson: parsing, looking at what was parsed, checking a schema,
 * whose patterns are RE2's.
 *
 * CFerryJSONTape.h says what a document is, CFerryJSONSchema.h what a schema
 * is. All functions may be called from any thread at any time; no exception
 * leaves them.
 */
#ifndef CFERRYJSON_H
#define CFERRYJSON_H

#include "CFerryJSONSchema.h"
#include "CFerryJSONTape.h"

#ifdef __clang__
#pragma clang assume_nonnull begin
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Containers within containers; a deeper document is refused. */
#define FERRY_JSON_DEPTH 1024

/* Readable bytes behind a text that is to be parsed where it stands. */
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
  FERRY_JSON_UNCLOSED = -7,  /* a string that does not end */
  FERRY_JSON_ESCAPE = -8,    /* an escape that is none, a lone surrogate */
  FERRY_JSON_NUMBER = -9,    /* no number, or one beyond the doubles */
  FERRY_JSON_LITERAL = -10,  /* almost true, false or null */
  FERRY_JSON_STRUCTURE = -11 /* anything else: what stands there cannot */
};

/* A parsed document together with the parser that owns its memory. */
typedef struct ferry_json ferry_json;

/* Parses one text in UTF-8, a byte order mark allowed. `spare` says how many
 * bytes behind it may be read (their values do not matter); with fewer than
 * FERRY_JSON_PADDING the text is copied first. The text is not needed once this
 * has returned. Gives 0 and a document to be released, or an error and the
 * offset of the byte it was found at. */
int ferry_json_parse(const uint8_t *_Nullable text, size_t count, size_t spare,
                     ferry_json *_Nullable *_Nonnull document, size_t *offset);

/* Gives the parser back to the pool; the tape is void from here on. */
void ferry_json_release(ferry_json *document);

ferry_json_tape ferry_json_tape_of(const ferry_json *document);

/* The offset in the text of the value at `index`, and in `*cursor` where to go
 * on for the next value; `*cursor` is 0 at first. Takes time in the distance of
 * the two. */
typedef struct ferry_json_cursor {
  size_t index;
  size_t structural;
} ferry_json_cursor;

size_t ferry_json_offset(const ferry_json *document, const uint8_t *text,
                         size_t index, ferry_json_cursor *cursor);

/* Parsers that wait in the pool; for tests. */
size_t ferry_json_pooled(void);

/* Frees what has waited for a minute when so many seconds have passed; for
 * tests. */
void ferry_json_pool_look(int64_t seconds);

/* How long a parser waits in the pool, 60,000 milliseconds at first; for
 * tests. */
void ferry_json_pool_wait(int64_t milliseconds);

/* ---- What Swift's side needs of the process ---- */

/* What was said of a type, by an address that stands for it; 0 when nothing was
 * yet. */
uintptr_t ferry_json_known_type(const void *type);

/* Says it for good, and gives what is known now: another thread may have been
 * first. */
uintptr_t ferry_json_know_type(const void *type, uintptr_t known);

/* Whether the calling thread has so little stack left that a recursion over a
 * document must end. */
bool ferry_json_stack_is_low(void);

/* ---- Writing ---- */

/* Writes a string without its quotes, for which six times its bytes must have
 * room; gives how many it took. */
size_t ferry_json_escape(uint8_t *out, const uint8_t *bytes, size_t count,
                         bool escapes_slashes);

/* Writes an integer, for which 21 bytes must have room. */
size_t ferry_json_write_integer(uint8_t *out, uint64_t magnitude,
                                bool is_negative);

#ifdef __cplusplus
}
#endif

#ifdef __clang__
#pragma clang assume_nonnull end
#endif

#endif
