/* base.h - limits and forward declarations for all files of CLoopback. */
#ifndef LOOPBACK_BASE_H
#define LOOPBACK_BASE_H

#include "CLoopback.h"

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#define LB_READ_SIZE (256 * 1024)  /* one read, shared by all connections */
#define LB_INPUT_LIMIT (256 * 1024) /* reading stops at this much unread
                                     * input */
#define LB_BLOCK (64 * 1024)        /* output made at a time */
#define LB_HEAD_LIMIT (64 * 1024)
#define LB_MAX_FIELDS 256
#define LB_LINGER_MS 2000

typedef struct lb_conn lb_conn;
typedef struct loopback_server lb_server;

#endif
