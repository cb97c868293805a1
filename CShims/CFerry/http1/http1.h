/* http1.h - the native HTTP/1.1 engine: connections of our own, and one
 * exchange at a time on each. */
#ifndef FERRY_HTTP1_H
#define FERRY_HTTP1_H

#include "core.h"
#include "http1/response.h"

#include <openssl/ssl.h>

/* ---- Connections --------------------------------------------------------- */

enum { FERRY__HTTP1_BUFFER = 65536 };

enum ferry__connection_state {
  FERRY__DIALING,     /* TCP */
  FERRY__TUNNELLING,  /* the proxy has been asked to connect */
  FERRY__HANDSHAKING, /* TLS */
  FERRY__IDLE,
  FERRY__BUSY,
};

/* How far the request of an exchange has been sent. */
enum ferry__send_state {
  FERRY__SEND_HEAD,
  FERRY__SEND_AWAIT,   /* Expect: 100-continue */
  FERRY__SEND_BODY,
  FERRY__SEND_LAST,    /* nothing follows what is in `out` */
  FERRY__SEND_DONE,
  FERRY__SEND_STOPPED, /* the rest is not sent: the response is there */
};

typedef struct ferry__dial ferry__dial;
typedef struct ferry__socks ferry__socks;
typedef struct ferry__route ferry__route;

struct ferry__connection {
  ferry_loop *loop;
  ferry__route *route;
  ferry__connection *prev, *next;   /* in its route: dialing, or idle */
  ferry__connection *older, *newer; /* in its loop: idle, or dialing */
  ferry__transfer *transfer; /* BUSY: whose exchange; before: who waits */
  int fd;
  uint64_t serial;    /* of its socket: no other has had it */
  uint8_t state, sending;
  uint8_t why;        /* FERRY_CLOSED_…, when it is closed */
  bool chunked;       /* so the body is sent */
  bool expects;       /* 100-continue */
  bool copies;        /* its body is in files that sendfile() has not */
  bool closing;       /* the request says Connection: close */
  bool tunnelling;    /* `response` is the proxy's */
  bool broken;        /* writing has failed */
  bool truncated;     /* TLS: it ended without close_notify */
  bool wants_out;     /* writable is waited for */
  bool unread;        /* TLS: to be read on without an event of the socket */
  ferry__dial *dial;  /* while DIALING */
  ferry__socks *socks; /* while TUNNELLING through one of these */
  SSL *tls;
  /* What is to be sent before anything else. */
  char *out;
  uint32_t out_length, out_at;
  uint64_t body_at;   /* bytes of a body in memory that have been sent */
  uint64_t head_size; /* of the request */
  uint64_t sent;      /* bytes of head and body */
  /* Received, and held as the receiver is paused. */
  char *held;
  uint32_t held_length;
  int watch_errno; /* why the system did not take what is waited for */
  int end_errno; /* how a connection ended whose socket has gone */
  ferry__response response;
  uint32_t served;    /* exchanges that have ended */
  uint64_t connected_ns, secured_ns; /* 0 = not yet */
  uint64_t idle_since, await_until; /* ms */
  uint64_t retire_at; /* ms: not used again from then on; 0 = never */
  uint64_t asked_at;  /* ms: when its exchange began */
  uint64_t turn;      /* in which all that had come was read */
  uint16_t peer_port;
  char peer[46];
  ferry__backend *backend; /* of several: held; NULL = there is one address */
  bool charged; /* its transfer counts for the backend */
  bool ahead;   /* it is opened before it is needed */
};

/* [connection.c] Bytes in and out: a count, 0 at the end of the connection,
 * or a negative errno (-EAGAIN: not now). */
ssize_t ferry__connection_read(ferry__connection *connection, char *bytes,
                               size_t size);
ssize_t ferry__connection_write(ferry__connection *connection,
                                const char *bytes, size_t length);
/* Whether the peer has reset it: sendfile(2) that moved some bytes meets that
 * and does not tell, and then the system tells of an end only. */
bool ferry__connection_is_reset(const ferry__connection *connection);
/* Registers what is waited for. Where the system refuses, -errno: an exchange
 * that goes on all the same is ended soon. */
int ferry__connection_watch(ferry__connection *connection, bool in, bool out);
void ferry__connection_release_fd(ferry_loop *loop, int fd);
/* Its socket goes, and what is held stays. */
void ferry__connection_drop_socket(ferry__connection *connection);
/* Closes it and frees it; its transfer, if any, is the caller's to deal
 * with. */
