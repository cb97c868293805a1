#include "CLoopback.h"
