/* host.c - what the loop knows of an origin: its parsed URL, its limits and its
 * addresses. Idle hosts are removed when there are many. */
#include "connection/host.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_IDLE = 256, FIRST_CAPACITY = 64, EVICT_TRIES = 8 };

static void unlink_age(ferry__hosts *hosts, ferry__host *host) {
  if (host->older)
    host->older->newer = host->newer;
  else
    hosts->oldest = host->newer;
  if (host->newer)
    host->newer->older = host->older;
  else
    hosts->newest = host->older;
}

static void link_newest(ferry__hosts *hosts, ferry__host *host) {
  host->newer = NULL;
  host->older = hosts->newest;
  if (hosts->newest)
    hosts->newest->newer = host;
  else
    hosts->oldest = host;
  hosts->newest = host;
}

static void free_host(ferry__host *host) {
  free(host->authority);
  curl_free(host->name);
  free(host->local);
  curl_url_cleanup(host->url);
  ferry__backends_free(host);
  free(host->addresses);
  free(host->fed);
  free(host->origin);
  free(host);
}

static bool is_busy(const ferry__host *host) {
  return host->running || host->waiting || host->held || host->looking_up;
}

static uint64_t open_connections(const ferry__host *host) {
  return atomic_load_explicit(&host->figures.open, memory_order_relaxed);
}

static void forget(ferry_loop *loop, ferry__host *host) {
  ferry__hosts *hosts = loop->hosts;
  loop->hooks->forget(loop, host);
  pthread_mutex_lock(&hosts->lock);
  ferry__host **at = &hosts->buckets[host->hash & (hosts->capacity - 1)];
  while (*at != host)
    at = &(*at)->hash_next;
  *at = host->hash_next;
  ferry__origin_fold(&hosts->past, &host->figures);
  pthread_mutex_unlock(&hosts->lock);
  unlink_age(hosts, host);
  hosts->count--;
  free_host(host);
}

/* Makes room. A busy host moves to the recently used end. Otherwise a few busy
 * hosts at the old end would protect all later ones, for as long as they are
 * busy. */
static void evict(ferry_loop *loop) {
  ferry__hosts *hosts = loop->hosts;
  for (int i = 0; i < EVICT_TRIES && hosts->count >= MOST_IDLE; i++) {
    ferry__host *host = hosts->oldest;
    if (is_busy(host)) {
      unlink_age(hosts, host);
      link_newest(hosts, host);
      continue;
    }
    forget(loop, host);
  }
}

static void look_by(ferry_loop *loop, uint64_t at) {
  ferry__hosts *hosts = loop->hosts;
  if (!hosts->look_at || at < hosts->look_at)
    hosts->look_at = at;
  ferry__arm(loop, hosts->look_at);
}

uint64_t ferry__hosts_look(ferry_loop *loop, uint64_t now) {
  ferry__hosts *hosts = loop->hosts;
  uint64_t next = 0, idle_ms = loop->options.idle_ms;
  if (!hosts->look_at || now < hosts->look_at)
    return hosts->look_at;
  for (ferry__host *host = hosts->oldest, *newer; host; host = newer) {
    newer = host->newer;
    uint64_t at = host->used_at + idle_ms;
    if (is_busy(host) || open_connections(host)) {
      at = now + idle_ms;
    } else if (at <= now) {
      bool known = host->answer && !host->fixed && now < host->usable_until;
      if (!known) {
        forget(loop, host);
        continue;
      }
      pthread_mutex_lock(&hosts->lock);
      ferry__origin_fold(&hosts->past, &host->figures);
      pthread_mutex_unlock(&hosts->lock);
      at = host->usable_until;
    }
    if (!next || at < next)
      next = at;
  }
  return hosts->look_at = next;
}

static bool grow(ferry__hosts *hosts) {
  unsigned capacity = hosts->capacity ? hosts->capacity * 2 : FIRST_CAPACITY;
  ferry__host **buckets = calloc(capacity, sizeof *buckets);
  if (!buckets)
    return false;
  pthread_mutex_lock(&hosts->lock);
  for (ferry__host *h = hosts->oldest; h; h = h->newer) {
    h->hash_next = buckets[h->hash & (capacity - 1)];
    buckets[h->hash & (capacity - 1)] = h;
  }
  free(hosts->buckets);
  hosts->buckets = buckets;
  hosts->capacity = capacity;
  pthread_mutex_unlock(&hosts->lock);
  return true;
}

static bool is_literal(const char *name) {
  struct in_addr v4;
  return name[0] == '[' || inet_pton(AF_INET, name, &v4) == 1;
}

/* The zone of an address, as a name or a number (RFC 4007, 11.2). */
static uint32_t interface_of(const char *zone) {
  unsigned index = if_nametoindex(zone);
  return index ? index : (uint32_t)strtoul(zone, NULL, 10);
}

