/* script.c - scripts: stored, chosen, started, ended. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* A short text that is sent many times is repeated within one block, so that
 * 200,000 repetitions need only some hundred writes. */
static void copy_step(lb_step *to, const loopback_step *from) {
  uint64_t rounds = 1;
  to->kind = from->kind;
  to->milliseconds = from->milliseconds;
  to->total = from->count;
  to->length = from->length;
  if (from->kind != LOOPBACK_SEND) {
    to->bytes = lb__copy(from->bytes, from->length);
    return;
  }
  if (from->length && from->count > UINT64_MAX / from->length)
    to->total = UINT64_MAX - UINT64_MAX % from->length;
  else
    to->total = from->count * from->length;
  if (from->length && from->length < LB_BLOCK)
    rounds = LB_BLOCK / from->length;
  if (rounds > from->count) rounds = from->count ? from->count : 1;
  to->length = from->length * (size_t)rounds;
  to->bytes = lb__alloc(to->length + 1);
  for (uint64_t i = 0; i < rounds && from->length; i++)
    memcpy(to->bytes + i * from->length, from->bytes, from->length);
}

static void run_add(lb_server *s, lb_command *command) {
  lb_script **end = &s->scripts;
  while (*end) end = &(*end)->next;
  *end = command->script;
  command->script = NULL;
}

void loopback_script(loopback_server *server, const loopback_step *steps,
                     size_t count, const char *path, uint64_t first,
                     uint64_t last, uint64_t uses) {
  lb_script *script =
      lb__alloc(sizeof(*script) + count * sizeof(script->steps[0]));
  lb_command *command = lb__alloc(sizeof(*command));
  script->references = 1;
  script->path = path ? lb__copy(path, strlen(path)) : NULL;
  script->first = first;
  script->last = last;
  script->uses = uses ? uses : UINT64_MAX;
  script->count = count;
  for (size_t i = 0; i < count; i++) copy_step(&script->steps[i], &steps[i]);
  command->run = run_add;
  command->script = script;
  lb__post(server, command);
}

void lb__script_unref(lb_script *script) {
  if (!script || --script->references) return;
  for (size_t i = 0; i < script->count; i++) free(script->steps[i].bytes);
  free(script->path);
  free(script);
}

static lb_script *use(lb_script *script) {
  if (script->uses != UINT64_MAX) script->uses--;
  return script;
}

lb_script *lb__script_for_connection(lb_server *s, uint64_t number) {
  for (lb_script *script = s->scripts; script; script = script->next)
    if (!script->path && script->uses && number >= script->first &&
        number <= script->last)
      return use(script);
  return NULL;
}

lb_script *lb__script_for_path(lb_server *s, lb_slice path) {
  for (lb_script *script = s->scripts; script; script = script->next)
    if (script->path && script->uses && lb__starts(path, script->path))
      return use(script);
  return NULL;
}

/* Whether the connection starts without TLS on a server that has it. */
bool lb__script_plain(const lb_script *script) {
  int first = script->count ? script->steps[0].kind : 0;
  if (first == LOOPBACK_PLAIN || first == LOOPBACK_STALL_HANDSHAKE ||
      first == LOOPBACK_CLOSE_HANDSHAKE)
    return true;
  for (size_t i = 0; i < script->count; i++)
    if (script->steps[i].kind == LOOPBACK_START_TLS) return true;
  return false;
}

void lb__script_begin(lb_conn *c, lb_script *script) {
  script->references++;
  c->script = script;
  c->step = 0;
  c->step_begun = c->step_moved = c->wants_drain = false;
}

void lb__script_end(lb_conn *c) {
  lb__script_unref(c->script);
  c->script = NULL;
}

/* ---- Signals: once set, they stay set ------------------------------------ */

bool lb__is_signalled(const lb_server *s, const char *name) {
  for (const lb_name *n = s->signals; n; n = n->next)
    if (!strcmp(n->name, name)) return true;
  return false;
}

static void say(lb_server *s, const char *name) {
  size_t length = strlen(name);
  lb_name *made;
  if (lb__is_signalled(s, name)) return;
  made = lb__alloc(sizeof(*made) + length + 1);
  memcpy(made->name, name, length + 1);
  made->next = s->signals;
  s->signals = made;
  for (uint32_t i = 0; i < s->slot_count; i++)
    if (s->slots[i] && s->slots[i]->script) lb__conn_run(s->slots[i]);
}

static void run_signal(lb_server *s, lb_command *command) {
  say(s, command->text);
}

void loopback_signal(loopback_server *server, const char *name) {
  lb_command *command = lb__alloc(sizeof(*command));
  command->run = run_signal;
  command->text = lb__copy(name, strlen(name));
  lb__post(server, command);
}
