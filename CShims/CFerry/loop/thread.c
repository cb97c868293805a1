/* thread.c - threads other than the loop's: lookups (lookup.c) and disks. */
#include "loop/loop.h"

#include <signal.h>

bool ferry__thread_start(void *(*run)(void *), void *data, size_t stack) {
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all, old;
  if (pthread_attr_init(&attributes))
    return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (stack) /* refused if it is below the system's minimum */
    pthread_attr_setstacksize(&attributes, stack);
  /* They handle no signals. This matters for SIGXFSZ: writing reports EFBIG. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int code = pthread_create(&thread, &attributes, run, data);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&attributes);
  return code == 0;
}
