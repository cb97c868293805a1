/* tls.c - TLS for the native engine, with OpenSSL and the loop's options: the
 * same authorities, pins and client certificate as for libcurl. */
#include "http1/http1.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* ---- The context --------------------------------------------------------- */

static int give_password(char *space, int size, int writing, void *data) {
  const char *password = data;
  (void)writing;
  if (!password || (int)strlen(password) > size)
    return -1;
  memcpy(space, password, strlen(password));
  return (int)strlen(password);
}

static bool set_authorities(SSL_CTX *context, const ferry_loop *loop) {
  if (loop->ca_file)
    return SSL_CTX_load_verify_file(context, loop->ca_file) == 1;
  /* The default that libcurl was built with. */
  const char *file = curl_version_info(CURLVERSION_NOW)->cainfo;
  if (file && SSL_CTX_load_verify_file(context, file) == 1)
    return true;
  return SSL_CTX_set_default_verify_paths(context) == 1;
}

static bool set_certificate(SSL_CTX *context, const ferry_loop *loop) {
  if (!loop->client_certificate)
    return true;
  const char *key =
      loop->client_key ? loop->client_key : loop->client_certificate;
  SSL_CTX_set_default_passwd_cb(context, give_password);
  SSL_CTX_set_default_passwd_cb_userdata(context, loop->client_key_password);
  return SSL_CTX_use_certificate_chain_file(context,
                                            loop->client_certificate) == 1 &&
         SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1 &&
         SSL_CTX_check_private_key(context) == 1;
}

/* Stores a ticket: it shortens the next handshake with this origin. */
static int on_session(SSL *tls, SSL_SESSION *session) {
  ferry__connection *c = SSL_get_app_data(tls);
  if (SSL_get_SSL_CTX(tls) != c->loop->http1->tls)
    return 0; /* the ticket was issued under a trust that has been replaced */
  SSL_SESSION_free(c->route->session);
  c->route->session = session;
  return 1; /* we own it now */
}

static bool is_usable(const char *path) {
  return !path || ferry__is_file(path);
}

static SSL_CTX *make_context(const ferry_loop *loop) {
  static const unsigned char alpn[] = "\x08http/1.1";
  if ((!loop->options.insecure && !is_usable(loop->ca_file)) ||
      !is_usable(loop->client_certificate) || !is_usable(loop->client_key))
    return NULL;
  SSL_CTX *context = SSL_CTX_new(TLS_client_method());
  if (!context)
    return NULL;
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS |
                                SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  /* A server has no reason to renegotiate in the middle of a response, and
   * could do so without end. */
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  /* With TLS 1.3 the server may ask for the certificate later, with the
   * request. */
  if (loop->client_certificate)
    SSL_CTX_set_post_handshake_auth(context, 1);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_session_cache_mode(
      context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(context, on_session);
  SSL_CTX_set_verify(
      context, loop->options.insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER,
      NULL);
  /* An authority need not be a root: the given certificates are trusted. */
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context),
                              X509_V_FLAG_PARTIAL_CHAIN);
  if (SSL_CTX_set_min_proto_version(
          context, loop->options.minimum_tls == FERRY_TLS_1_3
                       ? TLS1_3_VERSION
                       : TLS1_2_VERSION) == 1 &&
      !SSL_CTX_set_alpn_protos(context, alpn, sizeof alpn - 1) &&
      (loop->options.insecure || set_authorities(context, loop)) &&
      set_certificate(context, loop))
    return context;
  SSL_CTX_free(context);
  return NULL;
}

/* Why there is none. */
static const char *context_fault(void) {
  const char *words = ERR_reason_error_string(ERR_peek_last_error());
  return words ? words : "the files cannot be read";
}

/* ---- Its renewal --------------------------------------------------------- */

enum { LOOK_MS = 1000 };

static ferry__file_mark mark_of(const char *path) {
  struct stat s;
  ferry__file_mark mark = {0};
  if (path && !stat(path, &s))
    mark = (ferry__file_mark){
        .device = (uint64_t)s.st_dev,
        .inode = (uint64_t)s.st_ino,
        .size = (uint64_t)s.st_size,
        .changed_ns = (uint64_t)s.st_mtim.tv_sec * 1000000000 +
                      (uint64_t)s.st_mtim.tv_nsec,
    };
  return mark;
}

/* Returns true if they have changed since the last check. */
static bool look_at_files(ferry_loop *loop) {
  const ferry__file_mark marks[] = {mark_of(loop->ca_file),
                                    mark_of(loop->client_certificate),
                                    mark_of(loop->client_key)};
  loop->http1->trust_at = ferry__now(loop);
  if (!memcmp(loop->http1->trust, marks, sizeof marks))
    return false;
  memcpy(loop->http1->trust, marks, sizeof marks);
  return true;
}

