/* eviction.c - limits the size of a jar (RFC 6265, 6.1).
 *
 * libcurl keeps cookies until they expire. Here the jar is checked whenever 30
 * cookies were set since the last time. Beyond 120 of one domain or 3,000 in
 * all some are removed: of one domain those that were set first, of all those
 * whose domain has not been requested for the longest time. So there are never
 * more than 150 of one domain, which is the most that libcurl sends; it would
 * leave out the latest. libcurl does not report which cookies it sent: all
 * cookies of one domain count as used together. */
#include "curl/libcurl.h"
#include "curl/jar.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_OF_DOMAIN = 120, MOST = 3000, LOOK_EVERY = 30 };

typedef struct crumb {
  const char *line; /* a line of ferry_jar_list() */
  ferry__domain *domain;
  size_t place; /* in the order of setting, within a domain */
} crumb;

static ferry__domain **place_of(ferry__domains *domains, const char *name,
                                size_t length) {
  size_t count = sizeof domains->buckets / sizeof *domains->buckets;
  ferry__domain **at = &domains->buckets[ferry__hash(name, length) % count];
  while (*at && !((*at)->length == length &&
                  !memcmp((*at)->name, name, length)))
    at = &(*at)->next;
  return at;
}

void ferry__domains_free(ferry__domains *domains) {
  if (!domains)
    return;
  for (size_t i = 0; i < sizeof domains->buckets / sizeof *domains->buckets;
       i++)
    while (domains->buckets[i]) {
      ferry__domain *domain = domains->buckets[i];
      domains->buckets[i] = domain->next;
      free(domain);
    }
  free(domains);
}

void ferry__jar_use(ferry_jar *jar, const char *host) {
  if (ferry__current)
    ferry__jar_release(ferry__current);
  pthread_mutex_lock(&jar->lock);
  if (jar->domains) {
    jar->tick++;
    for (const char *name = host; name;) {
      ferry__domain *domain = *place_of(jar->domains, name, strlen(name));
      if (domain)
        domain->used = jar->tick;
      name = strchr(name, '.'); /* the domains above it */
      name = name ? name + 1 : NULL;
    }
  }
  pthread_mutex_unlock(&jar->lock);
}

/* ---- Checking the jar ---------------------------------------------------- */

/* The domain of a line: "#HttpOnly_.example.com" TAB … */
static ferry__domain *domain_of(ferry_jar *jar, ferry__domains *domains,
                                const char *line) {
  static const char marked[] = "#HttpOnly_";
  if (!strncmp(line, marked, sizeof marked - 1))
    line += sizeof marked - 1;
  line += *line == '.';
  size_t length = strcspn(line, "\t");
  ferry__domain **at = place_of(domains, line, length);
  if (*at)
    return *at;
  ferry__domain *domain = calloc(1, sizeof *domain + length + 1);
  if (!domain)
    return NULL;
  ferry__domain *before =
      jar->domains ? *place_of(jar->domains, line, length) : NULL;
  domain->used = before ? before->used : jar->tick;
  domain->length = length;
  memcpy(domain->name, line, length);
  return *at = domain;
}

/* Sets the same cookie with an expiry in the past: libcurl discards it. */
static bool take_out(CURL *easy, const char *line) {
  const char *expires = line;
  for (int tabs = 0; tabs < 4; tabs++) {
    expires = strchr(expires, '\t');
    if (!expires)
      return true;
    expires++;
  }
  const char *rest = expires + strcspn(expires, "\t");
  size_t before = (size_t)(expires - line), after = strlen(rest) + 1;
  char *past = malloc(before + 1 + after);
  if (!past)
    return false;
  memcpy(past, line, before);
  past[before] = '1';
  memcpy(past + before + 1, rest, after);
  bool good = !curl_easy_setopt(easy, CURLOPT_COOKIELIST, past);
  free(past);
  return good;
}

static int longest_unused_first(const void *a, const void *b) {
  const crumb *left = a, *right = b;
  if (left->domain->used != right->domain->used)
    return left->domain->used < right->domain->used ? -1 : 1;
  return left->place < right->place ? -1 : 1;
}

/* Removes surplus cookies; the others move to the front. */
static size_t evict(CURL *easy, crumb *all, size_t count) {
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    ferry__domain *domain = all[i].domain;
    if (domain->count > MOST_OF_DOMAIN && take_out(easy, all[i].line))
      domain->count--;
    else
      all[kept++] = all[i];
  }
  if (kept <= MOST)
    return kept;
  qsort(all, kept, sizeof *all, longest_unused_first);
  for (size_t i = 0; i < kept - MOST; i++)
    take_out(easy, all[i].line);
  return MOST;
}

static void look(ferry_jar *jar, CURL *easy) {
  struct curl_slist *lines = NULL;
  size_t count = 0, found = 0;
  curl_easy_getinfo(easy, CURLINFO_COOKIELIST, &lines);
  for (struct curl_slist *at = lines; at; at = at->next)
    count++;
  ferry__domains *domains = calloc(1, sizeof *domains);
  crumb *all = calloc(count + 1, sizeof *all);
  for (struct curl_slist *at = lines; domains && all && at; at = at->next) {
    ferry__domain *domain = domain_of(jar, domains, at->data);
    if (!domain)
      break;
    domain->count++;
    all[found] = (crumb){at->data, domain, found};
    found++;
  }
  if (domains && all && found == count) {
    bool evicts = evict(easy, all, count) < count;
    ferry__domains *old = jar->domains;
    jar->domains = domains;
    domains = old;
    curl_slist_free_all(lines);
    lines = NULL;
    if (evicts) { /* reading the list makes libcurl discard expired ones */
      curl_easy_getinfo(easy, CURLINFO_COOKIELIST, &lines);
      ferry__jar_changed(jar);
    }
  } /* without memory: at the next check */
  ferry__domains_free(domains);
  free(all);
  curl_slist_free_all(lines);
}

void ferry__jar_count(ferry_jar *jar, unsigned fresh) {
  if (!fresh || atomic_fetch_add(&jar->fresh, fresh) + fresh < LOOK_EVERY)
    return;
  atomic_store(&jar->fresh, 0);
  if (ferry__current) /* other threads take it after the jar's own lock */
    ferry__jar_release(ferry__current);
  CURL *easy = ferry__jar_open(jar);
  if (!easy)
    return;
  pthread_mutex_lock(&jar->lock);
  look(jar, easy);
  pthread_mutex_unlock(&jar->lock);
  ferry__jar_close(easy);
}
