#ifndef CCOREDRIVER_H
#define CCOREDRIVER_H
#endif
