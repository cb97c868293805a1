// pattern.h - regular expressions for schemas.
#ifndef FERRY_JSON_PATTERN_H
#define FERRY_JSON_PATTERN_H

#include "CFerryJSON.h"

// Whether the expression matches anywhere in the text.
bool ferry__json_pattern_finds(const ferry_json_pattern *pattern,
                               const uint8_t *text, size_t count) noexcept;

// Whether the text is an expression of ECMA-262, including those that RE2
// cannot use.
bool ferry__json_is_pattern(const uint8_t *text, size_t count) noexcept;

#endif
