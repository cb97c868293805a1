/* A disk that hangs: the tests' own pwrite() stands before the system's in the
 * whole process, and keeps what is written to parts of downloads (".ferry-part")
 * until it is let go. Not under a sanitizer, which has one of its own. */
#ifndef CWRITES_H
#define CWRITES_H

#include <stdbool.h>

/* Whether this build can. */
bool writes_can_be_held(void);

/* From now on they are kept. */
void writes_hold(void);

/* Those that are kept at this moment. */
int writes_held(void);

/* Lets all go, and returns when they have been done. */
void writes_release(void);

#endif
