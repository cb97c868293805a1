/* names.c - gives libcurl the addresses of a host.
 *
 * A lookup's result is set in a shard's cache with CURLOPT_RESOLVE, once, and
 * again only when it has changed: a list that is set is loaded again at every
 * transfer.
 *
 * An entry of libcurl's cache stays there, at 250 bytes a name, until it is
 * removed. That is done when the host leaves our own table. Making libcurl look
 * for old entries costs a walk through all of them, so it is done rarely. */
#include "curl/libcurl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_LEAVING = 64,  /* names are removed from a shard at this number at the
                       * latest */
  MOST_LITERALS = 64, /* new ones, then libcurl has to forget them */
};

#define UNSURE UINT32_MAX /* no `answer` has this number */

/* "-name:port", or "name:port:addresses". */
static struct curl_slist *append(struct curl_slist *list,
                                 const ferry__host *host, bool leaves) {
  size_t size = strlen(host->name) + 16 +
                (leaves ? 0 : strlen(host->addresses));
  char *entry = malloc(size);
  if (!entry)
    return NULL;
  if (leaves)
    snprintf(entry, size, "-%s:%u", host->name, host->port);
  else
    snprintf(entry, size, "%s:%u:%s", host->name, host->port, host->addresses);
  struct curl_slist *longer = curl_slist_append(list, entry);
  free(entry);
  return longer;
}

/* Names that have left are removed with it, and before it, as they may be
 * back. */
static bool feed(ferry__handle *handle, const ferry__host *host, bool unknown) {
  ferry__shard *shard = handle->shard;
  struct curl_slist *list = shard->leaving, *longer = list;
  if (unknown && !(longer = append(list, host, false))) {
    shard->loop->starved = true;
    return false;
  }
  shard->leaving = NULL;
  shard->leaving_count = 0;
  curl_easy_setopt(handle->easy, CURLOPT_RESOLVE, longer);
  curl_slist_free_all(handle->resolve);
  handle->resolve = longer;
  handle->has_resolve = 1;
  handle->answer = host->answer;
  return true;
}

/* libcurl also caches addresses that it parses. They are removed with the end
 * of the first transfer after MOST_LITERALS of them. */
static void count_literal(ferry__handle *handle, ferry__host *host,
                          bool chosen) {
  ferry__shard *shard = handle->shard;
  if (!chosen && host->fed[shard->index])
    return;
  if (host->literal)
    host->fed[shard->index] = 1;
  if (++shard->literals < MOST_LITERALS)
    return;
  shard->literals = 0;
  curl_easy_setopt(handle->easy, CURLOPT_DNS_CACHE_TIMEOUT, 0L);
  handle->sweeps = 1;
}

/* Whether we set its addresses. */
static bool is_fed(const ferry__host *host) {
  return !host->literal || host->fixed;
}

bool ferry__name_prepare(ferry__handle *handle, const ferry__transfer *t) {
  ferry__host *host = ferry__dialled(t);
  ferry__shard *shard = handle->shard;
  bool chosen = t->extras && t->extras->chosen.data;
  uint32_t *fed = &host->fed[shard->index];
  bool unknown = is_fed(host) && *fed != host->answer;
  shard->names += !*fed;
  if (handle->sweeps)
    curl_easy_setopt(handle->easy, CURLOPT_DNS_CACHE_TIMEOUT, -1L);
  handle->sweeps = 0;
  if (!is_fed(host) || chosen)
    count_literal(handle, host, chosen);
  if (unknown && !*fed)
    *fed = UNSURE; /* it may have it, even if the transfer fails */
  if (unknown || shard->leaving_count >= MOST_LEAVING)
    return feed(handle, host, unknown);
  if (handle->has_resolve)
    curl_easy_setopt(handle->easy, CURLOPT_RESOLVE, NULL);
  ferry__name_forget(handle);
  return true;
}

void ferry__name_forget(ferry__handle *handle) {
  curl_slist_free_all(handle->resolve);
  handle->resolve = NULL;
  handle->has_resolve = 0;
}

void ferry__name_fed(ferry__host *host, ferry__shard *shard,
                     uint32_t answer) {
  if (is_fed(host))
    host->fed[shard->index] = answer;
}

/* With another scheme it is another origin, but the same name for libcurl. */
static bool is_shared(const ferry_loop *loop, const ferry__host *host) {
  const ferry__host *other = loop->hosts->oldest;
  while (other && (other == host || other->port != host->port ||
                   strcmp(other->name, host->name)))
    other = other->newer;
  return other;
}

void ferry__name_leave(ferry_loop *loop, ferry__host *host) {
  if (!is_fed(host) || is_shared(loop, host))
    return;
  for (unsigned i = 0; i < loop->curl->shard_count; i++) {
    ferry__shard *shard = &loop->curl->shards[i];
    if (!host->fed[i] || !shard->multi)
      continue;
    struct curl_slist *longer = append(shard->leaving, host, true);
    if (!longer)
      continue; /* a few bytes stay until the shard is closed */
    shard->leaving = longer;
    shard->leaving_count++;
  }
}

void ferry__hosts_forget(ferry_loop *loop, const ferry__shard *shard) {
  for (ferry__host *host = loop->hosts->oldest; host; host = host->newer) {
    host->fed[shard->index] = 0;
    if (host->home == shard)
      host->home = NULL;
    if (shard->index < 64)
      host->shards &= ~(UINT64_C(1) << shard->index);
  }
}
