#include "linf.h"

TERSE_LINF(scalar)
