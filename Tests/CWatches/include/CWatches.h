/* A system that has no room left to watch another socket: the tests' own
 * epoll_ctl() stands before the system's in the whole process. Only calls of
 * the program itself are refused, which are the core's; the loopback server's
 * are libuv's. Not under a sanitizer, which has one of its own. */
#ifndef CWATCHES_H
#define CWATCHES_H

#include <stdbool.h>

/* Whether this build refuses. */
bool watches_are_refused(void);

/* The next socket that the core begins to watch, or watches for something
 * else, it may not: ENOSPC. */
void watches_refuse_next(void);

/* Whether that has happened. */
bool watches_refused(void);

#endif