/* A resumed handshake checks no certificate, so these must go. */
static void drop_sessions(ferry_loop *loop) {
  for (ferry__host *host = loop->hosts->oldest; host; host = host->newer)
    for (ferry__route *route = host->routes; route; route = route->next) {
      SSL_SESSION_free(route->session);
      route->session = NULL;
    }
}

/* Existing connections keep what they were made with. Files that are being
 * written, or that do not match yet, are unusable, and are tried again after
 * the next change. */
static void renew(ferry_loop *loop) {
  const char *fault = NULL;
  SSL_CTX *context = make_context(loop);
  if (context) {
    SSL_CTX_free(loop->http1->tls);
    loop->http1->tls = context;
    drop_sessions(loop);
    ferry__count(&loop->counters.trust_renewals, 1);
  } else {
    fault = context_fault();
    ferry__count(&loop->counters.trust_faults, 1);
  }
  if (loop->options.on_trust)
    loop->options.on_trust(loop->options.context, fault);
  ERR_clear_error();
}

/* Whether a context exists; makes it on first use. */
static bool have_context(ferry_loop *loop) {
  ferry__http1 *http1 = loop->http1;
  if (!http1->tls) {
    look_at_files(loop);
    return (http1->tls = make_context(loop));
  }
  if (ferry__now(loop) >= http1->trust_at + LOOK_MS && look_at_files(loop))
    renew(loop);
  return true;
}

/* ---- Faults -------------------------------------------------------------- */

static ferry__fault tls_fault(int detail) {
  return (ferry__fault){FERRY_E_TLS, detail};
}

static void fail(ferry__connection *c, int detail, const char *words) {
  if (c->transfer)
    c->transfer->phase = detail == FERRY_D_TLS_CONFIGURATION
                             ? FERRY_PHASE_CONNECT
                             : FERRY_PHASE_TLS;
  ferry__connection_failed(c, tls_fault(detail), 0, words);
}

static int verdict_detail(long verdict) {
  switch (verdict) {
  case X509_V_ERR_CERT_HAS_EXPIRED:
  case X509_V_ERR_CERT_NOT_YET_VALID:
    return FERRY_D_TLS_EXPIRED;
  case X509_V_ERR_HOSTNAME_MISMATCH:
  case X509_V_ERR_IP_ADDRESS_MISMATCH:
    return FERRY_D_TLS_HOSTNAME;
  default:
    return FERRY_D_TLS_UNTRUSTED;
  }
}

static void handshake_failed(ferry__connection *c) {
  unsigned long error = ERR_peek_error();
  long verdict = SSL_get_verify_result(c->tls);
  if (ERR_GET_LIB(error) == ERR_LIB_SSL &&
      ERR_GET_REASON(error) == SSL_R_CERTIFICATE_VERIFY_FAILED)
    fail(c, verdict_detail(verdict), X509_verify_cert_error_string(verdict));
  else if (!ferry__connection_gives_way(c))
    fail(c, FERRY_D_TLS_HANDSHAKE, ERR_reason_error_string(error));
}

/* With TLS 1.3 the server checks our certificate after our side of the
 * handshake. Its alert arrives in place of the response. */
ferry__fault ferry__tls_alert(const char **words) {
  int reason = ERR_GET_REASON(ERR_peek_error());
  *words = ERR_reason_error_string(ERR_peek_error());
  switch (reason) {
  case SSL_R_SSLV3_ALERT_NO_CERTIFICATE:
  case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
  case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
  case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
  case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
  case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
  case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
  case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
  case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
  case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    return tls_fault(FERRY_D_TLS_HANDSHAKE);
  default:
    return (ferry__fault){FERRY_OK, 0};
  }
}

/* ---- The peer ------------------------------------------------------------ */

/* "sha256//…;sha256//…": hashes of the public key (SubjectPublicKeyInfo). */
static bool is_pinned(const char *pins, const char *key) {
  static const char prefix[] = "sha256//";
  size_t length = strlen(key);
  while (*pins) {
    size_t n = strcspn(pins, ";");
    if (n == sizeof prefix - 1 + length &&
        !memcmp(pins, prefix, sizeof prefix - 1) &&
        !memcmp(pins + sizeof prefix - 1, key, length))
      return true;
    pins += n + (pins[n] == ';');
  }
  return false;
}

static bool has_pinned_key(const ferry__connection *c) {
  unsigned char digest[EVP_MAX_MD_SIZE], text[2 * EVP_MAX_MD_SIZE];
  unsigned char *der = NULL;
  unsigned size = 0;
  X509 *certificate = SSL_get1_peer_certificate(c->tls);
  int length = certificate
                   ? i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der)
                   : -1;
  bool good = length > 0 && EVP_Digest(der, (size_t)length, digest, &size,
                                       EVP_sha256(), NULL) == 1;
  if (good) {
    EVP_EncodeBlock(text, digest, (int)size);
    good = is_pinned(c->loop->pinned_keys, (char *)text);
  }
  OPENSSL_free(der);
  X509_free(certificate);
  return good;
}

