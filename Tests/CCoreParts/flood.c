/* flood.c - a TLS server that sends messages without data. */
#include "CCoreParts.h"

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct parts_flood {
  SSL_CTX *context;
  int listener, connection;
  uint16_t port;
  unsigned updates;
  pthread_t thread;
  pthread_mutex_t lock;
  bool taken;
};

/* Records are made in memory and sent in one piece. */
static bool send_all(SSL *tls, int fd) {
  char *bytes;
  BIO *memory = SSL_get_wbio(tls);
  long length = BIO_get_mem_data(memory, &bytes);
  for (ssize_t n; length > 0; bytes += n, length -= n)
    if ((n = send(fd, bytes, (size_t)length, MSG_NOSIGNAL)) <= 0)
      return false;
  (void)BIO_reset(memory);
  return true;
}

static bool respond(SSL *tls, int fd, unsigned updates) {
  static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe";
  char request[4096];
  if (SSL_accept(tls) != 1 || SSL_read(tls, request, sizeof request) <= 0)
    return false;
  SSL_set0_wbio(tls, BIO_new(BIO_s_mem()));
  SSL_write(tls, head, sizeof head - 1);
  for (unsigned i = 0; i < updates; i++) {
    SSL_key_update(tls, SSL_KEY_UPDATE_NOT_REQUESTED);
    SSL_do_handshake(tls);
  }
  SSL_write(tls, "llo", 3);
  /* The client closes when it has everything, or enough. */
  return send_all(tls, fd) && SSL_read(tls, request, sizeof request) <= 0 &&
         SSL_get_error(tls, 0) != SSL_ERROR_SYSCALL;
}

static void *serve(void *data) {
  parts_flood *flood = data;
  int fd = accept(flood->listener, NULL, NULL);
  SSL *tls = SSL_new(flood->context);
  pthread_mutex_lock(&flood->lock);
  flood->connection = fd;
  pthread_mutex_unlock(&flood->lock);
  SSL_set_fd(tls, fd);
  flood->taken = fd >= 0 && respond(tls, fd, flood->updates);
  SSL_free(tls);
  return NULL;
}

parts_flood *parts_flood_begin(const char *certificate, const char *key,
                               unsigned updates) {
  parts_flood *flood = calloc(1, sizeof *flood);
  struct sockaddr_in address = {.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  flood->updates = updates;
  flood->connection = -1;
  pthread_mutex_init(&flood->lock, NULL);
  flood->context = SSL_CTX_new(TLS_server_method());
  flood->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (SSL_CTX_set_min_proto_version(flood->context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_use_certificate_chain_file(flood->context, certificate) != 1 ||
      SSL_CTX_use_PrivateKey_file(flood->context, key, SSL_FILETYPE_PEM) != 1 ||
      bind(flood->listener, (struct sockaddr *)&address, size) ||
      listen(flood->listener, 1) ||
      getsockname(flood->listener, (struct sockaddr *)&address, &size))
    abort();
  flood->port = ntohs(address.sin_port);
  pthread_create(&flood->thread, NULL, serve, flood);
  return flood;
}

uint16_t parts_flood_port(const parts_flood *flood) { return flood->port; }

bool parts_flood_end(parts_flood *flood) {
  pthread_mutex_lock(&flood->lock);
  shutdown(flood->connection >= 0 ? flood->connection : flood->listener,
           SHUT_RDWR);
  pthread_mutex_unlock(&flood->lock);
  pthread_join(flood->thread, NULL);
  close(flood->listener);
  if (flood->connection >= 0)
    close(flood->connection);
  SSL_CTX_free(flood->context);
  bool taken = flood->taken;
  free(flood);
  return taken;
}
