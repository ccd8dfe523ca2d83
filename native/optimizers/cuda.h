#pragma once
#include <napi.h>

// openCuda(path): opens libterse_optimizers_cuda.so. Returns { lion, adamw, sgd, moments, lowRank, reductions }, each
// with the methods of its table, and fingerprint. Throws an Error where the library does not open or is of another
// version.
Napi::Value open_cuda(const Napi::CallbackInfo& info);
