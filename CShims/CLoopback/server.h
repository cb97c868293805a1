/* server.h - the server: its thread, commands and records (server.c, command.c,
 * listener.c, record.c). */
#ifndef LOOPBACK_SERVER_H
#define LOOPBACK_SERVER_H

#include "base.h"
#include "connection.h"

typedef struct lb_handler {
  struct lb_handler *next;
  uint64_t number;
  char *method;
  char *path;
  size_t path_length;
  bool prefix;
} lb_handler;

typedef struct lb_name {
  struct lb_name *next;
  uint64_t count;
  char name[];
} lb_name;

typedef struct lb_watch {
  struct lb_watch *next;
  uint64_t id;
  int kind;
  uint64_t value;
  char *name;
} lb_watch;

typedef struct lb_record {
  lb_buf head;
  lb_buf body;
  uint64_t index;
  uint64_t connection;
  uint64_t body_total;
} lb_record;

typedef struct lb_command {
  struct lb_command *next;
  void (*run)(lb_server *s, struct lb_command *command);
  uint64_t id;
  uint64_t value;
  int kind;
  char *text;  /* owned */
  char *text2; /* owned */
  char *bytes; /* owned */
  size_t length;
  lb_script *script; /* owned */
} lb_command;

struct loopback_server {
  uv_loop_t loop;
  uv_async_t wake;
  uv_tcp_t listener;
  pthread_t thread;
  uint16_t port;
  int bound;     /* LOOPBACK_ACCEPT_NONE, LOOPBACK_REFUSE: the socket */
  int filler[4]; /* connections that fill its backlog */
  loopback_options options;
  SSL_CTX *tls;

  /* [any thread] Commands wait. Checked before bytes and connections are
   * handled: an event after a command was posted must find the command done,
   * and the order in which epoll reports descriptors does not ensure that. */
  _Atomic bool pending;

  pthread_mutex_t lock; /* [any thread] guards the next fields */
  pthread_cond_t changed;
  lb_command *first_command;
  lb_command *last_command;
  bool deaf;     /* accepts no more commands */
  bool finished; /* the thread has ended, or is about to */
  bool orphan;   /* to be freed on its own thread */

  pthread_mutex_t record_lock; /* [any thread] guards the records */
  lb_record *records;
  uint64_t record_count;

  /* Written by the server's thread only, read by all. */
  _Atomic uint64_t connections;
  _Atomic uint64_t open;
  _Atomic uint64_t requests;
  _Atomic uint64_t bytes;
  _Atomic uint64_t handshakes;

  bool stopping;
  lb_conn **slots;
  uint32_t slot_count;
  uint32_t *free_slots;
  uint32_t free_slot_count;
  lb_conn *free_conns;
  unsigned free_conn_count;
  lb_handler *handlers;
  lb_script *scripts;
  lb_name *signals;
  lb_name *marks;
  lb_watch *watches;
  uint32_t generation; /* counts the requests handed to handlers */
  lb_head parsed; /* scratch head of the request being parsed */
  char date[48];
  uint64_t date_until;
  char read_space[LB_READ_SIZE];
};

void lb__count(_Atomic uint64_t *counter, uint64_t more);
void lb__watches_look(lb_server *s);
void lb__mark(lb_server *s, const char *name);
uint64_t lb__record_add(lb_conn *c, const lb_head *head);
void lb__record_body(lb_conn *c, lb_slice piece);
void lb__post(lb_server *s, lb_command *command);
void lb__commands_run(lb_server *s);
int lb__listen(lb_server *s);

#endif
