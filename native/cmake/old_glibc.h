// Included before sources that use threads, where TERSE_OLD_GLIBC is on. glibc 2.34 gave these functions new versions
// that do the same. A library that asks for the first versions loads on every glibc since 2.17.
#include <features.h>
#if defined(__GLIBC__) && defined(__x86_64__)
#define TERSE_FIRST "GLIBC_2.2.5"
#elif defined(__GLIBC__) && defined(__aarch64__)
#define TERSE_FIRST "GLIBC_2.17"
#endif
#ifdef TERSE_FIRST
#define TERSE_AS_AT_FIRST(function) __asm__(".symver " #function ", " #function "@" TERSE_FIRST);
TERSE_AS_AT_FIRST(pthread_attr_setstacksize)
TERSE_AS_AT_FIRST(pthread_create)
TERSE_AS_AT_FIRST(pthread_detach)
TERSE_AS_AT_FIRST(pthread_mutex_trylock)
TERSE_AS_AT_FIRST(pthread_once)
#endif
