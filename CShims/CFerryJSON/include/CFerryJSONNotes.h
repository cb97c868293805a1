/* What a thread notes about the objects that it searches: the part that finds a
 * member that is expected, without a call. notes.h has the rest.
 */
#ifndef CFERRYJSON_NOTES_H
#define CFERRYJSON_NOTES_H

#include "CFerryJSONTape.h"

#ifdef __clang__
#pragma clang assume_nonnull begin
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Instead of the number of a member: no member has the key. */
#define FERRY_JSON_ABSENT (UINT32_MAX - 1)
/* Instead of the number of a member: there is no key. */
#define FERRY_JSON_NO_KEY UINT32_MAX

/* A key that the program has asked for, and the member that has this key. */
typedef struct ferry_json_asked {
  uint64_t words[2]; /* a Swift string, if it is kept */
  uint32_t member;   /* the member's number, or one of the above */
  bool is_kept;
} ferry_json_asked;

struct ferry_json_model;

/* The note about one object; one in each line of the processor's cache. */
typedef struct ferry_json_note {
  uint64_t document;
  const ferry_json_asked *next;      /* the key that is expected next */
  const uint32_t *_Nullable places;  /* of the members, as in the model */
  struct ferry_json_model *model;    /* has the keys that are expected */
  uint32_t index;                    /* of the object */
  uint32_t last;                     /* the value found last, or 0 */
  uint32_t searches;
  bool keys_differ;
} __attribute__((aligned(64))) ferry_json_note;

#define FERRY_JSON_NOTE_BITS 6

/* The 1 << FERRY_JSON_NOTE_BITS notes of the thread, if it has any. Read
 * without a call, and so not thread_local, which may have to be initialised. */
extern __thread ferry_json_note *_Nullable ferry__json_notes
    __attribute__((tls_model("initial-exec")));

/* The number of the note that may be about the object at `index`: one for each
 * of several objects, as those that are within one another take turns. */
static inline size_t ferry__json_note_number(size_t index) {
  return (uint32_t)index * UINT32_C(0x9e3779b1) >> (32 - FERRY_JSON_NOTE_BITS);
}

static inline bool ferry__json_is_note_of(const ferry_json_note *note,
                                          ferry_json_tape tape, size_t index) {
  return note->index == index && note->document == tape.words[0];
}

/* Whether this string is expected next. */
static inline bool ferry__json_expects(const ferry_json_note *note,
                                       uint64_t first, uint64_t second) {
  return note->next->words[0] == first && note->next->words[1] == second &&
         note->next->member != FERRY_JSON_NO_KEY;
}

/* The value of the string that is expected, or 0. */
static inline size_t ferry__json_take_expected(ferry_json_note *note) {
  const uint32_t member = note->next++->member;
  if (member == FERRY_JSON_ABSENT)
    return 0;
  note->last = note->index + note->places[member] + 1;
  return note->last;
}

/* The value of the member whose key is the string with these two words, or 0 if
 * there is none, or FERRY_JSON_NOWHERE if another string is expected. It is
 * expected if a thread asks objects of one type for the same keys in the same
 * order, the objects have the same keys in the same order, and the string is
 * kept. The value at `index` may be anything. */
static inline size_t ferry_json_expected(ferry_json_tape tape, size_t index,
                                         uint64_t first, uint64_t second) {
  ferry_json_note *note = ferry__json_notes;
  if (note) {
    note += ferry__json_note_number(index);
    if (ferry__json_is_note_of(note, tape, index) &&
        ferry__json_expects(note, first, second))
      return ferry__json_take_expected(note);
  }
  return FERRY_JSON_NOWHERE;
}

/* The same for a string that may be expected later, or in an object that was
 * not searched before. */
size_t ferry_json_expected_later(ferry_json_tape tape, size_t index,
                                 uint64_t first, uint64_t second);

/* Ends the life of the string in two words. */
typedef void ferry_json_forget(void *words);

/* Returns room for the two words of a string that was just searched for in the
 * object at `index`, with the result, so that it is expected the next time; or
 * NULL. While the room holds the string, no other string has these words.
 * `*is_kept` says whether the room already holds another string. */
void *_Nullable ferry_json_expect(ferry_json_tape tape, size_t index,
                                  size_t found, ferry_json_forget *forget,
                                  bool *is_kept);

#ifdef __cplusplus
}
#endif

#ifdef __clang__
#pragma clang assume_nonnull end
#endif

#endif
