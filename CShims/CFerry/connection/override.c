/* override.c - configured replacements for the addresses of a host: other
 * addresses, or a local socket. */
#include "connection/host.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

static bool is_address(const char *text, size_t length) {
  char one[64];
  if (!length || length >= sizeof one)
    return false;
  memcpy(one, text, length);
  one[length] = 0;
  return ferry_address_is_public(one) >= 0 &&
         (one[0] == '[') == (strchr(one, ':') != NULL) && !strchr(one, '%');
}

static bool are_addresses(const char *list) {
  unsigned count = 0;
  for (;;) {
    size_t length = strcspn(list, ",");
    if (!is_address(list, length) || ++count > FERRY__ADDRESSES)
      return false;
    if (!list[length])
      return true;
    list += length + 1;
  }
}

const char *ferry__local(const ferry_loop *loop, const ferry__host *host) {
  return host->local ? host->local : loop->unix_socket;
}

bool ferry__local_fits(const char *path) {
  return strlen(path) < sizeof ((struct sockaddr_un *)0)->sun_path;
}

bool ferry__overrides_are_valid(const ferry_options *o) {
  if (o->unix_socket &&
      (!*o->unix_socket || !ferry__local_fits(o->unix_socket)))
    return false;
  for (size_t i = 0; i < o->override_count; i++)
    if (!are_addresses(o->overrides[i].addresses))
      return false;
  return true;
}

bool ferry__overrides_copy(ferry_loop *loop, const ferry_options *from) {
  if (!from->override_count)
    return true;
  loop->overrides = calloc(from->override_count, sizeof *loop->overrides);
  if (!loop->overrides)
    return false;
  for (size_t i = 0; i < from->override_count; i++) {
    const ferry_override *one = &from->overrides[i];
    char *name = strdup(one->name), *addresses = strdup(one->addresses);
    loop->overrides[i] = (ferry_override){name, one->port, addresses};
    loop->options.override_count++;
    if (!name || !addresses)
      return false;
  }
  return true;
}

void ferry__overrides_free(ferry_loop *loop) {
  for (size_t i = 0; i < loop->options.override_count; i++) {
    free((char *)loop->overrides[i].name);
    free((char *)loop->overrides[i].addresses);
  }
  free(loop->overrides);
}

bool ferry__override(const ferry_loop *loop, ferry__host *host) {
  if (ferry__local(loop, host)) {
    host->fixed = true;
    return true;
  }
  for (size_t i = 0; i < loop->options.override_count; i++) {
    const ferry_override *one = &loop->overrides[i];
    if (one->port != host->port || strcasecmp(one->name, host->name))
      continue;
    host->fixed = true;
    host->answer = 1;
    host->zone = 0;
    return (host->addresses = strdup(one->addresses));
  }
  return true;
}
