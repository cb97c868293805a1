#include "CWatches.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/epoll.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

static atomic_bool refuses;

void watches_refuse_next(void) { refuses = true; }
bool watches_refused(void) { return !refuses; }

#ifdef SANITIZED

bool watches_are_refused(void) { return false; }

#else

bool watches_are_refused(void) { return true; }

static void *object_of(const void *address) {
  Dl_info found;
  return dladdr(address, &found) ? found.dli_fbase : NULL;
}

int epoll_ctl(int set, int operation, int fd, struct epoll_event *event) {
  typedef int function(int, int, int, struct epoll_event *);
  const void *caller =
      __builtin_extract_return_addr(__builtin_return_address(0));
  if (refuses && operation != EPOLL_CTL_DEL &&
      object_of(caller) == object_of(&refuses) &&
      atomic_exchange(&refuses, false)) {
    errno = ENOSPC;
    return -1;
  }
  function *real = (function *)dlsym(RTLD_NEXT, "epoll_ctl");
  return real(set, operation, fd, event);
}

#endif
