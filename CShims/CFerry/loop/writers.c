/* writers.c - threads that write and read files, a few for each device.
 *
 * libuv's thread pool is not used: it has four threads for the whole process,
 * and a network file system that hangs would block them for everyone. A
 * descriptor that is not a regular file, such as a pipe, counts as a device of
 * its own. */
#include "loop/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, IDLE_SECONDS = 10 };
/* Jobs that open files have thread pools of their own, so that they do not
 * wait for reads and writes. If the device is not known, they share this
 * many. */
enum { POOLS_APART = 32 };
#define OPENING UINT64_MAX
enum { MANY_JOBS = 256, HANGS_SECONDS = 1 };

/* The jobs of one device and the threads that do them. It lives as long as it
 * has threads. */
typedef struct thread_pool {
  struct thread_pool *next;
  uint64_t device, file;
  pthread_cond_t work;
  ferry__job *jobs, **last; /* oldest first; none has begun */
  unsigned waiting, threads, starting, idle;
  time_t since; /* seconds of the monotonic clock: jobs wait, and none has begun
                 * since then */
} thread_pool;

static struct {
  pthread_mutex_t lock;
  thread_pool *pools;
} writers = {.lock = PTHREAD_MUTEX_INITIALIZER};

void ferry__job_device(ferry__job *job, int fd) {
  struct statx found;
  /* Use only local knowledge: asking a server could take for ever. */
  if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO,
            &found))
    return; /* together with others that are unknown */
  job->device = makedev(found.stx_dev_major, found.stx_dev_minor);
  job->file = S_ISREG(found.stx_mode) ? 0 : found.stx_ino;
}

/* The device of a path. Returns false if the system would have to ask a server
 * or a disk for it, or does not have openat2(2). */
static bool find_device(ferry__job *job, const char *path) {
  struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                         .resolve = RESOLVE_CACHED};
  int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
  if (fd < 0)
    return false;
  ferry__job_device(job, fd);
  close(fd);
  return job->device;
}

int ferry_file_is_local(int fd) {
  static const unsigned local[] = {
      BTRFS_SUPER_MAGIC,
      EROFS_SUPER_MAGIC_V1,
      EXT4_SUPER_MAGIC, /* ext2 and ext3, too */
      F2FS_SUPER_MAGIC,
      OVERLAYFS_SUPER_MAGIC,
      RAMFS_MAGIC,
      SQUASHFS_MAGIC,
      TMPFS_MAGIC,
      XFS_SUPER_MAGIC,
      0x2fc12fc1, /* ZFS */
      0xca451a4e, /* bcachefs */
  };
  struct statfs found;
  if (fstatfs(fd, &found))
    return 0;
  for (size_t i = 0; i < sizeof local / sizeof *local; i++)
    if (local[i] == (unsigned)found.f_type)
      return 1;
  return 0;
}

bool ferry__is_file(const char *path) {
  struct stat s;
  return !stat(path, &s) && S_ISREG(s.st_mode);
}

/* ---- Back on the loop ---------------------------------------------------- */

/* [any thread] Called with the lock held: while it is, the loop does not see
 * the job, and so cannot end before it was woken. */
static void hand_back(ferry__job *job, int code) {
  ferry_loop *loop = job->loop;
  job->code = code;
  job->back = true;
  job->next = NULL;
  *loop->jobs.last_done = job;
  loop->jobs.last_done = &job->next;
  uv_async_send(&loop->jobs.async);
}

static void close_if_over(ferry_loop *loop) {
  if (!loop->closing || loop->jobs.count ||
      uv_is_closing((uv_handle_t *)&loop->jobs.async))
    return;
  uv_close((uv_handle_t *)&loop->jobs.async, NULL);
  uv_close((uv_handle_t *)&loop->timer, NULL);
}

static void on_done(uv_async_t *async) {
  ferry_loop *loop = async->data;
  pthread_mutex_lock(&writers.lock);
  ferry__job *job = loop->jobs.done;
  loop->jobs.done = NULL;
  loop->jobs.last_done = &loop->jobs.done;
  pthread_mutex_unlock(&writers.lock);
  while (job) {
    ferry__job *next = job->next;
    loop->jobs.count--;
    job->done(job);
    job = next;
  }
  close_if_over(loop);
}

int ferry__jobs_open(ferry_loop *loop) {
  loop->jobs.last_done = &loop->jobs.done;
  loop->jobs.async.data = loop;
  return uv_async_init(&loop->uv, &loop->jobs.async, on_done);
}

void ferry__jobs_close(ferry_loop *loop) { close_if_over(loop); }

/* ---- Threads ------------------------------------------------------------- */

static time_t seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec;
}

static bool wait_for_job(thread_pool *pool) {
  struct timespec until;
  int code = 0;
  while (!pool->jobs && code != ETIMEDOUT) {
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += IDLE_SECONDS;
    pool->idle++;
    code = pthread_cond_timedwait(&pool->work, &writers.lock, &until);
    pool->idle--;
  }
  return pool->jobs;
}

static ferry__job *take(thread_pool *pool) {
  ferry__job *job = pool->jobs;
  pool->jobs = job->next;
  if (!pool->jobs)
    pool->last = &pool->jobs;
  pool->waiting--;
  pool->since = seconds();
  job->begun = true;
  return job;
}

static void leave_pool(thread_pool *old) {
  if (--old->threads)
    return;
  thread_pool **at = &writers.pools;
  while (*at != old)
    at = &(*at)->next;
  *at = old->next;
  pthread_cond_destroy(&old->work);
  free(old);
}

