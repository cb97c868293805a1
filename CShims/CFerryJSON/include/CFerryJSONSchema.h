/* Schemas, compiled: what the check reads. */
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
 * thing that does not. Allocates memory only for patterns, for keys that stand
 * twice in a wide object, for long arrays in which no two elements may be
 * equal, and for members and elements that no other keyword names. The
 * recursion is as deep as the schema; where rules refer to one another it is as
 * deep as the document, and the check ends when the stack is low. */
bool ferry_json_check(const ferry_json_schema *schema, ferry_json_tape tape,
                      size_t index, ferry_json_mismatch *mismatch);

#ifdef __cplusplus
}
#endif

#ifdef __clang__
#pragma clang assume_nonnull end
#endif

#endif
