/* jar.h - a jar of cookies, and how many it keeps. */
#ifndef FERRY_JAR_H
#define FERRY_JAR_H

#include "base.h"

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
};

/* A handle that opens the jar, on whatever thread; NULL without memory. */
CURL *ferry__jar_open(ferry_jar *jar);
void ferry__jar_close(CURL *easy);

/* [any thread] So many cookies were set: now and then the jar is looked
 * through, and what is too much taken out. */
void ferry__jar_count(ferry_jar *jar, unsigned fresh);
/* [any thread] What it has for this host is sent. */
void ferry__jar_use(ferry_jar *jar, const char *host);
void ferry__domains_free(ferry__domains *domains);

#endif
