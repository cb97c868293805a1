#define _GNU_SOURCE 1
#include "CResolver.h"

#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

static struct {
  pthread_mutex_t lock;
  pthread_cond_t change;
  int held;
  unsigned releases;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .change = PTHREAD_COND_INITIALIZER};

int resolver_held(void) {
  pthread_mutex_lock(&state.lock);
  int held = state.held;
  pthread_mutex_unlock(&state.lock);
  return held;
}

void resolver_release(void) {
  pthread_mutex_lock(&state.lock);
  state.releases++;
  pthread_cond_broadcast(&state.change);
  while (state.held) /* nobody is left in here */
    pthread_cond_wait(&state.change, &state.lock);
  pthread_mutex_unlock(&state.lock);
}

static int hold(void) {
  pthread_mutex_lock(&state.lock);
  unsigned releases = state.releases;
  state.held++;
  while (state.releases == releases)
    pthread_cond_wait(&state.change, &state.lock);
  state.held--;
  pthread_cond_broadcast(&state.change);
  pthread_mutex_unlock(&state.lock);
  return EAI_NONAME;
}

static bool ends(const char *name, const char *end) {
  size_t n = name ? strlen(name) : 0, m = strlen(end);
  return n > m && !strcmp(name + n - m, end);
}

int getaddrinfo(const char *restrict name, const char *restrict service,
                const struct addrinfo *restrict hints,
                struct addrinfo **restrict found) {
  typedef int function(const char *, const char *, const struct addrinfo *,
                       struct addrinfo **);
  if (ends(name, ".held.test"))
    return hold();
  if (ends(name, ".inside.test"))
    name = "127.0.0.1";
  function *real = (function *)dlsym(RTLD_NEXT, "getaddrinfo");
  return real ? real(name, service, hints, found) : EAI_FAIL;
}
