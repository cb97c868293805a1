/* libcurl.h - what libcurl works with: easy handles, multi handles, and the
 * sockets of both. */
#ifndef FERRY_LIBCURL_H
#define FERRY_LIBCURL_H

#include "transfer/transfer.h"

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
/* Closed when nothing has run in it for the life of a kept connection;
 * returns when to look again, 0 = there is no need. */
uint64_t ferry__shard_rest(ferry__shard *shard, uint64_t now);
void ferry__shard_touch(ferry__shard *shard);
/* What the multi handle has answered. */
void ferry__shard_check(ferry__shard *shard, CURLMcode code);
/* What is due, then what is finished. */
void ferry__shard_turn(ferry__shard *shard);
ferry__shard *ferry__shard_for(ferry_loop *loop,
                               const ferry__transfer *transfer);

/* ---- Sockets (socket.c) -------------------------------------------------- */

struct ferry__socket {
  int fd;
  unsigned want, have; /* CURL_POLL_… bits: wanted, registered */
  ferry__shard *shard;
  /* Who used it last: a paused owner keeps it from being idle. By number, as
   * libcurl may close it without telling, and its user may be freed. */
  uint64_t user, lease;
  uint64_t connection; /* another number for each socket that is opened */
  struct ferry__socket *port_next; /* chain of one local port's bucket */
  uint64_t identity;               /* ferry__extras.identity of its opener */
  uint16_t local_port, peer_port;  /* 0 = not in a bucket */
  char peer[46];
  bool http2;
  bool ours; /* opened by ferry__on_open(), and not closed since */
  ferry__connection *native; /* the native engine's; NULL = libcurl's */
};

enum { FERRY__BUCKETS = 1024 };

typedef struct ferry__sockets {
  int epoll;
  uv_poll_t poll;
  ferry__socket **by_fd;
  int capacity;
  ferry__socket *by_port[FERRY__BUCKETS];
} ferry__sockets;

int ferry__sockets_open(ferry_loop *loop);
/* The entry of a descriptor; NULL where there is no memory. */
ferry__socket *ferry__socket_of(ferry_loop *loop, int fd);
/* The same for a descriptor that has just been opened. */
ferry__socket *ferry__socket_renew(ferry_loop *loop, int fd);
/* Registers what is waited for (CURL_POLL_…). False, with errno, where the
 * system refuses it: what stands then stands. */
bool ferry__socket_watch(ferry_loop *loop, ferry__socket *socket,
                         unsigned want);
void ferry__sockets_free(ferry_loop *loop);
/* Whose it is now; NULL = nobody's. */
void ferry__socket_use(ferry__socket *socket, const ferry__transfer *transfer);
int ferry__on_socket(CURL *easy, curl_socket_t fd, int what, void *shard,
                     void *socket);
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

/* ---- Addresses (address.c) ----------------------------------------------- */

bool ferry__is_public(const struct sockaddr *address);

#endif
