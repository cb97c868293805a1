/* JSON on simdjson: parsing, looking at what was parsed, checking a schema,
 * whose patterns are RE2's.
 *
 * A document is an array of 64-bit words, the tape, and a buffer of strings, in
 * the form that simdjson's parser writes. The value begins at word 1; word 0 is
 * the document's identity. The upper 8 bits of a word are its tag:
 *
 *   l u d   a signed, an unsigned integer, a double; the next word is its
 *           value; an integer beyond 64 bits is the nearest double
 *   "       a string; the lower bits are the place of its length (4 bytes, the
 *           machine's order), bytes and a NUL in the buffer
 *   t f n   true, false, null
 *   [ {     the lower 32 bits are the index behind the closing word, the next
 *           24 the number of elements or members, 0xffffff for that many or more
 *   ] }     the lower bits are the index of the opening word
 *
 * A member is a string, its key, followed by the value. Documents never change.
 * All functions may be called from any thread at any time; no exception leaves
 * them. Where a key stands twice in an object, the last one counts.
 */
#ifndef CFERRYJSON_H
#define CFERRYJSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

#define FERRY_JSON_NOWHERE SIZE_MAX

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

/* The words and strings of a document. Borrowed: valid while its owner is. At
 * least 4 bytes behind the last string can be read. */
typedef struct ferry_json_tape {
  const uint64_t *words;
  const uint8_t *strings;
} ferry_json_tape;

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

/* ---- Looking at a tape ---- */

static inline uint8_t ferry_json_tag(ferry_json_tape tape, size_t index) {
  return (uint8_t)(tape.words[index] >> 56);
}

/* What stands behind the tag, in 56 bits. */
static inline uint64_t ferry_json_payload(ferry_json_tape tape, size_t index) {
  return tape.words[index] & 0x00ffffffffffffffu;
}

/* The index behind the value at `index`. Without a branch for scalars, whose
 * kinds no processor can foresee: of the tags `l`, `u` and `d` alone have these
 * lower six bits. */
static inline size_t ferry_json_after(ferry_json_tape tape, size_t index) {
  const uint64_t numbers = UINT64_C(1) << ('l' & 63) |
                           UINT64_C(1) << ('u' & 63) |
                           UINT64_C(1) << ('d' & 63);
  uint64_t word = tape.words[index];
  uint8_t tag = (uint8_t)(word >> 56);
  if ((tag | 0x20) == '{')
    return (uint32_t)word;
  return index + 1 + (numbers >> (tag & 63) & 1);
}

/* The index of the closing word of the container at `index`. */
static inline size_t ferry_json_close(ferry_json_tape tape, size_t index) {
  return (uint32_t)tape.words[index] - (size_t)1;
}

static inline const uint8_t *ferry_json_string(ferry_json_tape tape,
                                               size_t index, size_t *count) {
  const uint8_t *at = tape.strings + ferry_json_payload(tape, index);
  uint32_t length;
  memcpy(&length, at, sizeof(length));
  *count = length;
  return at + sizeof(length);
}

static inline double ferry_json_double(ferry_json_tape tape, size_t index) {
  double value;
  memcpy(&value, &tape.words[index + 1], sizeof(value));
  return value;
}

/* memcmp() == 0 for keys, which are short: two loads from either end that may
 * overlap, and no call. */
static inline bool ferry_json_same_bytes(const uint8_t *a, const uint8_t *b,
                                         size_t count) {
  if (count > 16)
    return memcmp(a, b, count) == 0;
  if (count >= 8) {
    uint64_t a_head, a_tail, b_head, b_tail;
    memcpy(&a_head, a, 8);
    memcpy(&b_head, b, 8);
    memcpy(&a_tail, a + count - 8, 8);
    memcpy(&b_tail, b + count - 8, 8);
    return a_head == b_head && a_tail == b_tail;
  }
  if (count >= 4) {
    uint32_t a_head, a_tail, b_head, b_tail;
    memcpy(&a_head, a, 4);
    memcpy(&b_head, b, 4);
    memcpy(&a_tail, a + count - 4, 4);
    memcpy(&b_tail, b + count - 4, 4);
    return a_head == b_head && a_tail == b_tail;
  }
  return count == 0 || (a[0] == b[0] && a[count / 2] == b[count / 2] &&
                        a[count - 1] == b[count - 1]);
}

