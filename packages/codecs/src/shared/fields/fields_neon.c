#include "fields_neon.h"

#include "fields_vector.h"
