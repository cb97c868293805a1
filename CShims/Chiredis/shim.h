#include <hiredis/hiredis.h>
#include <sys/eventfd.h>

#if HIREDIS_MAJOR >= 1
/* Types of RESP3, which this client does not ask for. Without a function the
 * parser would return an object that is no pointer. */
static inline void *refuse_double(const redisReadTask *task, double value,
                                  char *text, size_t length) {
  (void)task, (void)value, (void)text, (void)length;
  return NULL;
}

static inline void *refuse_bool(const redisReadTask *task, int value) {
  (void)task, (void)value;
  return NULL;
}
#endif

/* Functions for the parser that return no objects. */
static inline redisReplyObjectFunctions refusing_functions(void) {
  redisReplyObjectFunctions functions = {0};
#if HIREDIS_MAJOR >= 1
  functions.createDouble = refuse_double;
  functions.createBool = refuse_bool;
#endif
  return functions;
}
