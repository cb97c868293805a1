/* extras.c - what few requests say: the proxy, credentials for challenges,
 * the encodings asked for. Looked at and copied on the caller's thread, set
 * on a handle that is reset afterwards. */
#include "core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SET(option, value) curl_easy_setopt(e, option, value)

enum { MOST_SECRET = 8192, MOST_SOCKS = 255 };

static bool is_value(const char *text) {
  for (; *text; text++)
    if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
      return false;
  return true;
}

/* libcurl's Digest escapes quotes only: a line break in a name would be one in
 * the field. No scheme has a use for such bytes (RFC 7617, 2). */
static bool is_secret(const char *text, size_t most) {
  return !text || (strnlen(text, most + 1) <= most && is_value(text) &&
                   !strchr(text, '\t'));
}

/* A name, or an address, in brackets where it is one of IPv6, and a port. */
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
  return p->kind >= FERRY_PROXY_HTTP && p->kind <= FERRY_PROXY_SOCKS5_NAMES &&
         is_host_and_port(p->address) && is_secret(p->user, most) &&
         is_secret(p->password, most) &&
         /* A colon would end the user's name (RFC 7617, 2). */
         !(p->user && p->kind == FERRY_PROXY_HTTP && !p->schemes &&
           strchr(p->user, ':'));
}

static unsigned known_schemes(void) {
  unsigned features = ferry_features();
  return FERRY_SCHEME_BASIC | FERRY_SCHEME_DIGEST |
         (features & FERRY_FEATURE_NTLM ? FERRY_SCHEME_NTLM : 0) |
         (features & FERRY_FEATURE_NEGOTIATE ? FERRY_SCHEME_NEGOTIATE : 0);
}

/* Only an HTTP proxy challenges, and somebody has to answer it. */
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

