/* CFerry.h - the transfer core: a libuv loop that drives libcurl's
 * multi-socket interface on a thread of its own.
 *
 * How it is used
 *   ferry_loop_start()  makes a loop and its thread.
 *   ferry_submit()      hands over one transfer, named by an id of the
 *                       caller's choice.
 *   on_finished         brings exactly one result for every accepted id,
 *                       whatever happens: answer, fault, cancel, stop.
 *   ferry_result_free() gives the result back.
 *   ferry_loop_free()   ends the loop.
 *
 * Threads
 *   Functions marked [any thread] may be called from everywhere, callbacks
 *   included; they neither block nor take a lock. All callbacks run on the
 *   loop's thread and must not block: nothing else moves while they run.
 *
 * Ownership, three cases and no fourth
 *   1. Bytes given to ferry_submit() are copied before it returns.
 *   2. Bytes given to a callback live until the callback returns.
 *   3. A ferry_result belongs to the receiver of on_finished until it calls
 *      ferry_result_free(), on any thread, also after the loop has ended.
 *
 * A late ferry_cancel(), ferry_resume() or ferry_set_priority() for an id
 * that has been answered, or was never known, is nothing.
 *
 * Functions return 0 or a negative FERRY_E_… code.
 *
 * Parts
 *   ferry_loop.h       a loop: options, start, end
 *   ferry_request.h    what a transfer is to send and to receive
 *   ferry_transfers.h  transfers: submit, cancel, pause, resume
 *   ferry_result.h     the answer, or the fault
 *   ferry_codes.h      the words for faults and phases
 *   ferry_encode.h     bodies of requests, compressed
 *   ferry_jar.h        cookies
 *   ferry_url.h        URLs
 *   ferry_figures.h    statistics, and what this machine has
 */
#ifndef CFERRY_H
#define CFERRY_H

#include "ferry_codes.h"
#include "ferry_encode.h"
#include "ferry_figures.h"
#include "ferry_jar.h"
#include "ferry_loop.h"
#include "ferry_request.h"
#include "ferry_result.h"
#include "ferry_transfers.h"
#include "ferry_url.h"

#endif
