/* slot.c - the memory of connections, and the table in which late responses
 * find them. A warm server reuses both. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define FREE_LIMIT 4096

static void give_slot(lb_server *s, lb_conn *c) {
  if (!s->free_slot_count) {
    uint32_t count = s->slot_count ? s->slot_count * 2 : 64;
    lb_conn **slots = lb__alloc(count * sizeof(*slots));
    uint32_t *list = lb__alloc(count * sizeof(*list));
    if (s->slot_count)
      memcpy(slots, s->slots, s->slot_count * sizeof(*slots));
    for (uint32_t i = count; i > s->slot_count; i--)
      list[s->free_slot_count++] = i - 1;
    free(s->slots);
    free(s->free_slots);
    s->slots = slots;
    s->free_slots = list;
    s->slot_count = count;
  }
  c->slot = s->free_slots[--s->free_slot_count];
  s->slots[c->slot] = c;
}

/* Takes a used connection, cleared except for its buffers. */
static lb_conn *take_conn(lb_server *s) {
  lb_conn *c = s->free_conns;
  lb_conn old;
  if (!c) return lb__alloc(sizeof(*c));
  s->free_conns = c->next_free;
  s->free_conn_count--;
  old = *c;
  memset(c, 0, sizeof(*c));
  c->in = old.in;
  c->out = old.out;
  c->flight = old.flight;
  c->head = old.head;
  c->body = old.body;
  return c;
}

lb_conn *lb__conn_make(lb_server *s) {
  lb_conn *c = take_conn(s);
  c->server = s;
  c->tcp.data = c->timer.data = c->write.data = c;
  give_slot(s, c);
  return c;
}

/* Frees what belongs to one connection, except its buffers. */
static void release(lb_conn *c) {
  lb__source_end(c);
  lb__script_end(c);
  lb__tls_end(c);
  EVP_MD_CTX_free(c->hash);
  c->hash = NULL;
  lb__buf_clear(&c->in);
  lb__buf_clear(&c->out);
  lb__buf_clear(&c->flight);
  lb__buf_clear(&c->head);
  lb__buf_clear(&c->body);
}

void lb__conn_free(lb_conn *c) {
  lb__buf_free(&c->in);
  lb__buf_free(&c->out);
  lb__buf_free(&c->flight);
  lb__buf_free(&c->head);
  lb__buf_free(&c->body);
  free(c);
}

/* Called only in the close callback: libuv is done with the handles. */
void lb__conn_recycle(lb_conn *c) {
  lb_server *s = c->server;
  release(c);
  s->slots[c->slot] = NULL;
  s->free_slots[s->free_slot_count++] = c->slot;
  if (s->stopping || s->free_conn_count >= FREE_LIMIT) {
    lb__conn_free(c);
    return;
  }
  c->next_free = s->free_conns;
  s->free_conns = c;
  s->free_conn_count++;
}
