/* alarm.c - one time at which the loop calls back, in nanoseconds.
 *
 * libuv's timers count in milliseconds, which is too coarse for a load that
 * sends 20,000 requests a second at even distances. This is a timerfd in the
 * same set as the sockets. It is set only when the loop is about to wait: a
 * loop that is busy looks at the clock in each of its rounds anyway, and
 * needs no system call for that. */
#include "core.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

static void open_timer(ferry_loop *loop) {
  ferry__alarm *alarm = &loop->alarm;
  /* NULL, like the wake: the turn that follows looks at the clock. */
  struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};
  alarm->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  if (alarm->fd >= 0 &&
      !epoll_ctl(loop->sockets.epoll, EPOLL_CTL_ADD, alarm->fd, &event))
    return;
  if (alarm->fd >= 0)
    close(alarm->fd);
  alarm->fd = -2;
}

void ferry_set_alarm(ferry_loop *loop, uint64_t at_ns) {
  if (loop->alarm.fd == -1)
    open_timer(loop);
  loop->alarm.at = at_ns;
}

void ferry__alarm_look(ferry_loop *loop) {
  if (!loop->alarm.at || loop->now_ns < loop->alarm.at)
    return;
  loop->alarm.at = 0;
  if (loop->options.on_alarm)
    loop->options.on_alarm(loop->options.context);
}

/* Edge-triggered, so it need not be read: setting it clears what is left of
 * the time before. One that was cancelled may still ring, and wakes the loop
 * for nothing. */
void ferry__alarm_arm(ferry_loop *loop) {
  ferry__alarm *alarm = &loop->alarm;
  if (!alarm->at || alarm->at == alarm->armed || loop->closing)
    return;
  struct itimerspec time = {
      .it_value = {.tv_sec = (time_t)(alarm->at / 1000000000),
                   .tv_nsec = (long)(alarm->at % 1000000000)}};
  if (alarm->fd >= 0 &&
      !timerfd_settime(alarm->fd, TFD_TIMER_ABSTIME, &time, NULL)) {
    alarm->armed = alarm->at;
    return;
  }
  /* No descriptor is left for it: by the millisecond then. */
  uint64_t now = uv_hrtime();
  ferry__arm(loop, ferry__now(loop) +
                       (alarm->at > now ? (alarm->at - now) / 1000000 : 0));
}
