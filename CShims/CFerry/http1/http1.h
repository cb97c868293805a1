/* http1.h - the native engine: its connections, with one exchange at a time on
 * each, over HTTP/1.1, or over HTTP/2 (http2.c). */
#ifndef FERRY_HTTP1_H
#define FERRY_HTTP1_H

#include "http1/engine.h"
#include "http1/response.h"

#include <openssl/ssl.h>

/* ---- Connections --------------------------------------------------------- */

enum { FERRY__HTTP1_BUFFER = 65536 };

enum ferry__connection_state {
  FERRY__DIALING,     /* TCP connect */
  FERRY__TUNNELLING,  /* CONNECT was sent to the proxy */
  FERRY__HANDSHAKING, /* TLS handshake */
  FERRY__IDLE,
  FERRY__BUSY,
};

/* How much of an exchange's request has been sent. */
enum ferry__send_state {
  FERRY__SEND_HEAD,
  FERRY__SEND_AWAIT,   /* waits for 100-continue */
  FERRY__SEND_BODY,
  FERRY__SEND_LAST,    /* nothing follows the bytes in `out` */
  FERRY__SEND_DONE,
  FERRY__SEND_STOPPED, /* the rest is not sent: the response is complete */
};

typedef struct ferry__dial ferry__dial;
typedef struct ferry__socks ferry__socks;
typedef struct ferry__route ferry__route;
typedef struct ferry__http2 ferry__http2;

struct ferry__connection {
  ferry_loop *loop;
  ferry__route *route;
  ferry__connection *prev, *next;   /* in its route: dialing or idle */
  ferry__connection *older, *newer; /* in its loop: idle or dialing */
  ferry__transfer *transfer; /* BUSY: of the exchange; before: the one that
                              * waits */
  int fd;
  uint64_t serial;    /* identifies its socket: never reused */
  uint8_t state, sending;
  uint8_t why;        /* FERRY_CLOSED_…, when it closes */
  bool chunked;       /* the body is sent in chunks */
  bool expects;       /* sends Expect: 100-continue */
  bool copies;        /* its body is in files that sendfile() refuses */
  bool closing;       /* the request says Connection: close */
  bool tunnelling;    /* `response` is the proxy's */
  bool broken;        /* writing has failed */
  bool truncated;     /* TLS: ended without close_notify */
  bool wants_out;     /* waits for the socket to be writable */
  bool unread;        /* TLS: has bytes to read without an event of the
                       * socket */
  bool quiet;         /* HTTP/2: `out` has no bytes of the request */
  ferry__dial *dial;  /* while DIALING */
  ferry__socks *socks; /* while TUNNELLING through a SOCKS proxy */
  ferry__http2 *http2; /* NULL: HTTP/1.1 */
  SSL *tls;
  /* Bytes to send before anything else. */
  char *out;
  uint32_t out_length, out_at;
  uint64_t body_at;   /* bytes sent of a body in memory */
  uint64_t head_size; /* of the request's head */
  uint64_t sent;      /* bytes of head and body */
  /* TLS: bytes from the socket, modulo 2^32, when last looked at, when OpenSSL
   * was last called, and when it last returned bytes. */
  uint32_t arrived, turn_from, useful_at;
  /* Received bytes, held while the receiver is paused. */
  char *held;
  uint32_t held_length;
  int watch_errno; /* why the system refused to watch the socket */
  int end_errno; /* how a connection without a socket ended */
  ferry__response response;
  uint32_t served;    /* exchanges that have ended */
  uint64_t connected_ns, secured_ns; /* 0 = not yet */
  uint64_t idle_since, await_until; /* ms; before IDLE: when dialing began */
  uint64_t retire_at; /* ms: not used again after this; 0 = never */
  uint64_t asked_at;  /* ms: when its exchange started */
  uint64_t turn;      /* the turn in which everything available was read */
  uint16_t peer_port;
  char peer[46];
  ferry__backend *backend; /* one of several, referenced; NULL = a single
                            * address */
  bool charged; /* its transfer is counted for the backend */
  bool ahead;   /* opened before it was needed */
};

/* [tls.c] Before OpenSSL reads: limits the bytes that it takes in one call. */
void ferry__tls_begin_turn(ferry__connection *connection);
/* After -EAGAIN: whether the socket has more, so that this is not the end of a
 * broken connection. OpenSSL has only stopped for others' sake. */
bool ferry__tls_has_more(const ferry__connection *connection);
/* The bytes that OpenSSL has read from the socket, modulo 2^32. */
static inline uint32_t ferry__tls_arrived(const ferry__connection *c) {
  return (uint32_t)BIO_number_read(SSL_get_rbio(c->tls));
}
/* Whether it has read much too much without returning a byte. Then its queue
 * of errors says so. */
