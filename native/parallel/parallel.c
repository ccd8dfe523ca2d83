#include "terse/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SHORT = 1 << 18 };  // elements a thread at least: 1 MiB of floats takes some 100 us, waking a thread some 20

typedef struct loop {
    void (*part)(void *, size_t, size_t);
    void *context;
    size_t n, share;
    unsigned parts;
} loop;

static atomic_uint wanted = 1;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;  // one loop is shared out at a time

// Under `lock`.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER, ended = PTHREAD_COND_INITIALIZER;
static loop current;
static unsigned started, taken, left;

static void run(const loop *l, unsigned p) {
    const size_t begin = p * l->share, end = p + 1 == l->parts ? l->n : begin + l->share;
    l->part(l->context, begin, end);
}

static void *work(void *nothing) {
    (void)nothing;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (taken >= current.parts) pthread_cond_wait(&wake, &lock);
        const loop mine = current;
        const unsigned p = taken++;
        pthread_mutex_unlock(&lock);
        run(&mine, p);
        pthread_mutex_lock(&lock);
        if (--left == 0) pthread_cond_signal(&ended);
    }
    return NULL;
}

// A child of fork() has none of the threads.
static void forget(void) {
    started = taken = left = current.parts = 0;
    pthread_mutex_init(&turn, NULL);
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&wake, NULL);
    pthread_cond_init(&ended, NULL);
}
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void forget_in_children(void) { pthread_atfork(NULL, NULL, forget); }

void terse_parallel_use(unsigned threads) { atomic_store(&wanted, threads < 1 ? 1 : threads > TERSE_PARALLEL_MOST ? TERSE_PARALLEL_MOST : threads); }

void terse_parallel(size_t n, size_t cut, void (*part)(void *context, size_t begin, size_t end), void *context) {
    size_t threads = atomic_load(&wanted);
    if (threads > n / SHORT) threads = n / SHORT;
    if (threads < 2 || pthread_mutex_trylock(&turn) != 0) {
        part(context, 0, n);
        return;
    }
    pthread_once(&once, forget_in_children);
    const size_t share = (n / threads + cut - 1) / cut * cut;
    const loop mine = {part, context, n, share, (unsigned)((n + share - 1) / share)};

    pthread_mutex_lock(&lock);
    pthread_t thread;
    pthread_attr_t roomy;  // kernels keep their scratch on the stack; some libraries give a thread 128 KiB
    pthread_attr_init(&roomy);
    pthread_attr_setstacksize(&roomy, (size_t)1 << 20);
    while (started + 1 < mine.parts && pthread_create(&thread, &roomy, work, NULL) == 0) pthread_detach(thread), started++;
    pthread_attr_destroy(&roomy);
    current = mine, taken = 0, left = mine.parts;
    pthread_cond_broadcast(&wake);
    while (taken < mine.parts) {  // the caller works too, on all parts if no thread could be started
        const unsigned p = taken++;
        pthread_mutex_unlock(&lock);
        run(&mine, p);
        pthread_mutex_lock(&lock);
        left--;
    }
    while (left) pthread_cond_wait(&ended, &lock);
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&turn);
}
