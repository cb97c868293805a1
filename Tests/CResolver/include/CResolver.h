/* A resolver that hangs, or lies: the tests' own getaddrinfo() stands before
 * the system's in the whole process, and keeps who asks for a name that ends
 * in ".held.test" until it is let go. Names that end in ".inside.test" are
 * this machine's. */
#ifndef CRESOLVER_H
#define CRESOLVER_H

/* Lookups that are kept at this moment. */
int resolver_held(void);

/* Lets go all that are kept: there is no such name. */
void resolver_release(void);

#endif
