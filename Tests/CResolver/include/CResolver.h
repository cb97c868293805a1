/* A resolver that hangs, or lies: the tests' own getaddrinfo() replaces the
 * system's in the whole process. Lookups of names that end in ".held.test" hang
 * until they are released. Names that end in ".inside.test" are local, and
 * those that end in ".several.test" have the addresses that are set here. */
#ifndef CRESOLVER_H
#define CRESOLVER_H

/* The number of lookups that hang at this moment. */
int resolver_held(void);

/* Releases all that hang: the names do not exist. */
void resolver_release(void);

/* IPv4 addresses: "127.0.0.1,127.0.0.2". */
void resolver_answer(const char *addresses);

#endif
