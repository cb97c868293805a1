/* turns.c - which name is looked up next. Domains take turns, and each has a
 * share of the threads. A name that is already known, and only refreshed, goes
 * before all others. */
#include "connection/turns.h"

#include <stdlib.h>
#include <string.h>

enum {
  THREADS = FERRY__LOOKUPS,
  SHARE = 128,      /* of all threads, for names of one domain */
  PATIENCE_MS = 30, /* after this a lookup counts as hanging, and another may
                     * run in its place */
  GROWTH = 3,       /* more may run for each that hangs, so a line of them
                     * passes soon */
  BUCKETS = 512,
};

static struct {
  job *jobs[BUCKETS]; /* by name, both waiting and running */
  domain *domains[BUCKETS];
  domain *line, **line_last; /* domains with jobs that wait, and room for one
                              * more */
  job *urgent, **urgent_last; /* go before all of these */
  job *young, *youngest; /* running, and not for long; the oldest first */
  unsigned young_count, hanging, waiting;
} turns = {.line_last = &turns.line, .urgent_last = &turns.urgent};

static uint64_t now_ms(void) { return uv_hrtime() / 1000000; }

static unsigned bucket_of(const char *name, size_t length) {
  return (unsigned)(ferry__hash(name, length) % BUCKETS);
}

/* The last two labels: the domain whose name servers are asked. */
static const char *domain_of(const char *name, size_t *length) {
  size_t end = strlen(name), at;
  while (end && name[end - 1] == '.')
    end--;
  at = end;
  for (int dots = 0; at; at--)
    if (name[at - 1] == '.' && ++dots == 2)
      break;
  *length = end - at;
  return name + at;
}

static domain *find_domain(const char *name) {
  size_t length;
  const char *own = domain_of(name, &length);
  domain **first = &turns.domains[bucket_of(own, length)];
  domain *found = *first;
  while (found &&
         !(found->length == length && !memcmp(found->name, own, length)))
    found = found->hash_next;
  if (found || !(found = calloc(1, sizeof *found + length)))
    return found;
  memcpy(found->name, own, length);
  found->length = length;
  found->last = &found->first;
  found->hash_next = *first;
  *first = found;
  return found;
}

/* The domain is freed with its last job. */
static void leave_domain(domain *domain) {
  if (domain->jobs)
    return;
  struct domain **at = &turns.domains[bucket_of(domain->name, domain->length)];
  while (*at != domain)
    at = &(*at)->hash_next;
  *at = domain->hash_next;
  free(domain);
}

/* Keeps the domain in the line while it has waiting jobs and room. */
static void stand_in_line(domain *domain) {
  if (domain->in_line || !domain->first || domain->running >= SHARE)
    return;
  domain->in_line = true;
  domain->next = NULL;
  *turns.line_last = domain;
  turns.line_last = &domain->next;
}

static void leave_line(domain *domain) {
  struct domain **at = &turns.line;
  if (!domain->in_line)
    return;
  while (*at != domain)
    at = &(*at)->next;
  *at = domain->next;
  if (!*at)
    turns.line_last = at;
  domain->in_line = false;
}

static void remove_job(job **first, job ***last, job *job) {
  struct job **at = first;
  while (*at != job)
    at = &(*at)->next;
  *at = job->next;
  if (!*at)
    *last = at;
}

static void put_in(job *job) {
  job->next = NULL;
  turns.waiting++;
  if (job->urgent) {
    *turns.urgent_last = job;
    turns.urgent_last = &job->next;
    return;
  }
  *job->domain->last = job;
  job->domain->last = &job->next;
  stand_in_line(job->domain);
}

static void take_out(job *job) {
  turns.waiting--;
  if (job->urgent) {
    remove_job(&turns.urgent, &turns.urgent_last, job);
    return;
  }
  remove_job(&job->domain->first, &job->domain->last, job);
  if (!job->domain->first)
    leave_line(job->domain);
}

unsigned ferry__turns_waiting(void) { return turns.waiting; }

static void leave_young(job *job) {
  if (job->younger)
    job->younger->elder = job->elder;
  else
    turns.youngest = job->elder;
  if (job->elder)
    job->elder->younger = job->younger;
  else
    turns.young = job->younger;
  turns.young_count--;
}

/* A lookup that has run for long counts as hanging. */
static void look_at_young(uint64_t now) {
  for (job *job; (job = turns.young) && now >= job->begun + PATIENCE_MS;) {
    leave_young(job);
    job->hangs = true;
    turns.hanging++;
  }
}

/* A few lookups may run at once, beside those that hang. The more hang, the
 * more may run: even behind a thousand names whose servers do not respond, a
 * name that can be resolved is soon asked for. */
job *ferry__turns_next(uint64_t *due) {
  job *job = turns.urgent  ? turns.urgent
             : turns.line ? turns.line->first
                          : NULL;
  unsigned most;
  *due = 0;
  if (!job)
    return NULL;
  look_at_young(now_ms());
  most = turns.hanging * GROWTH;
  if (turns.young_count >= (most > THREADS ? most : THREADS))
    *due = turns.young->begun + PATIENCE_MS;
  return job;
}

void ferry__turns_begin(job *job) {
  domain *domain = job->domain;
  take_out(job);
  leave_line(domain); /* to the end of the line again */
  domain->running++;
  stand_in_line(domain);
  job->taken = true;
  job->begun = now_ms();
  job->younger = NULL;
  job->elder = turns.youngest;
  if (turns.youngest)
    turns.youngest->younger = job;
  else
    turns.young = job;
  turns.youngest = job;
  turns.young_count++;
}

void ferry__turns_forget(job *job) {
  struct job **at = &turns.jobs[bucket_of(job->name, strlen(job->name))];
  while (*at != job)
    at = &(*at)->hash_next;
  *at = job->hash_next;
  domain *domain = job->domain;
  domain->jobs--;
  if (job->taken) {
    domain->running--;
    if (job->hangs)
      turns.hanging--;
    else
      leave_young(job);
    stand_in_line(domain);
  } else {
    take_out(job);
  }
  leave_domain(domain);
}

job **ferry__turns_find(const char *name, lookup_function lookup) {
  job **at = &turns.jobs[bucket_of(name, strlen(name))];
  while (*at && !((*at)->lookup == lookup && !strcmp((*at)->name, name)))
    at = &(*at)->hash_next;
  return at;
}

job *ferry__turns_put(const char *name, lookup_function lookup, bool urgent) {
  domain *domain = find_domain(name);
  job *job = domain ? calloc(1, sizeof *job + strlen(name) + 1) : NULL;
  if (!job) {
    if (domain)
      leave_domain(domain);
    return NULL;
  }
  strcpy(job->name, name);
  job->lookup = lookup;
  job->urgent = urgent;
  job->domain = domain;
  domain->jobs++;
  *ferry__turns_find(name, lookup) = job;
  put_in(job);
  return job;
}

void ferry__turns_each(bool (*look)(job *job, ferry__port *port, uint64_t),
                       ferry__port *port) {
  for (int i = 0; turns.waiting && i < BUCKETS; i++)
    for (job *job = turns.jobs[i], *next; job; job = next) {
      next = job->hash_next;
      look(job, port, 0);
    }
}
