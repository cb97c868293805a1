/* request.c - turns a ferry_request into a transfer. Everything that libcurl
 * would send unchanged is checked here, on the caller's thread, and copied into
 * one allocation. */
#include "transfer/transfer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* libcurl limits a request to 1 MiB, including its own fields. */
enum { MOST_HEAD = 1000000 };

static ferry__fault refuse(int code, int detail) {
  return (ferry__fault){code, detail};
}
static const ferry__fault accepted = {FERRY_OK, 0};

static bool is_token(const char *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!ferry__tchar[(unsigned char)p[i]])
      return false;
  return n > 0;
}

typedef struct parts {
  size_t origin;   /* length of scheme://authority */
  size_t target;   /* where path and query begin */
  size_t target_length;
} parts;

static ferry__fault split_url(const char *url, size_t n, parts *out) {
  size_t scheme, local = ferry__local_prefix(url, n);
  if (n > MOST_HEAD)
    return refuse(FERRY_E_INVALID_URL, 0);
  for (size_t i = 0; i < n; i++)
    if ((unsigned char)url[i] <= ' ' || url[i] == 0x7f)
      return refuse(FERRY_E_INVALID_URL, 0);
  if (n >= 7 && !strncasecmp(url, "http://", 7))
    scheme = 7;
  else if (n >= 8 && !strncasecmp(url, "https://", 8))
    scheme = 8;
  else if (local)
    scheme = local;
  else
    return refuse(FERRY_E_UNSUPPORTED_SCHEME, 0);
  size_t end = scheme;
  while (end < n && url[end] != '/' && url[end] != '?' && url[end] != '#') {
    /* The caller must remove userinfo. Some parsers take a backslash for a
     * slash, others for a part of the host. */
    if (url[end] == '@' || url[end] == '\\')
      return refuse(FERRY_E_INVALID_URL, 0);
    end++;
  }
  if (end == scheme)
    return refuse(FERRY_E_INVALID_URL, 0);
  out->target = end;
  /* One host, one name: the default port is left out. */
  if (url[end - 1] == ':')
    end -= 1;
  else if (scheme == 7 && end - scheme > 3 && !memcmp(url + end - 3, ":80", 3))
    end -= 3;
  else if (scheme == 8 && end - scheme > 4 && !memcmp(url + end - 4, ":443", 4))
    end -= 4;
  out->origin = end;
  end = out->target;
  for (out->target_length = 0;
       end < n && url[end] != '#'; end++, out->target_length++)
    if ((unsigned char)url[end] >= 0x80)
      return refuse(FERRY_E_INVALID_URL, 0); /* must be escaped */
  return accepted;
}

typedef struct field {
  const char *name, *value;
  uint32_t name_length, value_length;
} field;

/* Steps through the packed fields; returns false at the end. */
static bool next_field(const char **at, const char *end, field *out) {
  uint32_t lengths[2];
  if ((size_t)(end - *at) < sizeof lengths)
    return false;
  memcpy(lengths, *at, sizeof lengths);
  out->name = *at + sizeof lengths;
  out->name_length = lengths[0];
  out->value = out->name + lengths[0];
  out->value_length = lengths[1];
  *at = out->value + lengths[1];
  return *at <= end;
}

static bool named(const field *f, const char *name) {
  return f->name_length == strlen(name) &&
         !strncasecmp(f->name, name, f->name_length);
}

/* libcurl adds an Accept that allows anything. It is useless, and every byte of
 * a request costs some 80 instructions. */
struct curl_slist ferry__no_accept = {(char[]){"Accept:"}, NULL};

char ferry__chunked[] = "Transfer-Encoding: chunked";

/* White space around a value is not a part of it (RFC 9110, 5.5). */
static bool is_blank(const field *f) {
  for (uint32_t i = 0; i < f->value_length; i++)
    if (f->value[i] != ' ' && f->value[i] != '\t')
      return false;
  return true;
}

