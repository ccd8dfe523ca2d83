#ifndef TERSE_CHECK_CODEC_H
#define TERSE_CHECK_CODEC_H
#include "check.h"

// Compares an implementation with the scalar one in one configuration.
void check_codec(const terse_codec *codec, const terse_codec *scalar, const configuration *c);

// Checks that calls which every codec must refuse are refused.
void check_refusals(const terse_codec *codec, const configuration *c);

#endif
