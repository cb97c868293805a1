/* certificate.c - certificates made in the process, so that no test needs a
 * file that expires one day. */
#include "internal.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY (24 * 60 * 60)

struct loopback_certificate {
  EVP_PKEY *key;
  X509 *leaf;
  X509 *root;
  char *client[3]; /* PEM, by LOOPBACK_CLIENT_… */
  char *authority; /* PEM */
  char pin[64];
};

static int add_extension(X509 *of, X509 *issuer, int nid, const char *value) {
  X509V3_CTX context;
  X509_EXTENSION *extension;
  int added;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, of, NULL, NULL, 0);
  extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
  if (!extension) return 0;
  added = X509_add_ext(of, extension, -1);
  X509_EXTENSION_free(extension);
  return added;
}

static int set_name(X509 *certificate, const char *common_name) {
  return X509_NAME_add_entry_by_txt(
      X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
      (const unsigned char *)common_name, -1, -1, 0);
}

/* Makes a certificate without signature, valid from `from` to `to` (seconds
 * from now), with the issuer's name (NULL = its own). */
static X509 *make_certificate(EVP_PKEY *key, X509 *issuer, const char *name,
                              long from, long to) {
  X509 *made = X509_new();
  unsigned char serial[16];
  BIGNUM *number = NULL;
  if (!made || RAND_bytes(serial, sizeof(serial)) != 1) goto fail;
  serial[0] = (serial[0] & 0x7F) | 0x40;
  number = BN_bin2bn(serial, sizeof(serial), NULL);
  if (!number || !BN_to_ASN1_INTEGER(number, X509_get_serialNumber(made)) ||
      !X509_set_version(made, 2) || !set_name(made, name) ||
      !X509_set_issuer_name(
          made, X509_get_subject_name(issuer ? issuer : made)) ||
      !X509_gmtime_adj(X509_getm_notBefore(made), from) ||
      !X509_gmtime_adj(X509_getm_notAfter(made), to) ||
      !X509_set_pubkey(made, key))
    goto fail;
  BN_free(number);
  return made;
fail:
  BN_free(number);
  X509_free(made);
  return NULL;
}

static X509 *make_authority(EVP_PKEY *key, const char *name) {
  X509 *made = make_certificate(key, NULL, name, -DAY, 30L * DAY);
  if (made &&
      add_extension(made, made, NID_basic_constraints, "critical,CA:TRUE") &&
      add_extension(made, made, NID_key_usage,
                    "critical,keyCertSign,cRLSign") &&
      add_extension(made, made, NID_subject_key_identifier, "hash") &&
      X509_sign(made, key, EVP_sha256()))
    return made;
  X509_free(made);
  return NULL;
}

