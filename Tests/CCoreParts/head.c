#include "CCoreParts.h"
#include "core.h"

#include <stdlib.h>
#include <string.h>

void parts_head_read(parts_head *out, const char *bytes, size_t length,
                     uint32_t limit) {
  ferry__head head = {0};
  ferry__fault fault = {0, 0};
  ferry__head_begin(&head, limit);
  head.http2 = true; /* is more lenient */
  while (!fault.code && !head.complete && length) {
    const char *end = memchr(bytes, '\n', length);
    if (!end)
      break;
    size_t line = (size_t)(end - bytes) + 1;
    fault = ferry__head_line(&head, bytes, line);
    bytes += line;
    length -= line;
  }
  free(head.aside);
  *out = (parts_head){
      .code = fault.code, .detail = fault.detail,
      .complete = head.complete, .chunked = head.chunked,
      .status = head.status, .content_length = head.content_length,
      .received = head.received, .length = head.length, .count = head.count,
      .bytes = head.bytes, .fields = head.fields,
  };
}

void parts_head_free(parts_head *head) {
  free(head->bytes);
  free(head->fields);
}
