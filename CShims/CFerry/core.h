/* core.h - what the files of the core share, lowest layer first. Everything
 * here belongs to the loop's thread, except what is marked [any thread]. */
#ifndef FERRY_CORE_H
#define FERRY_CORE_H

#include "base.h"
#include "transfer.h"
#include "connection.h"
#include "host.h"
#include "loop.h"
#include "compat.h"

#endif
