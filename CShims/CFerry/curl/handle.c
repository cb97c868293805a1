/* handle.c - easy handles are reused: options that never change are set once,
 * and each transfer sets only what differs (61,600 instructions a request
 * instead of 73,200 with new handles). A handle whose transfer failed or was
 * sent twice is discarded: libcurl keeps its retry counter and its errno in the
 * handle across resets. With a libcurl before 8.1.1 every handle is discarded:
 * any server could make it use the freed fields of another response. */
#include "curl/compat.h"

#include <stdlib.h>
#include <string.h>

#define SET(option, value) curl_easy_setopt(e, option, value)

/* libcurl copies texts, which may fail for lack of memory. Without one of them
 * the request would be a different one: sent with another method, or to a
 * server whose key is not the pinned one. */

/* A name for what is no file, at which every handshake fails. */
static const char *file_of(const char *path) {
  return ferry__is_file(path) ? path : "/dev/null";
}

/* Debian's CApath costs 20 ms of CPU at every new connection, as it disables
 * libcurl's cache of parsed authorities. A CA file costs it once. */
static bool set_trust(CURL *e, const ferry_loop *loop) {
  char *system = NULL;
  bool good = true;
  SET(CURLOPT_CAPATH, NULL);
  if (loop->ca_file)
    good &= !SET(CURLOPT_CAINFO, file_of(loop->ca_file));
  else if (!curl_easy_getinfo(e, CURLINFO_CAINFO, &system) && system)
    good &= !SET(CURLOPT_CAINFO, system);
  SET(CURLOPT_SSLVERSION, loop->options.minimum_tls == FERRY_TLS_1_3
                              ? (long)CURL_SSLVERSION_TLSv1_3
                              : (long)CURL_SSLVERSION_TLSv1_2);
  if (loop->client_certificate) {
    good &= !SET(CURLOPT_SSLCERT, file_of(loop->client_certificate));
    good &= !SET(CURLOPT_SSLKEY,
                 file_of(loop->client_key ? loop->client_key
                                          : loop->client_certificate));
    if (loop->client_key_password)
      good &= !SET(CURLOPT_KEYPASSWD, loop->client_key_password);
  }
  if (loop->pinned_keys)
    good &= !SET(CURLOPT_PINNEDPUBLICKEY, loop->pinned_keys);
  if (loop->options.insecure) {
    SET(CURLOPT_SSL_VERIFYPEER, 0L);
    SET(CURLOPT_SSL_VERIFYHOST, 0L);
  }
  return good;
}

static bool set_constants(ferry__handle *handle) {
  ferry_loop *loop = handle->loop;
  CURL *e = handle->easy;
  bool good = true;
  handle->target[0] = 0;
  SET(CURLOPT_NOSIGNAL, 1L);
  SET(CURLOPT_NOPROGRESS, 1L);
  /* Otherwise libcurl reads the environment every time. */
  good &= !SET(CURLOPT_PROXY, "") && !SET(CURLOPT_NOPROXY, "");
  good &= !SET(CURLOPT_PROTOCOLS_STR, "http,https");
  SET(CURLOPT_HTTP_CONTENT_DECODING, 0L);
  SET(CURLOPT_PATH_AS_IS, 1L);
  /* Otherwise removing a handle would wait for a lookup of libcurl's. */
  SET(CURLOPT_QUICK_EXIT, 1L);
  SET(CURLOPT_DNS_CACHE_TIMEOUT, -1L); /* name.c decides */
  SET(CURLOPT_MAXAGE_CONN, ((long)loop->options.idle_ms + 999) / 1000);
  if (loop->options.lifetime_ms)
    SET(CURLOPT_MAXLIFETIME_CONN,
        (long)(ferry__lifetime(loop, ++loop->curl->leases) + 999) / 1000);
  SET(CURLOPT_ERRORBUFFER, handle->words);
  SET(CURLOPT_PRIVATE, handle);
  SET(CURLOPT_HEADERFUNCTION, ferry__on_header);
  SET(CURLOPT_HEADERDATA, handle);
  SET(CURLOPT_WRITEFUNCTION, ferry__on_write);
  SET(CURLOPT_WRITEDATA, handle);
  SET(CURLOPT_OPENSOCKETFUNCTION, ferry__on_open);
  SET(CURLOPT_OPENSOCKETDATA, handle);
  SET(CURLOPT_CLOSESOCKETFUNCTION, ferry__on_close);
  SET(CURLOPT_CLOSESOCKETDATA, loop);
  SET(CURLOPT_PREREQFUNCTION, ferry__on_request);
  SET(CURLOPT_PREREQDATA, handle);
  SET(CURLOPT_HTTPHEADER, &ferry__no_accept);
  if (loop->user_agent)
    good &= !SET(CURLOPT_USERAGENT, loop->user_agent);
  if (loop->unix_socket) {
    good &= !SET(CURLOPT_UNIX_SOCKET_PATH, loop->unix_socket);
    SET(CURLOPT_FORBID_REUSE, 1L); /* it has no port to identify it */
  }
  if (loop->encodings)
    good &= !SET(CURLOPT_ACCEPT_ENCODING, loop->encodings);
  ferry__http2_constants(handle);
  return set_trust(e, loop) && ferry__jar_constants(handle) && good;
}

