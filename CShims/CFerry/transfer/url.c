/* url.c - resolves and parses URLs with libcurl's parser, so that decisions are
 * made on the same host that libcurl connects to. Input that this parser gets
 * wrong in 7.88.1 never reaches it: a reference that is empty or a fragment
 * only, a base with a fragment, hosts after one slash or three. */
#include "transfer/transfer.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Longer than any head may be. */
enum { MOST_URL = 1000000 };

/* A URL or a reference: escaped, ends with NUL, without its fragment. */
typedef struct text {
  char *bytes;
  char *fragment; /* NULL = none; "" = an empty one */
  char *local;    /* authority of a local socket; NULL = none */
  bool absolute;  /* has a scheme */
  bool marked;    /* ends with the `?` of an empty query */
} text;

static bool is_alpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The length of a scheme (RFC 3986, 3.1); 0 if there is none. */
static size_t scheme_length(const char *in, size_t n) {
  size_t i = 0;
  while (i < n && (is_alpha(in[i]) ||
                   (i && ((in[i] >= '0' && in[i] <= '9') || in[i] == '+' ||
                          in[i] == '-' || in[i] == '.'))))
    i++;
  return i && i < n && in[i] == ':' ? i : 0;
}

/* Characters that browsers escape. A backslash too: taken for a slash, it would
 * turn what is a path here into a host. */
static bool needs_escape(unsigned char c) {
  return c <= ' ' || c >= 0x7f || strchr("\"<>\\^`{|}", c);
}

/* The length of "scheme://authority" or "//authority"; 0 without an authority;
 * SIZE_MAX if parsers would disagree about it. */
static size_t authority_end(const char *in, size_t n, size_t scheme) {
  size_t at = scheme ? scheme + 1 : 0;
  if (n - at < 2 || in[at] != '/' || in[at + 1] != '/')
    return scheme ? SIZE_MAX : 0;
  size_t start = at + 2, end = start;
  for (; end < n && !strchr("/?#", in[end]); end++)
    if (in[end] == ' ' || in[end] == '\\')
      return SIZE_MAX;
  return end == start ? SIZE_MAX : end;
}

static void free_text(text *text) {
  free(text->bytes);
  free(text->local);
}

static int prepare(const char *in, size_t n, text *out);

/* For libcurl's parser the host is "localhost", which is also sent to the
 * server. */
static int prepare_local(const char *in, size_t n, size_t prefix, text *out) {
  static const char host[] = "://localhost";
  size_t scheme = prefix - strlen("+unix://"), end = prefix;
  char *path = NULL, *local = NULL, *url = NULL;
  while (end < n && !strchr("/?#", in[end]))
    end++;
  int code = ferry__local_path(in + prefix, end - prefix, &path);
  if (code)
    return code;
  local = ferry__local_authority(path);
  url = malloc(scheme + sizeof host + n - end);
  code = FERRY_E_MEMORY;
  if (local && url) {
    memcpy(url, in, scheme);
    memcpy(url + scheme, host, sizeof host - 1);
    memcpy(url + scheme + sizeof host - 1, in + end, n - end);
    code = prepare(url, scheme + sizeof host - 1 + n - end, out);
  }
  if (!code)
    out->local = local;
  else
    free(local);
  free(path);
  free(url);
  return code;
}

static int prepare(const char *in, size_t n, text *out) {
  static const char digits[] = "0123456789ABCDEF";
  *out = (text){0};
  while (n && (*in == ' ' || *in == '\t'))
    in++, n--;
  while (n && (in[n - 1] == ' ' || in[n - 1] == '\t'))
    n--;
  if (n > MOST_URL)
    return FERRY_E_INVALID_URL;
  for (size_t i = 0; i < n; i++)
    if ((unsigned char)in[i] < ' ' || in[i] == 0x7f)
      return FERRY_E_INVALID_URL;

  size_t local = ferry__local_prefix(in, n);
  if (local)
    return prepare_local(in, n, local, out);
  size_t scheme = scheme_length(in, n);
  if (scheme && !(scheme == 4 && !strncasecmp(in, "http", 4)) &&
      !(scheme == 5 && !strncasecmp(in, "https", 5)))
    return FERRY_E_UNSUPPORTED_SCHEME;
  size_t authority = authority_end(in, n, scheme);
  if (authority == SIZE_MAX)
    return FERRY_E_INVALID_URL;
  out->absolute = scheme > 0;
  char *to = out->bytes = malloc(3 * n + 1);
  if (!to)
    return FERRY_E_MEMORY;
  memcpy(to, in, authority);
  to += authority;
  for (size_t i = authority; i < n; i++) {
    unsigned char c = (unsigned char)in[i];
    if (c == '#' && !out->fragment) {
      *to++ = 0;
      out->fragment = to;
    } else if (needs_escape(c)) {
      *to++ = '%';
      *to++ = digits[c >> 4];
      *to++ = digits[c & 15];
    } else {
      *to++ = (char)c;
    }
  }
  *to = 0;
  size_t length = strlen(out->bytes);
  out->marked = length && out->bytes[length - 1] == '?';
  return FERRY_OK;
}

