#include "terse/optimizers.h"
#include "terse/parallel.h"

uint32_t terse_optimizers_abi(void) { return TERSE_OPTIMIZERS_ABI; }

void terse_optimizers_use_threads(unsigned threads) { terse_parallel_use(threads); }

const char *terse_optimizer_sentence(terse_optimizer_status status) {
    switch (status) {
        case TERSE_OPTIMIZER_OK: return "No error.";
        case TERSE_OPTIMIZER_UNAVAILABLE: return "There is no such implementation, or this machine cannot run it.";
        case TERSE_OPTIMIZER_BAD_RANKS: return "A tally takes 1 to 1024 ranks.";
    }
    return "This status is not one of terse_optimizer_status.";
}
