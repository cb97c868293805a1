/* local.c - URLs of a local socket: "http+unix://%2Frun%2Fa.sock/x". In place
 * of the host they have the escaped path of the socket. */
#include "transfer/transfer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

size_t ferry__local_prefix(const char *url, size_t length) {
  static const char plain[] = "http+unix://", secure[] = "https+unix://";
  if (length >= sizeof plain - 1 && !strncasecmp(url, plain, sizeof plain - 1))
    return sizeof plain - 1;
  if (length >= sizeof secure - 1 &&
      !strncasecmp(url, secure, sizeof secure - 1))
    return sizeof secure - 1;
  return 0;
}

static int digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

/* Characters of a registered name that need no escape (RFC 3986, 3.2.2). */
static bool stands_for_itself(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || (c && strchr("-._~!$&'()*+,;=", c));
}

int ferry__local_path(const char *in, size_t length, char **path) {
  char *to = *path = malloc(length + 1);
  if (!to)
    return FERRY_E_MEMORY;
  for (size_t i = 0; i < length; i++) {
    int byte = in[i];
    if (byte == '%' && length - i > 2 && digit(in[i + 1]) >= 0 &&
        digit(in[i + 2]) >= 0) {
      byte = digit(in[i + 1]) << 4 | digit(in[i + 2]);
      i += 2;
    } else if (!stands_for_itself(in[i])) {
      byte = 0;
    }
    *to++ = (char)byte;
    if (!byte)
      break;
  }
  *to = 0;
  if (length && to > *path && to[-1])
    return FERRY_OK;
  free(*path);
  *path = NULL;
  return FERRY_E_INVALID_URL;
}

/* Host names are lower-cased, here and elsewhere. Characters of a path that
 * this would change are escaped. */
char *ferry__local_authority(const char *path) {
  static const char digits[] = "0123456789abcdef";
  char *text = malloc(3 * strlen(path) + 1), *to = text;
  if (!text)
    return NULL;
  for (; *path; path++) {
    unsigned char c = (unsigned char)*path;
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
        c == '.' || c == '_' || c == '~') {
      *to++ = (char)c;
      continue;
    }
    *to++ = '%';
    *to++ = digits[c >> 4];
    *to++ = digits[c & 15];
  }
  *to = 0;
  return text;
}
