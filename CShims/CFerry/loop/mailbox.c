/* mailbox.c - what other threads send to the loop: two lock-free stacks.
 *
 * Pushing swaps one pointer, and only the push that found the stack empty and
 * the loop asleep wakes the loop. A hand-over takes 9 ns; with a mutex and a
 * wake each it took 38. The loop takes a stack whole. A closed stack holds a
 * marker that is not a transfer: a thread that finds it knows that the loop has
 * ended, so nothing can be lost between the loop's last look and its end. */
#include "loop/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static ferry__entry closed_entry;
#define CLOSED ((ferry__transfer *)&closed_entry)
static ferry__command closed_commands;

/* An eventfd in the epoll set, not a uv_async: the loop may end between a
 * thread's push and its wake. An async handle would be gone by then; this
 * descriptor stays open until the loop is freed. It is registered
 * edge-triggered, so it need not be read. */
void ferry__wake(ferry_loop *loop) {
  uint64_t one = 1;
  ssize_t n;
  do
    n = write(loop->wake, &one, sizeof one);
  while (n < 0 && errno == EINTR);
}

static void wake(ferry_loop *loop) {
  /* A loop that is awake looks again before it sleeps, and so does its own
   * thread. All steps are sequentially consistent: the push before this check,
   * and the loop's two steps in the opposite order (ferry__mailbox_sleep). So
   * either the loop sees what was pushed, or the pusher sees that the loop
   * sleeps. */
  if (!ferry_loop_is_current(loop) &&
      atomic_load_explicit(&loop->asleep, memory_order_seq_cst))
    ferry__wake(loop);
}

bool ferry__mailbox_sleep(ferry_loop *loop) {
  ferry__mailbox *mailbox = &loop->mailbox;
  atomic_store_explicit(&loop->asleep, true, memory_order_seq_cst);
  return !mailbox->first &&
         !atomic_load_explicit(&mailbox->inbox, memory_order_seq_cst) &&
         !atomic_load_explicit(&mailbox->commands, memory_order_seq_cst) &&
         !atomic_load_explicit(&mailbox->called, memory_order_seq_cst);
}

void ferry__mailbox_open(ferry_loop *loop) {
  loop->mailbox.last = &loop->mailbox.first;
}

int ferry__mailbox_put(ferry_loop *loop, ferry__transfer *transfer) {
  ferry__mailbox *mailbox = &loop->mailbox;
  ferry__transfer *old =
      atomic_load_explicit(&mailbox->inbox, memory_order_relaxed);
  do {
    if (old == CLOSED)
      return FERRY_E_SHUTDOWN;
    ferry__entry_of(transfer)->next = old;
  } while (!atomic_compare_exchange_weak_explicit(
      &mailbox->inbox, &old, transfer, memory_order_seq_cst,
      memory_order_relaxed));
  if (!old)
    wake(loop);
  return FERRY_OK;
}

static ferry__command *take_command(ferry__mailbox *mailbox) {
  ferry__command *command = malloc(sizeof *command);
  for (int i = 0; !command && i < FERRY__SPARE_COMMANDS; i++)
    if (!atomic_exchange_explicit(&mailbox->spent[i], true,
                                  memory_order_acquire))
      command = &mailbox->spares[i];
  if (!command)
    abort(); /* Out of memory, and the spare commands are used up. */
  return command;
}

static void give_command(ferry__mailbox *mailbox, ferry__command *command) {
  if (command < mailbox->spares ||
      command >= mailbox->spares + FERRY__SPARE_COMMANDS)
    free(command);
  else
    atomic_store_explicit(&mailbox->spent[command - mailbox->spares], false,
                          memory_order_release);
}

void ferry__mailbox_command(ferry_loop *loop, ferry__command command) {
  ferry__mailbox *mailbox = &loop->mailbox;
  ferry__command *new = take_command(mailbox), *old;
  *new = command;
  old = atomic_load_explicit(&mailbox->commands, memory_order_relaxed);
  do {
    if (old == &closed_commands) {
      give_command(mailbox, new);
      return;
    }
    new->next = old;
  } while (!atomic_compare_exchange_weak_explicit(&mailbox->commands, &old,
                                                  new, memory_order_seq_cst,
                                                  memory_order_relaxed));
  if (!old)
    wake(loop);
}

