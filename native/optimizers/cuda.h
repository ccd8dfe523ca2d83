#pragma once
#include <napi.h>

// openCuda(path): opens libterse_optimizers_cuda.so. Returns an object with the methods of terse_lion, sumOfSquares and fingerprint.
// Throws an Error where the library does not open or is of another version.
Napi::Value open_cuda(const Napi::CallbackInfo& info);
