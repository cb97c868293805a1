/* Counts allocations and lets some fail: the tests' own malloc() replaces the
 * system's in the whole process. Not under a sanitizer, which has one of its
 * own. */
#ifndef CALLOCATIONS_H
#define CALLOCATIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether this build counts. */
bool allocations_are_counted(void);

/* The number of blocks that the calling thread has allocated since it
 * started. */
size_t allocations_of_thread(void);

/* The bytes of all blocks that the process has not freed; 0 if this build does
 * not count. */
size_t allocations_in_use(void);

/* Makes the next allocation of the calling thread fail. No effect if this build
 * does not count. */
void allocations_refuse_next(void);

#endif