static X509 *make_leaf(int kind, EVP_PKEY *key, X509 *issuer,
                       EVP_PKEY *issuer_key) {
  bool wrong = kind == LOOPBACK_CERTIFICATE_WRONG_HOST;
  bool own = kind == LOOPBACK_CERTIFICATE_SELF_SIGNED;
  long from = kind == LOOPBACK_CERTIFICATE_NOT_YET_VALID ? 10L * DAY : -2 * DAY;
  long to = kind == LOOPBACK_CERTIFICATE_EXPIRED ? -DAY : 20L * DAY;
  X509 *made = make_certificate(key, own ? NULL : issuer,
                                wrong ? "wrong.example" : "localhost", from,
                                to);
  if (!made) return NULL;
  if (own) issuer = made;
  if (add_extension(made, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
      add_extension(made, issuer, NID_key_usage, "critical,digitalSignature") &&
      add_extension(made, issuer, NID_ext_key_usage, "serverAuth") &&
      add_extension(made, issuer, NID_subject_key_identifier, "hash") &&
      add_extension(made, issuer, NID_authority_key_identifier, "keyid") &&
      add_extension(made, issuer, NID_subject_alt_name,
                    wrong ? "DNS:wrong.example"
                          : "DNS:localhost,IP:127.0.0.1,IP:::1") &&
      X509_sign(made, own ? key : issuer_key, EVP_sha256()))
    return made;
  X509_free(made);
  return NULL;
}

static X509 *make_client(EVP_PKEY *key, X509 *issuer, EVP_PKEY *issuer_key) {
  X509 *made = make_certificate(key, issuer, "ferry client", -DAY, 20L * DAY);
  if (made &&
      add_extension(made, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
      add_extension(made, issuer, NID_ext_key_usage, "clientAuth") &&
      X509_sign(made, issuer_key, EVP_sha256()))
    return made;
  X509_free(made);
  return NULL;
}

static char *pem_of_key(EVP_PKEY *key, char *password) {
  BIO *bio = BIO_new(BIO_s_mem());
  char *bytes;
  char *text = NULL;
  long size;
  if (bio && PEM_write_bio_PKCS8PrivateKey(
                 bio, key, password ? EVP_aes_256_cbc() : NULL, password,
                 password ? (int)strlen(password) : 0, NULL, NULL)) {
    size = BIO_get_mem_data(bio, &bytes);
    text = lb__copy(bytes, (size_t)size);
  }
  BIO_free(bio);
  return text;
}

static char *pem_of(X509 *certificate) {
  BIO *bio = BIO_new(BIO_s_mem());
  char *bytes;
  char *text = NULL;
  long size;
  if (bio && PEM_write_bio_X509(bio, certificate)) {
    size = BIO_get_mem_data(bio, &bytes);
    text = lb__copy(bytes, (size_t)size);
  }
  BIO_free(bio);
  return text;
}

static bool make_client_parts(loopback_certificate *made, X509 *authority,
                              EVP_PKEY *authority_key) {
  char password[] = "ferry";
  EVP_PKEY *key = EVP_EC_gen("P-256");
  X509 *client = key ? make_client(key, authority, authority_key) : NULL;
  if (client) {
    made->client[LOOPBACK_CLIENT_CERTIFICATE] = pem_of(client);
    made->client[LOOPBACK_CLIENT_KEY] = pem_of_key(key, NULL);
    made->client[LOOPBACK_CLIENT_LOCKED_KEY] = pem_of_key(key, password);
  }
  X509_free(client);
  EVP_PKEY_free(key);
  for (int i = 0; i < 3; i++)
    if (!made->client[i]) return false;
  return true;
}

static int make_pin(X509 *leaf, char *pin, size_t size) {
  unsigned char *der = NULL;
  unsigned char digest[32];
  char text[48];
  int length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(leaf), &der);
  int result = 0;
  if (length <= 0) return 0;
  if (EVP_Digest(der, (size_t)length, digest, NULL, EVP_sha256(), NULL)) {
    EVP_EncodeBlock((unsigned char *)text, digest, sizeof(digest));
    result = snprintf(pin, size, "sha256//%s", text) > 0;
  }
  OPENSSL_free(der);
  return result;
}

int loopback_certificate_make(int kind, loopback_certificate **out) {
  loopback_certificate *made = lb__alloc(sizeof(*made));
  EVP_PKEY *authority_key = EVP_EC_gen("P-256");
  EVP_PKEY *other_key = EVP_EC_gen("P-256");
  X509 *authority = NULL;
  X509 *other = NULL;
  bool untrusted = kind == LOOPBACK_CERTIFICATE_UNTRUSTED;
  int result = -1;
  *out = NULL;
  made->key = EVP_EC_gen("P-256");
  if (!authority_key || !other_key || !made->key) goto done;
  authority = make_authority(authority_key, "Ferry Testing Authority");
  other = make_authority(other_key, "Ferry Unknown Authority");
  if (!authority || !other) goto done;
  made->leaf = make_leaf(kind, made->key, untrusted ? other : authority,
                         untrusted ? other_key : authority_key);
  if (!made->leaf) goto done;
  made->authority = pem_of(authority);
  if (!made->authority) goto done;
  if (!make_client_parts(made, authority, authority_key)) goto done;
  made->root = X509_dup(authority);
  if (!made->root) goto done;
  if (make_pin(made->leaf, made->pin, sizeof(made->pin))) result = 0;
done:
  X509_free(authority);
  X509_free(other);
  EVP_PKEY_free(authority_key);
  EVP_PKEY_free(other_key);
  if (result) loopback_certificate_free(made);
  else *out = made;
  return result;
}

const char *loopback_certificate_authority(
    const loopback_certificate *certificate) {
  return certificate->authority;
}

const char *loopback_certificate_pin(const loopback_certificate *certificate) {
  return certificate->pin;
}

const char *loopback_certificate_client(
    const loopback_certificate *certificate, int part) {
  return certificate->client[part];
}

int lb__certificate_trust(const loopback_certificate *certificate,
                          SSL_CTX *ctx) {
  return X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx),
                             certificate->root) == 1 &&
                 SSL_CTX_add_client_CA(ctx, certificate->root) == 1
             ? 0
             : -1;
}

int lb__certificate_use(const loopback_certificate *certificate, SSL_CTX *ctx) {
  return SSL_CTX_use_certificate(ctx, certificate->leaf) == 1 &&
                 SSL_CTX_use_PrivateKey(ctx, certificate->key) == 1
             ? 0
             : -1;
}

void loopback_certificate_free(loopback_certificate *certificate) {
  X509_free(certificate->leaf);
  X509_free(certificate->root);
  for (int i = 0; i < 3; i++) free(certificate->client[i]);
  EVP_PKEY_free(certificate->key);
  free(certificate->authority);
  free(certificate);
}