/* The default port is left out (RFC 9110, 7.2). */
static bool name_authority(ferry__host *host) {
  bool usual = host->port == (host->secure ? 443 : 80);
  size_t size = strlen(host->name) + 7;
  host->authority = malloc(size);
  if (!host->authority)
    return false;
  int n = usual ? snprintf(host->authority, size, "%s", host->name)
                : snprintf(host->authority, size, "%s:%u", host->name,
                           host->port);
  host->authority_length = (size_t)n;
  return true;
}

/* A socket has no host name: the server is sent "localhost". */
static int parse_local(ferry__host *host, const char **url) {
  size_t prefix = ferry__local_prefix(host->origin, host->origin_length);
  if (!prefix)
    return FERRY_OK;
  *url = host->origin[4] == 's' ? "https://localhost/" : "http://localhost/";
  return ferry__local_path(host->origin + prefix, host->origin_length - prefix,
                           &host->local);
}

/* One parser decides: the host is what libcurl takes for the host. */
static ferry__fault parse(ferry_loop *loop, ferry__host *host) {
  char *port = NULL, *scheme = NULL, *zone = NULL;
  const char *url = host->origin;
  ferry__fault fault = {parse_local(host, &url), 0};
  if (fault.code)
    return fault;
  fault.code = FERRY_E_INVALID_URL;
  loop->starved = false;
  host->url = curl_url();
  if (!host->url)
    return (ferry__fault){FERRY_E_MEMORY, 0};
  if (curl_url_set(host->url, CURLUPART_URL, url, 0) ||
      curl_url_get(host->url, CURLUPART_SCHEME, &scheme, 0) ||
      curl_url_get(host->url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) ||
      curl_url_get(host->url, CURLUPART_HOST, &host->name, CURLU_PUNYCODE)) {
    if (loop->starved)
      fault.code = FERRY_E_MEMORY;
    goto done;
  }
  host->secure = !strcmp(scheme, "https");
  host->port = (uint16_t)atoi(port);
  host->literal = is_literal(host->name);
  if (!curl_url_get(host->url, CURLUPART_ZONEID, &zone, 0) && zone)
    host->zone = interface_of(zone);
  fault.code = name_authority(host) && ferry__override(loop, host)
                   ? FERRY_OK
                   : FERRY_E_MEMORY;
done:
  curl_free(port);
  curl_free(scheme);
  curl_free(zone);
  return fault;
}

static ferry__host *make(ferry_loop *loop, const char *origin, size_t length,
                         ferry__fault *fault) {
  ferry__host *host = calloc(1, sizeof *host);
  *fault = (ferry__fault){FERRY_E_MEMORY, 0};
  if (!host)
    return NULL;
  host->origin = malloc(length + 2);
  host->fed = calloc(loop->hosts->feeds, sizeof *host->fed);
  if (host->origin && host->fed) {
    memcpy(host->origin, origin, length);
    memcpy(host->origin + length, "/", 2);
    host->origin_length = length;
    *fault = parse(loop, host);
  }
  if (fault->code) {
    free_host(host);
    return NULL;
  }
  return host;
}

ferry__host *ferry__host_find(ferry_loop *loop, const char *origin,
                              size_t length, ferry__fault *fault) {
  ferry__hosts *hosts = loop->hosts;
  uint64_t hash = ferry__hash(origin, length);
  ferry__host *host =
      hosts->capacity ? hosts->buckets[hash & (hosts->capacity - 1)] : NULL;
  while (host && !(host->hash == hash && host->origin_length == length &&
                   !memcmp(host->origin, origin, length)))
    host = host->hash_next;
  if (host) {
    if (host != hosts->newest) {
      unlink_age(hosts, host);
      link_newest(hosts, host);
    }
    uint64_t now = ferry__now(loop), idle_ms = loop->options.idle_ms;
    if (host->used_at + idle_ms <= now) /* its figures may be forgotten */
      look_by(loop, now + idle_ms);
    host->used_at = now;
    return host;
  }
  if (hosts->count >= MOST_IDLE)
    evict(loop);
  *fault = (ferry__fault){FERRY_E_MEMORY, 0};
  if (hosts->count >= hosts->capacity && !grow(hosts))
    return NULL;
  host = make(loop, origin, length, fault);
  if (!host)
    return NULL;
  host->serial = ++hosts->serials;
  host->hash = hash;
  host->used_at = ferry__now(loop);
  pthread_mutex_lock(&hosts->lock);
  host->hash_next = hosts->buckets[hash & (hosts->capacity - 1)];
  hosts->buckets[hash & (hosts->capacity - 1)] = host;
  pthread_mutex_unlock(&hosts->lock);
  hosts->count++;
  link_newest(hosts, host);
  look_by(loop, host->used_at + loop->options.idle_ms);
  return host;
}

ferry__host *ferry__host_by_serial(ferry_loop *loop, uint64_t serial) {
  ferry__host *host = loop->hosts->newest;
  while (host && host->serial != serial)
    host = host->older;
  return host;
}

void ferry__hosts_free(ferry_loop *loop) {
  ferry__host *host = loop->hosts->oldest;
  while (host) {
    ferry__host *newer = host->newer;
    free_host(host);
    host = newer;
  }
  free(loop->hosts->buckets);
}
