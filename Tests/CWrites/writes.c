#define _GNU_SOURCE 1
#include "CWrites.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

typedef struct kind {
  const char *ends[2]; /* of the names of the files */
  atomic_bool holds;
  int held;
} kind;

#define PART ".ferry-part"
#define OTHER ".held"

static struct {
  pthread_mutex_t lock;
  pthread_cond_t change;
  kind writes, reads, opens, closes, syncs, directories, unlinks;
  char loses[4096]; /* the file whose next sync fails; empty = none */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .change = PTHREAD_COND_INITIALIZER,
           .writes = {.ends = {PART}},
           .reads = {.ends = {OTHER}},
           .opens = {.ends = {OTHER, PART}},
           .closes = {.ends = {OTHER}},
           .syncs = {.ends = {PART}},
           .directories = {.ends = {OTHER}},
           .unlinks = {.ends = {PART}}};

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
void opens_hold(void) { hold(&state.opens); }
int opens_held(void) { return held(&state.opens); }
void opens_release(void) { let_go(&state.opens); }
void closes_hold(void) { hold(&state.closes); }
int closes_held(void) { return held(&state.closes); }
void closes_release(void) { let_go(&state.closes); }
void syncs_hold(void) { hold(&state.syncs); }
int syncs_held(void) { return held(&state.syncs); }
void syncs_release(void) { let_go(&state.syncs); }
void directories_hold(void) { hold(&state.directories); }
int directories_held(void) { return held(&state.directories); }
void directories_release(void) { let_go(&state.directories); }
void unlinks_hold(void) { hold(&state.unlinks); }
int unlinks_held(void) { return held(&state.unlinks); }
void unlinks_release(void) { let_go(&state.unlinks); }

void syncs_fail_once(const char *path) {
  pthread_mutex_lock(&state.lock);
  snprintf(state.loses, sizeof state.loses, "%s", path);
  pthread_mutex_unlock(&state.lock);
}

static atomic_int sendfile_errno;

void sendfile_fails(int os_errno) { atomic_store(&sendfile_errno, os_errno); }

static atomic_int socket_errno;

void socket_fails_once(int os_errno) { atomic_store(&socket_errno, os_errno); }

bool syncs_have_failed(void) {
  pthread_mutex_lock(&state.lock);
  bool failed = !*state.loses;
  pthread_mutex_unlock(&state.lock);
  return failed;
}

#ifdef SANITIZED

bool writes_can_be_held(void) { return false; }

#else

bool writes_can_be_held(void) { return true; }

static bool ends_with(const char *path, size_t n, const char *end) {
  size_t m = strlen(end);
  return n > m && !memcmp(path + n - m, end, m);
}

/* The length of the path of an open file, without a NUL; 0 without one. */
static size_t path_of(int fd, char *path, size_t size) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, size);
  return length > 0 ? (size_t)length : 0;
}

static bool concerns(const kind *kind, int fd, const char *path) {
  char found[4096];
  size_t n = path ? strlen(path) : 0;
  if (!path) {
    n = path_of(fd, found, sizeof found);
    path = found;
  }
  for (int i = 0; i < 2 && kind->ends[i]; i++)
    if (ends_with(path, n, kind->ends[i]))
      return true;
  return false;
}

/* Returns whether it has waited. The file has a path or a descriptor. */
static bool wait_for(kind *kind, int fd, const char *path) {
  if (!kind->holds)
    return false;
  pthread_mutex_lock(&state.lock);
  bool holds = kind->holds && concerns(kind, fd, path);
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

ssize_t sendfile(int socket, int file, off_t *offset, size_t count) {
  int failure = atomic_load(&sendfile_errno);
  if (!failure)
    return syscall(SYS_sendfile, socket, file, offset, count);
  errno = failure;
  return -1;
}

int socket(int family, int kind, int protocol) {
  int failure = family == AF_INET && (kind & SOCK_STREAM)
                    ? atomic_exchange(&socket_errno, 0)
                    : 0;
  if (!failure)
    return (int)syscall(SYS_socket, family, kind, protocol);
  errno = failure;
  return -1;
}

typedef ssize_t writer(int, const void *, size_t, off_t);
typedef ssize_t reader(int, void *, size_t, off_t);

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
  writer *real = (writer *)dlsym(RTLD_NEXT, "pwrite");
  bool waited = wait_for(&state.writes, fd, NULL);
  ssize_t n = real(fd, bytes, count, offset);
  if (waited)
    done(&state.writes);
  return n;
}

ssize_t pread(int fd, void *bytes, size_t count, off_t offset) {
  reader *real = (reader *)dlsym(RTLD_NEXT, "pread");
  bool waited = wait_for(&state.reads, fd, NULL);
  ssize_t n = real(fd, bytes, count, offset);
  if (waited)
    done(&state.reads);
  return n;
}

/* These call the system directly: a child calls some of them between fork(2)
 * and exec(2). */

static bool loses(int fd) {
  char path[4096];
  if (!*state.loses)
    return false;
  size_t n = path_of(fd, path, sizeof path);
  pthread_mutex_lock(&state.lock);
  bool is_it = n && n == strlen(state.loses) && !memcmp(path, state.loses, n);
  if (is_it)
    *state.loses = 0;
  pthread_mutex_unlock(&state.lock);
  return is_it;
}

static int sync_with(long number, int fd) {
  if (loses(fd)) {
    errno = EIO;
    return -1;
  }
  kind *kind = &state.syncs;
  bool waited = wait_for(kind, fd, NULL);
  if (!waited) {
    kind = &state.directories;
    waited = wait_for(kind, fd, NULL);
  }
  long code = syscall(number, fd);
  if (waited)
    done(kind);
  return (int)code;
}

int fsync(int fd) { return sync_with(SYS_fsync, fd); }
int fdatasync(int fd) { return sync_with(SYS_fdatasync, fd); }

int openat(int directory, const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  bool waited = wait_for(&state.opens, -1, path);
  long fd = syscall(SYS_openat, directory, path, flags, mode);
  if (waited)
    done(&state.opens);
  return (int)fd;
}

int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  bool waited = wait_for(&state.opens, -1, path);
  long fd = syscall(SYS_openat, AT_FDCWD, path, flags, mode);
  if (waited)
    done(&state.opens);
  return (int)fd;
}

int unlinkat(int directory, const char *path, int flags) {
  bool waited = wait_for(&state.unlinks, -1, path);
  long code = syscall(SYS_unlinkat, directory, path, flags);
  if (waited)
    done(&state.unlinks);
  return (int)code;
}

int close(int fd) {
  bool waited = wait_for(&state.closes, fd, NULL);
  long code = syscall(SYS_close, fd);
  if (waited)
    done(&state.closes);
  return (int)code;
}

#endif
