#include "qsgd.h"

TERSE_QSGD(neon)