void ferry__connection_close(ferry__connection *connection);
/* It is connected, through the tunnel and with TLS: to whoever waits, or
 * into the pool. */
void ferry__connection_ready(ferry__connection *connection);
/* It will not be: the transfer that waits for it ends so. `words` may be
 * NULL. */
void ferry__connection_failed(ferry__connection *connection,
                              ferry__fault fault, int os_errno,
                              const char *words);

/* Which connection, and which of its exchanges: what is asked after a call that
 * may have ended either, and given its memory to another. */
typedef struct ferry__mark {
  uint64_t serial;
  int fd;
  uint32_t served;
} ferry__mark;

ferry__mark ferry__connection_mark(const ferry__connection *connection);
/* It still is in that exchange, with its socket. */
bool ferry__connection_holds(ferry_loop *loop, ferry__mark mark);

/* A socket of it is ready. */
extern const ferry__socket_owner ferry__connection_owner;

/* ---- Exchanges (exchange.c) ---------------------------------------------- */

/* Sends the transfer's request; may end the transfer and the connection. */
void ferry__exchange_begin(ferry__connection *connection,
                           ferry__transfer *transfer);
/* The receiver takes more. */
void ferry__exchange_resume(ferry__connection *connection);
void ferry__exchange_so_far(const ferry__transfer *transfer,
                            ferry_result *result);
/* The response is complete, and the source has nothing more to give. */
void ferry__exchange_leave_unsent(ferry__connection *connection);
/* It ends so, and its connection with it. */
void ferry__exchange_fail(ferry__connection *connection, ferry__fault fault);
/* The response is complete; `excess`: and there are bytes behind it. */
void ferry__exchange_answered(ferry__connection *connection, bool excess);
/* The connection has ended, or has broken (os_errno). */
void ferry__exchange_lost(ferry__connection *connection, int os_errno);
/* The head is a 417 that the expectation of 100-continue alone has brought. */
bool ferry__exchange_is_refused(const ferry__connection *connection);
void ferry__exchange_repeat_plainly(ferry__connection *connection);
bool ferry__head_take(ferry_loop *loop, ferry__transfer *transfer);
void ferry__head_give(ferry_loop *loop, ferry__transfer *transfer);
/* FERRY__HTTP1_BUFFER bytes for whoever needs them now; NULL: no memory. */
char *ferry__http1_buffer(ferry_loop *loop);

/* ---- Receiving (receive.c) ----------------------------------------------- */

/* The socket is readable or broken. */
void ferry__exchange_readable(ferry__connection *connection);
/* Takes bytes as they come. False: the exchange is over, and the connection
 * may be gone. */
bool ferry__exchange_take(ferry__connection *connection, const char *at,
                          const char *end);
/* What lies in the socket of a broken connection joins what is held, and the
 * socket goes: the receiver may come back much later. */
void ferry__exchange_hold_all(ferry__connection *connection);

/* ---- Sending (send.c) ---------------------------------------------------- */

void ferry__exchange_writable(ferry__connection *connection);
/* Sends these bytes; what does not leave now is kept. False: the exchange has
 * been dealt with. */
bool ferry__exchange_send(ferry__connection *connection, const char *bytes,
                          size_t length);
/* The source has more. */
void ferry__exchange_resume_sending(ferry__connection *connection);
/* What waits for a time; returns when to look again, 0 = no need to. */
uint64_t ferry__exchange_look(ferry__connection *connection, uint64_t now);

/* ---- Requests (request.c) ------------------------------------------------ */

typedef struct ferry__request_head {
  size_t size;
  bool host, user_agent, encodings; /* the request has its own */
  bool close, expect;
} ferry__request_head;

/* What the head of the request takes. */
ferry__request_head ferry__request_survey(const ferry_loop *loop,
                                          const ferry__transfer *transfer);
/* Writes it; returns its end. */
char *ferry__request_write(const ferry_loop *loop,
                           const ferry__transfer *transfer,
                           const ferry__request_head *survey, char *to);

/* It has been there before its transfer came. */
static inline bool ferry__connection_is_kept(const ferry__connection *c) {
  return c->served || c->ahead;
}

/* ---- Routes (route.c) ---------------------------------------------------- */

/* Connections that may be used for one another: one origin, one proxy, one
 * user of that proxy, and one bound on addresses. */
struct ferry__route {
  ferry__route *next; /* of the same host */
  ferry__host *host, *via;
  uint64_t identity;
  uint8_t proxy_kind; /* FERRY_PROXY_…; 0 = direct */
  bool public_only;
  ferry__connection *idle;             /* the newest first */
  ferry__connection *dialing, *youngest; /* the oldest first */
  SSL_SESSION *session; /* for the next handshake */
  uint64_t retire_at; /* ms: when an idle one may be too old; 0 = never */
  unsigned connections;
  unsigned idle_count;
};