/* Sets the name that the certificate must have, and the name sent in the
 * handshake (RFC 6066, 3: no address, no dot of the root). */
static bool set_name(SSL *tls, const ferry__host *host, bool insecure) {
  X509_VERIFY_PARAM *param = SSL_get0_param(tls);
  size_t length = strlen(host->name);
  char *name = strdup(host->name);
  bool good = name != NULL;
  if (!good)
    return false;
  if (host->literal) {
    if (name[0] == '[') {
      memmove(name, name + 1, length - 2);
      name[length - 2] = 0;
    }
    good = insecure || X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1;
  } else {
    if (length && name[length - 1] == '.')
      name[length - 1] = 0;
    X509_VERIFY_PARAM_set_hostflags(param,
                                    X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    good = SSL_set_tlsext_host_name(tls, name) == 1 &&
           (insecure || X509_VERIFY_PARAM_set1_host(param, name, 0) == 1);
  }
  free(name);
  return good;
}

/* ---- Floods -------------------------------------------------------------- */

/* Messages without data, such as KeyUpdate (RFC 8446, 4.6.3) and HelloRequest
 * (RFC 5246, 7.4.1.1), are cheap for the server: 30,000 of them kept the loop
 * in one call of SSL_read() for half a second. */
enum {
  TURN = 32768,   /* bytes that OpenSSL may take in one call, more or less */
  FLOOD = 262144, /* more than any handshake, and than any record */
};

static long on_bio(BIO *bio, int operation, const char *data, size_t length,
                   int number, long other, int result, size_t *processed) {
  const ferry__connection *c = (const void *)BIO_get_callback_arg(bio);
  (void)data, (void)length, (void)number, (void)other, (void)processed;
  if (operation != BIO_CB_READ ||
      (uint32_t)BIO_number_read(bio) - c->turn_from < TURN)
    return result;
  BIO_clear_retry_flags(bio);
  BIO_set_retry_read(bio);
  return -1;
}

void ferry__tls_begin_turn(ferry__connection *c) {
  c->turn_from = ferry__tls_arrived(c);
}

bool ferry__tls_has_more(const ferry__connection *c) {
  char byte;
  return c->tls && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

bool ferry__tls_is_flooded(const ferry__connection *c) {
  if (ferry__tls_arrived(c) - c->useful_at < FLOOD)
    return false;
  ERR_clear_error();
  ERR_raise(ERR_LIB_SSL, SSL_R_TOO_MANY_KEY_UPDATES);
  return true;
}

/* ---- The handshake ------------------------------------------------------- */

void ferry__tls_begin(ferry__connection *c) {
  ferry_loop *loop = c->loop;
  c->state = FERRY__HANDSHAKING;
  if (c->transfer)
    c->transfer->phase = FERRY_PHASE_TLS;
  ERR_clear_error();
  if (!have_context(loop)) {
    fail(c, FERRY_D_TLS_CONFIGURATION, context_fault());
    return;
  }
  c->tls = SSL_new(loop->http1->tls);
  if (!c->tls || !SSL_set_fd(c->tls, c->fd) ||
      !set_name(c->tls, c->route->host, loop->options.insecure) ||
      !ferry__http2_offer(c)) {
    ferry__connection_failed(c, (ferry__fault){FERRY_E_MEMORY, 0}, 0, NULL);
    return;
  }
  SSL_set_app_data(c->tls, c);
  BIO_set_callback_arg(SSL_get_rbio(c->tls), (char *)c);
  BIO_set_callback_ex(SSL_get_rbio(c->tls), on_bio);
  if (c->route->session)
    SSL_set_session(c->tls, c->route->session);
  ferry__tls_step(c);
}

void ferry__tls_step(ferry__connection *c) {
  ERR_clear_error();
  errno = 0;
  ferry__tls_begin_turn(c);
  int code = SSL_connect(c->tls);
  if (code == 1) {
    c->useful_at = ferry__tls_arrived(c);
    if (c->loop->pinned_keys && !has_pinned_key(c)) {
      fail(c, FERRY_D_TLS_PIN_MISMATCH,
           "the server's public key is not a pinned key");
      return;
    }
    c->secured_ns = uv_hrtime();
    ferry__connection_ready(c);
    return;
  }
  int error = SSL_get_error(c->tls, code);
  if ((error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) ||
      ferry__tls_is_flooded(c)) {
    handshake_failed(c);
  } else if (ferry__connection_watch(c, error == SSL_ERROR_WANT_READ,
                                     error == SSL_ERROR_WANT_WRITE)) {
    ferry__connection_failed(
        c, (ferry__fault){FERRY_E_CONNECT, FERRY_D_CONNECT_FAILED}, errno,
        NULL);
  }
}
