/* tunnel.c - CONNECT through an HTTP proxy (RFC 9110, 9.3.6). Fields for the
 * proxy are not sent to the server, nor the other way round. */
#include "http1/http1.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(ferry__connection *c, int detail, int os_errno) {
  ferry__connection_failed(c, (ferry__fault){FERRY_E_PROXY, detail}, os_errno,
                           NULL);
}

/* "user:password" in base64 (RFC 7617). NULL: no memory. */
static char *basic(const char *user, const char *password) {
  size_t length = strlen(user) + 1 + strlen(password);
  char *plain = malloc(length + 1);
  unsigned char *coded = malloc((length + 2) / 3 * 4 + 1);
  if (plain && coded) {
    snprintf(plain, length + 1, "%s:%s", user, password);
    EVP_EncodeBlock(coded, (unsigned char *)plain, (int)length);
  }
  if (!plain) {
    free(coded);
    coded = NULL;
  }
  free(plain);
  return (char *)coded;
}

/* A field without a value ends with a semicolon (write_fields). */
static char *put_field(char *to, const char *line) {
  to = stpcpy(to, line);
  if (to[-1] == ';' && !strchr(line, ':'))
    to[-1] = ':';
  return stpcpy(to, "\r\n");
}

static size_t size_of_list(const struct curl_slist *at) {
  size_t size = 0;
  for (; at; at = at->next)
    size += strlen(at->data) + 2;
  return size;
}

/* Composes the request; NULL: no memory. */
static char *compose(ferry__connection *c, const ferry__transfer *t,
                     size_t *length) {
  const ferry__extras *x = t->extras;
  const ferry__host *host = c->route->host;
  const char *agent = c->loop->user_agent;
  bool own = false;
  for (const struct curl_slist *at = x->proxy_headers; at; at = at->next)
    own |= !strncasecmp(at->data, "Proxy-Authorization", 19) &&
           (at->data[19] == ':' || at->data[19] == ';');
  char *secret = x->proxy_user && !own
                     ? basic(x->proxy_user,
                             x->proxy_password ? x->proxy_password : "")
                     : NULL;
  size_t size = 2 * strlen(host->name) + (secret ? strlen(secret) : 0) +
                (agent ? strlen(agent) : 0) + size_of_list(x->proxy_headers) +
                256;
  char *text = (x->proxy_user && !own && !secret) ? NULL : malloc(size);
  if (text) {
    int n = snprintf(text, size,
                     "CONNECT %s:%u HTTP/1.1\r\nHost: %s:%u\r\n%s%s%s%s%s%s",
                     host->name, host->port, host->name, host->port,
                     secret ? "Proxy-Authorization: Basic " : "",
                     secret ? secret : "", secret ? "\r\n" : "",
                     agent ? "User-Agent: " : "", agent ? agent : "",
                     agent ? "\r\n" : "");
    char *end = text + n;
    for (const struct curl_slist *at = x->proxy_headers; at; at = at->next)
      end = put_field(end, at->data);
    end = stpcpy(end, "\r\n");
    *length = (size_t)(end - text);
  }
  free(secret);
  return text;
}

/* The head of the proxy's response is checked like any other. */
static bool begin_response(ferry__connection *c) {
  ferry__head *head = calloc(1, sizeof *head);
  if (!head)
    return false;
  ferry__head_begin(head, 0);
  head->tunnel = true;
  ferry__response_begin(&c->response, head, true);
  return c->tunnelling = true;
}

static void end_response(ferry__connection *c) {
  if (c->response.head) {
    ferry__head_free(c->response.head);
    free(c->response.head);
  }
  c->response.head = NULL;
  c->tunnelling = false;
}

void ferry__tunnel_begin(ferry__connection *c) {
  ferry__transfer *t = c->transfer;
  size_t length = 0;
  c->state = FERRY__TUNNELLING;
  if (!t) { /* its transfer was served by another connection, and owned the
             * credentials */
    ferry__connection_close(c);
    return;
  }
  c->out = compose(c, t, &length);
  c->out_length = (uint32_t)length;
  c->out_at = 0;
  if (!c->out || !begin_response(c) ||
      ferry__connection_watch(c, true, true)) {
    ferry__connection_failed(c, (ferry__fault){FERRY_E_MEMORY, 0}, 0, NULL);
    return;
  }
  ferry__tunnel_event(c);
}

static bool send_rest(ferry__connection *c) {
  while (c->out_at < c->out_length) {
    ssize_t n = ferry__connection_write(c, c->out + c->out_at,
                                        c->out_length - c->out_at);
    if (n == -EAGAIN)
      return true;
    if (n < 0) {
      end_response(c);
      fail(c, FERRY_D_PROXY_HANDSHAKE, (int)-n);
      return false;
    }
    c->out_at += (uint32_t)n;
  }
  free(c->out);
  c->out = NULL;
  c->out_length = c->out_at = 0;
  int code = ferry__connection_watch(c, true, false);
  if (code) {
    end_response(c);
    fail(c, FERRY_D_PROXY_HANDSHAKE, -code);
    return false;
  }
  return true;
}

static void refused(ferry__connection *c, uint16_t status) {
  if (c->transfer)
    c->transfer->result.status = status;
  fail(c, status == 407 ? FERRY_D_PROXY_AUTH_REQUIRED : FERRY_D_PROXY_REFUSED,
       0);
}

static void received(ferry__connection *c, const char *at, const char *end) {
  const char *piece;
  size_t length;
  enum ferry__event event;
  do
    event = ferry__response_next(&c->response, &at, end, false, &piece,
                                 &length);
  while (event == FERRY__EVENT_INFORMATIONAL);
  if (event == FERRY__EVENT_MORE)
    return;
  ferry__fault fault = c->response.fault;
  uint16_t status = c->response.head->status;
  end_response(c);
  if (event == FERRY__EVENT_FAULT && fault.code == FERRY_E_MALFORMED_RESPONSE)
    fail(c, FERRY_D_PROXY_HANDSHAKE, 0);
  else if (event == FERRY__EVENT_FAULT)
    ferry__connection_failed(c, fault, 0, NULL);
  else if (status / 100 != 2)
    refused(c, status);
  else if (at < end) /* under TLS the server does not speak first */
    fail(c, FERRY_D_PROXY_HANDSHAKE, 0);
  else
    ferry__tls_begin(c);
}

void ferry__tunnel_event(ferry__connection *c) {
  char bytes[4096];
  if (!send_rest(c))
    return;
  ssize_t n = ferry__connection_read(c, bytes, sizeof bytes);
  if (n == -EAGAIN)
    return;
  if (n <= 0) {
    end_response(c);
    fail(c, FERRY_D_PROXY_HANDSHAKE, (int)-n);
    return;
  }
  received(c, bytes, bytes + n);
}

void ferry__tunnel_end(ferry__connection *c) {
  if (c->tunnelling)
    end_response(c);
}
