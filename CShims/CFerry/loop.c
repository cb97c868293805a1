#include "CFerry.h"

void ferry_result_free(ferry_result *result) { (void)result; }
int ferry_result_make(uint64_t id, const char *head, size_t head_length,
                      const void *body, size_t body_length,
                      ferry_result **out) {
  (void)id, (void)head, (void)head_length, (void)body, (void)body_length;
  (void)out;
  return FERRY_E_INTERNAL;
}
