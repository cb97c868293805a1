/* report.c - the statistics of a loop, and the features of libcurl. */
#include "loop/loop.h"

void ferry_loop_statistics(const ferry_loop *loop, ferry_statistics *out) {
  const ferry__counters *c = &loop->counters;
#define READ(name)                                                            \
  out->name = atomic_load_explicit(&c->name, memory_order_relaxed)
  READ(waiting);
  READ(resolving);
  READ(running);
  READ(sockets);
  READ(handles);
  READ(hosts);
  READ(kept_bytes);
  READ(submitted);
  READ(finished);
  READ(connections);
  READ(lookups);
  READ(refresh_faults);
  READ(guarded);
  READ(turns);
  READ(longest_turn_us);
  READ(trust_renewals);
  READ(trust_faults);
#undef READ
}

unsigned ferry_features(void) {
  int had = curl_version_info(CURLVERSION_NOW)->features;
  return (had & CURL_VERSION_HTTP2 ? FERRY_FEATURE_HTTP2 : 0u) |
         (had & CURL_VERSION_NTLM ? FERRY_FEATURE_NTLM : 0u) |
         (had & CURL_VERSION_SPNEGO ? FERRY_FEATURE_NEGOTIATE : 0u);
}
