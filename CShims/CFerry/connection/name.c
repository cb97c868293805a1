/* name.c - the addresses of a host.
 *
 * libcurl does no lookups, because one that it abandons keeps a thread until
 * getaddrinfo() returns. A result that has grown old is still used while a new
 * lookup runs. */
#include "connection/host.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

enum {
  FRESH_MS = 30 * 1000, /* or a connection's lifetime, if that is shorter */
  LEAST_MS = 1000,
  USABLE_MS = 10 * 60 * 1000,
  RETRY_MS = 5 * 1000, /* after a lookup that failed while old addresses were
                        * usable */
};

static ferry__fault dns_fault(int eai) {
  switch (eai) {
  case EAI_NONAME:
#ifdef EAI_NODATA
  case EAI_NODATA:
#endif
    return (ferry__fault){FERRY_E_DNS, FERRY_D_DNS_NOT_FOUND};
  case EAI_AGAIN:
    return (ferry__fault){FERRY_E_DNS, FERRY_D_DNS_TEMPORARY};
  case EAI_MEMORY:
    return (ferry__fault){FERRY_E_MEMORY, 0};
  default:
    return (ferry__fault){FERRY_E_DNS, FERRY_D_DNS_FAILED};
  }
}

static void look_up(ferry_loop *loop, ferry__host *host) {
  host->looking_up = true;
  ferry__count(&loop->counters.lookups, 1);
  if (!ferry__lookup(loop->port, host->serial, host->name,
                     loop->options.lookup, host->answer))
    return;
  /* No thread could be started: try again with the next transfer. */
  host->looking_up = false;
}

bool ferry__name_known(ferry_loop *loop, ferry__host *host) {
  if (host->literal || host->fixed)
    return true;
  uint64_t now = ferry__now(loop);
  if (host->answer && now < host->fresh_until)
    return true;
  if (!host->looking_up)
    look_up(loop, host);
  return host->answer && now < host->usable_until;
}

void ferry__name_unwanted(ferry_loop *loop, ferry__host *host) {
  /* A result that is used while it grows old is renewed in any case. */
  bool known = host->answer && ferry__now(loop) < host->usable_until;
  if (!host->resolving.head && host->looking_up && !known &&
      ferry__lookup_drop(loop->port, host->serial, host->name,
                         loop->options.lookup))
    host->looking_up = false;
}

/* A service that moves to other addresses is followed within the lifetime of a
 * connection. */
static uint64_t fresh_ms(const ferry_loop *loop) {
  uint64_t life = loop->options.lifetime_ms;
  if (!life || life > FRESH_MS)
    return FRESH_MS;
  return life < LEAST_MS ? LEAST_MS : life;
}

/* ---- Lookup results ------------------------------------------------------ */

void ferry__name_answered(ferry_loop *loop, ferry__answer *answer) {
  ferry__host *host = ferry__host_by_serial(loop, answer->serial);
  ferry__fault fault = {0, 0};
  if (!host)
    goto done;
  host->looking_up = false;
  uint64_t now = ferry__now(loop);
  if (!answer->eai) {
    if (!host->addresses || strcmp(host->addresses, answer->addresses)) {
      free(host->addresses);
      host->addresses = answer->addresses;
      answer->addresses = NULL;
      host->answer++;
    }
    host->fresh_until = now + fresh_ms(loop);
    host->usable_until = now + USABLE_MS;
  } else if (host->answer && now < host->usable_until) {
    host->fresh_until = now + RETRY_MS;
    ferry__count(&loop->counters.refresh_faults, 1);
  } else {
    fault = dns_fault(answer->eai);
  }
  while (host->resolving.head)
    ferry__transfer_named(loop, host->resolving.head, fault);
done:
  ferry__answer_free(answer);
}
