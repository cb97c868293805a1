/* core.h - what the files of the core share, lowest layer first. Everything
 * here belongs to the loop's thread, except what is marked [any thread]. */
#ifndef FERRY_CORE_H
#define FERRY_CORE_H

#include "loop/base.h"
#include "transfer/transfer.h"
#include "curl/libcurl.h"
#include "connection/host.h"
#include "loop/loop.h"
#include "curl/compat.h"

#endif
