/* libcurl.h - what libcurl works with: easy handles, multi handles, and the
 * sockets of both. */
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
  uint64_t host_serial;      /* whose CURLU is set */
  uint32_t answer;           /* of its host, that has_resolve stands for */
  unsigned unusual : 1;      /* options beyond target and headers are set */
  unsigned has_headers : 1, has_resolve : 1, big : 1, patient : 1;
  unsigned sweeps : 1; /* libcurl's cache of names, at its end */
  struct curl_slist *resolve; /* the list that is set */
  unsigned tunnelling : 1; /* what comes answers our CONNECT */
  unsigned tunnel_granted : 1, tunnelled : 1; /* its status, and its end */
  unsigned refused : 1; /* the last stream was, with no look at it */
  unsigned left_in : 1; /* the server goes away, but not before this stream */
  unsigned reached : 1; /* this attempt's request may have left */
  uint32_t tunnel_bytes, tunnel_steps;
  uint32_t stream;        /* of HTTP/2; 0 = none yet */
  uint32_t stream_error;  /* what it ended with (RFC 9113, 7) */
  uint64_t connection;    /* that its request went out on; 0 = none yet */
  char target[64]; /* the one that is set, if it is short */
  unsigned attempts, rounds;
  unsigned opened_count;     /* sockets opened since the last request */
  int opened[FERRY__OPENED]; /* -1 = closed since */
  ferry__head head;
  char words[CURL_ERROR_SIZE];
};

ferry__handle *ferry__handle_take(ferry_loop *loop, ferry__shard *shard);
/* Back into the pool, or thrown away after a fault. */
void ferry__handle_give(ferry__handle *handle, bool healthy);
/* libcurl's part of it goes. */
void ferry__handle_close(ferry__handle *handle);
void ferry__handle_free(ferry__handle *handle);
/* Options of this one transfer. False when libcurl refuses. */
bool ferry__handle_prepare(ferry__handle *handle, ferry__transfer *transfer);

/* ---- Shards (shard.c) ---------------------------------------------------- */

struct ferry__shard {
  ferry_loop *loop;
  CURLM *multi; /* made when first used */
  ferry__shard *touched_next;
  ferry__handle *pool;
  uint64_t due; /* ms; 0 = none, 1 = in this turn */
  uint64_t idle_since; /* ms; when its last transfer left */
  uint64_t identity;   /* whose connections are here; 0 = anybody's */
  unsigned running, index;
  unsigned unheard; /* connects that go on without a socket to wait for */
  struct curl_slist *leaving; /* names that libcurl is to forget, .. */
  unsigned leaving_count;
  unsigned literals; /* .. and addresses that it has read, about */
  unsigned names;    /* that were new to it since it was made */
  bool touched;
  bool broken; /* libcurl does not know any more what it waits for */
};

void ferry__shard_close(ferry__shard *shard);
void ferry__shard_touch(ferry__shard *shard);
/* What the multi handle has answered. */
void ferry__shard_check(ferry__shard *shard, CURLMcode code);
/* Of those that were touched: what is due, then what is finished. */
void ferry__shards_turn(ferry_loop *loop);
/* What waits for a time; returns when to look again, 0 = no need to. */
uint64_t ferry__shards_look(ferry_loop *loop, uint64_t now);
ferry__shard *ferry__shard_for(ferry_loop *loop,
                               const ferry__transfer *transfer);

/* ---- Sockets (socket.c) -------------------------------------------------- */

enum { FERRY__BUCKETS = 1024 };

/* Whose it is now; NULL = nobody's. */
void ferry__socket_use(ferry__socket *socket, const ferry__transfer *transfer);
int ferry__on_socket(CURL *easy, curl_socket_t fd, int what, void *shard,
                     void *socket);
void ferry__connects_again(ferry_loop *loop, ferry__transfer *transfer);
curl_socket_t ferry__on_open(void *handle, curlsocktype purpose,
                             struct curl_sockaddr *address);
int ferry__on_close(void *loop, curl_socket_t fd);
/* Of the sockets that this handle opened, the one that got connected. */
void ferry__remember_port(ferry__handle *handle, const char *peer,
                          int peer_port, int port);
ferry__socket *ferry__find_port(ferry_loop *loop, const char *peer,
                                int peer_port, int port);
/* True when a socket that this handle opened has its peer. */
bool ferry__is_connected(const ferry__handle *handle);
/* The host leaves the table: its sockets are counted without it. */
void ferry__sockets_forget(ferry_loop *loop, const ferry__host *host);

/* Looks (idle_guard.c). */
SSL *ferry__tls_of(CURL *easy);
/* Drained and shut down: what comes on it is no answer to anything. */
void ferry__end_idle(ferry_loop *loop, ferry__socket *socket);
/* Under TLS, or where the connection is broken: something is to be read before
 * more is written. */
