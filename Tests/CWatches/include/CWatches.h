/* A system without room to watch another socket: the tests' own epoll_ctl()
 * replaces the system's in the whole process. Only calls of the program itself
 * fail, which are the core's; the loopback server's are libuv's. Not under a
 * sanitizer, which has one of its own. */
#ifndef CWATCHES_H
#define CWATCHES_H

#include <stdbool.h>

/* Whether this build can make calls fail. */
bool watches_are_refused(void);

/* The next registration of a socket by the core, or change of one, fails with
 * ENOSPC. */
void watches_refuse_next(void);

/* Whether that has happened. */
bool watches_refused(void);

#endif
