/* shard.c - one multi handle with at most 64 transfers.
 *
 * libcurl 7.88.1 walks its connections and transfers at every request: 61,000
 * user instructions a request with 64 in one multi handle, 230,000 with 5,000.
 * So a loop has many small ones, and fills the lowest first, which keeps few
 * connections hot. */
#include "curl/compat.h"

static int on_timer(CURLM *multi, long ms, void *data) {
  ferry__shard *shard = data;
  (void)multi;
  if (ms < 0) {
    shard->due = 0;
  } else if (ms == 0) {
    /* Due in this turn. A timer of 1 ms instead allowed 750 sequential requests
     * a second, of 10,000. */
    shard->due = 1;
    ferry__shard_touch(shard);
  } else {
    shard->due = ferry__now(shard->loop) + (uint64_t)ms;
    ferry__arm(shard->loop, shard->due);
  }
  return 0;
}

static bool open_multi(ferry__shard *shard) {
  if (shard->multi)
    return true;
  CURLM *m = shard->multi = curl_multi_init();
  if (!m)
    return false;
  curl_multi_setopt(m, CURLMOPT_SOCKETFUNCTION, ferry__on_socket);
  curl_multi_setopt(m, CURLMOPT_SOCKETDATA, shard);
  curl_multi_setopt(m, CURLMOPT_TIMERFUNCTION, on_timer);
  curl_multi_setopt(m, CURLMOPT_TIMERDATA, shard);
  /* If unset, it follows the number of transfers and shrinks the pool after a
   * burst. */
  curl_multi_setopt(m, CURLMOPT_MAXCONNECTS,
                    (long)shard->loop->curl->per_shard);
  curl_multi_setopt(m, CURLMOPT_PIPELINING,
                    shard->loop->options.http2 &&
                            !(shard->identity & FERRY__ALONE)
                        ? (long)CURLPIPE_MULTIPLEX
                        : (long)CURLPIPE_NOTHING);
  curl_multi_setopt(m, CURLMOPT_MAX_CONCURRENT_STREAMS,
                    (long)shard->loop->options.max_streams);
  return true;
}

void ferry__shard_close(ferry__shard *shard) {
  for (ferry__handle *handle = shard->pool; handle; handle = handle->next)
    ferry__handle_close(handle);
  if (shard->multi)
    curl_multi_cleanup(shard->multi); /* closes the kept connections */
  shard->multi = NULL;
  curl_slist_free_all(shard->leaving);
  shard->leaving = NULL;
  shard->leaving_count = shard->literals = shard->names = 0;
  while (shard->pool) {
    ferry__handle *handle = shard->pool;
    shard->pool = handle->next;
    ferry__handle_free(handle);
  }
  ferry__jar_release(shard->loop);
}

/* Closes the shard if nothing has run in it for the life of a kept connection.
 * Returns when to look again, 0 = never. */
static uint64_t shard_rest(ferry__shard *shard, uint64_t now) {
  if (!shard->multi || shard->running)
    return 0;
  uint64_t end = shard->idle_since + shard->loop->options.idle_ms;
  if (now < end)
    return end;
  ferry__shard_close(shard);
  shard->due = 0;
  ferry__hosts_forget(shard->loop, shard);
  return 0;
}

void ferry__shard_touch(ferry__shard *shard) {
  if (shard->touched)
    return;
  shard->touched = true;
  shard->touched_next = shard->loop->curl->touched;
  shard->loop->curl->touched = shard;
}

void ferry__shard_check(ferry__shard *shard, CURLMcode code) {
  if (code <= CURLM_OK)
    return;
  shard->broken = true;
  ferry__shard_touch(shard);
}

/* All messages are read before a handle is removed, because removing searches
 * the unread ones. */
static void collect(ferry__shard *shard) {
  struct {
    ferry__transfer *transfer;
    CURLcode code;
  } done[FERRY__STREAMS];
  int count = 0, left;
  CURLMsg *message;
  while (count < FERRY__STREAMS &&
         (message = curl_multi_info_read(shard->multi, &left)))
    if (message->msg == CURLMSG_DONE) {
      done[count].transfer = ferry__transfer_of(message->easy_handle);
      done[count++].code = message->data.result;
    }
  if (count) /* a response may arrive in the round that has sent its request */
    shard->loop->now_ns = uv_hrtime();
  for (int i = 0; i < count; i++)
    ferry__transfer_completed(shard->loop, done[i].transfer, done[i].code);
}

/* When connecting fails, libcurl 7.88 tries the next address only when it is
 * called again, and it waits for a socket that it does not have yet: up to 200
 * ms for the second address, for ever for the third. There is no way to make
 * libcurl look at one transfer, so all of the shard are; each time it tries one
 * address. */
static void go_on_connecting(ferry__shard *shard) {
  int running;
  for (int i = 0;
       shard->unheard && !shard->broken && i < FERRY__ADDRESSES; i++) {
    shard->unheard = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    ferry__shard_check(shard, curl_multi_socket_all(shard->multi, &running));
#pragma GCC diagnostic pop
  }
  shard->unheard = 0;
}

static ferry__transfer *any_of(const ferry__shard *shard) {
  ferry__transfer *t = shard->loop->transfers->running;
  while (t && !(t->state == FERRY__RUNNING && t->handle &&
                t->handle->shard == shard))
    t = t->next;
  return t;
}

/* libcurl had no memory for a socket that it should wait for, and does not say
 * whose. Its events would be lost, and 7.88.1 divides by zero when it meets the
 * socket again. So the running transfers end, and the next ones start in a new
 * multi handle. */