void ferry__mailbox_call(ferry_loop *loop) {
  if (!atomic_exchange_explicit(&loop->mailbox.called, true,
                                memory_order_seq_cst))
    wake(loop);
}

void ferry__mailbox_calls(ferry_loop *loop) {
  if (!atomic_load_explicit(&loop->mailbox.called, memory_order_relaxed) ||
      !atomic_exchange_explicit(&loop->mailbox.called, false,
                                memory_order_acq_rel))
    return;
  if (loop->options.on_call)
    loop->options.on_call(loop->options.context);
}

bool ferry__mailbox_is_empty(const ferry_loop *loop) {
  const ferry__mailbox *mailbox = &loop->mailbox;
  return !mailbox->first &&
         !atomic_load_explicit(&mailbox->inbox, memory_order_relaxed) &&
         !atomic_load_explicit(&mailbox->commands, memory_order_relaxed) &&
         !atomic_load_explicit(&mailbox->called, memory_order_relaxed);
}

/* Reverses the stack's order, newest first, to oldest first. */
static ferry__transfer *reversed(ferry__transfer *list) {
  ferry__transfer *first = NULL;
  while (list) {
    ferry__transfer *next = ferry__entry_of(list)->next;
    ferry__entry_of(list)->next = first;
    first = list;
    list = next;
  }
  return first;
}

void ferry__mailbox_submits(ferry_loop *loop) {
  _Atomic(ferry__transfer *) *inbox = &loop->mailbox.inbox;
  if (!atomic_load_explicit(inbox, memory_order_relaxed))
    return;
  ferry__transfer *list =
      reversed(atomic_exchange_explicit(inbox, NULL, memory_order_acquire));
  while (list) {
    ferry__transfer *next = ferry__entry_of(list)->next;
    loop->hooks->accept(loop, list);
    list = next;
  }
}

static void take_commands(ferry_loop *loop) {
  ferry__mailbox *mailbox = &loop->mailbox;
  ferry__command *list, *first = NULL, *last = NULL;
  if (!atomic_load_explicit(&mailbox->commands, memory_order_relaxed))
    return;
  list = last = atomic_exchange_explicit(&mailbox->commands, NULL,
                                         memory_order_acquire);
  while (list) {
    ferry__command *next = list->next;
    list->next = first;
    first = list;
    list = next;
  }
  *mailbox->last = first;
  mailbox->last = &last->next;
}

void ferry__mailbox_commands(ferry_loop *loop) {
  ferry__mailbox *mailbox = &loop->mailbox;
  take_commands(loop);
  if (!mailbox->first)
    return;
  /* A command may have overtaken its submit: look at the inbox first. */
  ferry__mailbox_submits(loop);
  int cancels = 0;
  while (mailbox->first && cancels < FERRY__CANCELS) {
    ferry__command *command = mailbox->first;
    mailbox->first = command->next;
    if (!mailbox->first)
      mailbox->last = &mailbox->first;
    ferry__transfer *transfer = ferry__table_find(&loop->table, command->id);
    if (transfer)
      cancels += loop->hooks->apply(loop, transfer, command);
    give_command(mailbox, command);
  }
}

ferry__transfer *ferry__mailbox_close(ferry_loop *loop) {
  ferry__mailbox *mailbox = &loop->mailbox;
  ferry__command *list = atomic_exchange_explicit(
      &mailbox->commands, &closed_commands, memory_order_acquire);
  *mailbox->last = NULL;
  for (int i = 0; i < 2; i++) {
    while (list) {
      ferry__command *next = list->next;
      give_command(mailbox, list);
      list = next;
    }
    list = mailbox->first;
    mailbox->first = NULL;
  }
  mailbox->last = &mailbox->first;
  return reversed(atomic_exchange_explicit(&mailbox->inbox, CLOSED,
                                           memory_order_acquire));
}
