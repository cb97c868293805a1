/* record.c - what tests read: counters, watches, marks, kept requests. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* There is only one writer, so no locked instruction is needed. */
void lb__count(_Atomic uint64_t *counter, uint64_t more) {
  atomic_store_explicit(
      counter, atomic_load_explicit(counter, memory_order_relaxed) + more,
      memory_order_relaxed);
}

static uint64_t read_counter(const _Atomic uint64_t *counter) {
  return atomic_load_explicit(counter, memory_order_relaxed);
}

void loopback_count(const loopback_server *server, loopback_counters *out) {
  out->connections = read_counter(&server->connections);
  out->open = read_counter(&server->open);
  out->requests = read_counter(&server->requests);
  out->bytes = read_counter(&server->bytes);
  out->handshakes = read_counter(&server->handshakes);
}

/* ---- Watches ------------------------------------------------------------- */

static uint64_t mark_count(const lb_server *s, const char *name) {
  for (const lb_name *n = s->marks; n; n = n->next)
    if (!strcmp(n->name, name)) return n->count;
  return 0;
}

static bool is_reached(const lb_server *s, const lb_watch *watch) {
  switch (watch->kind) {
    case LOOPBACK_WATCH_CONNECTIONS:
      return read_counter(&s->connections) >= watch->value;
    case LOOPBACK_WATCH_OPEN:
      return read_counter(&s->open) <= watch->value;
    case LOOPBACK_WATCH_REQUESTS:
      return read_counter(&s->requests) >= watch->value;
    case LOOPBACK_WATCH_BYTES:
      return read_counter(&s->bytes) >= watch->value;
    case LOOPBACK_WATCH_HANDSHAKES:
      return read_counter(&s->handshakes) >= watch->value;
    case LOOPBACK_WATCH_MARK:
      return mark_count(s, watch->name) >= watch->value;
    default:
      return true;
  }
}

void lb__watches_look(lb_server *s) {
  lb_watch **link = &s->watches;
  while (*link) {
    lb_watch *watch = *link;
    if (!is_reached(s, watch)) {
      link = &watch->next;
      continue;
    }
    *link = watch->next;
    s->options.on_reached(s->options.context, watch->id);
    free(watch->name);
    free(watch);
  }
}

void lb__mark(lb_server *s, const char *name) {
  lb_name *mark = s->marks;
  while (mark && strcmp(mark->name, name)) mark = mark->next;
  if (!mark) {
    size_t length = strlen(name);
    mark = lb__alloc(sizeof(*mark) + length + 1);
    memcpy(mark->name, name, length + 1);
    mark->next = s->marks;
    s->marks = mark;
  }
  mark->count++;
  if (s->watches) lb__watches_look(s);
}

static void run_watch(lb_server *s, lb_command *command) {
  lb_watch *watch = lb__alloc(sizeof(*watch));
  watch->id = command->id;
  watch->kind = command->kind;
  watch->value = command->value;
  watch->name = command->text;
  command->text = NULL;
  watch->next = s->watches;
  s->watches = watch;
  lb__watches_look(s);
}

void loopback_watch(loopback_server *server, uint64_t watch, int kind,
                    uint64_t value, const char *name) {
  lb_command *command = lb__alloc(sizeof(*command));
  command->run = run_watch;
  command->id = watch;
  command->kind = kind;
  command->value = value;
  command->text = lb__copy(name ? name : "", name ? strlen(name) : 0);
  lb__post(server, command);
}

/* ---- Records: a ring whose buffers are reused ---------------------------- */

uint64_t lb__record_add(lb_conn *c, const lb_head *head) {
  lb_server *s = c->server;
  uint64_t index = s->record_count;
  if (s->options.record_limit) {
    lb_record *record = &s->records[index % s->options.record_limit];
    pthread_mutex_lock(&s->record_lock);
    s->record_count++;
    record->index = index + 1;
    record->connection = c->number;
    record->body_total = 0;
    lb__buf_clear(&record->body);
    lb__buf_clear(&record->head);
    lb__buf_add(&record->head, head->raw.base, head->raw.length);
    pthread_mutex_unlock(&s->record_lock);
  }
  lb__count(&s->requests, 1);
  if (s->watches) lb__watches_look(s);
  return s->options.record_limit ? index + 1 : 0;
}

void lb__record_body(lb_conn *c, lb_slice piece) {
  lb_server *s = c->server;
  lb_record *record;
  size_t room;
  if (!c->record) return;
  record = &s->records[(c->record - 1) % s->options.record_limit];
  pthread_mutex_lock(&s->record_lock);
  /* The ring may have wrapped around. */
  if (record->index == c->record) {
    record->body_total += piece.length;
    room = s->options.record_body_limit - lb__buf_size(&record->body);
    lb__buf_add(&record->body, piece.base,
                piece.length < room ? piece.length : room);
  }
  pthread_mutex_unlock(&s->record_lock);
}

void loopback_requests(loopback_server *server, void *context,
                       void (*visit)(void *context,
                                     const loopback_request *request)) {
  uint64_t limit = server->options.record_limit;
  if (!limit) return;
  pthread_mutex_lock(&server->record_lock);
  for (uint64_t i = server->record_count > limit
                        ? server->record_count - limit : 0;
       i < server->record_count; i++) {
    const lb_record *record = &server->records[i % limit];
    loopback_request request = {
        .connection = record->connection,
        .head = lb__buf_data(&record->head),
        .head_length = lb__buf_size(&record->head),
        .body = record->body.base ? lb__buf_data(&record->body) : NULL,
        .body_length = lb__buf_size(&record->body),
        .body_total = record->body_total,
    };
    visit(context, &request);
  }
  pthread_mutex_unlock(&server->record_lock);
}