static void *run(void *data) {
  thread_pool *pool = data;
  pthread_setname_np(pthread_self(), "ferry-disk");
  pthread_mutex_lock(&writers.lock);
  pool->starting--;
  while (wait_for_job(pool)) {
    ferry__job *job = take(pool);
    pthread_mutex_unlock(&writers.lock);
    job->work(job);
    pthread_mutex_lock(&writers.lock);
    if (job->loop) {
      hand_back(job, 0);
      continue;
    }
    pthread_mutex_unlock(&writers.lock);
    job->drop(job);
    pthread_mutex_lock(&writers.lock);
  }
  leave_pool(pool);
  pthread_mutex_unlock(&writers.lock);
  return NULL;
}

/* ---- Submitting ---------------------------------------------------------- */

static bool start_thread(thread_pool *pool) {
  if (!ferry__thread_start(run, pool, 0))
    return false;
  pool->threads++;
  pool->starting++;
  return true;
}

static thread_pool *known_pool(const ferry__job *job) {
  thread_pool *found = writers.pools;
  while (found && (found->device != job->device || found->file != job->file))
    found = found->next;
  return found;
}

static thread_pool *find_pool(const ferry__job *job) {
  thread_pool *found = known_pool(job);
  if (found || !(found = calloc(1, sizeof *found)))
    return found;
  found->device = job->device;
  found->file = job->file;
  found->last = &found->jobs;
  pthread_cond_init(&found->work, NULL);
  if (!start_thread(found)) {
    pthread_cond_destroy(&found->work);
    free(found);
    return NULL;
  }
  found->next = writers.pools;
  writers.pools = found;
  return found;
}

/* With the lock held. */
static bool hangs(const thread_pool *pool) {
  return pool && pool->waiting >= MANY_JOBS &&
         seconds() - pool->since > HANGS_SECONDS;
}

/* With the lock held. Returns false if there is no thread. */
static bool enqueue(ferry__job *job) {
  thread_pool *pool = find_pool(job);
  if (!pool)
    return false;
  job->next = NULL;
  *pool->last = job;
  pool->last = &job->next;
  if (!pool->waiting++)
    pool->since = seconds();
  /* An idle thread that has not woken yet may be taken by another job. */
  if (pool->idle + pool->starting < pool->waiting && pool->threads < THREADS)
    start_thread(pool);
  pthread_cond_signal(&pool->work);
  return true;
}

void ferry__job_put(ferry__job *job) {
  job->loop->jobs.count++;
  pthread_mutex_lock(&writers.lock);
  job->begun = job->back = false;
  if (!enqueue(job))
    hand_back(job, EAGAIN);
  pthread_mutex_unlock(&writers.lock);
}

/* A job that does not return to a loop. */
typedef struct detached_job {
  ferry__job job;
  void (*work)(void *context);
  void *context;
} detached_job;

static void run_detached(ferry__job *job) {
  const detached_job *detached = (detached_job *)job;
  detached->work(detached->context);
}

static void drop_detached(ferry__job *job) { free(job); }

static detached_job *new_detached(void (*work)(void *context), void *context) {
  detached_job *detached = calloc(1, sizeof *detached);
  if (!detached)
    return NULL;
  detached->job.work = run_detached;
  detached->job.drop = drop_detached;
  detached->work = work;
  detached->context = context;
  return detached;
}

/* If it `refuses`, it does not enqueue a job for a device that hangs. */
static int enqueue_detached(detached_job *detached, bool refuses) {
  int code = 0;
  pthread_mutex_lock(&writers.lock);
  if (refuses && hangs(known_pool(&detached->job)))
    code = ETIMEDOUT;
  else if (!enqueue(&detached->job))
    code = EAGAIN;
  pthread_mutex_unlock(&writers.lock);
  if (code)
    free(detached);
  return code;
}

int ferry_work_on_file(int fd, void (*work)(void *context), void *context) {
  detached_job *detached = new_detached(work, context);
  if (!detached)
    return ENOMEM;
  ferry__job_device(&detached->job, fd);
  return enqueue_detached(detached, false); /* it may close a file */
}

int ferry_work_in(const char *directory, uint64_t number,
                  void (*work)(void *context), void *context) {
  detached_job *detached = new_detached(work, context);
  if (!detached)
    return ENOMEM;
  if (find_device(&detached->job, directory))
    detached->job.file = OPENING;
  else /* apart from descriptors without a known device: they have 0 */
    detached->job.file = number % POOLS_APART + 1;
  return enqueue_detached(detached, true);
}

int ferry_file_hangs(const char *path) {
  ferry__job job = {.device = 0};
  pthread_mutex_lock(&writers.lock);
  thread_pool *pool = writers.pools;
  while (pool && !hangs(pool))
    pool = pool->next;
  pthread_mutex_unlock(&writers.lock);
  if (!pool)
    return 0;
  if (!find_device(&job, path))
    return 0;
  pthread_mutex_lock(&writers.lock);
  bool found = hangs(known_pool(&job));
  pthread_mutex_unlock(&writers.lock);
  return found;
}

/* ---- Jobs whose transfer has ended --------------------------------------- */

bool ferry__job_leave(ferry__job *job, void (*strip)(ferry__job *job)) {
  ferry_loop *loop = job->loop;
  pthread_mutex_lock(&writers.lock);
  bool leaves = !job->back;
  if (leaves && !job->begun)
    strip(job);
  if (leaves)
    job->loop = NULL;
  pthread_mutex_unlock(&writers.lock);
  if (leaves)
    loop->jobs.count--;
  return leaves;
}