/* The parts that libcurl found; NULL = absent. */
typedef struct found {
  char *scheme, *host, *zone, *port, *path, *query, *user, *password;
} found;

static void free_found(found *f) {
  curl_free(f->scheme);
  curl_free(f->host);
  curl_free(f->zone);
  curl_free(f->port);
  curl_free(f->path);
  curl_free(f->query);
  curl_free(f->user);
  curl_free(f->password);
}

static int code_of(CURLUcode code) {
  switch (code) {
  case CURLUE_OK:
    return FERRY_OK;
  case CURLUE_OUT_OF_MEMORY:
    return FERRY_E_MEMORY;
  case CURLUE_UNSUPPORTED_SCHEME:
    return FERRY_E_UNSUPPORTED_SCHEME;
  default:
    return FERRY_E_INVALID_URL;
  }
}

static bool is_ascii(const char *text) {
  while (*text > 0 && *text < 0x7f)
    text++;
  return !*text;
}

/* libidn2 expects the host in the locale's encoding, and a program that never
 * calls setlocale() has none. So this call uses a UTF-8 locale on this thread.
 * libcurl reports a name that is not valid as being out of memory. */
static CURLUcode get_host(CURLU *url, char **host) {
  CURLUcode code = curl_url_get(url, CURLUPART_HOST, host, 0);
  if (code || is_ascii(*host)) /* nearly all are; a locale costs 10 us */
    return code;
  curl_free(*host);
  *host = NULL;
  locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
  locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;
  code = curl_url_get(url, CURLUPART_HOST, host, CURLU_PUNYCODE);
  if (utf8) {
    uselocale(before);
    freelocale(utf8);
  }
  return code == CURLUE_OUT_OF_MEMORY ? CURLUE_BAD_HOSTNAME : code;
}

/* An absent part is fine; but a lack of memory must not look like one. */
static CURLUcode get_optional(CURLU *url, CURLUPart part, char **out) {
  CURLUcode code = curl_url_get(url, part, out, 0);
  return code == CURLUE_OUT_OF_MEMORY ? code : CURLUE_OK;
}

static int find(CURLU *url, found *out) {
  CURLUcode code;
  if ((code = curl_url_get(url, CURLUPART_SCHEME, &out->scheme, 0)) ||
      (code = get_host(url, &out->host)) ||
      (code = curl_url_get(url, CURLUPART_PORT, &out->port,
                           CURLU_DEFAULT_PORT)) ||
      (code = curl_url_get(url, CURLUPART_PATH, &out->path, 0)) ||
      (code = get_optional(url, CURLUPART_ZONEID, &out->zone)) ||
      (code = get_optional(url, CURLUPART_QUERY, &out->query)) ||
      (code = get_optional(url, CURLUPART_USER, &out->user)) ||
      (code = get_optional(url, CURLUPART_PASSWORD, &out->password)))
    return code_of(code);
  /* Escapes of a host are decoded once. If one remains, the next parser would
   * decode it too, and connect to another host than was checked. */
  for (const char *c = out->host; *c; c++)
    if (*c == '%' || *c <= ' ' || (unsigned char)*c >= 0x7f)
      return FERRY_E_INVALID_URL;
  return out->host[0] ? FERRY_OK : FERRY_E_INVALID_URL;
}

static size_t append(ferry_url *url, size_t at, const char *piece) {
  size_t length = strlen(piece);
  memcpy((char *)url->text + at, piece, length);
  return at + length;
}

