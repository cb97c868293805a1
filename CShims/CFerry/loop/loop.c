/* loop.c - the thread, its turns, and its end.
 *
 * One turn handles what came from other threads, then the transfers that may
 * start, then the shards with due work, then reports one list of results. A
 * turn has at most four such rounds before the sockets are polled. Working
 * until nothing is left would starve the sockets when a server responds at once
 * (a p99 of 266 ms beside a p50 of 1 ms). */
#include "loop/loop.h"

#include <signal.h>

_Thread_local ferry_loop *ferry__current;

int ferry_loop_is_current(const ferry_loop *loop) {
  return ferry__current == loop;
}

void *ferry_current_context(void) {
  return ferry__current ? ferry__current->options.context : NULL;
}

/* ---- Turns --------------------------------------------------------------- */

/* A callback or a job that takes long holds the loop: sockets are not read and
 * requests not sent. No limit of a transfer may expire for that reason alone.
 * The times noted here are taken into account by the limits (timeout.c). */
static void look_at_clock(ferry_loop *loop) {
  uv_update_time(&loop->uv);
  uint64_t now = ferry__now(loop);
  if (now < loop->polled + FERRY__HELD_MS)
    return;
  loop->held_from = loop->polled;
  loop->held_until = now;
}

static bool round_of_work(ferry_loop *loop) {
  look_at_clock(loop);
  loop->now_ns = uv_hrtime();
  ferry__alarm_look(loop);
  ferry__mailbox_submits(loop);
  ferry__mailbox_commands(loop);
  bool more = loop->hooks->work(loop);
  ferry__mailbox_calls(loop);
  return more || !ferry__mailbox_is_empty(loop);
}

/* The idle handle makes uv poll without blocking. uv decides that after it has
 * run the idle handles, so the turn that finds no more work stops it. */
static void on_idle(uv_idle_t *idle) { (void)idle; }

static void turn(ferry_loop *loop) {
  bool more = true;
  if (loop->closing)
    return;
  uint64_t began = uv_hrtime();
  for (int round = 0; more && round < FERRY__ROUNDS; round++)
    more = round_of_work(loop);
  if (loop->hooks->has_results(loop))
    more = true;
  if (more) /* keeps poll from blocking: poll the sockets, then continue */
    uv_idle_start(&loop->idle, on_idle);
  else
    uv_idle_stop(&loop->idle);
  ferry__counters *counters = &loop->counters;
  ferry__count(&counters->turns, 1);
  loop->hooks->gauge(loop);
  look_at_clock(loop);
  uint64_t us = (uv_hrtime() - began) / 1000;
  if (us > atomic_load_explicit(&counters->longest_turn_us,
                                memory_order_relaxed))
    atomic_store_explicit(&counters->longest_turn_us, us,
                          memory_order_relaxed);
  if (atomic_load_explicit(&loop->stopping, memory_order_acquire))
    loop->hooks->stop(loop);
}

static void on_check(uv_check_t *check) {
  ferry_loop *loop = check->data;
  atomic_store_explicit(&loop->asleep, false, memory_order_relaxed);
  loop->polled = ferry__now(loop); /* uv updates its time when its poll ends */
  turn(loop);
}

static void on_prepare(uv_prepare_t *prepare) {
  ferry_loop *loop = prepare->data;
  loop->waits++;
  /* Timers may have touched transfers, and this thread may have submitted
   * some. */
  if (loop->hooks->has_results(loop) || !ferry__mailbox_is_empty(loop) ||
      loop->hooks->has_work(loop))
    turn(loop);
  if (loop->closing)
    return;
  ferry__alarm_arm(loop);
  if (!ferry__mailbox_sleep(loop))
    uv_idle_start(&loop->idle, on_idle); /* the turn after the poll stops it */
}

/* ---- The one timer ------------------------------------------------------- */

static void on_timer(uv_timer_t *timer) {
  ferry_loop *loop = timer->data;
  loop->timer_at = 0;
  ferry__wheel_turn(loop);
  uint64_t next = ferry__wheel_next(loop);
  uint64_t other = loop->hooks->look(loop, ferry__now(loop));
  if (other && (!next || other < next))
    next = other;
  if (next)
    ferry__arm(loop, next);
}

/* The timer is never moved later, because an early check costs less than moving
 * it at every request. It is never armed with 0, as libuv 1.44 can spin on such
 * a timer. */
void ferry__arm(ferry_loop *loop, uint64_t at) {
  if (loop->closing || (loop->timer_at && loop->timer_at <= at))
    return;
  uint64_t now = ferry__now(loop);
  loop->timer_at = at > now ? at : now + 1;
  uv_timer_start(&loop->timer, on_timer, loop->timer_at - now, 0);
}

/* ---- The start and the end ----------------------------------------------- */

int ferry__loop_open(ferry_loop *loop) {
  uv_loop_t *uv = &loop->uv;
  int code;
  if ((code = uv_timer_init(uv, &loop->timer)) ||
      (code = uv_idle_init(uv, &loop->idle)) ||
      (code = uv_check_init(uv, &loop->check)) ||
      (code = uv_prepare_init(uv, &loop->prepare)) ||
      (code = ferry__jobs_open(loop)))
    return code;
  loop->timer.data = loop->check.data = loop->prepare.data = loop;
  if ((code = uv_check_start(&loop->check, on_check)) ||
      (code = uv_prepare_start(&loop->prepare, on_prepare)))
    return code;
  return ferry__sockets_open(loop);
}

static void close_handle(uv_handle_t *handle, void *unused) {
  (void)unused;
  if (!uv_is_closing(handle))
    uv_close(handle, NULL);
}

void ferry__loop_close(ferry_loop *loop) {
  uv_walk(&loop->uv, close_handle, NULL);
  uv_run(&loop->uv, UV_RUN_DEFAULT);
  uv_loop_close(&loop->uv);
}

void ferry__loop_close_handles(ferry_loop *loop) {
  uv_close((uv_handle_t *)&loop->sockets.poll, NULL);
  uv_close((uv_handle_t *)&loop->check, NULL);
  uv_close((uv_handle_t *)&loop->prepare, NULL);
  uv_close((uv_handle_t *)&loop->idle, NULL);
}

static void *run(void *data) {
  ferry_loop *loop = data;
  ferry__current = loop;
  pthread_setname_np(pthread_self(), "ferry-loop");
  uv_update_time(&loop->uv);
  loop->polled = ferry__now(loop);
  uv_run(&loop->uv, UV_RUN_DEFAULT);
  uv_loop_close(&loop->uv);
  if (loop->options.on_stopped)
    loop->options.on_stopped(loop->options.context);
  ferry__current = NULL;
  if (loop->freed_by_itself)
    loop->hooks->free(loop);
  return NULL;
}

int ferry__loop_run(ferry_loop *loop) {
  sigset_t all, old;
  /* This thread handles no signal, not even SIGPIPE: writing reports EPIPE. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int code = pthread_create(&loop->thread, NULL, run, loop);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return code;
}
