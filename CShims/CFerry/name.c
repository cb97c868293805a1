/* name.c - the addresses of a host, and how libcurl gets to know them.
 *
 * Lookups are ours, because one that libcurl abandons keeps a thread of its
 * own until getaddrinfo() comes back. An answer is fed to a shard's cache by
 * CURLOPT_RESOLVE, once, and again only when it has changed: a list that is
 * set is loaded anew at every transfer. An answer that has grown old is
 * still used while the next one is asked for. */
#include "core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  FRESH_MS = 60 * 1000,
  USABLE_MS = 10 * 60 * 1000,
  RETRY_MS = 5 * 1000, /* after a lookup that failed while one was usable */
};

static void look_up(ferry_loop *loop, ferry__host *host) {
  host->looking_up = true;
  ferry__count(&loop->counters.lookups, 1);
  if (!ferry__lookup(loop->port, host->serial, host->name,
                     loop->options.lookup))
    return;
  /* No thread to be had: try again with the next transfer. */
  host->looking_up = false;
}

bool ferry__name_known(ferry_loop *loop, ferry__host *host) {
  if (host->literal)
    return true;
  uint64_t now = ferry__now(loop);
  if (host->answer && now < host->fresh_until)
    return true;
  if (!host->looking_up)
    look_up(loop, host);
  return host->answer && now < host->usable_until;
}

struct curl_slist *ferry__name_feed(ferry__host *host, ferry__shard *shard) {
  return host->literal || host->fed[shard->index] == host->answer
             ? NULL
             : host->resolve;
}

void ferry__name_fed(ferry__host *host, ferry__shard *shard,
                     uint32_t answer) {
  host->fed[shard->index] = answer;
}

/* Running transfers may still have the old list set: it goes later. */
static bool take_answer(ferry__host *host, char *addresses) {
  size_t size = strlen(host->name) + strlen(addresses) + 16;
  char *entry = malloc(size);
  struct curl_slist *list = NULL;
  if (entry) {
    snprintf(entry, size, "%s:%u:%s", host->name, host->port, addresses);
    list = curl_slist_append(NULL, entry);
  }
  free(entry);
  if (!list)
    return false;
  if (host->resolve) {
    host->resolve->next = host->outdated;
    host->outdated = host->resolve;
  }
  host->resolve = list;
  free(host->addresses);
  host->addresses = addresses;
  host->answer++;
  return true;
}

void ferry__name_answered(ferry_loop *loop, ferry__answer *answer) {
  ferry__host *host = ferry__host_by_serial(loop, answer->serial);
  ferry__fault fault = {0, 0};
  if (!host)
    goto done;
  host->looking_up = false;
  uint64_t now = ferry__now(loop);
  if (!answer->eai) {
    if (!host->addresses || strcmp(host->addresses, answer->addresses)) {
      if (take_answer(host, answer->addresses))
        answer->addresses = NULL;
      else
        fault = (ferry__fault){FERRY_E_MEMORY, 0};
    }
    host->fresh_until = now + FRESH_MS;
    host->usable_until = now + USABLE_MS;
  } else if (host->answer && now < host->usable_until) {
    host->fresh_until = now + RETRY_MS;
  } else {
    fault = ferry__dns_fault(answer->eai);
  }
  while (host->resolving.head)
    ferry__transfer_named(loop, host->resolving.head, fault);
  if (!host->running && !host->held) {
    curl_slist_free_all(host->outdated);
    host->outdated = NULL;
  }
done:
  ferry__answer_free(answer);
}
