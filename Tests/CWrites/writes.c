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

typedef struct kind {
  bool holds;
  int held;
} kind;

static struct {
  pthread_mutex_t lock;
  pthread_cond_t change;
  kind writes, reads;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .change = PTHREAD_COND_INITIALIZER};

static void hold(kind *kind) {
  pthread_mutex_lock(&state.lock);
  kind->holds = true;
  pthread_mutex_unlock(&state.lock);
}

static int held(const kind *kind) {
  pthread_mutex_lock(&state.lock);
  int held = kind->held;
  pthread_mutex_unlock(&state.lock);
  return held;
}

static void let_go(kind *kind) {
  pthread_mutex_lock(&state.lock);
  kind->holds = false;
  pthread_cond_broadcast(&state.change);
  while (kind->held)
    pthread_cond_wait(&state.change, &state.lock);
  pthread_mutex_unlock(&state.lock);
}

void writes_hold(void) { hold(&state.writes); }
int writes_held(void) { return held(&state.writes); }
void writes_release(void) { let_go(&state.writes); }
void reads_hold(void) { hold(&state.reads); }
int reads_held(void) { return held(&state.reads); }
void reads_release(void) { let_go(&state.reads); }

#ifdef SANITIZED

bool writes_can_be_held(void) { return false; }

#else

bool writes_can_be_held(void) { return true; }

static bool ends_with(int fd, const char *end) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path);
  size_t m = strlen(end);
  return n > (ssize_t)m && !memcmp(path + n - m, end, m);
}

/* Returns whether it has waited. */
static bool wait_for(kind *kind, int fd, const char *end) {
  pthread_mutex_lock(&state.lock);
  bool holds = kind->holds && ends_with(fd, end);
  kind->held += holds;
  while (holds && kind->holds)
    pthread_cond_wait(&state.change, &state.lock);
  pthread_mutex_unlock(&state.lock);
  return holds;
}

static void done(kind *kind) {
  pthread_mutex_lock(&state.lock);
  kind->held--;
  pthread_cond_broadcast(&state.change);
  pthread_mutex_unlock(&state.lock);
}

typedef ssize_t writer(int, const void *, size_t, off_t);
typedef ssize_t reader(int, void *, size_t, off_t);

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
  writer *real = (writer *)dlsym(RTLD_NEXT, "pwrite");
  bool waited = wait_for(&state.writes, fd, ".ferry-part");
  ssize_t n = real(fd, bytes, count, offset);
  if (waited)
    done(&state.writes);
  return n;
}

ssize_t pread(int fd, void *bytes, size_t count, off_t offset) {
  reader *real = (reader *)dlsym(RTLD_NEXT, "pread");
  bool waited = wait_for(&state.reads, fd, ".held");
  ssize_t n = real(fd, bytes, count, offset);
  if (waited)
    done(&state.reads);
  return n;
}

#endif
