#define _GNU_SOURCE 1
#include "CWrites.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

static struct {
  pthread_mutex_t lock;
  pthread_cond_t change;
  bool holds;
  int held;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .change = PTHREAD_COND_INITIALIZER};

void writes_hold(void) {
  pthread_mutex_lock(&state.lock);
  state.holds = true;
  pthread_mutex_unlock(&state.lock);
}

int writes_held(void) {
  pthread_mutex_lock(&state.lock);
  int held = state.held;
  pthread_mutex_unlock(&state.lock);
  return held;
}

void writes_release(void) {
  pthread_mutex_lock(&state.lock);
  state.holds = false;
  pthread_cond_broadcast(&state.change);
  while (state.held)
    pthread_cond_wait(&state.change, &state.lock);
  pthread_mutex_unlock(&state.lock);
}

#ifdef SANITIZED

bool writes_can_be_held(void) { return false; }

#else

bool writes_can_be_held(void) { return true; }

static bool is_part(int fd) {
  static const char end[] = ".ferry-part";
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path);
  size_t m = sizeof end - 1;
  return n > (ssize_t)m && !memcmp(path + n - m, end, m);
}

typedef ssize_t function(int, const void *, size_t, off_t);

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
  function *real = (function *)dlsym(RTLD_NEXT, "pwrite");
  pthread_mutex_lock(&state.lock);
  bool holds = state.holds && is_part(fd);
  state.held += holds;
  while (holds && state.holds)
    pthread_cond_wait(&state.change, &state.lock);
  pthread_mutex_unlock(&state.lock);
  ssize_t n = real(fd, bytes, count, offset);
  if (holds) {
    pthread_mutex_lock(&state.lock);
    state.held--;
    pthread_cond_broadcast(&state.change);
    pthread_mutex_unlock(&state.lock);
  }
  return n;
}

#endif
