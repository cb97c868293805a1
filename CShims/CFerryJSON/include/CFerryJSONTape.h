/* The tape: what a parsed document is, and how to look at it.
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
 *   [ {     the lower 32 bits are the index after the closing word, the next
 *           24 the number of elements or members, 0xffffff for as many or more
 *   ] }     the lower bits are the index of the opening word
 *
 * A member is a string, its key, followed by the value. Documents never change.
 * If a key occurs twice in an object, the last one counts.
 */
#ifndef CFERRYJSON_TAPE_H
#define CFERRYJSON_TAPE_H

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

#define FERRY_JSON_NOWHERE SIZE_MAX

/* The words and strings of a document. Borrowed: valid as long as its owner. At
 * least 16 bytes after the last string are readable. */
typedef struct ferry_json_tape {
  const uint64_t *words;
  const uint8_t *strings;
} ferry_json_tape;

static inline uint8_t ferry_json_tag(ferry_json_tape tape, size_t index) {
  return (uint8_t)(tape.words[index] >> 56);
}

/* The 56 bits after the tag. */
static inline uint64_t ferry_json_payload(ferry_json_tape tape, size_t index) {
  return tape.words[index] & 0x00ffffffffffffffu;
}

/* The index after the value at `index`. Branch-free for scalars, whose kinds no
 * processor can predict: only the tags `l`, `u` and `d` have these lower six
 * bits. */
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

/* A string of up to 15 bytes of ASCII as the two words in which Swift probably
 * stores it: its bytes, and its length in the last of them. False for all
 * others. Branch-free for all lengths, which no processor can predict. */
static inline bool ferry_json_short_words(ferry_json_tape tape, size_t index,
                                          uint64_t *low, uint64_t *high) {
  static const uint8_t masks[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                    255, 255, 255, 255, 255, 255, 255, 255};
  size_t count;
  const uint8_t *at = ferry_json_string(tape, index, &count);
  uint64_t low_mask, high_mask;
  if (count > 15)
    return false;
  memcpy(low, at, sizeof(*low));
  memcpy(high, at + sizeof(*low), sizeof(*high));
  memcpy(&low_mask, masks + 16 - count, sizeof(low_mask));
  memcpy(&high_mask, masks + 24 - count, sizeof(high_mask));
  *low &= low_mask;
  *high &= high_mask;
  if (((*low | *high) & UINT64_C(0x8080808080808080)) != 0)
    return false;
  *high |= (uint64_t)(0xe0 | count) << 56;
  return true;
}

extern bool ferry__json_short_strings;

/* From here on, Swift is known to store strings this way. */
static inline void ferry_json_use_short_words(void) {
  __atomic_store_n(&ferry__json_short_strings, true, __ATOMIC_RELAXED);
}

/* The same words; also false while it is unknown whether Swift stores strings
 * this way. */
static inline bool ferry_json_short_string(ferry_json_tape tape, size_t index,
                                           uint64_t *low, uint64_t *high) {
  return __atomic_load_n(&ferry__json_short_strings, __ATOMIC_RELAXED) &&
         ferry_json_short_words(tape, index, low, high);
}

static inline double ferry_json_double(ferry_json_tape tape, size_t index) {
  double value;
  memcpy(&value, &tape.words[index + 1], sizeof(value));
  return value;
}

/* memcmp() == 0 for keys, which are short: two loads from each end that may
 * overlap, and no call. */
static inline bool ferry_json_same_bytes(const uint8_t *a, const uint8_t *b,
                                         size_t count) {
  if (count > 16) {
    uint64_t a_words[4], b_words[4];
    if (count > 32)
      return memcmp(a, b, count) == 0;
    memcpy(a_words, a, 16);
    memcpy(b_words, b, 16);
    memcpy(a_words + 2, a + count - 16, 16);
    memcpy(b_words + 2, b + count - 16, 16);
    return ((a_words[0] ^ b_words[0]) | (a_words[1] ^ b_words[1]) |
            (a_words[2] ^ b_words[2]) | (a_words[3] ^ b_words[3])) == 0;
  }
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
  typedef uint8_t ferry_json_bytes __attribute__((vector_size(16)));
  ferry_json_bytes all, some;
  uint64_t word, tail;
  uint32_t half, half_tail;
  if (count >= 16) {
    memcpy(&all, bytes + count - 16, 16);
#pragma clang loop unroll(disable)
    for (size_t i = 0; i + 16 < count; i += 16) {
      memcpy(&some, bytes + i, 16);
      all |= some;
    }
    return __builtin_reduce_or(all & 0x80) == 0;
  }
  word = tail = 0;
  if (count >= 8) {
    memcpy(&word, bytes, 8);
    memcpy(&tail, bytes + count - 8, 8);
  } else if (count >= 4) {
    memcpy(&half, bytes, 4);
    memcpy(&half_tail, bytes + count - 4, 4);
    word = half | half_tail;
  } else {
    for (size_t i = 0; i < count; i++)
      word |= bytes[i];
  }
  return ((word | tail) & UINT64_C(0x8080808080808080)) == 0;
}

/* The number of elements of an array or members of an object. */
size_t ferry_json_count(ferry_json_tape tape, size_t index);

/* A number that no other document of the process has, for word 0. */
uint64_t ferry_json_new_identity(void);

/* The hash of a key. Nobody outside the process can make keys collide. */
uint64_t ferry_json_hash(const uint8_t *key, size_t count);

/* The value of the last member with this key in the object at `index`, or 0.
 * Fast if members are asked for in order, with gaps or without. */
size_t ferry_json_find(ferry_json_tape tape, size_t index, const uint8_t *key,
                       size_t count);

/* The members of one object after another, laid out for lookups. Zeroed at
 * first; used by one thread at a time, and for one document, which must outlive
 * it. */
typedef struct ferry_json_members {
  uint64_t *_Nullable keys;    /* the positions of the keys among the strings */
  uint64_t *_Nullable heads;   /* their lengths and first four bytes */
  uint32_t *_Nullable values;  /* the indexes of the values */
  uint32_t *_Nullable table;
  uint32_t count;              /* of all, including duplicate keys */
  uint32_t capacity;
  uint32_t table_size;
  uint32_t scans;
  bool has_table;
  bool keys_differ;
  bool is_ascii;               /* true of all keys */
} ferry_json_members;

/* Moves to the object at `index`. Returns true if it has the same keys as the
 * previous one, in the same order. */
bool ferry_json_members_fill(ferry_json_members *members, ferry_json_tape tape,
                             size_t index);

/* The position of the last member with this key, or FERRY_JSON_NOWHERE. Fast if
 * it is at `guess`. */
size_t ferry_json_members_find(ferry_json_members *members,
                               ferry_json_tape tape, const uint8_t *key,
                               size_t count, size_t guess);

void ferry_json_members_free(ferry_json_members *members);

/* The element at `position` of the array at `index`, or 0. */
size_t ferry_json_element(ferry_json_tape tape, size_t index, size_t position);

/* Whether two values are equal: numbers by value, strings by bytes, members in
 * any order. Nesting needs no stack. */
bool ferry_json_equal(ferry_json_tape a, size_t at, ferry_json_tape b,
                      size_t bt);

/* Compares numbers by value: negative, 0 or positive. */
int ferry_json_compare_numbers(ferry_json_tape a, size_t at, ferry_json_tape b,
                               size_t bt);

#ifdef __cplusplus
}
#endif

#ifdef __clang__
#pragma clang assume_nonnull end
#endif

#endif