static bool open_easy(ferry__handle *handle) {
  if (handle->easy)
    return true;
  handle->easy = curl_easy_init();
  if (!handle->easy)
    return false;
  handle->unusual = handle->has_headers = handle->sweeps = 0;
  handle->big = handle->patient = 0;
  handle->host_serial = 0;
  ferry__count(&handle->loop->counters.handles, 1);
  if (set_constants(handle))
    return true;
  ferry__handle_close(handle);
  return false;
}

void ferry__handle_close(ferry__handle *handle) {
  if (!handle->easy)
    return;
  curl_easy_cleanup(handle->easy);
  ferry__jar_release(handle->loop); /* libcurl 8 has looked into the jar */
  handle->easy = NULL;
  ferry__name_forget(handle);
  ferry__count(&handle->loop->counters.handles, -1);
}

ferry__handle *ferry__handle_take(ferry_loop *loop, ferry__shard *shard) {
  ferry__handle *handle = shard->pool;
  if (handle) {
    shard->pool = handle->next;
  } else {
    handle = calloc(1, sizeof *handle);
    if (!handle)
      return NULL;
    handle->loop = loop;
    handle->shard = shard;
  }
  if (open_easy(handle))
    return handle;
  ferry__handle_give(handle, false);
  return NULL;
}

void ferry__handle_free(ferry__handle *handle) {
  ferry__handle_close(handle);
  ferry__head_free(&handle->head);
  free(handle);
}

void ferry__handle_give(ferry__handle *handle, bool healthy) {
  handle->transfer = NULL;
  if (!healthy || ferry__uses_freed_fields()) {
    ferry__handle_close(handle);
  } else if (handle->unusual) {
    ferry__jar_reset(handle);
    curl_easy_reset(handle->easy);
    ferry__name_forget(handle);
    handle->unusual = handle->has_headers = handle->sweeps = 0;
    handle->big = handle->patient = 0;
    handle->host_serial = 0;
    if (!set_constants(handle))
      ferry__handle_close(handle);
  }
  handle->next = handle->shard->pool;
  handle->shard->pool = handle;
}

static int on_seek(void *data, curl_off_t offset, int origin) {
  ferry__handle *handle = data;
  /* A pulled body cannot be pulled again. */
  return origin == SEEK_SET && !offset && !handle->transfer->pulled
             ? CURL_SEEKFUNC_OK
             : CURL_SEEKFUNC_FAIL;
}

static void set_body(CURL *e, ferry__handle *handle, ferry__transfer *t) {
  SET(CURLOPT_POST, 1L);
  /* If the server responds without 100-continue, libcurl 7.88 keeps a
   * connection on which the body is still due: the server would take the next
   * request for it. */
  if (t->expects)
    SET(CURLOPT_FORBID_REUSE, 1L);
  if (t->body_kind == FERRY_BODY_BYTES) {
    SET(CURLOPT_POSTFIELDS, t->body);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->body_length);
    return;
  }
  SET(CURLOPT_POSTFIELDS, NULL);
  SET(CURLOPT_READFUNCTION, ferry__on_read);
  SET(CURLOPT_READDATA, handle);
  SET(CURLOPT_SEEKFUNCTION, on_seek);
  SET(CURLOPT_SEEKDATA, handle);
  SET(CURLOPT_POSTFIELDSIZE_LARGE,
      t->chunked ? (curl_off_t)-1 : (curl_off_t)t->body_length);
  if (t->flags & FERRY_TRAILERS) {
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_TRAILERFUNCTION, ferry__on_trailers);
    SET(CURLOPT_TRAILERDATA, handle);
  }
}

static bool set_method(CURL *e, ferry__handle *handle, ferry__transfer *t) {
  if (t->method_kind == FERRY__GET && t->body_kind == FERRY_BODY_NONE)
    return true;
  handle->unusual = 1;
  if (t->body_kind != FERRY_BODY_NONE) {
    set_body(e, handle, t);
    return t->method_kind == FERRY__POST ||
           !SET(CURLOPT_CUSTOMREQUEST, t->method);
  }
  return t->method_kind == FERRY__HEAD ? !SET(CURLOPT_NOBODY, 1L)
                                       : !SET(CURLOPT_CUSTOMREQUEST, t->method);
}

/* Path and query bypass libcurl's URL parser and are sent byte by byte as
 * given. An unchanged target, as of clients that poll, is not copied again. */
static bool set_target(CURL *e, ferry__handle *handle, const char *target) {
  size_t size = strlen(target) + 1;
  bool fits = size <= sizeof handle->target;
  if (fits && !memcmp(handle->target, target, size))
    return true;
  if (SET(CURLOPT_REQUEST_TARGET, target))
    return false;
  handle->target[0] = 0; /* matches no target, as none is empty */
  if (fits)
    memcpy(handle->target, target, size);
  return true;
}

