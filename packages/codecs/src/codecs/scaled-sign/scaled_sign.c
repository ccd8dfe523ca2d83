#include "scaled_sign.h"

size_t terse_scaled_sign_wire_bytes(size_t n, const terse_codec_options *options) {
    return 4 * terse_scale_group_count(n, options) + n / 8 + (n % 8 != 0);
}

TERSE_SCALED_SIGN(scalar)
