/* turns.h - lookups that wait for a thread, and whose turn it is. */
#ifndef FERRY_TURNS_H
#define FERRY_TURNS_H

#include "core.h"

typedef int (*lookup_function)(const char *, struct addrinfo **);

/* Its answer is there from the beginning, so that what was found, or that
 * there was no memory for it, can always be told. */
typedef struct waiter {
  struct waiter *next;
  ferry__port *port;
  ferry__answer *answer;
} waiter;

/* The names below one domain. */
typedef struct domain {
  struct domain *hash_next;
  struct domain *next; /* in the line of those whose turn comes */
  struct job *first, **last; /* that wait, oldest first */
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
  struct job *elder, *younger; /* of those under way */
  uint64_t begun; /* ms; when it was taken */
  bool taken, hangs, urgent;
  char name[];
} job;

/* All of this under the lock of those who call it (lookup.c). */

/* The job of this name, or where it would stand. */
job **ferry__turns_find(const char *name, lookup_function lookup);
/* Puts one in. NULL without memory. */
job *ferry__turns_put(const char *name, lookup_function lookup, bool urgent);
/* How many wait. */
unsigned ferry__turns_waiting(void);
/* The next one, and when a thread may take it (ms); NULL = none waits. */
job *ferry__turns_next(uint64_t *due);
void ferry__turns_begin(job *job);
/* It is done, or not wanted: whoever asks from now on asks anew. */
void ferry__turns_forget(job *job);
/* Calls `look` with each that waits, which may forget it. */
void ferry__turns_each(bool (*look)(job *job, ferry__port *port, uint64_t),
                       ferry__port *port);

#endif
