/* ferry_base.h - what every part of CFerry.h includes. */
#ifndef CFERRY_BASE_H
#define CFERRY_BASE_H

#include <stddef.h>
#include <stdint.h>

#if !defined(__clang__)
#define _Nonnull
#define _Nullable
#endif

#endif
