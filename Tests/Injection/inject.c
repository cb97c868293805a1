/* inject.c - a preloaded library that makes calls of system functions fail in a
 * process. INJECT says which:
 *
 *   pwrite@3         the third call of pwrite() (and of pwrite64())
 *   rename@1!        the process is killed by the first call of rename()
 *   malloc@5+        the fifth call of malloc() after the first request
 *   open,fsync%10:7  each call of these with a probability of 10 %, from
 *                    the seed 7
 *
 * malloc() fails only for callers in C functions of the program itself, that
 * is in the core: Swift's runtime library does not survive a failure, nor do
 * Swift functions, in which the compiler has put calls of malloc(). The same holds for pthread_create(), which libdispatch calls
 * repeatedly until it has its thread, and for epoll_ctl(), without which libuv
 * ends the process. eventfd(), which libdispatch needs, also fails for
 * libuv. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
  char names[256]; /* ",pwrite,fsync," */
  uint64_t nth;    /* 0 = at random */
  unsigned percent;
  uintptr_t base, start, end; /* of the program, and of its code */
  bool ready, kills, waits;
} plan;
/* The symbols of the program's file. */
static struct {
  const ElfW(Sym) *list;
  size_t count;
  const char *names;
} symbols;
/* What is known of callers: the address of each, times two, plus one if it is
 * in a C function. */
static _Atomic uintptr_t callers[4096];
static _Atomic uint64_t calls, chance;
/* It wakes the loop, for the first time with a request. */
static atomic_int wake = -1;
static atomic_bool asked;

static int first_object(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size, (void)data;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
      continue;
    plan.base = info->dlpi_addr;
    plan.start = info->dlpi_addr + part->p_vaddr;
    plan.end = plan.start + part->p_memsz;
  }
  return 1; /* the program comes first */
}

static void read_symbols(void) {
  struct stat found;
  int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &found) != 0)
    abort();
  const char *file =
      mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (file == MAP_FAILED)
    abort();
  const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)file;
  const ElfW(Shdr) *sections = (const ElfW(Shdr) *)(file + head->e_shoff);
  for (int i = 0; i < head->e_shnum; i++) {
    if (sections[i].sh_type != SHT_SYMTAB)
      continue;
    symbols.list = (const ElfW(Sym) *)(file + sections[i].sh_offset);
    symbols.count = sections[i].sh_size / sizeof *symbols.list;
    symbols.names = file + sections[sections[i].sh_link].sh_offset;
  }
  if (!symbols.list)
    abort();
}

__attribute__((constructor)) static void read_plan(void) {
  const char *text = getenv("INJECT");
  if (!text)
    return;
  size_t n = strcspn(text, "@%");
  if (n + 3 > sizeof plan.names)
    abort();
  snprintf(plan.names, sizeof plan.names, ",%.*s,", (int)n, text);
  if (text[n] == '@') {
    char *rest;
    plan.nth = strtoull(text + n + 1, &rest, 10);
    plan.kills = *rest == '!';
    plan.waits = *rest == '+';
  } else {
    char *rest;
    plan.percent = (unsigned)strtoul(text + n + 1, &rest, 10);
    chance = *rest == ':' ? strtoull(rest + 1, NULL, 10) : 1;
  }
  dl_iterate_phdr(first_object, NULL);
  if (strstr(plan.names, ",malloc,"))
    read_symbols();
  plan.ready = true;
}

/* Whether this call has to fail. */
static bool fails(const char *name) {
  if (!plan.ready || (plan.waits && !asked))
    return false;
  char word[32];
  snprintf(word, sizeof word, ",%s,", name);
  if (!strstr(plan.names, word))
    return false;
  if (plan.nth) {
    bool is_it = atomic_fetch_add(&calls, 1) + 1 == plan.nth;
    if (is_it && plan.kills)
      kill(getpid(), SIGKILL);
    return is_it;
  }
  uint64_t x = atomic_fetch_add(&chance, 0x9E3779B97F4A7C15u);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return (x ^ (x >> 31)) % 100 < plan.percent;
}

static bool is_program(const void *caller) {
  uintptr_t at = (uintptr_t)caller;
  return at >= plan.start && at < plan.end;
}

/* Whether an address is in a function that the Swift compiler has made. */
static bool is_swift(uintptr_t at) {
  for (size_t i = 0; i < symbols.count; i++) {
    const ElfW(Sym) *symbol = &symbols.list[i];
    if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
        at - plan.base - symbol->st_value < symbol->st_size) {
      const char *name = symbols.names + symbol->st_name;
      return !strncmp(name, "$s", 2) || !strncmp(name, "__swift", 7);
    }
  }
  return false;
}

static bool is_c(const void *caller) {
  uintptr_t at = (uintptr_t)caller;
  if (!is_program(caller))
    return false;
  for (size_t i = at % 4096;; i = (i + 1) % 4096) {
    uintptr_t known = callers[i];
    if (known >> 1 == at)
      return known & 1;
    if (known)
      continue;
    bool good = !is_swift(at - 1); /* the call itself */
    callers[i] = at << 1 | good;
    return good;
  }
}

#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define STAND_BEFORE(result, name, as, error, parameters, arguments)           \
  result name parameters {                                                     \
    if (fails(as)) {                                                           \
      errno = error;                                                           \
      return -1;                                                               \
    }                                                                          \
    return REAL(name) arguments;                                               \
  }

/* Not for the descriptors with which threads wake each other, nor for
 * stderr. */