static inline bool ferry_json_is_string(ferry_json_tape tape, size_t index,
                                        const uint8_t *bytes, size_t count) {
  size_t length;
  const uint8_t *own = ferry_json_string(tape, index, &length);
  return length == count && ferry_json_same_bytes(own, bytes, count);
}

static inline bool ferry_json_is_ascii(const uint8_t *bytes, size_t count) {
  uint64_t seen = 0, word;
  uint32_t head, tail;
  if (count >= 8) {
    for (size_t i = 0; i + 8 < count; i += 8) {
      memcpy(&word, bytes + i, 8);
      seen |= word;
    }
    memcpy(&word, bytes + count - 8, 8);
    seen |= word;
  } else if (count >= 4) {
    memcpy(&head, bytes, 4);
    memcpy(&tail, bytes + count - 4, 4);
    seen = head | tail;
  } else {
    for (size_t i = 0; i < count; i++)
      seen |= bytes[i];
  }
  return (seen & UINT64_C(0x8080808080808080)) == 0;
}

/* Elements of an array or members of an object. */
size_t ferry_json_count(ferry_json_tape tape, size_t index);

/* A number that no other document of the process has, for word 0. */
uint64_t ferry_json_new_identity(void);

/* Hashes of keys, which nobody outside of the process can make collide. */
uint64_t ferry_json_hash(const uint8_t *key, size_t count);

/* The value of the last member with this key in the object at `index`, or 0.
 * Quick where members are asked for in their order, with gaps or without. */
size_t ferry_json_find(ferry_json_tape tape, size_t index, const uint8_t *key,
                       size_t count);

/* The members of one object after the other, laid out to be looked up. Zeroed
 * at first; of one thread at a time, and of one document, which outlives it. */
typedef struct ferry_json_members {
  uint64_t *_Nullable keys;    /* the places of the keys among the strings */
  uint64_t *_Nullable heads;   /* their lengths and first four bytes */
  uint32_t *_Nullable values;  /* the indexes of the values */
  uint32_t *_Nullable table;
  uint32_t count;              /* of all, keys that stand twice included */
  uint32_t capacity;
  uint32_t table_size;
  uint32_t scans;
  bool has_table;
  bool keys_differ;
  bool is_ascii;               /* all of the keys */
} ferry_json_members;

/* Goes on to the object at `index`; true when it has the keys of the one
 * before, in their order. */
bool ferry_json_members_fill(ferry_json_members *members, ferry_json_tape tape,
                             size_t index);

/* The place of the last member with this key, or FERRY_JSON_NOWHERE. Quick when
 * it is at `guess`. */
size_t ferry_json_members_find(ferry_json_members *members,
                               ferry_json_tape tape, const uint8_t *key,
                               size_t count, size_t guess);

void ferry_json_members_free(ferry_json_members *members);

/* The element at `position` of the array at `index`, or 0. */
size_t ferry_json_element(ferry_json_tape tape, size_t index, size_t position);

/* Whether two values are the same: numbers by their value, strings by their
 * bytes, members in any order. Takes no stack for their depth. */
bool ferry_json_equal(ferry_json_tape a, size_t at, ferry_json_tape b,
                      size_t bt);

/* Numbers by their value: negative, 0 or positive. */
int ferry_json_compare_numbers(ferry_json_tape a, size_t at, ferry_json_tape b,
                               size_t bt);

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

/* ---- Schemas ---- */

enum ferry_json_kind {
  FERRY_JSON_STRING = 1 << 0,
  FERRY_JSON_ANY_NUMBER = 1 << 1,
  FERRY_JSON_INTEGER = 1 << 2,
  FERRY_JSON_BOOL = 1 << 3,
  FERRY_JSON_NULL = 1 << 4,
  FERRY_JSON_OBJECT = 1 << 5,
  FERRY_JSON_ARRAY = 1 << 6
};

