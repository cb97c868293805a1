/* turns.h - lookups that wait for a thread, and their order. */
#ifndef FERRY_TURNS_H
#define FERRY_TURNS_H

#include "connection/host.h"

typedef int (*lookup_function)(const char *, struct addrinfo **);

/* Its `answer` is allocated in advance, so that a result, or a lack of memory,
 * can always be reported. */
typedef struct waiter {
  struct waiter *next;
  ferry__port *port;
  ferry__answer *answer;
} waiter;

/* The names below one domain. */
typedef struct domain {
  struct domain *hash_next;
  struct domain *next; /* in the line of domains */
  struct job *first, **last; /* waiting jobs, oldest first */
  unsigned running, jobs;
  bool in_line;
  size_t length;
  char name[];
} domain;

typedef struct job {
  struct job *hash_next, *next;
  domain *domain;
  lookup_function lookup;
  waiter *waiters;
  struct job *elder, *younger; /* among those that run */
  uint64_t begun; /* ms; when a thread took it */
  bool taken, hangs, urgent;
  char name[];
} job;

/* Call all of these with the lock of lookup.c held. */

/* The job of this name, or the place to insert it. */
job **ferry__turns_find(const char *name, lookup_function lookup);
/* Adds a job. NULL without memory. */
job *ferry__turns_put(const char *name, lookup_function lookup, bool urgent);
/* How many jobs wait. */
unsigned ferry__turns_waiting(void);
/* The next job, and when a thread may take it (ms); NULL = none waits. */
job *ferry__turns_next(uint64_t *due);
void ferry__turns_begin(job *job);
/* The job is done or cancelled: later requests for the name start a new one. */
void ferry__turns_forget(job *job);
/* Calls `look` with each waiting job, which it may forget. */
void ferry__turns_each(bool (*look)(job *job, ferry__port *port, uint64_t),
                       ferry__port *port);

#endif
