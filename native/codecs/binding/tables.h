// The tables of terse/codecs.h as JavaScript objects: one object per implementation, one method per function.
#pragma once
#include <napi.h>

namespace terse::codecs_binding {

Napi::Value codecs(const Napi::CallbackInfo& info);
Napi::Value votes(const Napi::CallbackInfo& info);

// Every codec of the library at this path, as `codecs` lists those of the CPU.
Napi::Value open_cuda(const Napi::CallbackInfo& info);

// x[i], for error messages: JavaScript cannot read memory behind a pointer.
Napi::Value float_at(const Napi::CallbackInfo& info);

}  // namespace terse::codecs_binding
