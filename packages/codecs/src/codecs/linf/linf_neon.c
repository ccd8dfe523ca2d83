#include "linf.h"

TERSE_LINF(neon)
