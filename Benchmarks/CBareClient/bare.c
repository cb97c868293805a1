#include "CBareClient.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

enum { MOST = 64, EVENTS = 256 };

typedef struct exchange {
  CURL *easy;
  uint64_t issued_at;
  uint64_t length;
} exchange;

/* The events that libcurl wants for a descriptor, and those registered with
 * epoll. A kept connection is wanted again for every exchange, and its
 * registration stays. */
typedef struct watch {
  uint32_t wanted, told;
} watch;

typedef struct bare {
  const cbare_load *load;
  cbare_report *report;
  uv_loop_t loop;
  uv_poll_t poll;
  uv_timer_t timer;
  CURLM *multi;
  int epoll;
  watch *watches;
  int watch_count;
  exchange exchanges[MOST];
  uint32_t idle[MOST], idle_count;
  uint64_t *waiting; /* start times, as a ring */
  uint64_t first, last, issued, finished;
  bool broken;
} bare;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* ---- Exchanges ----------------------------------------------------------- */

static void issue(bare *b) {
  if (b->issued == b->load->total)
    return;
  b->issued++;
  b->waiting[b->last++ % b->load->concurrency] = now();
}

static void start_waiting(bare *b) {
  while (b->first < b->last && b->idle_count) {
    exchange *x = &b->exchanges[b->idle[--b->idle_count]];
    x->issued_at = b->waiting[b->first++ % b->load->concurrency];
    x->length = 0;
    /* A client may have many URLs; that all are the same is a property of the
     * load. */
    curl_easy_setopt(x->easy, CURLOPT_URL, b->load->url);
    if (curl_multi_add_handle(b->multi, x->easy))
      b->broken = true;
  }
}

static void finish(bare *b, exchange *x, CURLcode code) {
  long status = 0, opened = 0;
  curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(x->easy, CURLINFO_NUM_CONNECTS, &opened);
  curl_multi_remove_handle(b->multi, x->easy);
  b->report->connections += (uint64_t)opened;
  b->load->latencies[b->finished++] = now() - x->issued_at;
  if (code)
    b->report->failed++;
  else if (status != 200 || x->length != b->load->expected_length)
    b->report->wrong++;
  else
    b->report->ok++;
  b->idle[b->idle_count++] = (uint32_t)(x - b->exchanges);
  issue(b);
}

static void look_for_ends(bare *b) {
  CURLMsg *message;
  int left;
  while ((message = curl_multi_info_read(b->multi, &left))) {
    exchange *x;
    if (message->msg != CURLMSG_DONE)
      continue;
    CURLcode code = message->data.result;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&x);
    finish(b, x, code);
  }
  start_waiting(b);
  if (b->finished == b->load->total || b->broken)
    uv_stop(&b->loop);
}

static size_t on_body(char *bytes, size_t size, size_t count, void *data) {
  (void)bytes;
  ((exchange *)data)->length += size * count;
  return size * count;
}

/* ---- Sockets and time ---------------------------------------------------- */

static void set_watch(bare *b, int socket, uint32_t events) {
  watch *w = &b->watches[socket];
  struct epoll_event event = {.events = events, .data.fd = socket};
  int how = !w->told ? EPOLL_CTL_ADD : events ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;
  if (epoll_ctl(b->epoll, how, socket, &event))
    b->broken = true;
  w->told = events;
}

static int on_socket(CURL *easy, curl_socket_t socket, int what, void *data,
                     void *unused) {
  bare *b = data;
  (void)easy, (void)unused;
  if (socket >= b->watch_count) {
    int count = socket * 2 + MOST;
    watch *more = realloc(b->watches, (size_t)count * sizeof *more);
    if (!more)
      return -1;
    memset(more + b->watch_count, 0,
           (size_t)(count - b->watch_count) * sizeof *more);
    b->watches = more;
    b->watch_count = count;
  }
  watch *w = &b->watches[socket];
  w->wanted = what == CURL_POLL_REMOVE
                  ? 0
                  : (what & CURL_POLL_IN ? (uint32_t)EPOLLIN : 0) |
                        (what & CURL_POLL_OUT ? (uint32_t)EPOLLOUT : 0);
  if (w->wanted & ~w->told)
    set_watch(b, socket, w->wanted);
  return 0;
}