bool ferry__tls_is_flooded(const ferry__connection *connection);

/* [connection.c] Read and write bytes. Return a count, 0 at the end of the
 * connection, or a negative errno (-EAGAIN: not now). */
ssize_t ferry__connection_read(ferry__connection *connection, char *bytes,
                               size_t size);
ssize_t ferry__connection_write(ferry__connection *connection,
                                const char *bytes, size_t length);
/* Whether the peer has reset it. A sendfile(2) that moved some bytes can
 * consume the reset without reporting it, and then the system only reports an
 * end. */
bool ferry__connection_is_reset(const ferry__connection *connection);
/* Registers the events to wait for. Returns -errno if the system refuses; an
 * exchange that continues nevertheless is ended soon. */
int ferry__connection_watch(ferry__connection *connection, bool in, bool out);
void ferry__connection_release_fd(ferry_loop *loop, int fd);
/* Closes its socket; the held bytes stay. */
void ferry__connection_drop_socket(ferry__connection *connection);
/* Closes and frees it. The caller must handle its transfer, if it has one. */
void ferry__connection_close(ferry__connection *connection);
static inline void ferry__close(ferry__connection *connection, uint8_t why) {
  connection->why = why; /* FERRY_CLOSED_… */
  ferry__connection_close(connection);
}
/* It is connected, including tunnel and TLS: it goes to a waiting transfer, or
 * into the pool. */
void ferry__connection_ready(ferry__connection *connection);
/* Connecting has failed: the transfer that waits for it ends with this fault.
 * `words` may be NULL. */
void ferry__connection_failed(ferry__connection *connection,
                              ferry__fault fault, int os_errno,
                              const char *words);

/* Identifies a connection and one of its exchanges, to check after a call that
 * may have ended either and reused the memory. */
typedef struct ferry__mark {
  uint64_t serial;
  int fd;
  uint32_t served;
} ferry__mark;

ferry__mark ferry__connection_mark(const ferry__connection *connection);
/* Whether it is still in that exchange, with its socket. */
bool ferry__connection_holds(ferry_loop *loop, ferry__mark mark);

/* Handles the events of its socket. */
extern const ferry__socket_owner ferry__connection_owner;

/* ---- Exchanges (exchange.c) ---------------------------------------------- */

/* Sends the transfer's request; may end the transfer and the connection. */
void ferry__exchange_begin(ferry__connection *connection,
                           ferry__transfer *transfer);
/* The receiver can take more bytes. */
void ferry__exchange_resume(ferry__connection *connection);
void ferry__exchange_so_far(const ferry__transfer *transfer,
                            ferry_result *result);
/* The response is complete, and the source has no more bytes. */
void ferry__exchange_leave_unsent(ferry__connection *connection);
/* Ends the transfer with this fault, and the connection with it. */
void ferry__exchange_fail(ferry__connection *connection, ferry__fault fault);
/* The response is complete; `excess`: bytes follow it. */
void ferry__exchange_answered(ferry__connection *connection, bool excess);
/* The connection has ended, or has broken (os_errno). */
void ferry__exchange_lost(ferry__connection *connection, int os_errno);
/* Sends the request again, on a new connection. */
void ferry__exchange_repeat(ferry__connection *connection, uint8_t why);
/* Whether the head is a 417 caused by Expect: 100-continue alone. */
bool ferry__exchange_is_refused(const ferry__connection *connection);
void ferry__exchange_repeat_plainly(ferry__connection *connection);
bool ferry__head_take(ferry_loop *loop, ferry__transfer *transfer);
void ferry__head_give(ferry_loop *loop, ferry__transfer *transfer);
/* FERRY__HTTP1_BUFFER bytes for temporary use; NULL: no memory. */
char *ferry__http1_buffer(ferry_loop *loop);

/* ---- Receiving (receive.c) ----------------------------------------------- */

/* The socket is readable or broken. */
void ferry__exchange_readable(ferry__connection *connection);
/* Bytes of the response have arrived. */
void ferry__exchange_note_arrival(ferry__connection *connection);
/* A part of a TLS record may have arrived: the server is not silent. */
void ferry__exchange_note_part(ferry__connection *connection);
/* The final head is complete: whether the rest of the request is sent. */
void ferry__exchange_note_head(ferry__connection *connection);
/* Takes bytes as received. Returns false if the exchange is over; the
 * connection may be gone then. */
bool ferry__exchange_take(ferry__connection *connection, const char *at,
                          const char *end);
