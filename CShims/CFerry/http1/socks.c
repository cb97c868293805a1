/* socks.c - connects through a SOCKS proxy: versions 5 (RFC 1928, with the user
 * and password of RFC 1929), 4 and 4a. Names are looked up here or by the
 * proxy. */
#include "http1/http1.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
  NAME_MOST = 255,
  GRANTED_4 = 0x5a,
  NO_METHOD = 0xff, WITH_PASSWORD = 2,
  IPV4 = 1, NAME = 3, IPV6 = 4, /* kinds of addresses */
  REPLY_4 = 8, REPLY_5 = 4,     /* sizes in bytes, of version 5 without the
                                 * address */
  MOST = 4 + 1 + NAME_MOST + 2,
};

enum step { GREETING, PASSWORD, REQUEST };

/* The bytes to send are composed at the start, because the transfer may be
 * served by another connection meanwhile. */
struct ferry__socks {
  unsigned char greeting[4], password[3 + 2 * NAME_MOST];
  unsigned char request[2 * MOST]; /* version 4: with the user */
  unsigned char reply[MOST];
  uint16_t greeting_length, password_length, request_length;
  uint16_t sent, received;
  uint8_t step;
  bool old; /* version 4 */
};

static void fail(ferry__connection *c, int detail, int os_errno) {
  ferry__connection_failed(c, (ferry__fault){FERRY_E_PROXY, detail}, os_errno,
                           NULL);
}

/* ---- Requests ------------------------------------------------------------ */

static unsigned char *put_text(unsigned char *to, const char *text) {
  size_t length = text ? strlen(text) : 0;
  *to++ = (unsigned char)length;
  if (length)
    memcpy(to, text, length);
  return to + length;
}

/* The server's address if it is known here: "1.2.3.4" or "[::1]"; otherwise
 * NULL, and the proxy is sent the name. */
static const char *address_of(const ferry__transfer *t, char *space,
                              size_t size) {
  const ferry__extras *x = t->extras;
  const char *text = x->chosen.data ? x->choice + 2 : t->host->name;
  size_t length = strlen(text) - (x->chosen.data ? 1 : 0);
  if ((!x->chosen.data && !t->host->literal) || length >= size)
    return NULL;
  if (text[0] == '[' && length > 2) {
    text++;
    length -= 2;
  }
  memcpy(space, text, length);
  space[length] = 0;
  return space;
}

static bool compose_5(ferry__socks *s, const ferry__transfer *t) {
  const ferry__extras *x = t->extras;
  const ferry__host *host = t->host;
  unsigned char *end = s->greeting;
  char space[64];
  const char *address = address_of(t, space, sizeof space);
  *end++ = 5;
  *end++ = x->proxy_user ? 2 : 1;
  *end++ = 0; /* without a password, .. */
  if (x->proxy_user)
    *end++ = WITH_PASSWORD;
  s->greeting_length = (uint16_t)(end - s->greeting);
  if (x->proxy_user) {
    s->password[0] = 1;
    end = put_text(put_text(s->password + 1, x->proxy_user),
                   x->proxy_password);
    s->password_length = (uint16_t)(end - s->password);
  }
  end = s->request;
  memcpy(end, "\5\1\0", 3);
  end += 3;
  if (!address && strlen(host->name) > NAME_MOST)
    return false;
  if (!address) {
    *end++ = NAME;
    end = put_text(end, host->name);
  } else if (inet_pton(AF_INET, address, end + 1) == 1) {
    *end = IPV4;
    end += 1 + 4;
  } else if (inet_pton(AF_INET6, address, end + 1) == 1) {
    *end = IPV6;
    end += 1 + 16;
  } else {
    return false;
  }
  *end++ = (unsigned char)(host->port >> 8);
  *end++ = (unsigned char)host->port;
  s->request_length = (uint16_t)(end - s->request);
  return true;
}

/* 4a: the address 0.0.0.1, and the name after the user's. */
static bool compose_4(ferry__socks *s, const ferry__transfer *t) {
  const ferry__host *host = t->host;
  const char *user = t->extras->proxy_user ? t->extras->proxy_user : "";
  unsigned char *end = s->request;
  char space[64];
  const char *address = address_of(t, space, sizeof space);
  *end++ = 4;
  *end++ = 1;
  *end++ = (unsigned char)(host->port >> 8);
  *end++ = (unsigned char)host->port;
  if (address && inet_pton(AF_INET, address, end) != 1)
    return false; /* version 4 has no IPv6 */
  if (!address)
    memcpy(end, "\0\0\0\1", 4);
  if (strlen(user) > NAME_MOST || strlen(host->name) > NAME_MOST)
    return false;
  end = (unsigned char *)stpcpy((char *)end + 4, user) + 1;
  if (!address)
    end = (unsigned char *)stpcpy((char *)end, host->name) + 1;
  s->request_length = (uint16_t)(end - s->request);
  return true;
}

/* ---- Replies ------------------------------------------------------------- */

