/* mutex.c - tells the thread sanitizer what Swift's Mutex does on Linux.
 *
 * Synchronization.Mutex takes a free lock by an atomic exchange that is
 * compiled into the caller, where the sanitizer sees it. A contended one is
 * taken and given back inside libswiftSynchronization and the kernel
 * (FUTEX_LOCK_PI), where it sees nothing, and reports races between threads
 * that held the lock one after the other. `make test-tsan` preloads these two
 * functions, which stand in front of the library's own and add the missing
 * edges.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context))

/* Swift's names of _MutexHandle._lockSlow(_:) and _unlockSlow(). */
#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

/* Weak: programs without the sanitizer are preloaded, too. */
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);

typedef SWIFT void lock_function(uint32_t seen, SELF void *self);
typedef SWIFT void unlock_function(SELF void *self);

SWIFT void lock_slow(uint32_t seen, SELF void *self) __asm__(LOCK_SLOW);
SWIFT void unlock_slow(SELF void *self) __asm__(UNLOCK_SLOW);

SWIFT void lock_slow(uint32_t seen, SELF void *self) {
  lock_function *next = (lock_function *)dlsym(RTLD_NEXT, LOCK_SLOW);
  next(seen, self);
  if (__tsan_acquire != 0) __tsan_acquire(self);
}

SWIFT void unlock_slow(SELF void *self) {
  unlock_function *next = (unlock_function *)dlsym(RTLD_NEXT, UNLOCK_SLOW);
  if (__tsan_release != 0) __tsan_release(self);
  next(self);
}
