/* address.c - which addresses belong to the public internet: all that IANA's
 * special-purpose registries (RFC 6890 and its successors) do not list. */
#include "connection/host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

typedef struct block4 {
  uint32_t base;
  uint8_t bits;
} block4;

#define V4(a, b, c, d)                                                        \
  ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 |           \
   (uint32_t)(d))

static const block4 special4[] = {
    {V4(0, 0, 0, 0), 8},       /* this host; Linux connects to itself */
    {V4(10, 0, 0, 0), 8},      /* private, RFC 1918 */
    {V4(100, 64, 0, 0), 10},   /* carriers' NAT */
    {V4(127, 0, 0, 0), 8},     /* loopback */
    {V4(169, 254, 0, 0), 16},  /* link-local; clouds serve secrets there */
    {V4(172, 16, 0, 0), 12},   /* private */
    {V4(192, 0, 0, 0), 24},    /* protocol assignments */
    {V4(192, 0, 2, 0), 24},    /* documentation */
    {V4(192, 88, 99, 0), 24},  /* 6to4 relays, deprecated */
    {V4(192, 168, 0, 0), 16},  /* private */
    {V4(198, 18, 0, 0), 15},   /* benchmarks */
    {V4(198, 51, 100, 0), 24}, /* documentation */
    {V4(203, 0, 113, 0), 24},  /* documentation */
    {V4(224, 0, 0, 0), 4},     /* multicast */
    {V4(240, 0, 0, 0), 4},     /* reserved, broadcast */
};

static bool is_public4(uint32_t address) {
  for (size_t i = 0; i < sizeof special4 / sizeof *special4; i++)
    if ((address ^ special4[i].base) >> (32 - special4[i].bits) == 0)
      return false;
  return true;
}

typedef struct block6 {
  uint8_t base[6];
  uint8_t bits;
} block6;

static bool begins(const uint8_t *address, const uint8_t *base, int bits) {
  int whole = bits / 8, rest = bits % 8;
  return !memcmp(address, base, (size_t)whole) &&
         (!rest || (address[whole] ^ base[whole]) >> (8 - rest) == 0);
}

static uint32_t number(const uint8_t *p) { return V4(p[0], p[1], p[2], p[3]); }

static bool is_public6(const uint8_t *a) {
  static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
  static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};
  /* Special ranges within 2000::/3. The first includes Teredo. */
  static const block6 special[] = {
      {{0x20, 0x01, 0x00}, 23},             /* protocol assignments */
      {{0x20, 0x01, 0x0d, 0xb8}, 32},       /* documentation */
      {{0x3f, 0xff, 0x00}, 20},             /* documentation */
  };
  if (!memcmp(a, mapped, sizeof mapped) || !memcmp(a, nat64, sizeof nat64))
    return is_public4(number(a + 12));
  if (a[0] == 0x20 && a[1] == 0x02) /* 6to4: an embedded IPv4 address */
    return is_public4(number(a + 2));
  /* Nothing outside 2000::/3 is global unicast today: not ::, ::1, fc00::/7,
   * fe80::/10, fec0::/10, ff00::/8, nor the IPv4-compatible addresses. */
  if (a[0] >> 5 != 1)
    return false;
  for (size_t i = 0; i < sizeof special / sizeof *special; i++)
    if (begins(a, special[i].base, special[i].bits))
      return false;
  return true;
}

bool ferry__is_public(const struct sockaddr *address) {
  if (address->sa_family == AF_INET)
    return is_public4(
        ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr));
  return address->sa_family == AF_INET6 &&
         is_public6(((const struct sockaddr_in6 *)address)->sin6_addr.s6_addr);
}

int ferry_address_is_public(const char *text) {
  struct in_addr v4;
  struct in6_addr v6;
  char bare[INET6_ADDRSTRLEN] = "";
  if (inet_pton(AF_INET, text, &v4) == 1)
    return is_public4(ntohl(v4.s_addr));
  /* In brackets or not, with or without a zone. */
  size_t length = strcspn(text += text[0] == '[', "]%");
  if (length >= sizeof bare)
    return -1;
  memcpy(bare, text, length);
  return inet_pton(AF_INET6, bare, &v6) == 1 ? is_public6(v6.s6_addr) : -1;
}
