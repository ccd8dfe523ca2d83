#include "qsgd.h"

TERSE_QSGD(avx512)