/* The whole URL, for libcurl to parse: a request to a proxy contains it, Digest
 * signs its path, and cookies depend on the path. */
static bool set_url(CURL *e, ferry__handle *handle, const ferry__transfer *t) {
  size_t target = strlen(t->target) + 1;
  const char *origin = !t->host->local  ? t->origin
                       : t->host->secure ? "https://localhost"
                                         : "http://localhost";
  size_t length = strlen(origin);
  char *url = malloc(length + target);
  if (!url)
    return false;
  memcpy(url, origin, length);
  memcpy(url + length, t->target, target);
  handle->unusual = 1;
  bool good = !SET(CURLOPT_CURLU, NULL) && !SET(CURLOPT_REQUEST_TARGET, NULL) &&
              !SET(CURLOPT_URL, url);
  free(url);
  return good;
}

static bool needs_url(const ferry__handle *handle, const ferry__transfer *t) {
  const ferry__extras *x = t->extras;
  return handle->loop->options.jar ||
         (x && (x->schemes ||
                (x->proxy_kind == FERRY_PROXY_HTTP && !t->host->secure)));
}

/* One CURLU for each origin, so nothing is parsed again (-19 %
 * instructions). */
static bool set_host(CURL *e, ferry__handle *handle,
                     const ferry__transfer *t) {
  const ferry__host *host = t->host;
  if (handle->host_serial == host->serial)
    return true;
  if (SET(CURLOPT_CURLU, host->url))
    return false;
  handle->host_serial = host->serial;
  return true;
}

/* A local socket has no port to identify its connections. The cookies of all
 * servers behind sockets would belong to one host, localhost: so there are
 * none. */
static bool set_local(CURL *e, ferry__handle *handle, const char *path) {
  handle->unusual = 1;
  if (handle->loop->options.jar)
    SET(CURLOPT_SHARE, NULL);
  SET(CURLOPT_FORBID_REUSE, 1L);
  SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
  return !SET(CURLOPT_UNIX_SOCKET_PATH, path);
}

/* Timeouts are handled in timeout.c, and libcurl by itself allows 300 s to
 * connect. A longer time is set only if that could expire first: each limit
 * that libcurl knows of costs a transfer two entries in its tree of timers,
 * even on an existing connection. */
static void set_patience(CURL *e, ferry__handle *handle,
                         const ferry__transfer *t) {
  bool patient = !t->connect_ms || t->connect_ms >= 300000;
  if (patient == handle->patient)
    return;
  SET(CURLOPT_CONNECTTIMEOUT_MS, patient ? 86400000L : 0L);
  handle->patient = patient;
}

bool ferry__handle_prepare(ferry__handle *handle, ferry__transfer *t) {
  CURL *e = handle->easy;
  ferry__host *host = t->host;
  /* Set first, so that an error below does not meet what the last transfer
   * left. */
  handle->transfer = t;
  handle->attempts = handle->rounds = 0;
  handle->opened_count = 0;
  handle->tunnelling = handle->tunnelled = 0;
  handle->tunnel_steps = 0;
  handle->reached = handle->left = 0;
  handle->words[0] = 0;
  ferry__http2_prepare(handle, t);
  t->head = &handle->head;
  ferry__head_begin(t->head, t->max_head);
  if (!ferry__jar_prepare(handle, t))
    return false;
  if (needs_url(handle, t) ? !set_url(e, handle, t)
                   : !set_host(e, handle, t) ||
                         !set_target(e, handle, t->target))
    return false;
  if (host->local && !set_local(e, handle, host->local))
    return false;
  bool has_headers = t->headers != &ferry__no_accept;
  if (has_headers || handle->has_headers) {
    SET(CURLOPT_HTTPHEADER, t->headers);
    handle->has_headers = has_headers;
  }
  if (!ferry__name_prepare(handle, t))
    return false;
  bool big = host->large || t->response_kind != FERRY_COLLECT;
  if (big != handle->big) {
    SET(CURLOPT_BUFFERSIZE, (long)(big ? FERRY__BIG_BUFFER : FERRY__BUFFER));
    handle->big = big;
  }
  if (ferry__goes_alone(handle->loop, t)) {
    if (handle->shard->identity & FERRY__ALONE) {
      /* What libcurl reads at once, a head of 128 KiB and 32 KiB of frames,
       * must fit. */
      SET(CURLOPT_BUFFERSIZE, 2L * FERRY__BIG_BUFFER);
      SET(CURLOPT_PIPEWAIT, 0L); /* for a connection that it cannot share */
    } else if (handle->loop->options.http2 == FERRY_HTTP2_NEGOTIATED) {
      /* No shard was left: HTTP/1.1 never takes a connection of HTTP/2. */
      SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    }
    handle->unusual = 1;
  }
  set_patience(e, handle, t);
  if (!set_method(e, handle, t))
    return false;
  if (t->extras && !ferry__extras_set(handle, t))
    return false;
  if (t->fresh) {
    SET(CURLOPT_FRESH_CONNECT, 1L);
    handle->unusual = 1;
  }
  return true;
}
