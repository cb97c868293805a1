/* A disk that hangs: the tests' own open(), openat(), close(), pwrite(),
 * pread(), fsync(), fdatasync(), unlinkat(), sendfile() and socket() replace the system's
 * in the whole process.
 * Writes and syncs of parts of downloads (".ferry-part"), reads and closes of
 * files whose names end with ".held", and opens of both hang until they are
 * released. Not under a sanitizer, which has functions of its own. */
#ifndef CWRITES_H
#define CWRITES_H

#include <stdbool.h>

/* Whether this build can do that. */
bool writes_can_be_held(void);

/* From now on they hang. */
void writes_hold(void);

/* The number of writes that hang at this moment. */
int writes_held(void);

/* Releases all, and returns when they are done. */
void writes_release(void);

/* The same for reads. */
void reads_hold(void);
int reads_held(void);
void reads_release(void);

/* The same for opening and closing. */
void opens_hold(void);
int opens_held(void);
void opens_release(void);
void closes_hold(void);
int closes_held(void);
void closes_release(void);

/* The same for syncs, and for those of directories whose names end with
 * ".held". */
void syncs_hold(void);
int syncs_held(void);
void syncs_release(void);
void directories_hold(void);
int directories_held(void);
void directories_release(void);

/* The same for deleting parts with unlinkat(). */
void unlinks_hold(void);
int unlinks_held(void);
void unlinks_release(void);

/* The next sync of the file with this path fails with EIO, and later ones
 * succeed: a system reports once that it could not write. */
void syncs_fail_once(const char *path);

/* From now on sendfile() fails with this number, until it is 0 again. */
void sendfile_fails(int os_errno);

/* The next TCP socket cannot be opened. */
void socket_fails_once(int os_errno);

/* Whether that sync has failed. */
bool syncs_have_failed(void);

#endif