bool ferry__answer_waits(const ferry__transfer *transfer, int fd, bool broken);
/* Takes the answer out of a socket that is about to be closed. */
void ferry__keep_answer(ferry__transfer *transfer, int fd);
/* Notes in close_notified how a body under TLS that has no length ends:
 * libcurl takes a bare FIN for an end too, and whoever can cut the line could
 * cut the body. */
void ferry__watch_close_notify(ferry__transfer *transfer);
/* The transfer ends: it may not be sent once more. */
void ferry__refuse_attempt(ferry__transfer *transfer);
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

/* The head is the last one, and libcurl will not answer it. False sets
 * transfer->fault. */
bool ferry__take_head(ferry_loop *loop, ferry__transfer *transfer);
/* libcurl has no callback for «TCP is connected, TLS begins», and none for
 * «the body has left». */
void ferry__look_at_phase(ferry__transfer *transfer);
/* Bytes, times and flags go from the handle to the result. */
void ferry__read_figures(ferry__transfer *transfer);
/* What is known of the way there and of what was sent, from the head on. In
 * callbacks of libcurl's too. */
void ferry__read_so_far(const ferry__transfer *transfer, ferry_result *result);

/* ---- Names (names.c) ----------------------------------------------------- */

/* Sets what libcurl does not know yet, or is to forget. False without memory:
 * then the loop is starved. */
bool ferry__name_prepare(ferry__handle *handle,
                         const ferry__transfer *transfer);
void ferry__name_fed(ferry__host *host, ferry__shard *shard, uint32_t answer);
/* libcurl's part of the handle knows nothing of lists any more. */
void ferry__name_forget(ferry__handle *handle);
/* The host leaves the table, and libcurl's caches. */
void ferry__name_leave(ferry_loop *loop, ferry__host *host);

/* The shard is closed, and with it what it knew. */
void ferry__hosts_forget(ferry_loop *loop, const ferry__shard *shard);

/* ---- Responses before their request has been sent (early_response.c,
 *      reset_response.c) --------------------------------------------------- */

/* The whole answer has come, as far as its head says where it ends, and
 * libcurl holds nothing of it. */
bool ferry__is_answered(const ferry__transfer *transfer);
/* libcurl wants to read no more from a connection of HTTP/1. */
void ferry__reading_ended(ferry__transfer *transfer);
/* FERRY_DUPLEX: something of the response has come. */
void ferry__duplex_look(ferry__transfer *transfer);
/* Likewise, now and then over HTTP/2; returns when to do so again, 0 = never. */
uint64_t ferry__duplex_rouse(ferry_loop *loop, ferry__transfer *transfer);
/* The final head is there. */
void ferry__head_ended(ferry__transfer *transfer);
/* Answered, and nothing more is to be had of its source or of the server:
 * libcurl is left, and this is its end. */
void ferry__leave_unsent(ferry_loop *loop, ferry__transfer *transfer);
/* Has libcurl look whether it is done, with nothing new to send. */
void ferry__nudge(ferry__transfer *transfer);
/* Takes a piece of an answer that is paused, so that libcurl cannot lose it
 * with the connection. False when it is libcurl's to hold. */
bool ferry__keep(ferry__transfer *transfer, const char *bytes, size_t length);
/* Hands over what was kept, up to the next pause. False sets
 * transfer->fault. */
bool ferry__kept_drain(ferry_loop *loop, ferry__transfer *transfer);
/* Bytes of a chunked body as libcurl reads them, for a transfer that is
 * watched for its last chunk. */
void ferry__chunks_take(ferry__transfer *transfer, const char *bytes,
                        size_t length);
void ferry__chunks_forget(ferry__transfer *transfer);
/* An answer that lay in the socket when writing to it failed. True
 * when it was whole, and has been delivered. */
bool ferry__late_answer(ferry__transfer *transfer);

/* ---- What libcurl's codes mean (error.c) --------------------------------- */

/* Given how far the transfer had come. */
ferry__fault ferry__fault_of(const ferry__transfer *transfer, CURLcode code,
                             const char *words);

/* ---- HTTP/2 (http2.c) ---------------------------------------------------- */

void ferry__http2_constants(ferry__handle *handle);
void ferry__http2_prepare(ferry__handle *handle, ferry__transfer *transfer);
/* Whether the connection that its request goes out on speaks it. */
bool ferry__is_http2(const ferry__handle *handle, SSL *tls);
/* What a code of HTTP/2 and libcurl's words mean. */
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

/* ---- What few requests say (extras.c) ------------------------------------ */

bool ferry__extras_set(ferry__handle *handle, const ferry__transfer *transfer);

#endif
