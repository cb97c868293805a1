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

#ifdef __cplusplus
}
#endif

#endif
