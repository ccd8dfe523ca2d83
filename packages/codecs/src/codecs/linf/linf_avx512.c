#include "linf.h"

TERSE_LINF(avx512)
