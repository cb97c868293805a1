#include "CCoreParts.h"
#include "core.h"

#include <stdlib.h>
#include <string.h>

void parts_route_make(parts_route *route, const char *url, size_t length) {
  ferry__transfer *t;
  ferry_request request = {
      .id = 1, .url = url, .url_length = length,
      .method = "GET", .method_length = 3,
  };
  *route = (parts_route){0};
  route->code = ferry__transfer_make(&request, &t).code;
  if (!t)
    return;
  route->origin = strndup(t->origin, t->origin_length);
  route->target = strdup(t->target);
  ferry_result_free(&t->result);
}

void parts_route_free(parts_route *route) {
  free(route->origin);
  free(route->target);
}

const char *parts_libcurl(void) {
  return curl_version_info(CURLVERSION_NOW)->version;
}
