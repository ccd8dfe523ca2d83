#include "fields_avx512.h"

#include "fields_vector.h"
