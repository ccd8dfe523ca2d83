#include "qsgd.h"

TERSE_QSGD(avx2)