/* The length of the proxy's reply, as far as it is known. */
static size_t expected(const ferry__socks *s) {
  if (s->old)
    return REPLY_4;
  if (s->step != REQUEST)
    return 2;
  if (s->received < REPLY_5 + 1)
    return REPLY_5 + 1;
  switch (s->reply[3]) {
  case IPV4:
    return REPLY_5 + 4 + 2;
  case IPV6:
    return REPLY_5 + 16 + 2;
  default:
    return REPLY_5 + 1 + (size_t)s->reply[4] + 2;
  }
}

static void next_step(ferry__socks *s, enum step step) {
  s->step = (uint8_t)step;
  s->sent = s->received = 0;
}

static void granted(ferry__connection *c) {
  ferry__socks_end(c);
  if (c->route->host->secure)
    ferry__tls_begin(c);
  else
    ferry__connection_ready(c);
}

/* Handles a whole reply. Returns false if the connection has failed. */
static bool take(ferry__connection *c) {
  ferry__socks *s = c->socks;
  const unsigned char *reply = s->reply;
  if (s->old) {
    if (reply[0] == 0 && reply[1] == GRANTED_4)
      granted(c);
    else
      fail(c, FERRY_D_PROXY_HANDSHAKE, 0);
    return false;
  }
  if (reply[0] != (s->step == PASSWORD ? 1 : 5)) {
    fail(c, FERRY_D_PROXY_HANDSHAKE, 0);
    return false;
  }
  switch (s->step) {
  case GREETING:
    if (reply[1] == 0)
      next_step(s, REQUEST);
    else if (reply[1] == WITH_PASSWORD && s->password_length)
      next_step(s, PASSWORD);
    else {
      fail(c, reply[1] == NO_METHOD ? FERRY_D_PROXY_AUTH_REQUIRED
                                    : FERRY_D_PROXY_HANDSHAKE,
           0);
      return false;
    }
    return true;
  case PASSWORD:
    if (reply[1] == 0) {
      next_step(s, REQUEST);
      return true;
    }
    fail(c, FERRY_D_PROXY_AUTH_REQUIRED, 0);
    return false;
  default:
    if (reply[1] == 0)
      granted(c);
    else
      fail(c, FERRY_D_PROXY_HANDSHAKE, 0);
    return false;
  }
}

/* ---- Steps --------------------------------------------------------------- */

/* 1: everything is sent; 0: not now; -1: the connection has failed. */
static int send_rest(ferry__connection *c) {
  ferry__socks *s = c->socks;
  const unsigned char *bytes = s->step == GREETING   ? s->greeting
                               : s->step == PASSWORD ? s->password
                                                     : s->request;
  uint16_t length = s->step == GREETING   ? s->greeting_length
                    : s->step == PASSWORD ? s->password_length
                                          : s->request_length;
  while (s->sent < length) {
    ssize_t n = ferry__connection_write(c, (const char *)bytes + s->sent,
                                        (size_t)(length - s->sent));
    if (n == -EAGAIN)
      return 0;
    if (n < 0) {
      fail(c, FERRY_D_PROXY_HANDSHAKE, (int)-n);
      return -1;
    }
    s->sent += (uint16_t)n;
  }
  return 1;
}

void ferry__socks_event(ferry__connection *c) {
  bool is_unsent = false;
  for (;;) {
    ferry__socks *s = c->socks;
    int sent = send_rest(c);
    if (sent < 0)
      return;
    is_unsent = !sent;
    if (is_unsent)
      break;
    /* Read no more than its reply: the bytes after it are the server's. */
    size_t want = expected(s) - s->received;
    ssize_t n = ferry__connection_read(c, (char *)s->reply + s->received,
                                       want);
    if (n == -EAGAIN)
      break;
    if (n <= 0) {
      fail(c, FERRY_D_PROXY_HANDSHAKE, (int)-n);
      return;
    }
    s->received += (uint16_t)n;
    if (s->received == expected(s) && !take(c))
      return;
  }
  if (ferry__connection_watch(c, true, is_unsent))
    fail(c, FERRY_D_PROXY_HANDSHAKE, errno);
}

void ferry__socks_begin(ferry__connection *c) {
  const ferry__transfer *t = c->transfer;
  c->state = FERRY__TUNNELLING;
  if (!t) { /* its transfer was served by another connection, and owned the
             * credentials */
    ferry__connection_close(c);
    return;
  }
  uint8_t kind = t->extras->proxy_kind;
  ferry__socks *s = c->socks = calloc(1, sizeof *s);
  if (!s) {
    ferry__connection_failed(c, (ferry__fault){FERRY_E_MEMORY, 0}, 0, NULL);
    return;
  }
  s->old = kind == FERRY_PROXY_SOCKS4 || kind == FERRY_PROXY_SOCKS4_NAMES;
  s->step = s->old ? REQUEST : GREETING;
  if (s->old ? !compose_4(s, t) : !compose_5(s, t))
    fail(c, FERRY_D_PROXY_HANDSHAKE, 0);
  else
    ferry__socks_event(c);
}

void ferry__socks_end(ferry__connection *c) {
  free(c->socks);
  c->socks = NULL;
}
