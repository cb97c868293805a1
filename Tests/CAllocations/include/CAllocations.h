/* Counts what is allocated, and refuses some of it: the tests' own malloc()
 * stands before the system's in the whole process. Not under a sanitizer,
 * which has one of its own. */
#ifndef CALLOCATIONS_H
#define CALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether this build counts. */
bool allocations_are_counted(void);

/* Blocks that the calling thread has asked for since it began. */
size_t allocations_of_thread(void);

/* Bytes of all blocks that the process has not given back; 0 where this build
 * does not count. */
size_t allocations_in_use(void);

/* The next block that the calling thread asks for it does not get. Nothing
 * where this build does not count. */
void allocations_refuse_next(void);

#endif
