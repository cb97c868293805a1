#include "CCoreParts.h"
#include "core.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

bool parts_watches_another(void) {
  static const ferry__socket_owner owner = {0};
  ferry_loop *loop = calloc(1, sizeof *loop);
  struct epoll_event event;
  loop->sockets.epoll = epoll_create1(EPOLL_CLOEXEC);
  loop->wake = loop->alarm.fd = -1;
  int fd = eventfd(0, EFD_CLOEXEC), another = eventfd(1, EFD_CLOEXEC);
  ferry__socket *s = ferry__socket_renew(loop, fd, &owner);
  s->ours = true;
  ferry__socket_watch(loop, s, CURL_POLL_OUT);
  dup2(another, fd); /* closes the first */
  bool watched = ferry__socket_watch(loop, s, CURL_POLL_IN) || s->have ||
                 epoll_wait(loop->sockets.epoll, &event, 1, 0) != 0;
  close(fd);
  close(another);
  ferry__sockets_free(loop);
  free(loop);
  return watched;
}
