#pragma once
#include <napi.h>

// openCuda(path): libterse_optimizers_cuda.so as a JavaScript object, with the methods of the objects of lions() and more. Throws where it
// does not open.
Napi::Value open_cuda(const Napi::CallbackInfo& info);
