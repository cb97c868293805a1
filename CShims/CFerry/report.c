/* report.c - what a loop counts, and what it is built on. */
#include "core.h"

#include <stdio.h>

void ferry_loop_statistics(const ferry_loop *loop, ferry_statistics *out) {
  const ferry__counters *c = &loop->counters;
#define READ(name)                                                            \
  out->name = atomic_load_explicit(&c->name, memory_order_relaxed)
  READ(waiting);
  READ(resolving);
  READ(running);
  READ(sockets);
  READ(handles);
  READ(submitted);
  READ(finished);
  READ(connections);
  READ(lookups);
  READ(guarded);
  READ(turns);
  READ(longest_turn_us);
#undef READ
}

static char version[256];
static pthread_once_t version_once = PTHREAD_ONCE_INIT;
static void make_version(void) {
  const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
  snprintf(version, sizeof version, "libcurl/%s %s libuv/%s zlib/%s",
           curl->version, curl->ssl_version ? curl->ssl_version : "no TLS",
           uv_version_string(), zlibVersion());
}

unsigned ferry_features(void) {
  int had = curl_version_info(CURLVERSION_NOW)->features;
  return (had & CURL_VERSION_HTTP2 ? FERRY_FEATURE_HTTP2 : 0u) |
         (had & CURL_VERSION_NTLM ? FERRY_FEATURE_NTLM : 0u) |
         (had & CURL_VERSION_SPNEGO ? FERRY_FEATURE_NEGOTIATE : 0u) |
         (had & CURL_VERSION_PSL ? FERRY_FEATURE_PUBLIC_SUFFIXES : 0u);
}

const char *ferry_version(void) {
  pthread_once(&version_once, make_version);
  return version;
}