/* Reads what is left in the socket of a broken connection, adds it to the held
 * bytes, and closes the socket: the receiver may resume much later. */
void ferry__exchange_hold_all(ferry__connection *connection);

/* ---- Sending (send.c) ---------------------------------------------------- */

void ferry__exchange_writable(ferry__connection *connection);
/* Sends these bytes, and keeps what cannot be sent now. Returns false if
 * writing has failed; the exchange may be over then. */
bool ferry__exchange_send(ferry__connection *connection, const char *bytes,
                          size_t length);
/* The source has more bytes. */
void ferry__exchange_resume_sending(ferry__connection *connection);
/* Handles timed waits; returns when to look again, 0 = never. */
uint64_t ferry__exchange_look(ferry__connection *connection, uint64_t now);

/* ---- HTTP/2 (http2.c) ---------------------------------------------------- */

/* Whether a transfer uses HTTP/2 if the server chooses it. */
bool ferry__http2_wanted(const ferry_loop *loop,
                         const ferry__transfer *transfer);
/* Before the TLS handshake: offers HTTP/2 (ALPN) if the route does, and HTTP/1.1
 * unless HTTP/2 is not negotiated. Returns false without memory. */
bool ferry__http2_offer(ferry__connection *connection);
/* The connection is open: uses HTTP/2 on it if the server has chosen that.
 * Returns false without memory. */
bool ferry__http2_open(ferry__connection *connection);
void ferry__http2_free(ferry__connection *connection);
/* Sends the request of an exchange that has begun. */
void ferry__http2_begin(ferry__connection *connection);
void ferry__http2_readable(ferry__connection *connection);
/* Ends the exchange if it has failed, or if its response is complete and nothing
 * of it is held. Returns false if it is over; the connection may be gone
 * then. */
bool ferry__http2_settle(ferry__connection *connection);
/* Sends the next frames. Returns 1 if there were some, 0 if not, -1 if writing
 * has failed: the exchange may be over then. */
int ferry__http2_send(ferry__connection *connection);
bool ferry__http2_has_more(const ferry__connection *connection);
/* The receiver can take more bytes. */
void ferry__http2_resume(ferry__connection *connection);
/* The reply to the PING is not awaited any longer. */
void ferry__http2_stop_waiting(ferry__connection *connection);
/* Handles what has arrived between two exchanges. Returns false if the
 * connection must be closed, and sets `why`. */
bool ferry__http2_is_usable(ferry__connection *connection);

/* ---- Requests (request.c) ------------------------------------------------ */

typedef struct ferry__request_head {
  size_t size;
  bool host, user_agent, encodings; /* the request has this field itself */
  bool close, expect;
} ferry__request_head;

/* Computes the size of the request's head. */
ferry__request_head ferry__request_survey(const ferry_loop *loop,
                                          const ferry__transfer *transfer);
/* Writes the head; returns its end. */
char *ferry__request_write(const ferry_loop *loop,
                           const ferry__transfer *transfer,
                           const ferry__request_head *survey, char *to);

/* Whether this line of the request's fields is not sent. */
bool ferry__request_leaves_out(const ferry__transfer *transfer,
                               const char *line, size_t length);
/* The value of Accept-Encoding; NULL = none. */
const char *ferry__request_encodings(const ferry_loop *loop,
                                     const ferry__transfer *transfer);

/* Whether it was open before its transfer came. */
static inline bool ferry__connection_is_kept(const ferry__connection *c) {
  return c->served || c->ahead;
}

/* ---- Routes (routes.c) and their connections (route.c) ------------------- */

/* A connection that is still being dialed after this time may hang: no further
 * transfer depends on it. */
enum { FERRY__SLOW_MS = 500 };

static inline bool ferry__connection_is_slow(const ferry__connection *c) {
  return ferry__now(c->loop) >= c->idle_since + FERRY__SLOW_MS;
}

/* Connections that are interchangeable: the same origin, proxy, user of that
 * proxy, restriction of addresses, and offered protocols. */
struct ferry__route {
  ferry__route *next; /* of the same host */
  ferry__host *host, *via;
  uint64_t identity;
  uint8_t proxy_kind; /* FERRY_PROXY_…; 0 = direct */
  bool public_only;
  bool http2; /* offered to the server */
  ferry__connection *idle;             /* newest first */
  ferry__connection *dialing, *youngest; /* oldest first */
  SSL_SESSION *session; /* for the next handshake */
  uint64_t retire_at; /* ms: when an idle connection may be too old; 0 =
                       * never */
  unsigned connections;
  unsigned idle_count;
};

