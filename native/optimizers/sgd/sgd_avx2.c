#include "sgd.h"

const terse_sgd terse_sgd_avx2 = {"avx2", step};