ssize_t write(int fd, const void *p, size_t n) {
  struct stat found;
  if (fd == wake)
    asked = true;
  if (plan.ready && fd > STDERR_FILENO && fstat(fd, &found) == 0 &&
      S_ISREG(found.st_mode) && fails("write")) {
    errno = ENOSPC;
    return -1;
  }
  return REAL(write)(fd, p, n);
}

STAND_BEFORE(ssize_t, pwrite, "pwrite", ENOSPC,
             (int fd, const void *p, size_t n, off_t at), (fd, p, n, at))
STAND_BEFORE(ssize_t, pwrite64, "pwrite", ENOSPC,
             (int fd, const void *p, size_t n, off64_t at), (fd, p, n, at))
STAND_BEFORE(ssize_t, pread, "pread", EIO,
             (int fd, void *p, size_t n, off_t at), (fd, p, n, at))
STAND_BEFORE(ssize_t, pread64, "pread", EIO,
             (int fd, void *p, size_t n, off64_t at), (fd, p, n, at))
STAND_BEFORE(int, fsync, "fsync", EIO, (int fd), (fd))
STAND_BEFORE(int, fdatasync, "fdatasync", EIO, (int fd), (fd))
STAND_BEFORE(int, ftruncate, "ftruncate", EIO, (int fd, off_t n), (fd, n))
STAND_BEFORE(int, ftruncate64, "ftruncate", EIO, (int fd, off64_t n), (fd, n))
STAND_BEFORE(int, renameat, "rename", EACCES,
             (int a, const char *from, int b, const char *to), (a, from, b, to))
STAND_BEFORE(int, linkat, "rename", EACCES,
             (int a, const char *from, int b, const char *to, int flags),
             (a, from, b, to, flags))
STAND_BEFORE(int, rename, "rename", EACCES, (const char *from, const char *to),
             (from, to))
STAND_BEFORE(int, unlink, "unlink", EACCES, (const char *path), (path))
STAND_BEFORE(int, unlinkat, "unlink", EACCES,
             (int at, const char *path, int flags), (at, path, flags))
STAND_BEFORE(int, flock, "flock", EIO, (int fd, int operation),
             (fd, operation))
STAND_BEFORE(int, socket, "socket", EMFILE, (int domain, int type, int kind),
             (domain, type, kind))
STAND_BEFORE(int, connect, "connect", ENETUNREACH,
             (int fd, const struct sockaddr *to, socklen_t n), (fd, to, n))
STAND_BEFORE(ssize_t, send, "send", ECONNRESET,
             (int fd, const void *p, size_t n, int flags), (fd, p, n, flags))
STAND_BEFORE(ssize_t, recv, "recv", ECONNRESET,
             (int fd, void *p, size_t n, int flags), (fd, p, n, flags))

static bool is_uv(const void *caller) {
  Dl_info found;
  return dladdr(caller, &found) && found.dli_fname &&
         strstr(found.dli_fname, "/libuv.so");
}

int eventfd(unsigned count, int flags) {
  bool program = is_program(CALLER);
  if ((program || is_uv(CALLER)) && fails("eventfd")) {
    errno = EMFILE;
    return -1;
  }
  int fd = REAL(eventfd)(count, flags);
  if (program)
    wake = fd;
  return fd;
}

/* Removing a descriptor never fails. */
int epoll_ctl(int set, int operation, int fd, struct epoll_event *event) {
  if (operation != EPOLL_CTL_DEL && is_program(CALLER) && fails("epoll_ctl")) {
    errno = operation == EPOLL_CTL_ADD ? ENOSPC : ENOMEM;
    return -1;
  }
  return REAL(epoll_ctl)(set, operation, fd, event);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                   void *(*run)(void *), void *data) {
  if (is_program(CALLER) && fails("pthread_create"))
    return EAGAIN;
  return REAL(pthread_create)(thread, attributes, run, data);
}

/* Only for files opened for writing, and directories: a program that cannot
 * read its own libraries has other problems. */
static bool open_fails(int flags) {
  return (flags & (O_WRONLY | O_RDWR | O_DIRECTORY)) && fails("open");
}

#define STAND_BEFORE_OPEN(name, parameters, first, flags)                      \
  int name parameters {                                                        \
    va_list more;                                                              \
    va_start(more, flags);                                                     \
    mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;                  \
    va_end(more);                                                              \
    if (open_fails(flags)) {                                                   \
      errno = EACCES;                                                          \
      return -1;                                                               \
    }                                                                          \
    return REAL(name)(first, flags, mode);                                     \
  }
#define BOTH(a, b) a, b
STAND_BEFORE_OPEN(open, (const char *path, int flags, ...), path, flags)
STAND_BEFORE_OPEN(open64, (const char *path, int flags, ...), path, flags)
STAND_BEFORE_OPEN(openat, (int at, const char *path, int flags, ...),
                  BOTH(at, path), flags)
STAND_BEFORE_OPEN(openat64, (int at, const char *path, int flags, ...),
                  BOTH(at, path), flags)

/* With the names that the GNU C library provides for interposers: dlsym()
 * itself allocates. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);

static bool memory_fails(const void *caller) {
  return plan.ready && symbols.list && is_c(caller) && fails("malloc");
}

void *malloc(size_t size) {
  return memory_fails(CALLER) ? NULL : __libc_malloc(size);
}
void *calloc(size_t count, size_t size) {
  return memory_fails(CALLER) ? NULL : __libc_calloc(count, size);
}
void *realloc(void *block, size_t size) {
  return memory_fails(CALLER) ? NULL : __libc_realloc(block, size);
}
