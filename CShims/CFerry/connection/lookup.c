/* lookup.c - getaddrinfo() on a bounded set of threads, for all loops of the
 * process; one lookup at a time for a name, whoever asks.
 *
 * Why threads and not a resolver on the loop: only getaddrinfo() knows what the
 * system's administrator configured (hosts file, nsswitch, search domains). A
 * lookup cannot be interrupted, so a loop must be able to end before it. The
 * two are connected by a port, which lives until both are gone.
 *
 * A name server that does not respond occupies a thread for 10 s and more. So a
 * few threads do the work as long as it proceeds, and more are started only for
 * those that hang. turns.c decides which lookup runs next, and when. */
#include "connection/turns.h"

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

enum {
  MOST_THREADS = 1280, /* when they hang: each takes at least 10 KB of memory */
  STACK = 512 * 1024, /* address space; a module of nsswitch may need it */
  IDLE_MS = 10000,
};

struct ferry__port {
  pthread_mutex_t lock;
  ferry_loop *loop; /* NULL when the loop has ended */
  ferry__answer *answers;
  atomic_bool full;
  atomic_int owners;
};

static struct {
  pthread_mutex_t lock; /* also guards turns.c */
  pthread_cond_t work;
  unsigned threads, idle;
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
  ferry__lookups_drop(port);
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
    /* RFC 6761, 6.3 and 6.4: resolved without a lookup. */
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

static void *run(void *unused);

/* As long as there are jobs, one thread waits for them. An idle one that has
 * not woken yet may be taken by another job. */
static bool call_thread(void) {
  if (desk.idle < ferry__turns_waiting() && desk.threads < MOST_THREADS &&
      (desk.threads < FERRY__LOOKUPS || !desk.idle) &&
      ferry__thread_start(run, NULL, STACK))
    desk.threads++;
  pthread_cond_signal(&desk.work);
  return desk.threads > 0;
}

/* The next job; NULL if there was none for a long time. */
static job *wait_for_job(void) {
  uint64_t leave = uv_hrtime() / 1000000 + IDLE_MS;
  for (;;) {
    uint64_t due;
    job *job = ferry__turns_next(&due);
    uint64_t now = uv_hrtime() / 1000000, until = job ? due : leave;
    if (now >= until)
      return job;
    struct timespec at = {.tv_sec = (time_t)(until / 1000),
                          .tv_nsec = (long)(until % 1000) * 1000000};
    desk.idle++;
    pthread_cond_clockwait(&desk.work, &desk.lock, CLOCK_MONOTONIC, &at);
    desk.idle--;
  }
}

static void answer_all(waiter *waiters, int eai, const char *list) {
  while (waiters) {
    waiter *waiter = waiters;
    waiters = waiter->next;
    deliver(waiter->port, waiter->answer, eai, list);
    release(waiter->port);
    free(waiter);
  }
}

static void *run(void *unused) {
  char list[FERRY__ADDRESSES * (INET6_ADDRSTRLEN + 3)];
  pthread_setname_np(pthread_self(), "ferry-lookup");
  pthread_mutex_lock(&desk.lock);
  job *job;
  while ((job = wait_for_job())) {
    ferry__turns_begin(job);
    if (ferry__turns_waiting())
      call_thread();
    pthread_mutex_unlock(&desk.lock);
    int eai = look_up(job, list, sizeof list);
    pthread_mutex_lock(&desk.lock);
    ferry__turns_forget(job);
    pthread_mutex_unlock(&desk.lock);
    answer_all(job->waiters, eai, list);
    free(job);
    pthread_mutex_lock(&desk.lock);
  }
  desk.threads--;
  pthread_mutex_unlock(&desk.lock);
  return unused;
}

/* ---- Asking and cancelling ----------------------------------------------- */

static job *make_job(const char *name, lookup_function lookup, bool urgent) {
  job *job = ferry__turns_put(name, lookup, urgent);
  if (!job || call_thread())
    return job;
  ferry__turns_forget(job);
  free(job);
  return NULL;
}

int ferry__lookup(ferry__port *port, uint64_t serial, const char *name,
                  lookup_function lookup, bool urgent) {
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
  job *job = *ferry__turns_find(name, lookup);
  if (!job)
    job = make_job(name, lookup, urgent);
  if (job) {
    atomic_fetch_add(&port->owners, 1);
    new->next = job->waiters;
    job->waiters = new;
    new = NULL;
    answer = NULL;
    code = FERRY_OK;
  }
  pthread_mutex_unlock(&desk.lock);
  free(new);
  free(answer);
  return code;
}

/* Drops what the port asked for: this host's lookup, or all if serial is 0. A
 * lookup that is under way continues, as its result may be useful to the next
 * request for the name. */
static bool drop(job *job, ferry__port *port, uint64_t serial) {
  if (job->taken)
    return false;
  for (waiter **at = &job->waiters; *at;) {
    waiter *waiter = *at;
    if (waiter->port != port || (serial && waiter->answer->serial != serial)) {
      at = &waiter->next;
      continue;
    }
    *at = waiter->next;
    ferry__answer_free(waiter->answer);
    release(port); /* not the last reference: its loop has one */
    free(waiter);
  }
  if (!job->waiters) {
    ferry__turns_forget(job);
    free(job);
  }
  return true;
}

bool ferry__lookup_drop(ferry__port *port, uint64_t serial, const char *name,
                        lookup_function lookup) {
  pthread_mutex_lock(&desk.lock);
  job *job = *ferry__turns_find(name, lookup);
  bool dropped = job && drop(job, port, serial);
  pthread_mutex_unlock(&desk.lock);
  return dropped;
}

void ferry__lookups_drop(ferry__port *port) {
  pthread_mutex_lock(&desk.lock);
  ferry__turns_each(drop, port);
  pthread_mutex_unlock(&desk.lock);
}
