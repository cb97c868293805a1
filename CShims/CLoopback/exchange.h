/* exchange.h - one request and its response (exchange.c, routes*.c,
 * reply.c). */
#ifndef LOOPBACK_EXCHANGE_H
#define LOOPBACK_EXCHANGE_H

#include "base.h"
#include "head.h"

typedef void (*lb_route)(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__exchange_advance(lb_conn *c);
lb_route lb__route_find(const lb_head *head, lb_slice *rest, int *body_mode);
void lb__route_delayed(lb_conn *c);
/* Adds the status line and Date; then add fields by lb__buf_…(&c->out, …). */
void lb__reply_begin(lb_conn *c, int status, const char *reason);
/* Adds Content-Length, Connection and the empty line. */
void lb__reply_length(lb_conn *c, uint64_t length);
void lb__reply_chunked(lb_conn *c);
/* All of the response is in `out` or `source`. */
void lb__reply_end(lb_conn *c);
void lb__reply_bytes(lb_conn *c, int status, const char *type,
                     const char *fields, const void *bytes, size_t length);
void lb__reply_error(lb_conn *c, int status);
void lb__route_bytes(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_chunked(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_drip(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_until_close(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_echo(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_echo_body(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_headers(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_upload(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_gzip(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_deflate(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_brotli(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_zstd(lb_conn *c, const lb_head *head, lb_slice rest);
void lb__route_auth(lb_conn *c, const lb_head *head, lb_slice rest);

#endif
