/* sink.c - bodies that go to a descriptor.
 *
 * Threads write (writers.c), not the loop. So a slow disk, or a pipe that
 * nobody reads, holds up only the transfers that go there. A sink has two
 * blocks: one is filled while the other is written. When both are full, the
 * socket is not read. The copy into a block and the change of threads pay off,
 * because writes are longer: 600 KB and more, where libcurl hands over 16.
 * Compared with the curl command, 1 GB took 1.25 times the processor time with
 * blocks of 192 KB, and takes 0.95 to 1.16 times with these, with 2.5 MB more
 * memory. A body that is no larger than its share of all blocks gets one block
 * and is written at once: files of 100 KB, 32 of them at once, took four turns
 * of a writer each, where one is enough.
 *
 * A write may never return: a pipe that nobody reads, a file system that hangs.
 * So a sink writes through a descriptor of its own, which the thread closes
 * after the last write. A transfer that must end meanwhile leaves the sink to
 * the thread, with that descriptor and the block that is being written. */
#include "transfer/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  BLOCK = 1000 * 1024,
  LEAST_BLOCK = 64 * 1024,
  WHOLE = 384 * 1024, /* larger bodies are written before they are complete */
  ALL_BLOCKS = 4 * 1024 * 1024, /* for all sinks of a loop, while there are
                                 * few */
  PIECE = CURL_MAX_WRITE_SIZE,  /* the most that libcurl hands over at once */
  FLUSH_MS = 100, /* how long bytes wait for others to be written with */
};

typedef struct ferry__part {
  char *bytes; /* a block; NULL before its first use */
  size_t used, capacity;
} ferry__part;

struct ferry__sink {
  ferry__job job; /* must be first: a job is known by its address */
  ferry__transfer *transfer;
  ferry_loop *loop;
  ferry__part filling, writing; /* `writing` belongs to the thread while it
                                 * works */
  size_t block, due; /* size of a block, and how much is worth a write */
  int64_t offset;
  uint64_t written, flush_ms;
  int32_t os_errno; /* the thread's while it works, like .. */
  int fd;           /* .. this; -1 = closed */
  bool working;
  atomic_bool last; /* the current write is the last one, .. */
  atomic_bool left; /* .. or need not be completed */
};

static bool fail(ferry__transfer *t, int code) {
  t->fault = (ferry__fault){code, 0};
  return false;
}

/* Uses smaller blocks if many sinks write. */
static void set_block(ferry__sink *sink) {
  const ferry__transfer *t = sink->transfer;
  int64_t announced = t->head->content_length;
  size_t share = ALL_BLOCKS / sink->loop->transfers->sink_count, size = BLOCK;
  while (size > LEAST_BLOCK && size * 2 > share)
    size /= 2;
  if (share > WHOLE)
    share = WHOLE;
  bool fits = !t->decoder && announced > 0 && (uint64_t)announced <= share;
  sink->block = fits ? (size_t)announced : size;
  sink->due = fits ? sink->block : size * 2 / 3;
}

static void write_part(ferry__job *job);
static void on_part_written(ferry__job *job);
static void drop(ferry__job *job);

static ferry__sink *sink_of(ferry_loop *loop, ferry__transfer *t) {
  ferry__sink *sink = t->sink;
  if (sink)
    return sink;
  sink = calloc(1, sizeof *sink);
  if (!sink) {
    fail(t, FERRY_E_MEMORY);
    return NULL;
  }
  sink->fd = fcntl(t->fd, F_DUPFD_CLOEXEC, 0);
  if (sink->fd < 0) {
    t->result.os_errno = errno;
    fail(t, FERRY_E_FILE);
    free(sink);
    return NULL;
  }
  t->sink = sink;
  loop->transfers->sink_count++;
  sink->transfer = t;
  sink->loop = loop;
  sink->offset = t->offset;
  sink->job.loop = loop;
  sink->job.work = write_part;
  sink->job.done = on_part_written;
  sink->job.drop = drop;
  ferry__job_device(&sink->job, t->fd);
  set_block(sink);
  return sink;
}

/* ---- Writing ------------------------------------------------------------- */

static void close_own(ferry__sink *sink) {
  if (sink->fd >= 0)
    close(sink->fd);
  sink->fd = -1;
}

/* [a writer's thread] */
static void write_part(ferry__job *job) {
  ferry__sink *sink = (ferry__sink *)job;
  const char *bytes = sink->writing.bytes;
  size_t left = sink->writing.used;
  while (left && !atomic_load_explicit(&sink->left, memory_order_relaxed)) {
    ssize_t n = sink->offset < 0
                    ? write(sink->fd, bytes, left)
                    : pwrite(sink->fd, bytes, left, sink->offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      sink->os_errno = n < 0 ? errno : ENOSPC;
      break;
    }
    bytes += n;
    left -= (size_t)n;
    if (sink->offset >= 0)
      sink->offset += n;
  }
  sink->writing.used -= left;
  /* Closed on this thread, as closing may wait for the device, too. */
  if (atomic_load_explicit(&sink->last, memory_order_relaxed))
    close_own(sink);
}

/* [a writer's thread] Its transfer has ended before it. */
static void drop(ferry__job *job) {
  ferry__sink *sink = (ferry__sink *)job;
  close_own(sink);
  if (sink->writing.bytes)
    ferry__block_free(sink->writing.bytes);
  free(sink);
}

static void begin_to_write(ferry__sink *sink) {
  ferry__part part = sink->writing;
  sink->writing = sink->filling;
  sink->filling = part;
  sink->filling.used = 0;
  sink->working = true;
  ferry__job_put(&sink->job);
}

