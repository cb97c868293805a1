/* core.h - an event loop together with the state of all layers. */
#ifndef FERRY_CORE_H
#define FERRY_CORE_H

#include "http1/engine.h"
#include "curl/compat.h"

typedef struct ferry__core {
  ferry_loop loop; /* must be first */
  ferry__transfers transfers;
  ferry__hosts hosts;
  ferry__admission admission;
  ferry__curl curl;
  ferry__http1 http1;
} ferry__core;

/* Makes a loop, with all its parts zeroed. NULL if there is not enough memory.
 * A loop that was not started is freed with free(). */
ferry_loop *ferry__core_make(void);

#endif