static inline ferry__host *ferry__route_dialled(const ferry__route *route) {
  return route->via ? route->via : route->host;
}

/* The transfer's engine starts here: with an idle connection, or with one
 * that is dialed. */
ferry__fault ferry__route_start(ferry_loop *loop, ferry__transfer *transfer);
/* Puts a connection that can be used again at a waiting transfer's service,
 * or into the pool. */
void ferry__route_offer(ferry__connection *connection);
void ferry__route_remove(ferry__connection *connection);
void ferry__route_remove_dialing(ferry__connection *connection);
/* Closes those that are idle and too old. */
void ferry__route_retire(ferry_loop *loop, ferry__route *route);
/* Opens one for this transfer, or for whoever comes (NULL). */
ferry__fault ferry__route_dial(ferry_loop *loop, ferry__route *route,
                               ferry__backend *backend,
                               ferry__transfer *transfer);

/* ---- Ahead of requests (ahead.c) ----------------------------------------- */

/* A transfer that wants a connection for others. */
ferry__fault ferry__route_connect(ferry_loop *loop, ferry__route *route,
                                  ferry__backend *backend,
                                  ferry__transfer *transfer);
/* It is there. */
void ferry__ahead_ready(ferry__connection *connection);
/* So many lie ready as the options want. */
void ferry__route_keep_ready(ferry_loop *loop, ferry__route *route);
/* It is one of those, and not closed for being idle. */
bool ferry__connection_is_kept_ready(const ferry__connection *connection);

/* ---- Several addresses (balance.c) --------------------------------------- */

/* Its transfer counts for the backend that it goes to, .. */
void ferry__connection_charge(ferry__connection *connection);
/* .. and has left it; `undone`: and was not sent there. */
void ferry__connection_discharge(ferry__connection *connection, bool undone);
/* An idle connection, to this backend if it is not NULL. */
ferry__connection *ferry__route_idle_at(const ferry__route *route,
                                        const ferry__backend *backend);
/* Requests are spread over its host's addresses; and there is another one that
 * is well. */
bool ferry__connection_is_balanced(const ferry__connection *connection);
bool ferry__connection_has_others(const ferry__connection *connection);
/* Its transfer has timed out, or nobody waits for it any more: where nothing
 * was heard of its address, that is what is wrong. */
void ferry__connection_is_silent(const ferry__connection *connection,
                                 ferry__fault fault);
/* It has come to nothing before its request was sent: true when the transfer
 * goes to another address, and the connection is gone. */
bool ferry__connection_gives_way(ferry__connection *connection);
/* It goes to this backend. */
void ferry__connection_moves(ferry__connection *connection,
                             ferry__backend *backend);

/* ---- Dialing (dial.c) ---------------------------------------------------- */

/* Connects to one of the host's addresses, by Happy Eyeballs (RFC 8305).
 * False: it has failed, and the connection is gone. */
bool ferry__dial_begin(ferry__connection *connection);
void ferry__dial_event(ferry__connection *connection, int fd);
/* The next address; returns when the one after that is due, 0 = none is. */
uint64_t ferry__dial_look(ferry__connection *connection, uint64_t now);
void ferry__dial_end(ferry__connection *connection);
/* Whoever waited for it waits no longer: the addresses have had their time. */
void ferry__dial_timed_out(const ferry__connection *connection);

/* ---- Tunnels (tunnel.c) -------------------------------------------------- */

/* Asks the proxy to CONNECT (RFC 9110, 9.3.6). */
void ferry__tunnel_begin(ferry__connection *connection);
void ferry__tunnel_event(ferry__connection *connection);
void ferry__tunnel_end(ferry__connection *connection);

/* ---- SOCKS (socks.c) ----------------------------------------------------- */

/* Has the proxy connect to the server. */
void ferry__socks_begin(ferry__connection *connection);
void ferry__socks_event(ferry__connection *connection);
void ferry__socks_end(ferry__connection *connection);

/* ---- TLS (tls.c) --------------------------------------------------------- */

/* Begins the handshake. */
void ferry__tls_begin(ferry__connection *connection);
/* The socket is ready for more of it. */
void ferry__tls_step(ferry__connection *connection);
/* The response's fault where the server's alert tells the reason; code 0
 * otherwise. *words: OpenSSL's. */
ferry__fault ferry__tls_alert(const char **words);

#endif
