/* CFerry.h - the transfer core: a libuv loop that drives libcurl's
 * multi-socket interface on a thread of its own.
 *
 * How it is used
 *   ferry_loop_start()  starts an event loop and its thread.
 *   ferry_submit()      submits one transfer under an id that the caller
 *                       chooses.
 *   on_finished         delivers exactly one result for every accepted id: a
 *                       response, an error, a cancel or a stop.
 *   ferry_result_free() frees the result.
 *   ferry_loop_free()   ends the event loop.
 *
 * Threads
 *   Functions marked [any thread] may be called from anywhere, including
 *   callbacks; they neither block nor take a lock. All callbacks run on the
 *   loop's thread and must not block, because nothing else runs meanwhile.
 *
 * Ownership: there are three cases
 *   1. Bytes passed to ferry_submit() are copied before it returns.
 *   2. Bytes passed to a callback are valid until the callback returns.
 *   3. A ferry_result belongs to the receiver of on_finished until it calls
 *      ferry_result_free(), on any thread, also after the loop has ended.
 *
 * ferry_cancel(), ferry_resume() and ferry_set_priority() have no effect for an
 * id that has its result or was never known.
 *
 * Functions return 0 or a negative FERRY_E_… code.
 *
 * Parts
 *   ferry_loop.h       a loop: options, start, end
 *   ferry_request.h    what a transfer sends and receives
 *   ferry_transfers.h  transfers: submit, cancel, pause, resume
 *   ferry_result.h     the response, or the error
 *   ferry_codes.h      result codes, details and phases
 *   ferry_jar.h        cookies
 *   ferry_url.h        URLs
 *   ferry_figures.h    statistics, and features of this machine
 */
#ifndef CFERRY_H
#define CFERRY_H

#include "ferry_codes.h"
#include "ferry_figures.h"
#include "ferry_jar.h"
#include "ferry_loop.h"
#include "ferry_request.h"
#include "ferry_result.h"
#include "ferry_transfers.h"
#include "ferry_url.h"

#endif
