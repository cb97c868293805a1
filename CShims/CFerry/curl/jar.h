/* jar.h - a jar of cookies and its limits. */
#ifndef FERRY_JAR_H
#define FERRY_JAR_H

#include "loop/base.h"

/* A domain that has cookies, and when it was last requested. */
typedef struct ferry__domain {
  struct ferry__domain *next;
  uint64_t used; /* a tick of the jar */
  unsigned count;
  size_t length;
  char name[];
} ferry__domain;

typedef struct ferry__domains {
  ferry__domain *buckets[1024];
} ferry__domains;

struct ferry_jar {
  CURLSH *share;
  pthread_mutex_t locks[CURL_LOCK_DATA_LAST];
  atomic_int owners;
  atomic_uint fresh; /* cookies set since the last look */
  _Atomic uint64_t additions; /* cookies set so far */
  pthread_mutex_t lock; /* guards the next two */
  ferry__domains *domains; /* found by the last look */
  uint64_t tick;
  /* The cookie that expires last, so that ferry_jar_filled() needs no list of
   * them. It has a lock of its own, which is only held briefly: loops take it
   * for each cookie that a server sets. */
  pthread_mutex_t witness_lock;
  uint64_t changes;        /* to the jar, so far */
  char *witness;           /* its line, as in ferry_jar_list() */
  _Atomic int64_t expires; /* seconds since 1970, INT64_MAX = never; or: */
};
enum { FERRY__JAR_EMPTY = 0, FERRY__JAR_UNKNOWN = -1 };

/* Opens the jar with a new handle, on any thread; NULL without memory. */
CURL *ferry__jar_open(ferry_jar *jar);
void ferry__jar_close(CURL *easy);

/* [any thread] Counts cookies that were set. From time to time the jar is
 * checked, and cookies over its limits are removed. */
void ferry__jar_count(ferry_jar *jar, unsigned fresh);
/* [any thread] libcurl has read a line of a head. If it sets a cookie, that may
 * be the remembered one, with another expiry or none. */
void ferry__jar_line(ferry_jar *jar, const char *line, size_t length);
/* [any thread] Cookies were set or removed in another way. */
void ferry__jar_changed(ferry_jar *jar);
/* [any thread] The jar's cookies for this host are being sent. */
void ferry__jar_use(ferry_jar *jar, const char *host);
void ferry__domains_free(ferry__domains *domains);

#endif
