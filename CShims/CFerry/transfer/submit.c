/* submit.c - submits and controls transfers, from any thread. */
#include "transfer/transfer.h"

#include <stdlib.h>

int ferry_submit(ferry_loop *loop, const ferry_request *request,
                 int *detail) {
  ferry__transfer *transfer;
  if (detail)
    *detail = FERRY_D_NONE;
  /* Checked here, not only when the loop closes its inbox: threads that keep on
   * submitting would keep it from getting there. */
  if (atomic_load_explicit(&loop->stopping, memory_order_acquire))
    return FERRY_E_SHUTDOWN;
  ferry__fault fault = ferry__transfer_make(request, &transfer);
  if (fault.code) {
    if (detail)
      *detail = fault.detail;
    return fault.code;
  }
  int code = ferry__mailbox_put(loop, transfer);
  if (code)
    free(transfer);
  return code;
}

static void command(ferry_loop *loop, uint64_t id, uint8_t kind) {
  ferry__mailbox_command(loop, (ferry__command){.kind = kind, .id = id});
}

void ferry_cancel(ferry_loop *loop, uint64_t id) {
  command(loop, id, FERRY__CANCEL);
}

void ferry_resume(ferry_loop *loop, uint64_t id) {
  command(loop, id, FERRY__RESUME);
}

void ferry_resume_sending(ferry_loop *loop, uint64_t id) {
  command(loop, id, FERRY__RESUME_SENDING);
}

void ferry_pause(ferry_loop *loop, uint64_t id) {
  command(loop, id, FERRY__PAUSE);
}

void ferry_write_to(ferry_loop *loop, uint64_t id, int32_t fd, int64_t offset,
                    uint64_t most) {
  ferry__mailbox_command(
      loop, (ferry__command){.kind = FERRY__WRITE_TO, .id = id, .fd = fd,
                             .offset = offset, .most = most});
}

void ferry_set_priority(ferry_loop *loop, uint64_t id, int priority) {
  int ring = priority < FERRY_LOW    ? FERRY_LOW
             : priority > FERRY_HIGH ? FERRY_HIGH
                                     : priority;
  ferry__mailbox_command(loop,
                         (ferry__command){.kind = FERRY__PRIORITY, .id = id,
                                          .priority = (uint8_t)ring});
}

void ferry_call(ferry_loop *loop) { ferry__mailbox_call(loop); }