static int on_close(void *data, curl_socket_t socket) {
  bare *b = data;
  if (socket < b->watch_count)
    b->watches[socket] = (watch){0};
  return close(socket);
}

static void on_events(uv_poll_t *poll, int status, int events) {
  bare *b = poll->data;
  struct epoll_event told[EVENTS];
  (void)status, (void)events;
  int running, count = epoll_wait(b->epoll, told, EVENTS, 0);
  for (int i = 0; i < count; i++) {
    int socket = told[i].data.fd;
    watch *w = &b->watches[socket];
    if (told[i].events & w->told & ~w->wanted) {
      set_watch(b, socket, w->wanted); /* events that nobody wants */
      continue;
    }
    int what = (told[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
               (told[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
               (told[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
    curl_multi_socket_action(b->multi, socket, what, &running);
  }
  look_for_ends(b);
}

static void on_time(uv_timer_t *timer) {
  bare *b = timer->data;
  int running;
  curl_multi_socket_action(b->multi, CURL_SOCKET_TIMEOUT, 0, &running);
  look_for_ends(b);
}

static int on_timer(CURLM *multi, long milliseconds, void *data) {
  bare *b = data;
  (void)multi;
  if (milliseconds < 0)
    return uv_timer_stop(&b->timer);
  return uv_timer_start(&b->timer, on_time, (uint64_t)milliseconds, 0);
}

/* ---- The run ------------------------------------------------------------- */

static bool open_handles(bare *b) {
  uint32_t most = b->load->concurrency < MOST ? b->load->concurrency : MOST;
  b->waiting = calloc(b->load->concurrency, sizeof *b->waiting);
  b->epoll = epoll_create1(EPOLL_CLOEXEC);
  if (!b->waiting || b->epoll < 0 || uv_loop_init(&b->loop) ||
      uv_timer_init(&b->loop, &b->timer) ||
      uv_poll_init(&b->loop, &b->poll, b->epoll))
    return false;
  b->timer.data = b->poll.data = b;
  if (uv_poll_start(&b->poll, UV_READABLE, on_events))
    return false;
  b->multi = curl_multi_init();
  curl_multi_setopt(b->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
  curl_multi_setopt(b->multi, CURLMOPT_SOCKETDATA, b);
  curl_multi_setopt(b->multi, CURLMOPT_TIMERFUNCTION, on_timer);
  curl_multi_setopt(b->multi, CURLMOPT_TIMERDATA, b);
  curl_multi_setopt(b->multi, CURLMOPT_MAXCONNECTS, (long)MOST);
  for (uint32_t i = 0; i < most; i++) {
    CURL *easy = b->exchanges[i].easy = curl_easy_init();
    if (!easy)
      return false;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, &b->exchanges[i]);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &b->exchanges[i]);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
    curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, b);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    b->idle[b->idle_count++] = i;
  }
  return b->multi;
}

static void close_handles(bare *b) {
  for (int i = 0; i < MOST; i++)
    if (b->exchanges[i].easy) {
      curl_multi_remove_handle(b->multi, b->exchanges[i].easy);
      curl_easy_cleanup(b->exchanges[i].easy);
    }
  curl_multi_cleanup(b->multi);
  uv_close((uv_handle_t *)&b->poll, NULL);
  uv_close((uv_handle_t *)&b->timer, NULL);
  uv_run(&b->loop, UV_RUN_DEFAULT);
  uv_loop_close(&b->loop);
  close(b->epoll);
  free(b->watches);
  free(b->waiting);
}

int cbare_run(const cbare_load *load, cbare_report *report) {
  bare b = {.load = load, .report = report};
  memset(report, 0, sizeof *report);
  if (!load->concurrency || curl_global_init(CURL_GLOBAL_DEFAULT) ||
      !open_handles(&b))
    return -1;
  uint64_t start = now();
  for (uint32_t i = 0; i < load->concurrency; i++)
    issue(&b);
  start_waiting(&b);
  uv_run(&b.loop, UV_RUN_DEFAULT);
  report->seconds = (double)(now() - start) / 1e9;
  close_handles(&b);
  return b.broken ? -1 : 0;
}