static void give_up(ferry__shard *shard) {
  ferry__transfer *t;
  while ((t = any_of(shard)))
    ferry__transfer_end(shard->loop, t, (ferry__fault){FERRY_E_MEMORY, 0});
  ferry__shard_close(shard);
  shard->due = 0;
  shard->broken = false;
  ferry__hosts_forget(shard->loop, shard);
}

/* libcurl 7.88 keeps 130 bytes for every host whose last connection was
 * evicted, as long as the multi handle lives. */
static bool is_worn(const ferry__shard *shard) {
  return shard->names >= FERRY__NAMES;
}

static void shard_turn(ferry__shard *shard) {
  int running;
  if (!shard->multi)
    return; /* closed since it was touched */
  if (shard->due == 1) {
    shard->due = 0;
    ferry__shard_check(
        shard, curl_multi_socket_action(shard->multi, CURL_SOCKET_TIMEOUT, 0,
                                        &running));
  }
  if (shard->unheard && !shard->broken)
    go_on_connecting(shard);
  ferry__jar_release(shard->loop); /* before results are delivered, and start
                                    * others */
  collect(shard);
  if (shard->broken)
    give_up(shard);
  if (is_worn(shard) && !shard->running) {
    ferry__shard_close(shard);
    shard->due = 0;
    ferry__hosts_forget(shard->loop, shard);
  }
  shard->loop->starved = false;
  ferry__jar_release(shard->loop);
}

bool ferry__goes_alone(const ferry_loop *loop, const ferry__transfer *t) {
  int http2 = loop->options.http2;
  if (http2 == FERRY_HTTP2_NEVER)
    return false;
  if (t->curl.alone)
    return true;
  if (t->flags & FERRY_TRAILERS) /* over HTTP/1.1 */
    return ferry__offers_busy();
  if (t->body_kind == FERRY_BODY_NONE || !ferry__mixes_streams())
    return false;
  if (t->host->secure)
    return true;
  return http2 == FERRY_HTTP2_PRIOR_KNOWLEDGE && !t->host->local &&
         !ferry__begins_http2_anew();
}

static bool has_room_for(const ferry__shard *shard, uint64_t identity) {
  return shard && shard->running < shard->loop->curl->per_shard &&
         (shard->identity == identity || !shard->multi);
}

/* The last shard is for FERRY_UNLIMITED, if all others are full. */
static unsigned usual(const ferry__curl *curl) {
  return curl->shard_count - 1;
}

/* The first shard in use that has room. An unused one, or else a worn one, only
 * if no other is available. */
static ferry__shard *first_for(ferry_loop *loop, uint64_t identity) {
  ferry__shard *unused = NULL, *worn = NULL;
  for (unsigned i = loop->curl->first_free; i < usual(loop->curl); i++) {
    ferry__shard *shard = &loop->curl->shards[i];
    if (!has_room_for(shard, identity))
      continue;
    if (shard->multi && !is_worn(shard))
      return shard;
    if (shard->multi)
      worn = worn ? worn : shard;
    else if (!unused)
      unused = shard;
    /* Otherwise there are shards with and without multiplexing, and those of
     * one kind must not take the last one. */
    if (unused && !identity && !ferry__offers_busy())
      break;
  }
  if (unused)
    unused->identity = identity;
  return unused ? unused : worn;
}

/* Transfers that authenticate their connection (ferry__extras.identity) have
 * shards of their own, while there are enough. Before 8.20 libcurl offers them
 * each other's connections, and a connection that is refused (idle_guard.c) is
 * closed. */
ferry__shard *ferry__shard_for(ferry_loop *loop, const ferry__transfer *t) {
  ferry__host *host = t->host;
  uint64_t identity = t->extras ? t->extras->identity & ~FERRY__ALONE : 0;
  if (ferry__goes_alone(loop, t))
    identity |= FERRY__ALONE;
  /* The shard that has its connections, if there is room, because a new
   * connection costs more. Among those the lowest: as long as each is filled
   * before the next one, there are no more connections than transfers at
   * once. */
  for (uint64_t left = host->shards; left; left &= left - 1) {
    ferry__shard *shard = &loop->curl->shards[__builtin_ctzll(left)];
    if (shard->multi && has_room_for(shard, identity) && !is_worn(shard))
      return shard;
  }
  if (has_room_for(host->home, identity) && host->home->multi &&
      !is_worn(host->home))
    return host->home;
  ferry__curl *curl = loop->curl;
  while (curl->first_free < usual(curl) &&
         curl->shards[curl->first_free].running >= curl->per_shard)
    curl->first_free++;
  ferry__shard *shard = first_for(loop, identity);
  if (!shard)
    shard = &loop->curl->shards[loop->curl->first_free];
  if (shard->running >= curl->per_shard || !open_multi(shard))
    return NULL;
  if (identity)
    return shard;
  host->home = shard;
  if (shard->index < 64)
    host->shards |= UINT64_C(1) << shard->index;
  return shard;
}

void ferry__shards_turn(ferry_loop *loop) {
  ferry__shard *shard = loop->curl->touched;
  loop->curl->touched = NULL;
  while (shard) {
    ferry__shard *next = shard->touched_next;
    shard->touched = false;
    shard_turn(shard);
    shard = next;
  }
}

uint64_t ferry__shards_look(ferry_loop *loop, uint64_t now) {
  uint64_t next = 0;
  for (unsigned i = 0; i < loop->curl->shard_count; i++) {
    ferry__shard *shard = &loop->curl->shards[i];
    uint64_t rest = shard_rest(shard, now);
    if (rest && (!next || rest < next))
      next = rest;
    if (shard->due <= 1)
      continue;
    if (shard->due <= now) {
      shard->due = 1;
      ferry__shard_touch(shard);
    } else if (!next || shard->due < next) {
      next = shard->due;
    }
  }
  return next;
}