typedef struct survey {
  size_t count, bytes; /* the size that the list will need */
  bool host, accept, content_type, expect;
  bool tunnel, socks; /* uses CONNECT, or is a SOCKS proxy */
} survey;

/* A field for the proxy is sent to the proxy only, never on to the server: with
 * the CONNECT, or with a request that the proxy reads, or not at all. */
static bool is_for_proxy(const field *f, const survey *seen) {
  return (seen->tunnel || seen->socks) && named(f, "Proxy-Authorization");
}

/* A framing field of the caller's is left out if it says what is sent anyway;
 * otherwise it is refused. So there is never a second one on the wire. */
static ferry__fault look_at_framing(const field *f,
                                    const ferry_request *request,
                                    bool *leave_out) {
  *leave_out = false;
  if (named(f, "Transfer-Encoding"))
    return refuse(FERRY_E_INVALID_REQUEST, FERRY_D_FRAMING);
  if (!named(f, "Content-Length"))
    return accepted;
  uint64_t length = 0;
  if (!f->value_length || f->value_length > 18)
    return refuse(FERRY_E_INVALID_REQUEST, FERRY_D_FRAMING);
  for (uint32_t i = 0; i < f->value_length; i++) {
    if (f->value[i] < '0' || f->value[i] > '9')
      return refuse(FERRY_E_INVALID_REQUEST, FERRY_D_FRAMING);
    length = length * 10 + (uint64_t)(f->value[i] - '0');
  }
  uint64_t body =
      request->body_kind == FERRY_BODY_NONE ? 0 : request->body_length;
  if (length != body)
    return refuse(FERRY_E_INVALID_REQUEST, FERRY_D_FRAMING);
  /* For a request without a body libcurl adds none. */
  *leave_out = request->body_kind != FERRY_BODY_NONE;
  return accepted;
}

/* Without a way out of the loop the compiler takes many bytes at once. */
static bool is_value(const char *value, uint32_t length) {
  unsigned bad = 0;
  for (uint32_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)value[i];
    bad |= (unsigned)(c < ' ') & (unsigned)(c != '\t');
    bad |= c == 0x7f;
  }
  return !bad;
}

static ferry__fault survey_fields(const ferry_request *request, survey *out) {
  const char *at = request->headers, *end;
  if (!at)
    return accepted;
  end = at + request->headers_length;
  while (at < end) {
    field f;
    bool leave_out;
    if (!next_field(&at, end, &f))
      return refuse(FERRY_E_INVALID_REQUEST, FERRY_D_HEADER_NAME);
    if (!is_token(f.name, f.name_length))
      return refuse(FERRY_E_INVALID_REQUEST, FERRY_D_HEADER_NAME);
    if (!is_value(f.value, f.value_length))
      return refuse(FERRY_E_INVALID_REQUEST, FERRY_D_HEADER_VALUE);
    ferry__fault fault = look_at_framing(&f, request, &leave_out);
    if (fault.code)
      return fault;
    if (leave_out)
      continue;
    if (named(&f, "Host")) {
      if (out->host) /* every server must refuse that (RFC 9112, 3.2) */
        return refuse(FERRY_E_INVALID_REQUEST, FERRY_D_FRAMING);
      out->host = true;
    }
    out->accept |= named(&f, "Accept");
    out->content_type |= named(&f, "Content-Type");
    out->expect |= named(&f, "Expect");
    out->count++;
    out->bytes += f.name_length + f.value_length + 3;
  }
  return accepted;
}

