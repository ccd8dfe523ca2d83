// The addon: what each family lists, and what belongs to none.
#include "binding.h"

#include "cuda.h"

namespace {

Napi::Value address_of(const Napi::CallbackInfo& info) {
    return Napi::BigInt::New(
        info.Env(), static_cast<uint64_t>(reinterpret_cast<uintptr_t>(terse::buffer_of(info[0], "buffer").data)));
}

Napi::Value fingerprint(const Napi::CallbackInfo& info) {
    size_t n = 0;
    const float* x = first_floats_of(info[0], "x", n);
    return Napi::BigInt::New(info.Env(), terse_fingerprint(x, n));
}

void use_threads(const Napi::CallbackInfo& info) {
    const double threads = info[0].IsNumber() ? info[0].As<Napi::Number>().DoubleValue() : 0;
    if (!(threads >= 1 && threads <= 65536) || threads != std::floor(threads))
        throw Napi::RangeError::New(info.Env(), "threads: expected an integer >= 1");
    terse_parallel_use(static_cast<unsigned>(threads));
}

void use_team(const Napi::CallbackInfo& info) {
    bool whole = false;
    const uint64_t address = info[0].IsBigInt() ? info[0].As<Napi::BigInt>().Uint64Value(&whole) : 0;
    if (!whole || address == 0)
        throw Napi::TypeError::New(info.Env(), "team: expected the address of a function, as a bigint");
    terse_parallel_lend(reinterpret_cast<terse_parallel_team*>(address));
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
    exports["abi"] = Napi::Number::New(env, terse_optimizers_abi());
    exports["lions"] = Napi::Function::New<lions>(env, "lions");
    exports["adamws"] = Napi::Function::New<adamws>(env, "adamws");
    exports["sgds"] = Napi::Function::New<sgds>(env, "sgds");
    exports["moments"] = Napi::Function::New<moments>(env, "moments");
    exports["lowRanks"] = Napi::Function::New<low_ranks>(env, "lowRanks");
    exports["reductions"] = Napi::Function::New<reductions>(env, "reductions");
    exports["fingerprint"] = Napi::Function::New<fingerprint>(env, "fingerprint");
    exports["useThreads"] = Napi::Function::New<use_threads>(env, "useThreads");
    exports["useTeam"] = Napi::Function::New<use_team>(env, "useTeam");
    exports["openCuda"] = Napi::Function::New<open_cuda>(env, "openCuda");
    exports["addressOf"] = Napi::Function::New<address_of>(env, "addressOf");
    return exports;
}

}  // namespace

NODE_API_MODULE(optimizers, init)
