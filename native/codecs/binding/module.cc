// codecs.node.
#include "arguments.h"
#include "tables.h"

namespace {

using namespace terse::codecs_binding;

void use_threads(const Napi::CallbackInfo& info) {
    const uint32_t threads = small_of(info[0], "threads");
    if (threads == 0) throw Napi::RangeError::New(info.Env(), "threads: expected 1 or more");
    terse_codecs_use_threads(threads);
}

Napi::Value implementations(const Napi::CallbackInfo& info) {
    Napi::Array list = Napi::Array::New(info.Env());
    const char* name;
    for (uint32_t i = 0; (name = terse_implementation_at(i)); i++) list[i] = name;
    return list;
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
    exports["abi"] = Napi::Number::New(env, terse_codecs_abi());
    exports["openCuda"] = Napi::Function::New<open_cuda>(env, "openCuda");
    exports["floatAt"] = Napi::Function::New<float_at>(env, "floatAt");
    exports["useThreads"] = Napi::Function::New<use_threads>(env, "useThreads");
    exports["implementations"] = Napi::Function::New<implementations>(env, "implementations");
    exports["codecs"] = Napi::Function::New<codecs>(env, "codecs");
    exports["votes"] = Napi::Function::New<votes>(env, "votes");
    return exports;
}

}  // namespace

NODE_API_MODULE(codecs, init)
