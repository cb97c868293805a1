/* libcurl.h - what libcurl's engine works with: easy handles, multi handles,
 * and the sockets of both. */
#ifndef FERRY_LIBCURL_H
#define FERRY_LIBCURL_H

#include "connection/host.h"

typedef struct ssl_st SSL;

/* ---- Easy handles (handle.c) --------------------------------------------- */

enum { FERRY__OPENED = 8 };

struct ferry__handle {
  ferry__handle *next; /* in its shard's pool */
  CURL *easy;
  ferry_loop *loop;
  ferry__shard *shard;
  ferry__transfer *transfer; /* NULL while idle */
  uint64_t host_serial;      /* of the host whose CURLU is set */
  uint32_t answer;           /* of its host, as set by `resolve` */
  unsigned unusual : 1;      /* options beyond target and headers are set */
  unsigned has_headers : 1, has_resolve : 1, big : 1, patient : 1;
  unsigned sweeps : 1; /* makes libcurl clear its cache of names at the end */
  struct curl_slist *resolve; /* the list set as CURLOPT_RESOLVE */
  unsigned tunnelling : 1; /* bytes received belong to the response to
                            * CONNECT */
  unsigned tunnel_granted : 1, tunnelled : 1; /* its status was good; it has
                                               * ended */
  unsigned refused : 1; /* the last stream was refused, without being
                         * processed */
  unsigned left_in : 1; /* the server goes away, but processes this stream */
  unsigned reached : 1; /* this attempt's request may have been sent */
  unsigned left : 1;    /* libcurl has put its connection back; known only
                         * with HTTP/2 */
  uint32_t tunnel_bytes, tunnel_steps;
  uint32_t stream;        /* HTTP/2; 0 = none yet */
  uint32_t stream_error;  /* the code it ended with (RFC 9113, 7) */
  uint64_t connection;    /* that its request was sent on; 0 = none yet */
  char target[64]; /* the target that is set, if it is short */
  unsigned attempts, rounds;
  unsigned opened_count;     /* sockets opened since the last request */
  int opened[FERRY__OPENED]; /* -1 = closed since */
  ferry__head head;
  char words[CURL_ERROR_SIZE];
};

ferry__handle *ferry__handle_take(ferry_loop *loop, ferry__shard *shard);
/* Returns it to the pool, or discards it after a fault. */
void ferry__handle_give(ferry__handle *handle, bool healthy);
/* Frees libcurl's part of it. */
void ferry__handle_close(ferry__handle *handle);
void ferry__handle_free(ferry__handle *handle);
/* Sets the options of this transfer. Returns false if libcurl refuses one. */
bool ferry__handle_prepare(ferry__handle *handle, ferry__transfer *transfer);

/* ---- Shards (shard.c) ---------------------------------------------------- */

/* A shard without multiplexing: each of its transfers has a connection to
 * itself. */
#define FERRY__ALONE (UINT64_C(1) << 63)

struct ferry__shard {
  ferry_loop *loop;
  CURLM *multi; /* made on first use */
  ferry__shard *touched_next;
  ferry__handle *pool;
  uint64_t due; /* ms; 0 = none, 1 = in this turn */
  uint64_t idle_since; /* ms; when its last transfer left */
  uint64_t identity;   /* whose connections it has; 0 = anybody's. With
                        * FERRY__ALONE, of those that must not share
                        * them */
  unsigned running, index;
  unsigned unheard; /* connects that continue without a socket to wait for */
  struct curl_slist *leaving; /* names that libcurl has to forget, .. */
  unsigned leaving_count;
  unsigned literals; /* .. and roughly how many addresses it has parsed */
  unsigned names;    /* that it had not seen before */
  bool touched;
  bool broken; /* libcurl no longer knows what it waits for */
};

void ferry__shard_close(ferry__shard *shard);
/* In a loop with HTTP/2: the transfer must not share its connection, because of
 * this version of libcurl. */
bool ferry__goes_alone(const ferry_loop *loop, const ferry__transfer *t);
void ferry__shard_touch(ferry__shard *shard);
/* Checks a return code of the multi handle. */
void ferry__shard_check(ferry__shard *shard, CURLMcode code);
/* For the shards with work: runs what is due, then collects what is
 * finished. */
void ferry__shards_turn(ferry_loop *loop);
/* Handles timed waits; returns when to look again, 0 = never. */
uint64_t ferry__shards_look(ferry_loop *loop, uint64_t now);
ferry__shard *ferry__shard_for(ferry_loop *loop,
                               const ferry__transfer *transfer);

