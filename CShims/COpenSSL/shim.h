#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* What OpenSSL offers as macros, which Swift does not import. */

/* A client: TLS 1.2 or newer, and no renegotiation. A write may send a part, and
 * be repeated from another address; a read returns after each record, also if
 * it was a message without data. OpenSSL's handler for the exit of the process
 * would free what other threads still use. NULL: no memory. */
static inline SSL_CTX *make_client(void) {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  if (!context)
    return NULL;
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  return context;
}

/* Sets the name that is sent in the handshake (RFC 6066, 3). */
static inline int set_sent_name(SSL *session, const char *name) {
  return SSL_set_tlsext_host_name(session, name) == 1;
}
