/* internal.h - what the files of CLoopback share. Everything belongs to the
 * server's thread unless marked otherwise. */
#ifndef LOOPBACK_INTERNAL_H
#define LOOPBACK_INTERNAL_H

#include "base.h"
#include "buffer.h"
#include "connection.h"
#include "exchange.h"
#include "head.h"
#include "script.h"
#include "server.h"
#include "source.h"

#endif
