/* lookup.c - getaddrinfo() on a bounded set of threads, for all loops of the
 * process; one lookup a name at a time, whoever asks.
 *
 * Threads and not a resolver on the loop: only getaddrinfo() knows what the
 * system's administrator configured (hosts file, nsswitch, search domains).
 * A lookup cannot be taken back, so a loop must be able to end before it:
 * what connects the two is a port, which outlives whichever goes first. */
#include "core.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

enum { THREADS = 8, IDLE_SECONDS = 10 };

struct ferry__port {
  pthread_mutex_t lock;
  ferry_loop *loop; /* NULL when it has ended */
  ferry__answer *answers;
  atomic_bool full;
  atomic_int owners;
};

typedef int (*lookup_function)(const char *, struct addrinfo **);

/* Its answer is there from the beginning, so that what was found, or that
 * there was no memory for it, can always be told. */
typedef struct waiter {
  struct waiter *next;
  ferry__port *port;
  ferry__answer *answer;
} waiter;

typedef struct job {
  struct job *next;
  lookup_function lookup;
  waiter *waiters;
  bool taken;
  char name[];
} job;

static struct {
  pthread_mutex_t lock;
  pthread_cond_t work;
  job *jobs; /* waiting and running, oldest first */
  unsigned threads, idle, untaken;
} desk = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER};

/* ---- Ports --------------------------------------------------------------- */

ferry__port *ferry__port_make(ferry_loop *loop) {
  ferry__port *port = calloc(1, sizeof *port);
  if (!port)
    return NULL;
  pthread_mutex_init(&port->lock, NULL);
  port->loop = loop;
  atomic_store(&port->owners, 1);
  return port;
}

static void release(ferry__port *port) {
  if (atomic_fetch_sub(&port->owners, 1) != 1)
    return;
  pthread_mutex_destroy(&port->lock);
  free(port);
}

void ferry__answer_free(ferry__answer *answer) {
  if (answer)
    free(answer->addresses);
  free(answer);
}

void ferry__port_close(ferry__port *port) {
  pthread_mutex_lock(&port->lock);
  ferry__answer *answers = port->answers;
  port->loop = NULL;
  port->answers = NULL;
  pthread_mutex_unlock(&port->lock);
  while (answers) {
    ferry__answer *next = answers->next;
    ferry__answer_free(answers);
    answers = next;
  }
  release(port);
}

ferry__answer *ferry__port_answers(ferry__port *port) {
  if (!atomic_load_explicit(&port->full, memory_order_relaxed))
    return NULL;
  pthread_mutex_lock(&port->lock);
  ferry__answer *answers = port->answers;
  port->answers = NULL;
  atomic_store_explicit(&port->full, false, memory_order_relaxed);
  pthread_mutex_unlock(&port->lock);
  return answers;
}

static void deliver(ferry__port *port, ferry__answer *answer, int eai,
                    const char *addresses) {
  answer->addresses = strdup(addresses);
  answer->eai = answer->addresses || eai ? eai : EAI_MEMORY;
  pthread_mutex_lock(&port->lock);
  if (port->loop) {
    answer->next = port->answers;
    port->answers = answer;
    atomic_store_explicit(&port->full, true, memory_order_relaxed);
    ferry__wake(port->loop);
    answer = NULL;
  }
  pthread_mutex_unlock(&port->lock);
  ferry__answer_free(answer);
}

/* ---- One lookup ---------------------------------------------------------- */

static int system_lookup(const char *name, struct addrinfo **out) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                           .ai_flags = AI_ADDRCONFIG};
  return getaddrinfo(name, NULL, &hints, out);
}

bool ferry__is_under(const char *name, const char *end) {
  size_t n = strlen(name), m = strlen(end);
  while (n && name[n - 1] == '.')
    n--; /* the root's dot */
  return n >= m && !strncasecmp(name + n - m, end, m) &&
         (n == m || name[n - m - 1] == '.');
}

static void append(char *list, size_t size, const struct addrinfo *info) {
  char text[INET6_ADDRSTRLEN] = "";
  bool v6 = info->ai_family == AF_INET6;
  const void *address =
      v6 ? (const void *)&((struct sockaddr_in6 *)info->ai_addr)->sin6_addr
         : (const void *)&((struct sockaddr_in *)info->ai_addr)->sin_addr;
  size_t used = strlen(list);
  if ((!v6 && info->ai_family != AF_INET) ||
      !inet_ntop(info->ai_family, address, text, sizeof text) ||
      used + strlen(text) + 4 > size)
    return;
  snprintf(list + used, size - used, v6 ? "%s[%s]" : "%s%s", used ? "," : "",
           text);
}

