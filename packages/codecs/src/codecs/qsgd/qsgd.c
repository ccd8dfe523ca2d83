#include "qsgd.h"

TERSE_QSGD(scalar)
