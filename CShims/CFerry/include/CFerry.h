/* CFerry.h - the transfer core: a libuv loop on a thread of its own, with our
 * own engine and libcurl's multi-socket interface.
 *
 * How it is used
 *   ferry_loop_start()  makes a loop and its thread.
 *   ferry_submit()      hands over one transfer, named by an id of the
 *                       caller's choice.
 *   on_finished         brings exactly one result for every accepted id,
 *                       whether the transfer ends with a response, an error,
 *                       a cancel or the stop of the loop.
 *   ferry_result_free() frees the result.
 *   ferry_loop_free()   ends the loop.
 *
 * Threads
 *   Functions marked [any thread] may be called from anywhere, including
 *   callbacks; they neither block nor take a lock. All callbacks run on the
 *   loop's thread and must not block, because nothing else runs meanwhile.
 *
 * Ownership: there are exactly three cases
 *   1. Bytes given to ferry_submit() are copied before it returns.
 *   2. Bytes given to a callback live until the callback returns.
 *   3. A ferry_result belongs to the receiver of on_finished until it calls
 *      ferry_result_free(), on any thread, also after the loop has ended.
 *
 * A ferry_cancel(), ferry_resume() or ferry_set_priority() for an id whose
 * result has been delivered, or that was never submitted, has no effect.
 *
 * Functions return 0 or a negative FERRY_E_… code.
 *
 * Parts
 *   ferry_loop.h       a loop: options, start, end
 *   ferry_request.h    what a transfer sends and how it receives
 *   ferry_transfers.h  transfers: submit, cancel, pause, resume
 *   ferry_result.h     the response, or the error
 *   ferry_codes.h      codes of errors and phases
 *   ferry_encode.h     bodies of requests, compressed
 *   ferry_files.h      work that may block on a file
 *   ferry_jar.h        cookies
 *   ferry_url.h        URLs
 *   ferry_figures.h    statistics, and the features of this machine
 */
#ifndef CFERRY_H
#define CFERRY_H

#include "ferry_codes.h"
#include "ferry_encode.h"
#include "ferry_files.h"
#include "ferry_figures.h"
#include "ferry_jar.h"
#include "ferry_loop.h"
#include "ferry_request.h"
#include "ferry_result.h"
#include "ferry_transfers.h"
#include "ferry_url.h"

#endif