/* Which user a connection is: it is never another's. */
static uint64_t identity_of(const ferry__extras *x) {
  enum { BOUND = FERRY_SCHEME_NTLM | FERRY_SCHEME_NEGOTIATE };
  const char *parts[4] = {NULL, NULL, NULL, NULL};
  uint64_t hash = 0;
  if (!x->proxy_schemes || (x->proxy_schemes & BOUND)) {
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

char *ferry__extras_copy(const ferry_extras *from, ferry__extras *x,
                         char *text) {
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
    for (char *c = (char *)x->proxy; *c; c++)
      *c = *c >= 'A' && *c <= 'Z' ? (char)(*c + 'a' - 'A') : *c;
    x->proxy_user = copy(&text, from->proxy->user);
    x->proxy_password = copy(&text, from->proxy->password);
  }
  if (from->credentials) {
    x->schemes = from->credentials->schemes;
    x->user = copy(&text, from->credentials->user);
    x->password = copy(&text, from->credentials->password);
  }
  x->identity = identity_of(x);
  return text;
}

/* ---- The way ------------------------------------------------------------- */

/* Of a list "1.2.3.4,[::1]" the first address that may be gone to, as libcurl
 * wants it for CONNECT_TO: "::1.2.3.4:". */
static ferry__fault choose(ferry__extras *x, const char *list,
                           bool public_only) {
  while (*list) {
    char one[64] = "";
    size_t n = strcspn(list, ",");
    if (n < sizeof one)
      memcpy(one, list, n);
    list += n + (list[n] == ',');
    if (public_only && ferry_address_is_public(one) != 1)
      continue;
    snprintf(x->choice, sizeof x->choice, "::%s:", one);
    x->chosen.data = x->choice;
    return (ferry__fault){FERRY_OK, 0};
  }
  return (ferry__fault){FERRY_E_ADDRESS_FORBIDDEN, 0};
}

ferry__host *ferry__dialled(const ferry__transfer *t) {
  return t->extras && t->extras->via ? t->extras->via : t->host;
}

ferry__fault ferry__extras_route(ferry__transfer *t) {
  ferry__extras *x = t->extras;
  const ferry__host *host = t->host;
  bool public_only = t->flags & FERRY_PUBLIC_ONLY;
  if (!x->proxy)
    return (ferry__fault){FERRY_OK, 0};
  if (public_only && (host->literal ? ferry_address_is_public(host->name) != 1
                                    : ferry__is_under(host->name, "localhost")))
    return (ferry__fault){FERRY_E_ADDRESS_FORBIDDEN, 0};
  if (x->proxy_kind == FERRY_PROXY_SOCKS5 && !host->literal)
    return choose(x, host->addresses, public_only);
  return (ferry__fault){FERRY_OK, 0};
}

/* ---- On the handle ------------------------------------------------------- */

/* One scheme alone would be sent unasked, and a body held back for it. One
 * that no server asks for stands beside it. Only where the body cannot go out
 * twice it is better held back: then the best one stands alone. */
static long schemes_of(unsigned schemes, bool holds) {
  static const struct {
    unsigned ours;
    unsigned long curls;
  } best_first[] = {
      {FERRY_SCHEME_NEGOTIATE, CURLAUTH_NEGOTIATE},
      {FERRY_SCHEME_DIGEST, CURLAUTH_DIGEST},
      {FERRY_SCHEME_NTLM, CURLAUTH_NTLM},
      {FERRY_SCHEME_BASIC, CURLAUTH_BASIC},
  };
  unsigned long all = CURLAUTH_AWS_SIGV4;
  for (size_t i = 0; i < sizeof best_first / sizeof *best_first; i++) {
    if (!(schemes & best_first[i].ours))
      continue;
    if (holds)
      return (long)best_first[i].curls;
    all |= best_first[i].curls;
  }
  return (long)all;
}

/* libcurl calls it for each byte that it reads of an answer to CONNECT, also
 * of the body of a 407, which it reads to the end within one call. */
static int on_progress(void *data, curl_off_t down, curl_off_t so_far,
                       curl_off_t up, curl_off_t sent) {
  ferry__handle *handle = data;
  (void)down, (void)so_far, (void)up, (void)sent;
  if (!handle->tunnelling || ++handle->tunnel_steps <= FERRY__MAX_TUNNEL)
    return 0;
  handle->transfer->fault =
      (ferry__fault){FERRY_E_HEAD_TOO_LARGE, FERRY_D_HEAD_BYTES};
  return 1;
}

static bool set_proxy(CURL *e, ferry__handle *handle,
                      const ferry__transfer *t) {
  static const long kinds[] = {
      [FERRY_PROXY_HTTP] = CURLPROXY_HTTP,
      [FERRY_PROXY_SOCKS5] = CURLPROXY_SOCKS5,
      [FERRY_PROXY_SOCKS5_NAMES] = CURLPROXY_SOCKS5_HOSTNAME,
  };
  const ferry__extras *x = t->extras;
  if (SET(CURLOPT_PROXY, x->proxy) ||
      SET(CURLOPT_PROXYTYPE, kinds[x->proxy_kind]))
    return false;
  /* What is said to the server is not said to the proxy, nor the other way
   * round. */
  SET(CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE);
  SET(CURLOPT_PROXYHEADER, x->proxy_headers);
  long schemes = (long)CURLAUTH_BASIC;
  if (x->proxy_schemes) {
    /* The body leaves when a tunnel stands, and never before that. */
    bool holds = t->body_kind == FERRY_BODY_PULL && !t->host->secure;
    schemes = schemes_of(x->proxy_schemes, holds);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, handle);
  }
  if (x->proxy_user) {
    if (SET(CURLOPT_PROXYUSERNAME, x->proxy_user) ||
        SET(CURLOPT_PROXYPASSWORD,
            x->proxy_password ? x->proxy_password : "") ||
        SET(CURLOPT_PROXYAUTH, schemes))
      return false;
    SET(CURLOPT_SOCKS5_AUTH, (long)CURLAUTH_BASIC);
  } else {
    SET(CURLOPT_SOCKS5_AUTH, (long)CURLAUTH_NONE);
  }
  /* A literal by now, so that nothing is left for libcurl to look up. */
  return !x->chosen.data || !SET(CURLOPT_CONNECT_TO, &x->chosen);
}

static bool set_credentials(CURL *e, const ferry__transfer *t) {
  const ferry__extras *x = t->extras;
  bool holds = t->body_kind == FERRY_BODY_PULL;
  return !SET(CURLOPT_HTTPAUTH, schemes_of(x->schemes, holds)) &&
         !SET(CURLOPT_USERNAME, x->user) &&
         !SET(CURLOPT_PASSWORD, x->password);
}

bool ferry__extras_set(ferry__handle *handle, const ferry__transfer *t) {
  CURL *e = handle->easy;
  const ferry__extras *x = t->extras;
  handle->unusual = 1;
  if (x->proxy && !set_proxy(e, handle, t))
    return false;
  if (x->schemes && !set_credentials(e, t))
    return false;
  if (x->encodings_kind == FERRY_ENCODINGS_NONE)
    return !SET(CURLOPT_ACCEPT_ENCODING, NULL);
  if (x->encodings_kind == FERRY_ENCODINGS_THESE)
    /* For libcurl an empty text is all that it knows. */
    return !SET(CURLOPT_ACCEPT_ENCODING, *x->encodings ? x->encodings : NULL);
  return true;
}