/* ---- Sockets (socket.c) -------------------------------------------------- */

enum { FERRY__BUCKETS = 1024 };

/* Its current user; NULL once that has left libcurl, or uses another handle. */
ferry__transfer *ferry__socket_user(ferry_loop *loop,
                                    const ferry__socket *socket);

/* Sets its current user; NULL = none. */
void ferry__socket_use(ferry__socket *socket, const ferry__transfer *transfer);
int ferry__on_socket(CURL *easy, curl_socket_t fd, int what, void *shard,
                     void *socket);
void ferry__connects_again(ferry_loop *loop, ferry__transfer *transfer);
curl_socket_t ferry__on_open(void *handle, curlsocktype purpose,
                             struct curl_sockaddr *address);
int ferry__on_close(void *loop, curl_socket_t fd);
/* Among the sockets that this handle opened, finds the connected one. */
void ferry__remember_port(ferry__handle *handle, const char *peer,
                          int peer_port, int port);
ferry__socket *ferry__find_port(ferry_loop *loop, const char *peer,
                                int peer_port, int port);
/* Whether a socket that this handle opened is connected. */
bool ferry__is_connected(const ferry__handle *handle);
/* The host leaves the table: its sockets are counted without it. */
void ferry__sockets_forget(ferry_loop *loop, const ferry__host *host);

/* Checks of connections (idle_guard.c). */
SSL *ferry__tls_of(CURL *easy);
/* Drains the socket and shuts it down: bytes that come on it belong to no
 * request. */
void ferry__end_idle(ferry_loop *loop, ferry__socket *socket);
/* Under TLS, or if the connection is broken: bytes must be read before more is
 * written. */
bool ferry__answer_waits(const ferry__transfer *transfer, int fd, bool broken);
/* Reads the response out of a socket that is about to be closed. */
void ferry__keep_answer(ferry__transfer *transfer, int fd);
/* Notes in close_notified how a body under TLS without a length ends. libcurl
 * accepts a bare FIN as an end, but anyone who can cut the connection could cut
 * the body. */
void ferry__watch_close_notify(ferry__transfer *transfer);
/* Whether another attempt is allowed, with this handle or the next one. */
bool ferry__may_attempt(const ferry__transfer *transfer);
bool ferry__may_repeat(const ferry__transfer *transfer);
/* The transfer ends, because it may not be sent again. */
void ferry__refuse_attempt(ferry__transfer *transfer);
/* Whether its handle cannot send the request again. Then another one does, when
 * libcurl has given up. */
bool ferry__leaves_handle(ferry__transfer *transfer);
int ferry__on_request(void *handle, char *peer, char *local, int peer_port,
                      int local_port);

/* ---- The engine (engine.c, callbacks.c, figures.c) ----------------------- */

extern const ferry__engine ferry__curl_engine;
/* libcurl is done with it. */
void ferry__transfer_completed(ferry_loop *loop, ferry__transfer *transfer,
                               CURLcode code);
size_t ferry__on_header(char *line, size_t size, size_t count, void *handle);
size_t ferry__on_write(char *bytes, size_t size, size_t count, void *handle);
size_t ferry__on_read(char *space, size_t size, size_t count, void *handle);
int ferry__on_trailers(struct curl_slist **list, void *handle);

/* The final head has arrived, and libcurl does not handle it itself. Returns
 * false and sets transfer->fault on an error. */
bool ferry__take_head(ferry_loop *loop, ferry__transfer *transfer);
/* libcurl has no callback for «TCP is connected, TLS begins», nor for «the body
 * has been sent». */
void ferry__look_at_phase(ferry__transfer *transfer);
/* Copies bytes, times and flags from the handle to the result. */
void ferry__read_figures(ferry__transfer *transfer);
/* The connection and the bytes sent so far, available from the head on. May be
 * called in libcurl's callbacks. */
void ferry__read_so_far(const ferry__transfer *transfer, ferry_result *result);

/* ---- Names (names.c) ----------------------------------------------------- */

/* Sets the names that libcurl does not know yet, or has to forget. Returns
 * false without memory: then the loop is starved. */
bool ferry__name_prepare(ferry__handle *handle,
                         const ferry__transfer *transfer);
