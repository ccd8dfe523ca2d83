#ifndef TERSE_CHECK_CODEC_H
#define TERSE_CHECK_CODEC_H
#include "check.h"

// One implementation, used in one way, against the scalar one.
void check_codec(const terse_codec *codec, const terse_codec *scalar, const configuration *c);

// Calls that every codec refuses.
void check_refusals(const terse_codec *codec, const configuration *c);

#endif
