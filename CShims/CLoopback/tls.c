/* tls.c - TLS with OpenSSL over two memory BIOs: libuv moves the bytes. */
#include "internal.h"

#include <openssl/err.h>
#include <string.h>

/* Chooses the first of the server's protocols that the client offers; if there
 * is none, the handshake continues without. `arg`: in wire form, with the
 * length in the first byte. */
static int choose_protocol(SSL *ssl, const unsigned char **out,
                           unsigned char *length, const unsigned char *offered,
                           unsigned offered_length, void *arg) {
  const unsigned char *mine = arg;
  unsigned char *chosen;
  (void)ssl;
  if (SSL_select_next_proto(&chosen, length, mine + 1, mine[0], offered,
                            offered_length) != OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_NOACK;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

static void free_protocols(void *parent, void *list, CRYPTO_EX_DATA *data,
                           int index, long argl, void *argp) {
  (void)parent, (void)data, (void)index, (void)argl, (void)argp;
  OPENSSL_free(list);
}

/* Converts "h2,http/1.1" to length-prefixed names; the context owns the
 * list. */
static void set_protocols(SSL_CTX *ctx, const char *names) {
  static int index = -1;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  size_t length = strlen(names);
  unsigned char *list;
  size_t made = 1;
  if (length > 200) return;
  list = OPENSSL_malloc(length + 2);
  if (!list) return;
  while (*names) {
    size_t size = strcspn(names, ",");
    list[made++] = (unsigned char)size;
    memcpy(list + made, names, size);
    made += size;
    names += size + (names[size] == ',');
  }
  list[0] = (unsigned char)(made - 1);
  pthread_mutex_lock(&lock);
  if (index < 0)
    index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_protocols);
  pthread_mutex_unlock(&lock);
  if (!SSL_CTX_set_ex_data(ctx, index, list)) OPENSSL_free(list);
  else SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, list);
}

static int version_of(int number) {
  return number == 13 ? TLS1_3_VERSION : number == 12 ? TLS1_2_VERSION : 0;
}

SSL_CTX *lb__tls_context(const loopback_options *options) {
  const loopback_certificate *certificate = options->certificate;
  const char *protocols = options->protocols;
  int least = version_of(options->minimum_tls);
  SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
  if (!ctx) return NULL;
  SSL_CTX_set_min_proto_version(ctx, least ? least : TLS1_2_VERSION);
  SSL_CTX_set_max_proto_version(ctx, version_of(options->maximum_tls));
  SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"loopback", 8);
  if (options->demands_certificate)
    SSL_CTX_set_verify(
        ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
  if (lb__certificate_use(certificate, ctx) ||
      (options->demands_certificate &&
       lb__certificate_trust(certificate, ctx))) {
    SSL_CTX_free(ctx);
    return NULL;
  }
  if (protocols && *protocols) set_protocols(ctx, protocols);
  return ctx;
}

bool lb__tls_begin(lb_conn *c) {
  if (!c->server->tls) return false;
  c->ssl = SSL_new(c->server->tls);
  c->ssl_in = BIO_new(BIO_s_mem());
  c->ssl_out = BIO_new(BIO_s_mem());
  if (!c->ssl || !c->ssl_in || !c->ssl_out) {
    BIO_free(c->ssl_in);
    BIO_free(c->ssl_out);
    SSL_free(c->ssl);
    c->ssl = NULL;
    return false;
  }
  BIO_set_mem_eof_return(c->ssl_in, -1);
  BIO_set_mem_eof_return(c->ssl_out, -1);
  SSL_set_bio(c->ssl, c->ssl_in, c->ssl_out);
  SSL_set_accept_state(c->ssl);
  c->ssl_ready = false;
  return true;
}

/* The alert is sent before the socket is closed. */
static void fail(lb_conn *c) {
  lb__tls_push(c);
  ERR_clear_error();
  lb__conn_close(c);
}

static bool handshake(lb_conn *c) {
  int result = SSL_do_handshake(c->ssl);
  if (result != 1) {
    if (SSL_get_error(c->ssl, result) != SSL_ERROR_WANT_READ) fail(c);
    return false;
  }
  c->ssl_ready = true;
  lb__count(&c->server->handshakes, 1);
  if (c->server->watches) lb__watches_look(c->server);
  return true;
}

/* Decrypts into `in`. */
void lb__tls_feed(lb_conn *c, const char *bytes, size_t size) {
  if (size && BIO_write(c->ssl_in, bytes, (int)size) != (int)size) {
    lb__conn_close(c);
    return;
  }
  if (!c->ssl_ready && !handshake(c)) return;
  for (;;) {
    char *room = lb__buf_room(&c->in, 16 * 1024);
    int got = SSL_read(c->ssl, room, 16 * 1024);
    if (got <= 0) {
      int error = SSL_get_error(c->ssl, got);
      if (error == SSL_ERROR_ZERO_RETURN) c->ended = true;
      else if (error != SSL_ERROR_WANT_READ) fail(c);
      return;
    }
    c->in.end += (size_t)got;
  }
}

void lb__tls_encrypt(lb_conn *c, const char *bytes, size_t size) {
  /* A memory BIO accepts everything: a short write is an error. */
  if (SSL_write(c->ssl, bytes, (int)size) != (int)size) fail(c);
}

bool lb__tls_update_keys(lb_conn *c, uint64_t count) {
  if (!c->ssl || !c->ssl_ready) return false;
  for (uint64_t i = 0; i < count; i++) {
    if (SSL_key_update(c->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) != 1 ||
        SSL_do_handshake(c->ssl) != 1) {
      ERR_clear_error();
      return false;
    }
  }
  lb__tls_push(c);
  return !c->closing;
}

void lb__tls_goodbye(lb_conn *c) {
  if (!c->ssl || !c->ssl_ready || c->closing) return;
  SSL_shutdown(c->ssl);
  ERR_clear_error();
  lb__tls_push(c);
}

void lb__tls_end(lb_conn *c) {
  if (c->ssl) SSL_free(c->ssl);
  c->ssl = NULL;
  c->ssl_in = c->ssl_out = NULL;
}
