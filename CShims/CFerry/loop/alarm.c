/* alarm.c - one time, in nanoseconds, at which the loop calls back.
 *
 * libuv's timers count in milliseconds. That is too coarse for a load of 20,000
 * evenly spaced requests per second. The alarm is a timerfd in the same epoll
 * set as the sockets. It is set only when the loop is about to wait: a busy
 * loop looks at the clock in each of its rounds anyway, and needs no system
 * call for it. */
#include "loop/loop.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

static void open_timer(ferry_loop *loop) {
  ferry__alarm *alarm = &loop->alarm;
  /* NULL, like the wake: the next turn looks at the clock. */
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
  if (!at_ns)
    loop->alarm.armed = 0; /* it may fire before it is set again */
}

void ferry__alarm_look(ferry_loop *loop) {
  if (!loop->alarm.at || loop->now_ns < loop->alarm.at)
    return;
  loop->alarm.at = loop->alarm.armed = 0;
  if (loop->options.on_alarm)
    loop->options.on_alarm(loop->options.context);
}

/* Edge-triggered, so it need not be read: setting it clears an expiry that was
 * not read. A cancelled alarm may still fire, which only wakes the loop. */
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
  /* No descriptor is available: use the loop's millisecond timer. */
  uint64_t now = uv_hrtime();
  ferry__arm(loop, ferry__now(loop) +
                       (alarm->at > now ? (alarm->at - now) / 1000000 : 0));
}
