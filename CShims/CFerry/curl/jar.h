/* jar.h - a jar of cookies, and how many it keeps. */
#ifndef FERRY_JAR_H
#define FERRY_JAR_H

#include "loop/base.h"

/* A domain that has cookies, and when it was asked for last. */
typedef struct ferry__domain {
  struct ferry__domain *next;
  uint64_t used; /* a tick of the jar's */
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
  atomic_uint fresh; /* cookies that were set since the last look */
  pthread_mutex_t lock; /* of what follows */
  ferry__domains *domains; /* as of the last look */
  uint64_t tick;
  /* Of all cookies the one that expires last, so that ferry_jar_filled() does
   * not need a list of them. Written under a lock of its own, which nobody
   * holds for long: loops take it for each cookie that a server sets. */
  pthread_mutex_t witness_lock;
  uint64_t changes;        /* of the jar, so far */
  char *witness;           /* its line, as of ferry_jar_list() */
  _Atomic int64_t expires; /* seconds since 1970, INT64_MAX for never; or: */
};
enum { FERRY__JAR_EMPTY = 0, FERRY__JAR_UNKNOWN = -1 };

/* A handle that opens the jar, on whatever thread; NULL without memory. */
CURL *ferry__jar_open(ferry_jar *jar);
void ferry__jar_close(CURL *easy);

/* [any thread] So many cookies were set: now and then the jar is looked
 * through, and what is too much taken out. */
void ferry__jar_count(ferry_jar *jar, unsigned fresh);
/* [any thread] libcurl has read a line of a head: if it set a cookie, that may
 * be the one that is remembered, with another end or none. */
void ferry__jar_line(ferry_jar *jar, const char *line, size_t length);
/* [any thread] Cookies were set, or taken out, in another way. */
void ferry__jar_changed(ferry_jar *jar);
/* [any thread] What it has for this host is sent. */
void ferry__jar_use(ferry_jar *jar, const char *host);
void ferry__domains_free(ferry__domains *domains);

#endif