static int look_up(const job *job, char *list, size_t size) {
  struct addrinfo *found = NULL;
  int count = 0;
  list[0] = 0;
  if (!job->lookup) {
    /* RFC 6761, 6.3 and 6.4: known without asking. */
    if (ferry__is_under(job->name, "invalid"))
      return EAI_NONAME;
    if (ferry__is_under(job->name, "localhost")) {
      strcpy(list, "127.0.0.1,[::1]");
      return 0;
    }
  }
  int eai = (job->lookup ? job->lookup : system_lookup)(job->name, &found);
  if (eai)
    return eai;
  for (struct addrinfo *i = found; i && count < FERRY__ADDRESSES;
       i = i->ai_next, count++)
    append(list, size, i);
  freeaddrinfo(found);
  return list[0] ? 0 : EAI_NONAME;
}

/* ---- Threads ------------------------------------------------------------- */

static job *wait_for_job(void) {
  struct timespec until;
  int code = 0;
  for (;;) {
    for (job *job = desk.jobs; job; job = job->next)
      if (!job->taken)
        return job;
    if (code == ETIMEDOUT) /* and nothing came in the last moment */
      return NULL;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += IDLE_SECONDS;
    desk.idle++;
    code = pthread_cond_timedwait(&desk.work, &desk.lock, &until);
    desk.idle--;
  }
}

static void *run(void *unused) {
  char list[FERRY__ADDRESSES * (INET6_ADDRSTRLEN + 3)];
  pthread_setname_np(pthread_self(), "ferry-lookup");
  pthread_mutex_lock(&desk.lock);
  job *job;
  while ((job = wait_for_job())) {
    job->taken = true;
    desk.untaken--;
    pthread_mutex_unlock(&desk.lock);
    int eai = look_up(job, list, sizeof list);
    pthread_mutex_lock(&desk.lock);
    struct job **at = &desk.jobs;
    while (*at != job)
      at = &(*at)->next;
    *at = job->next; /* whoever asks from now on asks anew */
    pthread_mutex_unlock(&desk.lock);
    while (job->waiters) {
      waiter *waiter = job->waiters;
      job->waiters = waiter->next;
      deliver(waiter->port, waiter->answer, eai, list);
      release(waiter->port);
      free(waiter);
    }
    free(job);
    pthread_mutex_lock(&desk.lock);
  }
  desk.threads--;
  pthread_mutex_unlock(&desk.lock);
  return unused;
}

int ferry__lookup(ferry__port *port, uint64_t serial, const char *name,
                  lookup_function lookup) {
  waiter *new = calloc(1, sizeof *new);
  ferry__answer *answer = calloc(1, sizeof *answer);
  int code = FERRY_E_MEMORY;
  if (!new || !answer) {
    free(new);
    free(answer);
    return code;
  }
  answer->serial = serial;
  new->port = port;
  new->answer = answer;
  pthread_mutex_lock(&desk.lock);
  struct job **at = &desk.jobs;
  while (*at && !((*at)->lookup == lookup && !strcmp((*at)->name, name)))
    at = &(*at)->next;
  job *job = *at;
  if (!job) {
    /* An idle thread that has not woken yet may be another job's. */
    if (desk.idle <= desk.untaken && desk.threads < THREADS) {
      if (ferry__thread_start(run, NULL))
        desk.threads++;
      else if (!desk.threads)
        goto done;
    }
    job = calloc(1, sizeof *job + strlen(name) + 1);
    if (!job)
      goto done;
    strcpy(job->name, name);
    job->lookup = lookup;
    *at = job;
    desk.untaken++;
    pthread_cond_signal(&desk.work);
  }
  atomic_fetch_add(&port->owners, 1);
  new->next = job->waiters;
  job->waiters = new;
  new = NULL;
  answer = NULL;
  code = FERRY_OK;
done:
  pthread_mutex_unlock(&desk.lock);
  free(new);
  free(answer);
  return code;
}
