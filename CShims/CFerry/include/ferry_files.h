/* ferry_files.h - work that may block on a file, such as a read. */
#ifndef CFERRY_FILES_H
#define CFERRY_FILES_H

#include "ferry_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* [any thread] Calls `work` with `context`, once, on one of the few threads of
 * the device of this descriptor. They also write downloads. If the device
 * hangs, only work on the same device waits. Returns 0, or an errno if there is
 * no thread: then `work` is not called. */
int ferry_work_on_file(int fd, void (*_Nonnull work)(void *_Nullable context),
                       void *_Nullable context);

/* [any thread] The same for opening a file in this directory. The threads are
 * for opening files of its device. If the system does not know the device
 * without asking a server, work with the same number shares threads, as may
 * some with other numbers. ETIMEDOUT if they hang, as below. */
int ferry_work_in(const char *_Nonnull directory, uint64_t number,
                  void (*_Nonnull work)(void *_Nullable context),
                  void *_Nullable context);

/* [any thread] Whether the device of this file hangs: hundreds of jobs wait for
 * it, and none has begun for a second or two. Asks the system only if some
 * device hangs. */
int ferry_file_hangs(const char *_Nonnull path);

/* [any thread] Whether the file system is one of disks or of memory, so that
 * closing the file never waits for a server, as with FUSE or NFS. */
int ferry_file_is_local(int fd);

#ifdef __cplusplus
}
#endif

#endif
