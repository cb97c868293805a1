/* A resolver that hangs, or lies: the tests' own getaddrinfo() stands before
 * the system's in the whole process, and keeps who asks for a name that ends
 * in ".held.test" until it is let go. Names that end in ".inside.test" are
 * this machine's, and those that end in ".several.test" have the addresses that
 * are given here. */
#ifndef CRESOLVER_H
#define CRESOLVER_H

/* Lookups that are kept at this moment. */
int resolver_held(void);

/* Lets go all that are kept: there is no such name. */
void resolver_release(void);

/* "127.0.0.1,127.0.0.2", of IPv4. */
void resolver_answer(const char *addresses);

#endif