/* One allocation: the struct, the text, then the host. */
static int assemble(const found *f, const char *local, bool marked,
                    const char *fragment, ferry_url **out) {
  bool secure = !strcmp(f->scheme, "https");
  size_t host = strlen(f->host) + (f->zone ? strlen(f->zone) + 3 : 0) +
                (local ? strlen(local) : 0);
  size_t size = strlen(f->scheme) + strlen(f->port) + strlen(f->path) +
                (f->query ? strlen(f->query) : 0) +
                (fragment ? strlen(fragment) : 0) + 2 * host + 16;
  ferry_url *url = malloc(sizeof *url + size);
  if (!url)
    return FERRY_E_MEMORY;
  char *text = (char *)(url + 1);
  memset(url, 0, sizeof *url);
  url->text = text;
  url->port = (uint16_t)atoi(f->port);
  url->has_userinfo = f->user || f->password;
  url->is_secure = secure;

  url->is_local = local != NULL;

  size_t at =
      append(url, append(url, 0, f->scheme), local ? "+unix://" : "://");
  size_t host_at = at;
  at = append(url, at, local ? local : f->host);
  ferry__lower_host(text + host_at, at - host_at);
  if (f->zone) /* before the bracket, escaped (RFC 6874) */
    at = append(url, append(url, append(url, at - 1, "%25"), f->zone), "]");
  url->host_length = at - host_at;
  if (!local && url->port != (secure ? 443 : 80))
    at = append(url, append(url, at, ":"), f->port);
  at = append(url, at, f->path);
  if (f->query || marked)
    at = append(url, append(url, at, "?"), f->query ? f->query : "");
  if (fragment && *fragment)
    at = append(url, append(url, at, "#"), fragment);
  url->text_length = at;
  url->host = text + host_at;
  *out = url;
  return FERRY_OK;
}

static int resolve(const text *base, const text *reference, ferry_url **out) {
  found parts = {0};
  bool alone = !reference->bytes[0]; /* the base itself */
  const char *local = reference->absolute || !base ? reference->local
                                                   : base->local;
  int code = FERRY_E_MEMORY;
  /* Another authority: a reference to a socket must be absolute. */
  if (local && !reference->absolute && !strncmp(reference->bytes, "//", 2))
    return FERRY_E_INVALID_URL;
  CURLU *url = curl_url();
  if (!url)
    return code;
  if (base) {
    code = code_of(curl_url_set(url, CURLUPART_URL, base->bytes, 0));
    if (code)
      goto done;
    curl_url_set(url, CURLUPART_USER, NULL, 0);
    curl_url_set(url, CURLUPART_PASSWORD, NULL, 0);
    curl_url_set(url, CURLUPART_OPTIONS, NULL, 0);
  }
  if (!alone) {
    code = code_of(curl_url_set(url, CURLUPART_URL, reference->bytes, 0));
    if (code)
      goto done;
  }
  code = find(url, &parts);
  if (code)
    goto done;
  const char *fragment = reference->fragment;
  if (!fragment && base)
    fragment = base->fragment; /* RFC 9110, 10.2.2 */
  code = assemble(&parts, local, alone ? base->marked : reference->marked,
                  fragment, out);
done:
  free_found(&parts);
  curl_url_cleanup(url);
  return code;
}

int ferry_url_parts(const char *url, size_t length, ferry_url **out) {
  text given = {0};
  *out = NULL;
  int code = prepare(url, length, &given);
  if (!code && !given.absolute)
    code = FERRY_E_UNSUPPORTED_SCHEME;
  if (!code)
    code = resolve(NULL, &given, out);
  free_text(&given);
  return code;
}

int ferry_url_resolve(const char *base, size_t base_length,
                      const char *reference, size_t reference_length,
                      ferry_url **out) {
  text from = {0}, to = {0};
  *out = NULL;
  int code = prepare(base, base_length, &from);
  if (!code && !from.absolute)
    code = FERRY_E_UNSUPPORTED_SCHEME;
  if (!code)
    code = prepare(reference, reference_length, &to);
  if (!code)
    code = resolve(&from, &to, out);
  free_text(&from);
  free_text(&to);
  return code;
}

void ferry_url_free(ferry_url *url) {
  free(url);
}

void ferry__lower_host(char *text, size_t length) {
  bool is_address = false, is_zone = false;
  for (char *c = text; c < text + length; c++) {
    is_address = *c == '[' || (is_address && *c != ']');
    is_zone = is_address && (is_zone || *c == '%');
    if (!is_zone && *c >= 'A' && *c <= 'Z')
      *c = (char)(*c + 'a' - 'A');
  }
}