#define FERRY_JSON_NO_RULE UINT32_MAX
#define FERRY_JSON_NO_LIMIT UINT32_MAX

/* A longer regular expression is refused, and so is one whose compiled form
 * takes more memory; both in bytes. */
#define FERRY_JSON_PATTERN_LENGTH 16384
#define FERRY_JSON_PATTERN_MEMORY (1 << 20)

/* A regular expression of ECMA-262 in UTF-8. Finding it in a text takes time in
 * the text's length. */
typedef struct ferry_json_pattern ferry_json_pattern;

/* NULL when it is not one, or one that cannot be used; then `message` (of
 * `capacity` bytes) says why. */
ferry_json_pattern *_Nullable ferry_json_pattern_create(
    const uint8_t *_Nullable expression, size_t count, char *message,
    size_t capacity);
/* Bytes that it takes at most, what it keeps for later searches included. */
size_t ferry_json_pattern_memory(const ferry_json_pattern *pattern);
void ferry_json_pattern_free(ferry_json_pattern *pattern);

/* Places that stand one after the other in one of the schema's arrays. */
typedef struct ferry_json_span {
  uint32_t first;
  uint32_t count;
} ferry_json_span;

/* What one value must be. Indexes are places in the arrays of the schema. */
typedef struct ferry_json_rule {
  uint32_t kinds;            /* ferry_json_kind, the ones allowed */
  uint32_t plain;            /* of these, those of which no more is asked */
  uint32_t enumeration;      /* an array among the constants, or 0 */
  uint32_t extra;            /* the seldom keywords, or none */
  uint32_t minimum;          /* a number among the constants, or 0 */
  uint32_t maximum;
  uint32_t min_length;       /* of strings, in Unicode scalars */
  uint32_t max_length;
  uint32_t min_items;        /* of arrays */
  uint32_t max_items;
  uint32_t items;            /* the rule of each element, or none */
  uint32_t properties;       /* the first, in the order they were declared */
  uint32_t property_count;
  uint32_t others;           /* the rule of members not named, or none */
  uint64_t required;         /* of the first 64, those that must be there */
  bool closed;               /* members not named are refused */
  bool takes_all_members;    /* members not named count as evaluated */
  bool exclusive_minimum;
  bool exclusive_maximum;
  const ferry_json_pattern *_Nullable pattern;
} ferry_json_rule;

enum ferry_json_format {
  FERRY_JSON_ANY_FORMAT = 0,
  FERRY_JSON_DATE_TIME, /* RFC 3339 */
  FERRY_JSON_DATE,
  FERRY_JSON_TIME,
  FERRY_JSON_DURATION, /* RFC 3339, appendix A */
  FERRY_JSON_EMAIL,    /* RFC 5321 */
  FERRY_JSON_HOSTNAME, /* RFC 1123 */
  FERRY_JSON_IPV4,
  FERRY_JSON_IPV6, /* RFC 4291 */
  FERRY_JSON_URI,  /* RFC 3986 */
  FERRY_JSON_URI_REFERENCE,
  FERRY_JSON_UUID,    /* RFC 4122 */
  FERRY_JSON_POINTER, /* RFC 6901 */
  FERRY_JSON_REGEX    /* ECMA-262 */
};