/* The nodes are in the arena too, so a list costs no allocation. */
static void write_fields(const ferry_request *request, const survey *seen,
                         struct curl_slist *nodes, char *text,
                         ferry__transfer *t) {
  struct curl_slist **last = &t->headers, **last_proxy = NULL;
  const char *at = request->headers;
  const char *end = at ? at + request->headers_length : NULL;
  field f;
  while (at < end && next_field(&at, end, &f)) {
    bool leave_out;
    look_at_framing(&f, request, &leave_out);
    bool for_proxy = is_for_proxy(&f, seen);
    if (leave_out || (for_proxy && seen->socks))
      continue;
    nodes->data = text;
    memcpy(text, f.name, f.name_length);
    text += f.name_length;
    /* For libcurl «Name:» removes a field, and «Name;» sends an empty one. */
    if (is_blank(&f))
      f.value_length = 0;
    *text++ = f.value_length ? ':' : ';';
    if (f.value_length)
      *text++ = ' ';
    memcpy(text, f.value, f.value_length);
    text += f.value_length;
    *text++ = 0;
    nodes->next = NULL;
    if (for_proxy) {
      *(last_proxy ? last_proxy : &t->extras->proxy_headers) = nodes;
      last_proxy = &nodes->next;
    } else {
      *last = nodes;
      last = &nodes->next;
    }
    nodes++;
  }
  /* Fields that libcurl would add by itself to a body. */
  static char no_type[] = "Content-Type:", no_expect[] = "Expect:";
  char *extra[3];
  int extras = 0;
  if (request->body_kind != FERRY_BODY_NONE) {
    if (!seen->content_type)
      extra[extras++] = no_type;
    if (!seen->expect)
      extra[extras++] = no_expect;
    if (request->body_kind == FERRY_BODY_PULL &&
        request->body_length == FERRY_UNKNOWN_LENGTH)
      extra[extras++] = ferry__chunked;
  }
  for (int i = 0; i < extras; i++, nodes++) {
    nodes->data = extra[i];
    *last = nodes;
    last = &nodes->next;
  }
  *last = seen->accept ? NULL : &ferry__no_accept;
}

static uint8_t method_kind(const char *method, size_t length) {
  if (length == 3 && !memcmp(method, "GET", 3))
    return FERRY__GET;
  if (length == 4 && !memcmp(method, "HEAD", 4))
    return FERRY__HEAD;
  if (length == 4 && !memcmp(method, "POST", 4))
    return FERRY__POST;
  return FERRY__OTHER;
}

/* Writes "/path?query" from what follows the authority, which may be "" or
 * "?q". */
static char *write_target(char *to, const char *from, size_t length) {
  if (!length || from[0] != '/')
    *to++ = '/';
  memcpy(to, from, length);
  to[length] = 0;
  return to + length + 1;
}

/* What follows a response to CONNECT is not HTTP (RFC 9110, 9.3.6). */
static bool is_connect(const ferry_request *request) {
  return request->method_length == 7 && !memcmp(request->method, "CONNECT", 7);
}

static bool is_head(const ferry_request *request) {
  return method_kind(request->method, request->method_length) == FERRY__HEAD;
}

