/* extras.c - rarely used options of a request: the proxy, credentials for
 * challenges, the accepted encodings. They are checked and copied on the
 * caller's thread. */
#include "transfer/transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SECRET = 8192, MOST_SOCKS = 255 };

static bool is_value(const char *text) {
  for (; *text; text++)
    if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
      return false;
  return true;
}

/* libcurl's Digest escapes only quotes: a line break in a name would become one
 * in the field. No scheme needs such bytes (RFC 7617, 2). */
static bool is_secret(const char *text, size_t most) {
  return !text || (strnlen(text, most + 1) <= most && is_value(text) &&
                   !strchr(text, '\t'));
}

/* A name or an address (IPv6 in brackets), and a port. */
static bool is_host_and_port(const char *p) {
  static const char name[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
  size_t n = *p == '[' ? strspn(p + 1, "0123456789abcdefABCDEF:.") + 2
                       : strspn(p, name);
  if (!n || n > 255 || (*p == '[' && p[n - 1] != ']') || p[n] != ':')
    return false;
  const char *digits = p + n + 1;
  size_t count = strspn(digits, "0123456789");
  int port = count && count <= 5 && !digits[count] ? atoi(digits) : 0;
  return port > 0 && port <= 65535;
}

static bool is_proxy(const ferry_proxy *p) {
  size_t most = p->kind == FERRY_PROXY_HTTP ? MOST_SECRET : MOST_SOCKS;
  return p->kind >= FERRY_PROXY_HTTP && p->kind <= FERRY_PROXY_SOCKS4_NAMES &&
         is_host_and_port(p->address) && is_secret(p->user, most) &&
         is_secret(p->password, most) &&
         /* A colon would end the user name (RFC 7617, 2). */
         !(p->user && p->kind == FERRY_PROXY_HTTP && !p->schemes &&
           strchr(p->user, ':'));
}

static unsigned known_schemes(void) {
  unsigned features = ferry_features();
  return FERRY_SCHEME_BASIC | FERRY_SCHEME_DIGEST |
         (features & FERRY_FEATURE_NTLM ? FERRY_SCHEME_NTLM : 0) |
         (features & FERRY_FEATURE_NEGOTIATE ? FERRY_SCHEME_NEGOTIATE : 0);
}

/* Only an HTTP proxy sends challenges, and libcurl must support a scheme. */
static bool can_answer(const ferry_proxy *p) {
  return !p->schemes || (p->kind == FERRY_PROXY_HTTP && p->user &&
                         (p->schemes & known_schemes()));
}

static size_t size_of(const char *text) { return text ? strlen(text) + 1 : 0; }

ferry__fault ferry__extras_check(const ferry_extras *extras, size_t *size) {
  const ferry_proxy *p = extras->proxy;
  const ferry_credentials *c = extras->credentials;
  *size = sizeof(ferry__extras) + size_of(extras->encodings);
  if (extras->encodings_kind > FERRY_ENCODINGS_THESE ||
      (extras->encodings_kind == FERRY_ENCODINGS_THESE &&
       (!extras->encodings ||
        strnlen(extras->encodings, MOST_SECRET + 1) > MOST_SECRET ||
        !is_value(extras->encodings))))
    return (ferry__fault){FERRY_E_INVALID_REQUEST, FERRY_D_HEADER_VALUE};
  if ((p && (!is_proxy(p) || !can_answer(p))) ||
      (c && (!(c->schemes & known_schemes()) ||
             !is_secret(c->user, MOST_SECRET) ||
             !is_secret(c->password, MOST_SECRET))))
    return (ferry__fault){FERRY_E_INVALID_REQUEST, FERRY_D_NONE};
  if (p)
    *size += 7 + size_of(p->address) + size_of(p->user) + size_of(p->password);
  if (c)
    *size += size_of(c->user) + size_of(c->password);
  return (ferry__fault){FERRY_OK, 0};
}

static const char *copy(char **to, const char *text) {
  size_t size = size_of(text);
  if (!text)
    return NULL;
  char *at = memcpy(*to, text, size);
  *to += size;
  return at;
}

/* The user that a connection belongs to: it is never used for another. A tunnel
 * belongs to the user for whom the proxy has opened it. */
static uint64_t identity_of(const ferry__extras *x, bool tunnels) {
  enum { BOUND = FERRY_SCHEME_NTLM | FERRY_SCHEME_NEGOTIATE };
  const char *parts[4] = {NULL, NULL, NULL, NULL};
  uint64_t hash = 0;
  if (tunnels || !x->proxy_schemes || (x->proxy_schemes & BOUND)) {
    parts[0] = x->proxy_user;
    parts[1] = x->proxy_password;
  }
  if (x->schemes & BOUND) {
    parts[2] = x->user;
    parts[3] = x->password;
  }
  for (int i = 0; i < 4; i++)
    if (parts[i])
      hash = ferry__hash(parts[i], strlen(parts[i])) + hash * 31 + 1;
  return hash;
}

void ferry__extras_identify(ferry__extras *x) {
  for (const struct curl_slist *at = x->proxy_headers; at; at = at->next)
    x->identity = ferry__hash(at->data, strlen(at->data)) +
                  x->identity * 31 + 1;
}

char *ferry__extras_copy(const ferry_extras *from, ferry__extras *x,
                         bool tunnels, char *text) {
  memset(x, 0, sizeof *x);
  x->encodings_kind = from->encodings_kind;
  x->encodings = copy(&text, from->encodings);
  if (from->proxy) {
    x->proxy_kind = from->proxy->kind;
    x->proxy_schemes = from->proxy->schemes;
    x->proxy_origin = text;
    memcpy(text, "http://", 7);
    text += 7;
    x->proxy = text;
    copy(&text, from->proxy->address);
    ferry__lower_host((char *)x->proxy, strlen(x->proxy));
    x->proxy_user = copy(&text, from->proxy->user);
    x->proxy_password = copy(&text, from->proxy->password);
  }
  if (from->credentials) {
    x->schemes = from->credentials->schemes;
    x->user = copy(&text, from->credentials->user);
    x->password = copy(&text, from->credentials->password);
  }
  x->identity = identity_of(x, tunnels);
  return text;
}
