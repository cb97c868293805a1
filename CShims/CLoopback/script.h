/* script.h - scripted responses (script.c, script_steps.c). */
#ifndef LOOPBACK_SCRIPT_H
#define LOOPBACK_SCRIPT_H

#include "base.h"
#include "head.h"

typedef struct lb_step {
  int kind;
  char *bytes; /* SEND: repeated up to about LB_BLOCK */
  size_t length;
  uint64_t total; /* SEND: bytes in all; others: count */
  uint32_t milliseconds;
} lb_step;

typedef struct lb_script {
  struct lb_script *next;
  unsigned references;
  char *path;
  uint64_t first;
  uint64_t last;
  uint64_t uses; /* uses left; UINT64_MAX = no limit */
  size_t count;
  lb_step steps[];
} lb_script;

void lb__script_begin(lb_conn *c, lb_script *script);
void lb__script_end(lb_conn *c);
void lb__script_advance(lb_conn *c);
void lb__script_unref(lb_script *script);
lb_script *lb__script_for_connection(lb_server *s, uint64_t number);
lb_script *lb__script_for_path(lb_server *s, lb_slice path);
bool lb__script_plain(const lb_script *script);
bool lb__is_signalled(const lb_server *s, const char *name);

#endif
