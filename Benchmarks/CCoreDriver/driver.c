#include "CCoreDriver.h"