static inline ferry__host *ferry__route_dialled(const ferry__route *route) {
  return route->via ? route->via : route->host;
}

/* That of the transfer, which is made if it is new; NULL without memory. */
ferry__route *ferry__route_find(const ferry_loop *loop,
                                ferry__transfer *transfer);
/* Starts the transfer, on an idle connection or on one that is dialed. */
ferry__fault ferry__route_start(ferry_loop *loop, ferry__transfer *transfer);
/* Gives a reusable connection to a waiting transfer, or puts it into the
 * pool. */
void ferry__route_offer(ferry__connection *connection);
void ferry__route_remove(ferry__connection *connection);
void ferry__route_remove_dialing(ferry__connection *connection);
/* Closes connections that are idle and too old. */
void ferry__route_retire(ferry_loop *loop, ferry__route *route);
/* Dials a connection for this transfer, or for any (NULL). */
ferry__fault ferry__route_dial(ferry_loop *loop, ferry__route *route,
                               ferry__backend *backend,
                               ferry__transfer *transfer);

/* ---- Opened ahead of requests (ahead.c) ---------------------------------- */

/* Starts a transfer that opens a connection for others (FERRY_CONNECT). */
ferry__fault ferry__route_connect(ferry_loop *loop, ferry__route *route,
                                  ferry__backend *backend,
                                  ferry__transfer *transfer);
/* Such a connection is ready. */
void ferry__ahead_ready(ferry__connection *connection);
/* Keeps as many idle connections as the options require. */
void ferry__route_keep_ready(ferry_loop *loop, ferry__route *route);
/* It is one of those, which are not closed for being idle. */
bool ferry__connection_is_kept_ready(const ferry__connection *connection);

/* ---- Several addresses (balance.c) --------------------------------------- */

/* Counts its transfer for the backend that it goes to, .. */
void ferry__connection_charge(ferry__connection *connection);
/* .. or no longer; `undone`: the request was not sent there. */
void ferry__connection_discharge(ferry__connection *connection, bool undone);
/* Finds an idle connection, to this backend if it is not NULL. */
ferry__connection *ferry__route_idle_at(const ferry__route *route,
                                        const ferry__backend *backend);
/* Whether requests are spread over its host's addresses, and another one is
 * healthy. */
bool ferry__connection_is_balanced(const ferry__connection *connection);
bool ferry__connection_has_others(const ferry__connection *connection);
/* Its transfer has timed out, or nobody waits for it any more: if its address
 * has not responded, the address is blamed. */
void ferry__connection_is_silent(const ferry__connection *connection,
                                 ferry__fault fault);
/* It has failed before its request was sent. Returns true if the transfer goes
 * to another address; the connection is gone then. */
bool ferry__connection_gives_way(ferry__connection *connection);
/* Assigns it to this backend. */
void ferry__connection_moves(ferry__connection *connection,
                             ferry__backend *backend);

/* ---- Dialing (dial.c) ---------------------------------------------------- */

/* Connects to one of the host's addresses, by Happy Eyeballs (RFC 8305).
 * Returns false if that has failed; the connection is gone then. */
bool ferry__dial_begin(ferry__connection *connection);
void ferry__dial_event(ferry__connection *connection, int fd);
/* Tries the next address; returns when another one is due, 0 = none. */
uint64_t ferry__dial_look(ferry__connection *connection, uint64_t now);
void ferry__dial_end(ferry__connection *connection);
/* No transfer waits for it any more: its addresses have had their time. */
void ferry__dial_timed_out(const ferry__connection *connection);

/* ---- Tunnels (tunnel.c) -------------------------------------------------- */

/* Sends CONNECT to the proxy (RFC 9110, 9.3.6). */
void ferry__tunnel_begin(ferry__connection *connection);
void ferry__tunnel_event(ferry__connection *connection);
void ferry__tunnel_end(ferry__connection *connection);

/* ---- SOCKS (socks.c) ----------------------------------------------------- */

/* Asks the SOCKS proxy to connect to the server. */
void ferry__socks_begin(ferry__connection *connection);
void ferry__socks_event(ferry__connection *connection);
void ferry__socks_end(ferry__connection *connection);

/* ---- TLS (tls.c) --------------------------------------------------------- */

/* Starts the handshake. */
void ferry__tls_begin(ferry__connection *connection);
/* Continues the handshake after an event of the socket. */
void ferry__tls_step(ferry__connection *connection);
/* The fault that the server's alert reports in place of a response; code 0 if
 * none. *words: OpenSSL's message. */
ferry__fault ferry__tls_alert(const char **words);

#endif
