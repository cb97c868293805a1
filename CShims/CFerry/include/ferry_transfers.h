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
 * FERRY_E_SHUTDOWN, FERRY_E_MEMORY. A refused id gets no result. Errors in a
 * URL that only libcurl's parser finds are reported with the result. */
int ferry_submit(ferry_loop *_Nonnull loop,
                 const ferry_request *_Nonnull request,
                 int *_Nullable detail);

/* [any thread] Ends a transfer with FERRY_E_CANCELLED, unless it has ended. */
void ferry_cancel(ferry_loop *_Nonnull loop, uint64_t id);

/* [any thread] After FERRY_PAUSE: resumes receiving, and sending as well unless
 * the receiver pauses again at once: then ferry_resume_sending() does. A resume
 * that overtakes its pause is not lost. A paused stream reports its end without
 * a resume, unless decoded bytes are still held back. */
void ferry_resume(ferry_loop *_Nonnull loop, uint64_t id);

/* [any thread] Resumes sending after on_pull returned FERRY_PAUSE. A response
 * that is held or paused stays so. */
void ferry_resume_sending(ferry_loop *_Nonnull loop, uint64_t id);

/* [any thread] Stops reading the socket until ferry_resume(). Bytes that
 * libcurl has already read may still be delivered. */
void ferry_pause(ferry_loop *_Nonnull loop, uint64_t id);

/* [any thread] Writes the rest of a FERRY_STREAM body to a descriptor (see
 * ferry_request.fd), and resumes. More than `most` bytes from here on are
 * FERRY_E_BODY_TOO_LARGE; 0 = the request's limit. */
void ferry_write_to(ferry_loop *_Nonnull loop, uint64_t id, int32_t fd,
                    int64_t offset, uint64_t most);

/* [any thread] Moves a waiting transfer to the end of another queue. */
void ferry_set_priority(ferry_loop *_Nonnull loop, uint64_t id, int priority);

/* [any thread] Requests one call of on_call, soon; several requests may share
 * one. A request just before the stop may be lost: on_stopped follows. */
void ferry_call(ferry_loop *_Nonnull loop);

/* [the loop's thread] Requests one call of on_alarm when CLOCK_MONOTONIC
 * reaches this time in nanoseconds, or soon if it has passed. 0 = never. Each
 * call replaces the previous one. Accurate to the system's timers, not to the
 * loop's milliseconds. */
void ferry_set_alarm(ferry_loop *_Nonnull loop, uint64_t at_ns);

#ifdef __cplusplus
}
#endif
#endif
