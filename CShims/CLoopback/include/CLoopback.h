#ifndef CLOOPBACK_H
#define CLOOPBACK_H
#endif
