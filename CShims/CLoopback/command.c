/* command.c - commands from other threads to the server: a list behind a lock,
 * and a wake. Handlers and their responses are here. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void free_command(lb_command *command) {
  free(command->text);
  free(command->text2);
  free(command->bytes);
  lb__script_unref(command->script);
  free(command);
}

/* [any thread] Takes ownership of the command. Ignored after the stop. */
void lb__post(lb_server *s, lb_command *command) {
  bool first;
  pthread_mutex_lock(&s->lock);
  if (s->deaf) {
    pthread_mutex_unlock(&s->lock);
    free_command(command);
    return;
  }
  first = !s->first_command;
  if (first) s->first_command = command;
  else s->last_command->next = command;
  s->last_command = command;
  atomic_store(&s->pending, true);
  /* Under the lock: the handle is closed only after `deaf` was set. */
  if (first) uv_async_send(&s->wake);
  pthread_mutex_unlock(&s->lock);
}

void lb__commands_run(lb_server *s) {
  lb_command *command;
  pthread_mutex_lock(&s->lock);
  command = s->first_command;
  atomic_store(&s->pending, false);
  s->first_command = s->last_command = NULL;
  pthread_mutex_unlock(&s->lock);
  while (command) {
    lb_command *next = command->next;
    if (!s->stopping) command->run(s, command);
    free_command(command);
    command = next;
  }
}

/* ---- Handlers ------------------------------------------------------------ */

static void run_handle(lb_server *s, lb_command *command) {
  lb_handler *handler = lb__alloc(sizeof(*handler));
  size_t length = command->length;
  handler->number = command->id;
  handler->method = command->text;
  handler->path = command->text2;
  handler->prefix = length && handler->path[length - 1] == '*';
  handler->path_length = length - (handler->prefix ? 1 : 0);
  handler->next = s->handlers;
  s->handlers = handler;
  command->text = command->text2 = NULL;
}

void loopback_handle(loopback_server *server, uint64_t handler,
                     const char *method, const char *path) {
  lb_command *command = lb__alloc(sizeof(*command));
  command->run = run_handle;
  command->id = handler;
  command->text = method ? lb__copy(method, strlen(method)) : NULL;
  command->text2 = lb__copy(path, strlen(path));
  command->length = strlen(path);
  lb__post(server, command);
}

/* Whether the handler's own fields frame the body. */
static bool frames_itself(const char *fields) {
  while (*fields) {
    size_t line = strcspn(fields, "\n");
    if (!strncasecmp(fields, "content-length:", 15) ||
        !strncasecmp(fields, "transfer-encoding:", 18))
      return true;
    fields += line + (fields[line] == '\n');
  }
  return false;
}

static bool closes(const char *fields) {
  const char *found = strcasestr(fields, "connection: close");
  return found && (found == fields || found[-1] == '\n');
}

static void reply(lb_conn *c, lb_command *command) {
  int status = command->kind;
  bool bodiless = status < 200 || status == 204 || status == 304;
  if (closes(command->text2)) c->close_after = true;
  lb__reply_begin(c, status, command->text);
  lb__buf_text(&c->out, command->text2);
  if (bodiless || frames_itself(command->text2)) {
    if (c->close_after && !closes(command->text2))
      lb__buf_text(&c->out, "Connection: close\r\n");
    lb__buf_text(&c->out, "\r\n");
  } else if (closes(command->text2)) {
    lb__buf_format(&c->out, "Content-Length: %zu\r\n\r\n", command->length);
  } else {
    lb__reply_length(c, command->length);
  }
  if (bodiless || c->head_only) {
    lb__reply_end(c);
    return;
  }
  if (command->length < LB_BLOCK / 4) {
    lb__buf_add(&c->out, command->bytes, command->length);
  } else {
    c->source.kind = LB_SOURCE_BLOB;
    c->source.bytes = c->source.owned = command->bytes;
    c->source.length = command->length;
    c->source.left = command->length;
    command->bytes = NULL;
  }
  lb__reply_end(c);
}

static void run_answer(lb_server *s, lb_command *command) {
  uint32_t slot = (uint32_t)command->id;
  lb_conn *c = slot < s->slot_count ? s->slots[slot] : NULL;
  /* The request may have ended, and its slot been reused. */
  if (!c || c->closing || c->generation != command->id >> 32 || !c->waiting)
    return;
  reply(c, command);
  lb__conn_run(c);
}

void loopback_answer(loopback_server *server, uint64_t id, int status,
                     const char *reason, const char *head, size_t head_length,
                     const void *body, size_t body_length) {
  lb_command *command = lb__alloc(sizeof(*command));
  command->run = run_answer;
  command->id = id;
  command->kind = status;
  command->text = reason ? lb__copy(reason, strlen(reason)) : NULL;
  command->text2 = lb__copy(head, head_length);
  command->bytes = lb__copy(body, body_length);
  command->length = body_length;
  lb__post(server, command);
}
