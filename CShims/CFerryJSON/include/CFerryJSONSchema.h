/* Compiled schemas, as used by the check. */
#ifndef CFERRYJSON_SCHEMA_H
#define CFERRYJSON_SCHEMA_H

#include "CFerryJSONTape.h"

#ifdef __clang__
#pragma clang assume_nonnull begin
#endif

#ifdef __cplusplus
extern "C" {
#endif

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
 * needs more memory; both in bytes. */
#define FERRY_JSON_PATTERN_LENGTH 16384
#define FERRY_JSON_PATTERN_MEMORY (1 << 20)

/* A regular expression of ECMA-262 in UTF-8. Searching a text takes time
 * proportional to its length. */
typedef struct ferry_json_pattern ferry_json_pattern;

/* NULL if it is invalid or cannot be used; then `message` (of `capacity` bytes)
 * says why. */
ferry_json_pattern *_Nullable ferry_json_pattern_create(
    const uint8_t *_Nullable expression, size_t count, char *message,
    size_t capacity);
/* The maximum number of bytes that it uses, including memory kept for later
 * searches. */
size_t ferry_json_pattern_memory(const ferry_json_pattern *pattern);
void ferry_json_pattern_free(ferry_json_pattern *pattern);

/* Consecutive places in one of the schema's arrays. */
typedef struct ferry_json_span {
  uint32_t first;
  uint32_t count;
} ferry_json_span;

/* The rule for one value. Indexes are places in the arrays of the schema. */
typedef struct ferry_json_rule {
  uint32_t kinds;            /* the allowed kinds (ferry_json_kind) */
  uint32_t plain;            /* those of them without further conditions */
  uint32_t enumeration;      /* an array among the constants, or 0 */
  uint32_t extra;            /* the rarely used keywords, or none */
  uint32_t minimum;          /* a number among the constants, or 0 */
  uint32_t maximum;
  uint32_t min_length;       /* of strings, in Unicode scalars */
  uint32_t max_length;
  uint32_t min_items;        /* of arrays */
  uint32_t max_items;
  uint32_t items;            /* the rule of each element, or none */
  uint32_t properties;       /* the first one, in order of declaration */
  uint32_t property_count;
  uint32_t others;           /* the rule of undeclared members, or none */
  uint64_t required;         /* the required ones among the first 64 */
  bool closed;               /* undeclared members are refused */
  bool takes_all_members;    /* undeclared members count as evaluated */
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

/* Further rules for a value. "In the list" is in the schema's list of rules. */
typedef struct ferry_json_extra {
  uint32_t reference;        /* a rule that must match too, or none */
  ferry_json_span all_of;    /* in the list */
  ferry_json_span any_of;
  ferry_json_span one_of;
  uint32_t negated;          /* a rule that must not match, or none */
  uint32_t condition;        /* if it matches, so must the next, else the
                              * last */
  uint32_t consequence;
  uint32_t alternative;
  uint32_t format;           /* ferry_json_format, of strings */
  uint32_t multiple_of;      /* a number among the constants, or 0 */
  ferry_json_span prefix;    /* of the first elements, in the list */
  uint32_t contained;        /* a rule that this many elements match, or none */
  uint32_t min_contained;
  uint32_t max_contained;
  uint32_t unevaluated_items;    /* the rule of otherwise unevaluated
                                  * elements */
  uint32_t min_members;
  uint32_t max_members;
  uint32_t names;                /* the rule of each key, or none */
  ferry_json_span patterned;     /* in the array of patterned members */
  ferry_json_span dependencies;  /* in the array of dependencies */
  uint32_t unevaluated_members;  /* the rule of otherwise unevaluated members */
  bool unique;                   /* all elements must be different */
  bool by_pattern;               /* each key is matched against the patterns */
} ferry_json_extra;

typedef struct ferry_json_property {
  const uint8_t *key;
  uint32_t count;
  uint32_t rule;
  bool required;
  bool named; /* otherwise only required, and perhaps among the others */
} ferry_json_property;

typedef struct ferry_json_patterned {
  const ferry_json_pattern *pattern;
  uint32_t rule;
} ferry_json_patterned;

/* The rule for an object with this key. */
typedef struct ferry_json_dependency {
  const uint8_t *key;
  uint32_t count;
  uint32_t rule;            /* or none */
  ferry_json_span required; /* properties that are required */
} ferry_json_dependency;

/* A whole schema; the first rule is that of the document. All functions borrow
 * it. */
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
  FERRY_JSON_NEGATED,       /* the negated rule matches */
  FERRY_JSON_NOT_MULTIPLE,
  FERRY_JSON_FORMAT,
  FERRY_JSON_EQUAL_ITEMS,
  FERRY_JSON_FEW_CONTAINED,
  FERRY_JSON_MANY_CONTAINED,
  /* The check was abandoned. */
  FERRY_JSON_LOW_STACK,
  FERRY_JSON_MUCH_WORK
};

typedef struct ferry_json_mismatch {
  enum ferry_json_reason reason;
  uint32_t rule;
  uint32_t property;
  size_t index;
} ferry_json_mismatch;

/* The maximum number of results that a check keeps when it takes far more steps
 * than the document has values. With them its time is proportional to the size
 * of the document times that of the schema. A check that needs more is
 * abandoned. */
#define FERRY_JSON_VERDICTS (1 << 20)

/* Checks the value at `index`. Returns true if it matches; otherwise
 * `*mismatch` is the first mismatch. Allocates memory only for patterns, for
 * duplicate keys in a wide object, for long arrays whose elements must differ,
 * and for members and elements that no other keyword evaluates. The recursion
 * is as deep as the schema. If rules refer to one another it is as deep as the
 * document, and the check ends when the stack is low. */
bool ferry_json_check(const ferry_json_schema *schema, ferry_json_tape tape,
                      size_t index, ferry_json_mismatch *mismatch);

#ifdef __cplusplus
}
#endif

#ifdef __clang__
#pragma clang assume_nonnull end
#endif

#endif
