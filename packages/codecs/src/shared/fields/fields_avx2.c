#include "fields_avx2.h"

#include "fields_vector.h"
