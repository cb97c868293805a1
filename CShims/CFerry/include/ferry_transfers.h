/* ferry_transfers.h - transfers on a loop. */
#ifndef CFERRY_TRANSFERS_H
#define CFERRY_TRANSFERS_H

#include "ferry_base.h"
#include "ferry_loop.h"
#include "ferry_request.h"

#ifdef __cplusplus
extern "C" {
#endif

/* [any thread] Accepts a transfer, or refuses it: FERRY_E_INVALID_URL,
 * FERRY_E_UNSUPPORTED_SCHEME, FERRY_E_INVALID_REQUEST (with *detail),
 * FERRY_E_SHUTDOWN, FERRY_E_MEMORY. A refused id gets no result. What only
 * libcurl's parser sees of a URL comes as a result. */
int ferry_submit(ferry_loop *_Nonnull loop,
                 const ferry_request *_Nonnull request,
                 int *_Nullable detail);

/* [any thread] Ends a transfer with FERRY_E_CANCELLED, unless it has ended. */
void ferry_cancel(ferry_loop *_Nonnull loop, uint64_t id);

/* [any thread] After FERRY_PAUSE: goes on receiving and sending, both. A
 * resume that overtakes its pause is not lost. The end of a paused stream is
 * told without one, unless decoded bytes are still held back. */
void ferry_resume(ferry_loop *_Nonnull loop, uint64_t id);

/* [any thread] Likewise after FERRY_PAUSE of on_pull, and of that alone: an
 * answer that is held or paused meanwhile stays so. */
void ferry_resume_sending(ferry_loop *_Nonnull loop, uint64_t id);

/* [any thread] Leaves the socket unread until ferry_resume(). What libcurl
 * has read already may still be delivered. */
void ferry_pause(ferry_loop *_Nonnull loop, uint64_t id);

/* [any thread] Sends the rest of a body of FERRY_STREAM to a descriptor (see
 * ferry_request.fd), and resumes. `most`: more bytes than this from here on are
 * FERRY_E_BODY_TOO_LARGE; 0 = as the request says. */
void ferry_write_to(ferry_loop *_Nonnull loop, uint64_t id, int32_t fd,
                    int64_t offset, uint64_t most);

/* [any thread] Moves a waiting transfer to the end of another ring. */
void ferry_set_priority(ferry_loop *_Nonnull loop, uint64_t id, int priority);

/* [any thread] Has on_call called once, soon; calls run together. One just
 * before the stop may come to nothing: on_stopped tells. */
void ferry_call(ferry_loop *_Nonnull loop);

/* [the loop's thread] Has on_alarm called once, when CLOCK_MONOTONIC reaches
 * this time in nanoseconds, or soon where it has passed. 0 = never. Each call
 * replaces the one before it. Accurate to the system's timers, not to the
 * loop's milliseconds. */
void ferry_set_alarm(ferry_loop *_Nonnull loop, uint64_t at_ns);

#ifdef __cplusplus
}
#endif
#endif
