#include "scaled_sign.h"

TERSE_SCALED_SIGN(avx2)
