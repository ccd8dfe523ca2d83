#include "terse/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MIN_SHARE = 1 << 18 };  // elements per thread: 1 MiB of floats takes about 100 us, waking a thread about 20

typedef struct loop {
    void (*part)(void *, size_t, size_t);
    void *context;
    size_t n, share;
    unsigned parts;
} loop;

static atomic_uint thread_count = 1;
static _Atomic(terse_parallel_team *) lent;
static pthread_mutex_t one_loop = PTHREAD_MUTEX_INITIALIZER;  // held by the loop that has the threads

// All of these are guarded by `lock`.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER, ended = PTHREAD_COND_INITIALIZER;
static loop current;
static unsigned started, taken, left;  // threads; parts taken, parts not yet finished

static void run(void *context, unsigned p) {
    const loop *l = context;
    const size_t begin = p * l->share, end = p + 1 == l->parts ? l->n : begin + l->share;
    l->part(l->context, begin, end);
}

static void *work(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (taken >= current.parts) pthread_cond_wait(&wake, &lock);
        loop mine = current;
        const unsigned p = taken++;
        pthread_mutex_unlock(&lock);
        run(&mine, p);
        pthread_mutex_lock(&lock);
        if (--left == 0) pthread_cond_signal(&ended);
    }
    return NULL;
}

// A forked child has none of the threads.
static void reset_after_fork(void) {
    started = taken = left = current.parts = 0;
    pthread_mutex_init(&one_loop, NULL);
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&wake, NULL);
    pthread_cond_init(&ended, NULL);
}
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void reset_in_children(void) { pthread_atfork(NULL, NULL, reset_after_fork); }

void terse_parallel_use(unsigned threads) {
    atomic_store(&thread_count, threads < 1                          ? 1
                                : threads > TERSE_PARALLEL_MAX_PARTS ? TERSE_PARALLEL_MAX_PARTS
                                                                     : threads);
}

void terse_parallel_lend(terse_parallel_team *team) { atomic_store(&lent, team); }

void terse_parallel(size_t n, size_t grain, void (*part)(void *context, size_t begin, size_t end), void *context) {
    size_t threads = atomic_load(&thread_count);
    if (threads > n / MIN_SHARE) threads = n / MIN_SHARE;
    if (threads < 2) {
        part(context, 0, n);
        return;
    }
    const size_t share = (n / threads + grain - 1) / grain * grain;
    loop mine = {part, context, n, share, (unsigned)((n + share - 1) / share)};
    terse_parallel_team *const team = atomic_load(&lent);
    if (team && team(mine.parts, run, &mine)) return;
    if (pthread_mutex_trylock(&one_loop) != 0) {
        part(context, 0, n);
        return;
    }
    pthread_once(&once, reset_in_children);

    pthread_mutex_lock(&lock);
    pthread_t thread;
    pthread_attr_t attributes;  // kernels keep scratch arrays on the stack, and some C libraries give a thread only 128
                                // KiB
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)1 << 20);
    while (started + 1 < mine.parts && pthread_create(&thread, &attributes, work, NULL) == 0)
        pthread_detach(thread), started++;
    pthread_attr_destroy(&attributes);
    current = mine, taken = 0, left = mine.parts;
    pthread_cond_broadcast(&wake);
    while (taken < mine.parts) {  // the caller works too: on all parts if no thread could be started
        const unsigned p = taken++;
        pthread_mutex_unlock(&lock);
        run(&mine, p);
        pthread_mutex_lock(&lock);
        left--;
    }
    while (left) pthread_cond_wait(&ended, &lock);
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&one_loop);
}