ferry__fault ferry__transfer_make(const ferry_request *request,
                                  ferry__transfer **out) {
  parts url;
  survey seen = {0};
  size_t extras = 0;
  *out = NULL;
  if (!request->url || !request->method)
    return refuse(FERRY_E_INVALID_REQUEST, FERRY_D_METHOD);
  ferry__fault fault = split_url(request->url, request->url_length, &url);
  if (fault.code)
    return fault;
  if (!request->id || !is_token(request->method, request->method_length) ||
      is_connect(request) ||
      request->priority > FERRY_HIGH ||
      (request->body_kind == FERRY_BODY_BYTES && request->body_length &&
       !request->body))
    return refuse(FERRY_E_INVALID_REQUEST, FERRY_D_METHOD);
  if (request->body_kind > FERRY_BODY_PULL ||
      request->response_kind > FERRY_DESCRIPTOR)
    return refuse(FERRY_E_INVALID_REQUEST, FERRY_D_NONE);
  /* libcurl would wait for a body of the response. */
  if (is_head(request) && request->body_kind != FERRY_BODY_NONE)
    return refuse(FERRY_E_INVALID_REQUEST, FERRY_D_FRAMING);
  if ((request->flags & FERRY_TRAILERS) &&
      (request->body_kind != FERRY_BODY_PULL ||
       request->body_length != FERRY_UNKNOWN_LENGTH))
    return refuse(FERRY_E_INVALID_REQUEST, FERRY_D_FRAMING);
  fault = survey_fields(request, &seen);
  if (fault.code)
    return fault;
  if (request->extras) {
    const ferry_proxy *proxy = request->extras->proxy;
    fault = ferry__extras_check(request->extras, &extras);
    if (fault.code)
      return fault;
    seen.socks = proxy && proxy->kind != FERRY_PROXY_HTTP;
    seen.tunnel = proxy && !seen.socks && (request->url[4] | 0x20) == 's';
  }
  if (request->url_length + request->method_length + seen.bytes > MOST_HEAD)
    return refuse(FERRY_E_INVALID_REQUEST, FERRY_D_HEADER_VALUE);

  size_t nodes = (seen.count + 3) * sizeof(struct curl_slist);
  _Static_assert(offsetof(ferry__transfer, arena) % sizeof(void *) == 0,
                 "the nodes of the list stand at the arena's start");
  size_t body =
      request->body_kind == FERRY_BODY_BYTES ? request->body_length : 0;
  size_t size = sizeof(ferry__transfer) + nodes + extras + seen.bytes +
                url.origin + 1 + url.target_length + 2 +
                request->method_length + 1;
  if (body > SIZE_MAX - size)
    return refuse(FERRY_E_MEMORY, 0);
  ferry__transfer *t = malloc(size + body);
  if (!t)
    return refuse(FERRY_E_MEMORY, 0);
  memset(t, 0, sizeof *t);

  struct curl_slist *list = (struct curl_slist *)t->arena;
  char *text = t->arena + nodes;
  if (request->extras) {
    t->extras = (ferry__extras *)text;
    text = ferry__extras_copy(request->extras, t->extras, seen.tunnel,
                              text + sizeof *t->extras);
  }
  write_fields(request, &seen, list, text, t);
  if (t->extras)
    ferry__extras_identify(t->extras);
  text += seen.bytes;
  t->origin = text;
  t->origin_length = (uint32_t)url.origin;
  memcpy(text, request->url, url.origin);
  ferry__lower_host(text, url.origin);
  text += url.origin;
  *text++ = 0;
  t->target = text;
  text = write_target(text, request->url + url.target, url.target_length);
  t->method = text;
  memcpy(text, request->method, request->method_length);
  text[request->method_length] = 0;
  text += request->method_length + 1;
  if (body)
    memcpy(text, request->body, body);
  t->body = text;
  t->body_length =
      request->body_kind == FERRY_BODY_NONE ? 0 : request->body_length;
  t->expects = seen.expect && request->body_kind != FERRY_BODY_NONE;
  t->chunked = request->body_kind == FERRY_BODY_PULL &&
               request->body_length == FERRY_UNKNOWN_LENGTH;

  t->entry.id = t->result.id = request->id;
  t->result.content_length = -1;
  t->head = ferry__no_head;
  t->method_kind = method_kind(request->method, request->method_length);
  t->body_kind = request->body_kind;
  t->response_kind = request->response_kind;
  t->priority = request->priority;
  t->fd = request->fd;
  t->offset = request->offset;
  t->max_rate = request->max_rate;
  t->connections = request->connections;
  t->flags = request->flags;
  t->connect_ms = request->connect_ms;
  t->idle_ms = request->idle_ms;
  t->total_ms = request->total_ms;
  t->deadline_ms = request->deadline_ms;
  t->low_speed_bytes = request->low_speed_bytes;
  t->low_speed_ms = request->low_speed_ms;
  t->max_head = request->max_head;
  if (t->max_head > FERRY__MOST_HEAD)
    t->max_head = FERRY__MOST_HEAD;
  t->max_body = request->max_body;
  /* On a loop's thread the start of its round is accurate enough. */
  t->submitted_ns = ferry__current ? ferry__current->now_ns : uv_hrtime();
  *out = t;
  return accepted;
}
