/* Extended attributes (xattr(7)): Swift's Glibc module does not have them. */
#ifndef FERRY_XATTR_SHIM_H
#define FERRY_XATTR_SHIM_H

#include <sys/xattr.h>

#endif