/* Called only while no write is under way. */
static bool is_due(const ferry__sink *sink) {
  return sink->filling.used &&
         (sink->filling.used >= sink->due ||
          ferry__now(sink->loop) >= sink->flush_ms);
}

static void wake_for_flush(ferry__sink *sink) {
  ferry__transfer *t = sink->transfer;
  uint64_t at = sink->flush_ms;
  if (t->state == FERRY__RUNNING &&
      (!t->entry.timer_at || t->entry.timer_at * FERRY__SLOT_MS > at))
    ferry__wheel_set(sink->loop, t, at);
}

static void on_part_written(ferry__job *job) {
  ferry__sink *sink = (ferry__sink *)job;
  ferry__transfer *t = sink->transfer;
  ferry_loop *loop = sink->loop;
  sink->working = false;
  if (job->code) { /* no thread could be started */
    sink->os_errno = job->code;
    sink->writing.used = 0;
    close_own(sink);
  }
  sink->written += sink->writing.used;
  if (sink->writing.used && loop->options.on_written)
    loop->options.on_written(loop->options.context, t->result.id,
                             sink->written);
  if (sink->os_errno) {
    t->result.os_errno = sink->os_errno;
    if (t->state != FERRY__WRITING) {
      ferry__transfer_end(loop, t, (ferry__fault){FERRY_E_FILE, 0});
      return;
    }
    if (!t->fault.code)
      t->fault = (ferry__fault){FERRY_E_FILE, 0};
  } else if (t->state != FERRY__WRITING && is_due(sink)) {
    begin_to_write(sink);
  } else if (sink->filling.used) {
    wake_for_flush(sink);
  }
  if (t->state == FERRY__WRITING) {
    if (ferry__sink_rests(t))
      ferry__finish(loop, t);
    if (loop->closing)
      ferry__deliver(loop);
  } else if (t->paused & FERRY__PAUSED_BY_SINK) {
    ferry__transfer_unpause(loop, t, FERRY__PAUSED_BY_SINK);
  }
}

/* ---- Filling ------------------------------------------------------------- */

static bool reserve(ferry__sink *sink, size_t length) {
  ferry__part *part = &sink->filling;
  ferry__pool *pool = &sink->loop->pool;
  size_t need = part->used + length, capacity;
  if (need <= part->capacity)
    return true;
  size_t want = need > sink->block ? need : sink->block;
  char *bytes = ferry__pool_take(pool, want, &capacity);
  if (!bytes)
    return fail(sink->transfer, FERRY_E_MEMORY);
  if (part->bytes) {
    memcpy(bytes, part->bytes, part->used);
    ferry__pool_give(pool, part->bytes);
  }
  part->bytes = bytes;
  part->capacity = capacity;
  return true;
}

bool ferry__sink_put(ferry_loop *loop, ferry__transfer *t, const char *bytes,
                     size_t length) {
  ferry__sink *sink = sink_of(loop, t);
  if (!sink || !reserve(sink, length))
    return false;
  if (!sink->filling.used)
    sink->flush_ms = ferry__now(loop) + FLUSH_MS;
  memcpy(sink->filling.bytes + sink->filling.used, bytes, length);
  sink->filling.used += length;
  if (!sink->working && is_due(sink))
    begin_to_write(sink);
  else if (!sink->working)
    wake_for_flush(sink);
  else if (sink->filling.used + PIECE > sink->block)
    t->paused |= FERRY__PAUSED_BY_SINK;
  return true;
}

uint64_t ferry__sink_look(ferry__transfer *t) {
  ferry__sink *sink = t->sink;
  if (!sink || sink->working || !sink->filling.used)
    return 0;
  if (!is_due(sink))
    return sink->flush_ms;
  begin_to_write(sink);
  return 0;
}

/* ---- The end ------------------------------------------------------------- */

bool ferry__sink_rests(ferry__transfer *t) {
  ferry__sink *sink = t->sink;
  if (!sink || (!sink->working && sink->fd < 0))
    return true;
  /* Nothing is written after a gap. While a writer works, its errno must not be
   * read here: this is called again when it is done. */
  if (!sink->working && sink->os_errno)
    sink->filling.used = 0;
  if (!sink->working || !sink->filling.used)
    atomic_store_explicit(&sink->last, true, memory_order_relaxed);
  if (!sink->working)
    begin_to_write(sink);
  return false;
}

static void strip(ferry__job *job) {
  ferry__sink *sink = (ferry__sink *)job;
  if (sink->writing.bytes)
    ferry__block_free(sink->writing.bytes);
  sink->writing = (ferry__part){0};
}

void ferry__sink_leave(ferry_loop *loop, ferry__transfer *t,
                       ferry__fault fault) {
  ferry__sink *sink = t->sink;
  char *bytes = sink->filling.bytes;
  if (!t->fault.code) {
    t->fault = fault;
    t->phase = FERRY_PHASE_BODY;
  }
  sink->filling = (ferry__part){0};
  if (bytes)
    ferry__block_free(bytes);
  atomic_store_explicit(&sink->last, true, memory_order_relaxed);
  atomic_store_explicit(&sink->left, true, memory_order_relaxed);
  if (!ferry__job_leave(&sink->job, strip))
    return;
  t->sink = NULL;
  loop->transfers->sink_count--;
  t->result.flags |= FERRY_RESULT_WRITING;
  ferry__finish(loop, t);
}

void ferry__sink_free(ferry_loop *loop, ferry__transfer *t) {
  ferry__sink *sink = t->sink;
  if (!sink)
    return;
  if (sink->filling.bytes)
    ferry__block_free(sink->filling.bytes);
  if (sink->writing.bytes)
    ferry__block_free(sink->writing.bytes);
  free(sink);
  t->sink = NULL;
  loop->transfers->sink_count--;
}