void ferry__name_fed(ferry__host *host, ferry__shard *shard, uint32_t answer);
/* Clears the lists from libcurl's part of the handle. */
void ferry__name_forget(ferry__handle *handle);
/* The host leaves the table, and libcurl's caches. */
void ferry__name_leave(ferry_loop *loop, ferry__host *host);

/* The shard is closed, and with it the names it knew. */
void ferry__hosts_forget(ferry_loop *loop, const ferry__shard *shard);

/* ---- Responses before their request has been sent (early_response.c,
 *      reset_response.c) --------------------------------------------------- */

/* Whether the whole response has arrived, as far as its head defines its end,
 * and libcurl holds no part of it. */
bool ferry__is_answered(const ferry__transfer *transfer);
/* Whether libcurl has not sent the whole body yet. */
bool ferry__is_sending(const ferry__transfer *transfer);
/* libcurl will read no more from an HTTP/1 connection. */
void ferry__reading_ended(ferry__transfer *transfer);
/* The final head has arrived. */
void ferry__head_ended(ferry__transfer *transfer);
/* The response is complete, and nothing more can be had from its source or the
 * server: takes the transfer out of libcurl and ends it. */
void ferry__leave_unsent(ferry_loop *loop, ferry__transfer *transfer);
/* The rest of the request is not sent: sets transfer->fault if the response is
 * shorter than its head says. */
void ferry__check_length(ferry__transfer *transfer);
/* Makes libcurl check whether it is done, with nothing new to send. */
void ferry__nudge(ferry__transfer *transfer);
/* Keeps a piece of a paused response, so that libcurl cannot lose it with the
 * connection. Returns false if libcurl has to hold it. */
bool ferry__keep(ferry__transfer *transfer, const char *bytes, size_t length);
/* Delivers what was kept, up to the next pause. Returns false and sets
 * transfer->fault on an error. */
bool ferry__kept_drain(ferry_loop *loop, ferry__transfer *transfer);
/* Takes bytes of a chunked body as libcurl reads them, for a transfer that is
 * watched for its last chunk. */
void ferry__chunks_take(ferry__transfer *transfer, const char *bytes,
                        size_t length);
void ferry__chunks_forget(ferry__transfer *transfer);
/* Handles a response that was in the socket when writing to it failed. Returns
 * true if it was complete and has been delivered. */
bool ferry__late_answer(ferry__transfer *transfer);

/* ---- What libcurl's codes mean (error.c) --------------------------------- */

/* The meaning depends on how far the transfer had got. */
ferry__fault ferry__fault_of(const ferry__transfer *transfer, CURLcode code,
                             const char *words);

/* ---- HTTP/2 (http2.c) ---------------------------------------------------- */

void ferry__http2_constants(ferry__handle *handle);
void ferry__http2_prepare(ferry__handle *handle, ferry__transfer *transfer);
/* Whether the connection of its request uses HTTP/2. */
bool ferry__is_http2(const ferry__handle *handle, SSL *tls);
/* What an HTTP/2 error code and libcurl's message mean. */
ferry__fault ferry__stream_fault(const ferry__transfer *transfer,
                                 const char *words);
/* The field that libcurl would add by itself over HTTP/1.1. */
extern char ferry__chunked[];

/* ---- Cookies (cookies.c) ------------------------------------------------- */

ferry_jar *ferry__jar_hold(ferry_jar *jar);
bool ferry__jar_constants(ferry__handle *handle);
void ferry__jar_reset(ferry__handle *handle);
bool ferry__jar_prepare(ferry__handle *handle, ferry__transfer *transfer);
void ferry__jar_unlock(ferry_loop *loop);
void ferry__jar_check(ferry_loop *loop, const ferry__transfer *transfer);

/* ---- Rarely used options (extras.c) -------------------------------------- */

bool ferry__extras_set(ferry__handle *handle, const ferry__transfer *transfer);

/* ---- State of the engine in a loop --------------------------------------- */

struct ferry__curl {
  ferry__shard *shards, *touched;
  unsigned shard_count, per_shard, first_free;
  uint64_t leases; /* numbers handed out so far */
  bool jar_held;   /* the lock of its cookies is held (cookies.c) */
  ferry__socket *ports[FERRY__BUCKETS]; /* by local port (socket.c) */
};

/* Called when libcurl has returned, or calls something that may wait for
 * others: the jar's lock must not stay held. */
static inline void ferry__jar_release(ferry_loop *loop) {
  if (loop->curl->jar_held)
    ferry__jar_unlock(loop);
}

#endif
