/* server.c - start, thread, stop, and the order in which everything is
 * freed. */
#include "internal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void on_wake(uv_async_t *wake) { lb__commands_run(wake->data); }

static void free_names(lb_name *name) {
  while (name) {
    lb_name *next = name->next;
    free(name);
    name = next;
  }
}

static void close_descriptors(lb_server *s) {
  if (s->bound >= 0) close(s->bound);
  s->bound = -1;
  for (size_t i = 0; i < sizeof(s->filler) / sizeof(*s->filler); i++) {
    if (s->filler[i] >= 0) close(s->filler[i]);
    s->filler[i] = -1;
  }
}

/* Frees what only the server's thread used. */
static void free_lists(lb_server *s) {
  while (s->free_conns) {
    lb_conn *c = s->free_conns;
    s->free_conns = c->next_free;
    lb__conn_free(c);
  }
  while (s->handlers) {
    lb_handler *handler = s->handlers;
    s->handlers = handler->next;
    free(handler->method);
    free(handler->path);
    free(handler);
  }
  while (s->scripts) {
    lb_script *script = s->scripts;
    s->scripts = script->next;
    lb__script_unref(script);
  }
  while (s->watches) {
    lb_watch *watch = s->watches;
    s->watches = watch->next;
    free(watch->name);
    free(watch);
  }
  free_names(s->signals);
  free_names(s->marks);
  s->signals = s->marks = NULL;
  free(s->slots);
  free(s->free_slots);
  s->slots = NULL;
  s->free_slots = NULL;
  SSL_CTX_free(s->tls);
  s->tls = NULL;
}

static void destroy(lb_server *s) {
  for (uint32_t i = 0; s->records && i < s->options.record_limit; i++) {
    lb__buf_free(&s->records[i].head);
    lb__buf_free(&s->records[i].body);
  }
  free(s->records);
  pthread_mutex_destroy(&s->lock);
  pthread_mutex_destroy(&s->record_lock);
  pthread_cond_destroy(&s->changed);
  free(s);
}

/* Closes every handle; the loop ends when the last one is closed. */
static void stop(lb_server *s) {
  if (s->stopping) return;
  s->stopping = true;
  pthread_mutex_lock(&s->lock);
  s->deaf = true;
  pthread_mutex_unlock(&s->lock);
  if (s->options.accept == LOOPBACK_ACCEPT_ALL)
    uv_close((uv_handle_t *)&s->listener, NULL);
  uv_close((uv_handle_t *)&s->wake, NULL);
  for (uint32_t i = 0; i < s->slot_count; i++)
    if (s->slots[i]) lb__conn_close(s->slots[i]);
  close_descriptors(s);
}

static void *run(void *argument) {
  lb_server *s = argument;
  bool orphan;
  pthread_setname_np(pthread_self(), "ferry-loopback");
  uv_run(&s->loop, UV_RUN_DEFAULT);
  lb__commands_run(s);
  uv_loop_close(&s->loop);
  free_lists(s);
  if (s->options.on_stopped) s->options.on_stopped(s->options.context);
  pthread_mutex_lock(&s->lock);
  s->finished = true;
  orphan = s->orphan;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
  if (orphan) destroy(s);
  return NULL;
}

/* The thread handles no signals: they belong to the program. */
static int start_thread(lb_server *s) {
  sigset_t all;
  sigset_t before;
  int result;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  result = -pthread_create(&s->thread, NULL, run, s);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return result;
}

static void close_handle(uv_handle_t *handle, void *argument) {
  (void)argument;
  uv_close(handle, NULL);
}

int loopback_start(const loopback_options *options, loopback_server **out) {
  lb_server *s = lb__alloc(sizeof(*s));
  int result;
  *out = NULL;
  s->options = *options;
  s->bound = -1;
  for (size_t i = 0; i < sizeof(s->filler) / sizeof(*s->filler); i++)
    s->filler[i] = -1;
  pthread_mutex_init(&s->lock, NULL);
  pthread_mutex_init(&s->record_lock, NULL);
  pthread_cond_init(&s->changed, NULL);
  if (options->record_limit)
    s->records = lb__alloc(options->record_limit * sizeof(*s->records));
  result = uv_loop_init(&s->loop);
  if (result) goto fail_loop;
  result = uv_async_init(&s->loop, &s->wake, on_wake);
  if (result) goto fail;
  s->wake.data = s;
  if (options->certificate) {
    s->tls = lb__tls_context(options);
    if (!s->tls) result = -EINVAL;
  }
  if (!result) result = lb__listen(s);
  /* The caller's strings are not used any more. */
  s->options.address = "";
  s->options.protocols = NULL;
  s->options.certificate = NULL;
  if (!result) result = start_thread(s);
  if (!result) {
    *out = s;
    return 0;
  }
fail:
  s->stopping = true;
  uv_walk(&s->loop, close_handle, NULL);
  uv_run(&s->loop, UV_RUN_DEFAULT);
  uv_loop_close(&s->loop);
fail_loop:
  close_descriptors(s);
  SSL_CTX_free(s->tls);
  destroy(s);
  return result;
}

uint16_t loopback_port(const loopback_server *server) { return server->port; }

static void run_stop(lb_server *s, lb_command *command) {
  (void)command;
  stop(s);
}

static bool is_own_thread(const lb_server *s) {
  return pthread_equal(pthread_self(), s->thread);
}

void loopback_stop(loopback_server *server) {
  lb_command *command = lb__alloc(sizeof(*command));
  command->run = run_stop;
  lb__post(server, command);
  if (is_own_thread(server)) return;
  pthread_mutex_lock(&server->lock);
  while (!server->finished)
    pthread_cond_wait(&server->changed, &server->lock);
  pthread_mutex_unlock(&server->lock);
}

void loopback_free(loopback_server *server) {
  loopback_stop(server);
  if (is_own_thread(server)) {
    /* A join here would wait for itself, so the thread frees the server when it
     * ends. */
    pthread_detach(server->thread);
    pthread_mutex_lock(&server->lock);
    server->orphan = true;
    pthread_mutex_unlock(&server->lock);
    return;
  }
  pthread_join(server->thread, NULL);
  destroy(server);
}
