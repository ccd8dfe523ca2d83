#include "sgd.h"

const terse_sgd terse_sgd_scalar = {"scalar", step};