/* What more a value must be. "In the list" is in the schema's list of rules. */
typedef struct ferry_json_extra {
  uint32_t reference;        /* a rule that has to fit too, or none */
  ferry_json_span all_of;    /* in the list */
  ferry_json_span any_of;
  ferry_json_span one_of;
  uint32_t negated;          /* a rule that must not fit, or none */
  uint32_t condition;        /* if it fits the next has to, else the last */
  uint32_t consequence;
  uint32_t alternative;
  uint32_t format;           /* ferry_json_format, of strings */
  uint32_t multiple_of;      /* a number among the constants, or 0 */
  ferry_json_span prefix;    /* of the first elements, in the list */
  uint32_t contained;        /* a rule that so many elements fit, or none */
  uint32_t min_contained;
  uint32_t max_contained;
  uint32_t unevaluated_items;    /* the rule of elements that no other names */
  uint32_t min_members;
  uint32_t max_members;
  uint32_t names;                /* the rule of each key, or none */
  ferry_json_span patterned;     /* in the array of patterned members */
  ferry_json_span dependencies;  /* in the array of dependencies */
  uint32_t unevaluated_members;  /* the rule of members that no other names */
  bool unique;                   /* no two elements are equal */
  bool by_pattern;               /* each key is compared with the patterns */
} ferry_json_extra;

typedef struct ferry_json_property {
  const uint8_t *key;
  uint32_t count;
  uint32_t rule;
  bool required;
  bool named; /* else it has only to be there, and may be one of the others */
} ferry_json_property;

typedef struct ferry_json_patterned {
  const ferry_json_pattern *pattern;
  uint32_t rule;
} ferry_json_patterned;

/* What an object with this key must be. */
typedef struct ferry_json_dependency {
  const uint8_t *key;
  uint32_t count;
  uint32_t rule;            /* or none */
  ferry_json_span required; /* properties that must be there */
} ferry_json_dependency;

/* A whole schema; the first rule is that of the document. Borrowed by all that
 * takes it. */
typedef struct ferry_json_schema {
  const ferry_json_rule *rules;
  const ferry_json_extra *extras;
  const ferry_json_property *properties;
  const uint32_t *list; /* of rules */
  const ferry_json_patterned *patterned;
  const ferry_json_dependency *dependencies;
  ferry_json_tape constants;
} ferry_json_schema;

enum ferry_json_reason {
  FERRY_JSON_FITS = 0,
  FERRY_JSON_WRONG_KIND,
  FERRY_JSON_MISSING,       /* `property` is not in the object at `index` */
  FERRY_JSON_UNKNOWN,       /* `index` is a key that is not declared */
  FERRY_JSON_NOT_LISTED,
  FERRY_JSON_BELOW,
  FERRY_JSON_ABOVE,
  FERRY_JSON_SHORT,
  FERRY_JSON_LONG,
  FERRY_JSON_NO_MATCH,
  FERRY_JSON_NONE_FITS,     /* of the alternatives */
  FERRY_JSON_SEVERAL_FIT,
  FERRY_JSON_NEGATED,       /* it fits what it must not */
  FERRY_JSON_NOT_MULTIPLE,
  FERRY_JSON_FORMAT,
  FERRY_JSON_EQUAL_ITEMS,
  FERRY_JSON_FEW_CONTAINED,
  FERRY_JSON_MANY_CONTAINED,
  /* The check was given up. */
  FERRY_JSON_LOW_STACK,
  FERRY_JSON_MUCH_WORK
};

typedef struct ferry_json_mismatch {
  enum ferry_json_reason reason;
  uint32_t rule;
  uint32_t property;
  size_t index;
} ferry_json_mismatch;

/* Results that a check keeps at most, when it takes far more steps than the
 * document has values: with them it takes time in the size of the document
 * times that of the schema. A check that needs more is given up. */
#define FERRY_JSON_VERDICTS (1 << 20)

/* Checks the value at `index`; true when it fits, else `*mismatch` is the first
 * thing that does not. Allocates nothing, but for patterns, for keys that stand
 * twice in a wide object, for long arrays of which no two elements may be
 * equal, and for members and elements that no other keyword names. Its depth is the
 * schema's; where rules refer to one another it is the document's, and a check
 * for which the stack does not suffice is given up. */
bool ferry_json_check(const ferry_json_schema *schema, ferry_json_tape tape,
                      size_t index, ferry_json_mismatch *mismatch);

#ifdef __cplusplus
}
#endif

#ifdef __clang__
#pragma clang assume_nonnull end
#endif

#endif
