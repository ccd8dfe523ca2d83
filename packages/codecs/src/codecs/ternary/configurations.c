#include "check/check.h"

const configurations terse_ternary_configurations = THESE({"any numbers"});
