/* source.c - the bytes of a request's body: the source provides them, or names
 * the file that holds them. */
#include "transfer/transfer.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Pieces of files ----------------------------------------------------- */

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* the number on every machine; glibc has it from 2.38
                           * on */
#endif

int ferry_file_is_cached(int32_t fd, int64_t offset, uint64_t length) {
  struct {
    uint64_t offset, length;
  } range = {(uint64_t)offset, length};
  struct {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;
  } found;
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  if (!length || syscall(SYS_cachestat, fd, &range, &found, 0))
    return 0;
  uint64_t first = range.offset / page;
  uint64_t last = (range.offset + length - 1) / page;
  return found.cached >= last - first + 1;
}

int ferry_takes_piece(const void *space) {
  return space && ferry__current &&
         ferry__current->transfers->piece_space == space;
}

uint64_t ferry__pulled(const ferry__transfer *t) {
  return t->pulled - t->piece.length;
}

void ferry__piece_drop(ferry__transfer *t) {
  if (t->piece.length)
    close(t->piece.fd);
  t->piece.length = 0;
}

void ferry__piece_took(ferry__transfer *t, uint64_t count) {
  if (count == t->piece.length) {
    ferry__piece_drop(t);
    return;
  }
  t->piece.offset += (int64_t)count;
  t->piece.length -= count;
}

/* Reads the bytes, for callers that cannot send a piece. */
static int64_t read_piece(ferry__transfer *t, char *space, size_t size) {
  ssize_t n;
  if (t->piece.length < size)
    size = (size_t)t->piece.length;
  do
    n = pread(t->piece.fd, space, size, t->piece.offset);
  while (n < 0 && errno == EINTR);
  if (n <= 0) { /* the file has become shorter, or cannot be read */
    t->result.os_errno = n < 0 ? errno : 0;
    t->fault = (ferry__fault){FERRY_E_UPLOAD_SOURCE, 0};
    return FERRY_ABORT;
  }
  ferry__piece_took(t, (uint64_t)n);
  return n;
}

/* ---- Pulling ------------------------------------------------------------- */

static bool takes_piece(ferry__transfer *t, const ferry_piece *piece,
                        uint64_t left) {
  t->piece = *piece;
  return piece->fd >= 0 && piece->offset >= 0 && piece->length &&
         piece->length <= left && piece->length <= INT64_MAX;
}

static int64_t ask(ferry_loop *loop, ferry__transfer *t, char *space,
                   size_t size, bool any) {
  ferry_options *o = &loop->options;
  uint64_t left = t->body_length - t->pulled;
  ferry_piece piece;
  if (left < size)
    size = (size_t)left;
  if (!size)
    return 0;
  loop->transfers->piece_space = any && size >= sizeof piece ? space : NULL;
  int64_t n = o->on_pull
                  ? o->on_pull(o->context, t->result.id, space, size)
                  : FERRY_ABORT;
  loop->transfers->piece_space = NULL;
  if (n == FERRY_PAUSE) {
    t->source = FERRY__SOURCE_PAUSED;
    return FERRY_PAUSE;
  }
  if (n == FERRY_PIECE && size >= sizeof piece) {
    memcpy(&piece, space, sizeof piece);
    if (takes_piece(t, &piece, left)) {
      t->pulled += piece.length;
      return FERRY_PIECE;
    }
    ferry__piece_drop(t);
  }
  bool early = n == 0 && t->body_length != FERRY_UNKNOWN_LENGTH;
  if (n == 0 && !early)
    t->body_length = t->pulled; /* known now */
  if (n < 0 || (uint64_t)n > size || early) {
    t->fault = (ferry__fault){FERRY_E_UPLOAD_SOURCE, 0};
    return FERRY_ABORT;
  }
  t->pulled += (uint64_t)n;
  return n;
}

int64_t ferry__source_pull_any(ferry_loop *loop, ferry__transfer *t,
                               char *space, size_t size) {
  t->last_ms = ferry__now(loop);
  return t->piece.length ? FERRY_PIECE : ask(loop, t, space, size, true);
}

int64_t ferry__source_pull(ferry_loop *loop, ferry__transfer *t, char *space,
                           size_t size) {
  t->last_ms = ferry__now(loop);
  int64_t n = t->piece.length ? FERRY_PIECE
                              : ask(loop, t, space, size, false);
  return n == FERRY_PIECE ? read_piece(t, space, size) : n;
}

/* ---- What follows the body ----------------------------------------------- */

/* Lines of fields, of which none ends early. */
static bool are_fields(const char *at, const char *end) {
  while (at < end) {
    const char *name = at;
    while (at < end && ferry__tchar[(unsigned char)*at])
      at++;
    if (at == name || at == end || *at++ != ':')
      return false;
    while (at < end && ((unsigned char)*at >= ' ' || *at == '\t') &&
           *at != 0x7f)
      at++;
    if (end - at < 2 || *at++ != '\r' || *at++ != '\n')
      return false;
  }
  return true;
}

int64_t ferry__trailers_ask(ferry_loop *loop, ferry__transfer *t, char *space,
                            size_t size) {
  ferry_options *o = &loop->options;
  int64_t n = o->on_trailers
                  ? o->on_trailers(o->context, t->result.id, space, size)
                  : FERRY_ABORT;
  if (n >= 0 && (uint64_t)n <= size && are_fields(space, space + n))
    return n;
  t->fault = (ferry__fault){FERRY_E_UPLOAD_SOURCE, 0};
  return FERRY_ABORT;
}
