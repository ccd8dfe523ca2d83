// The table of terse/optimizers_cuda.h as a JavaScript object. All floats of a call are on one CUDA device, packed
// signs in typed arrays.
#include "cuda.h"

#include <dlfcn.h>

#include "arguments.h"
#include "terse/optimizers_cuda.h"

namespace {

void throw_unless_same(Napi::Env env, const char* what, int on, int device) {
    if (on != device)
        throw Napi::TypeError::New(env, std::string(what) + ": is on cuda:" + std::to_string(on) +
                                            ", and the first array of this call on cuda:" + std::to_string(device) +
                                            "; move all arrays of the call to one device");
}

float* device_floats(const Napi::Value& value, const char* what, size_t n, int device) {
    size_t length;
    int on;
    float* const floats = terse::device_floats_of(value, what, length, on);
    if (length != n) throw_length(value.Env(), what, length, n, "floats, as many as the first array has");
    throw_unless_same(value.Env(), what, on, device);
    return floats;
}

const terse_optimizers_cuda& table_of(const Napi::CallbackInfo& info) {
    return *static_cast<const terse_optimizers_cuda*>(info.Data());
}

void throw_unless_ok(const Napi::CallbackInfo& info, terse_optimizer_status status) {
    if (status != TERSE_OPTIMIZER_OK)
        throw Napi::Error::New(info.Env(), std::string("CUDA: ") + table_of(info).error());
}

Napi::Value number(const Napi::CallbackInfo& info, double value) { return Napi::Number::New(info.Env(), value); }

Napi::Value vote(const Napi::CallbackInfo& info) {
    size_t n, accepted = 0;
    int device;
    float* m = terse::device_floats_of(info[1], "m", n, device);
    const float* g = device_floats(info[2], "g", n, device);
    uint8_t* wire = packed_signs_of(info[0], "wire", n);
    const terse_lion_options options = lion_vote_options_of(options_of(info, 3));
    throw_unless_ok(info, table_of(info).vote(device, wire, m, g, n, &options, &accepted));
    return number(info, static_cast<double>(accepted));
}

void mix(const Napi::CallbackInfo& info) {
    size_t n;
    int device;
    float* c = terse::device_floats_of(info[0], "c", n, device);
    float* m = device_floats(info[1], "m", n, device);
    const float* g = device_floats(info[2], "g", n, device);
    const terse_lion_options options = lion_mix_options_of(options_of(info, 3));
    throw_unless_ok(info, table_of(info).mix(device, c, m, g, n, &options));
}

Napi::Value step(const Napi::CallbackInfo& info) {
    size_t n, accepted = 0;
    int device;
    float* theta = terse::device_floats_of(info[0], "θ", n, device);
    float* m = device_floats(info[1], "m", n, device);
    const float* g = device_floats(info[2], "g", n, device);
    const terse_lion_options options = lion_step_options_of(options_of(info, 3));
    throw_unless_ok(info, table_of(info).step(device, theta, m, g, n, &options, &accepted));
    return number(info, static_cast<double>(accepted));
}

void apply_signs(const Napi::CallbackInfo& info) {
    size_t n;
    int device;
    float* theta = terse::device_floats_of(info[0], "θ", n, device);
    const uint8_t* wire = packed_signs_of(info[1], "wire", n);
    const Change change(options_of(info, 2));
    throw_unless_ok(info, table_of(info).apply_signs(device, theta, wire, n, change.keep, change.scale));
}

void apply_ternary(const Napi::CallbackInfo& info) {
    size_t n;
    int device;
    float* theta = terse::device_floats_of(info[0], "θ", n, device);
    const uint8_t* plus = packed_signs_of(info[1], "plus", n);
    const uint8_t* nonzero = packed_signs_of(info[2], "nonzero", n);
    const Change change(options_of(info, 3));
    throw_unless_ok(info, table_of(info).apply_ternary(device, theta, plus, nonzero, n, change.keep, change.scale));
}

void apply_tally(const Napi::CallbackInfo& info) {
    size_t n;
    int device;
    float* theta = terse::device_floats_of(info[0], "θ", n, device);
    const double ranks = ranks_of(info[2]);
    const std::vector<const uint8_t*> planes = planes_of(info[1], ranks, n);
    const Change change(options_of(info, 3));
    throw_unless_ok(info, table_of(info).apply_tally(device, theta, planes.data(), static_cast<size_t>(ranks), n,
                                                     change.keep, change.scale));
}

Napi::Value adamw_step(const Napi::CallbackInfo& info) {
    size_t n, accepted = 0;
    int device;
    float* theta = terse::device_floats_of(info[0], "θ", n, device);
    float* m = device_floats(info[1], "m", n, device);
    float* v = device_floats(info[2], "v", n, device);
    const float* g = device_floats(info[3], "g", n, device);
    const terse_adamw_options options = adamw_options_of(options_of(info, 4));
    throw_unless_ok(info, table_of(info).adamw_step(device, theta, m, v, g, n, &options, &accepted));
    return number(info, static_cast<double>(accepted));
}

Napi::Value sgd_step(const Napi::CallbackInfo& info) {
    size_t n, accepted = 0;
    int device;
    float* theta = terse::device_floats_of(info[0], "θ", n, device);
    float* m = info[1].IsUndefined() ? nullptr : device_floats(info[1], "m", n, device);
    const float* g = device_floats(info[2], "g", n, device);
    const terse_sgd_options options = sgd_options_of(options_of(info, 3));
    throw_unless_ok(info, table_of(info).sgd_step(device, theta, m, g, n, &options, &accepted));
    return number(info, static_cast<double>(accepted));
}

Napi::Value accumulate(const Napi::CallbackInfo& info) {
    size_t n, accepted = 0;
    int device;
    float* m = terse::device_floats_of(info[0], "m", n, device);
    float* v = device_floats(info[1], "v", n, device);
    const float* g = device_floats(info[2], "g", n, device);
    const terse_moments_options options = moments_options_of(options_of(info, 3));
    throw_unless_ok(info, table_of(info).accumulate(device, m, v, g, n, &options, &accepted));
    return number(info, static_cast<double>(accepted));
}

Napi::Value squares(const Napi::CallbackInfo& info) {
    size_t n;
    int device;
    const float* theta = terse::device_floats_of(info[0], "θ", n, device);
    const float* m = device_floats(info[1], "m", n, device);
    const float* v = device_floats(info[2], "v", n, device);
    const terse_adam_update update = adam_update_of(options_of(info, 3));
    double sums[2];
    throw_unless_ok(info, table_of(info).squares(device, theta, m, v, n, &update, sums));
    return two_numbers(info.Env(), sums);
}

void apply(const Napi::CallbackInfo& info) {
    size_t n;
    int device;
    float* theta = terse::device_floats_of(info[0], "θ", n, device);
    const float* m = device_floats(info[1], "m", n, device);
    const float* v = device_floats(info[2], "v", n, device);
    const Napi::Object given = options_of(info, 3);
    const terse_adam_update update = adam_update_of(given);
    throw_unless_ok(
        info, table_of(info).apply(device, theta, m, v, n, &update, static_cast<float>(number_of(given, "rate"))));
}

Napi::Value refresh(const Napi::CallbackInfo& info) {
    size_t n;
    int device;
    float most = 0;
    float* fresh = terse::device_floats_of(info[0], "fresh", n, device);
    const float* frozen = device_floats(info[1], "frozen", n, device);
    const float* m = device_floats(info[2], "m", n, device);
    const float* last = device_floats(info[3], "last", n, device);
    const terse_refresh_options options = refresh_options_of(options_of(info, 4));
    throw_unless_ok(info, table_of(info).refresh(device, fresh, frozen, m, last, n, &options, &most));
    return number(info, most);
}

void low_rank_add(const Napi::CallbackInfo& info) {
    size_t floats_of_x, floats_of_p, floats_of_q;
    int device, other;
    float* x = terse::device_floats_of(info[0], "x", floats_of_x, device);
    const float* p = terse::device_floats_of(info[1], "p", floats_of_p, other);
    throw_unless_same(info.Env(), "p", other, device);
    const float* q = terse::device_floats_of(info[2], "q", floats_of_q, other);
    throw_unless_same(info.Env(), "q", other, device);
    const Napi::Object given = options_of(info, 3);
    const Change change(given);
    const size_t r = rank_of(given), m = rows_of(info.Env(), "p", floats_of_p, r),
                 n = rows_of(info.Env(), "q", floats_of_q, r);
    if (floats_of_x != m * n)
        throw_length(info.Env(), "x", floats_of_x, m * n, "floats, one for each row of p and each row of q");
    throw_unless_ok(info, table_of(info).low_rank_add(device, x, p, q, m, n, r, change.keep, change.scale));
}

void low_rank_normalize(const Napi::CallbackInfo& info) {
    size_t floats;
    int device;
    float* columns = terse::device_floats_of(info[1], "columns", floats, device);
    float* q = device_floats(info[0], "q", floats, device);
    const Napi::Object given = options_of(info, 2);
    const size_t r = rank_of(given), n = rows_of(info.Env(), "columns", floats, r);
    throw_unless_ok(info, table_of(info).low_rank_normalize(device, q, columns, n, r, number_of(given, "threshold")));
}

Napi::Value sum_of_squares(const Napi::CallbackInfo& info) {
    size_t n;
    int device;
    double sum = 0;
    const float* x = terse::device_floats_of(info[0], "x", n, device);
    throw_unless_ok(info, table_of(info).sum_of_squares(device, x, n, &sum));
    return number(info, sum);
}

Napi::Value fingerprint(const Napi::CallbackInfo& info) {
    size_t n;
    int device;
    uint64_t print = 0;
    const float* x = terse::device_floats_of(info[0], "x", n, device);
    throw_unless_ok(info, table_of(info).fingerprint(device, x, n, &print));
    return Napi::BigInt::New(info.Env(), print);
}

}  // namespace

Napi::Value open_cuda(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    const std::string path = info[0].IsString() ? info[0].As<Napi::String>().Utf8Value() : "";
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw Napi::Error::New(env, dlerror());
    const auto get_table = reinterpret_cast<const terse_optimizers_cuda* (*)()>(
        dlsym(library, "terse_optimizers_cuda_table"));
    const terse_optimizers_cuda* const table = get_table ? get_table() : nullptr;
    if (!table || table->abi != TERSE_OPTIMIZERS_CUDA_ABI || table->options != TERSE_OPTIMIZERS_CUDA_OPTIONS)
        throw Napi::Error::New(env, path + " was built from another version of terse; build it again");
    void* const data = const_cast<terse_optimizers_cuda*>(table);
    const auto kernels = [&](std::initializer_list<std::pair<const char*, Napi::Function>> functions) {
        Napi::Object object = Napi::Object::New(env);
        object["implementation"] = "cuda";
        for (const auto& [name, function] : functions) object[name] = function;
        return object;
    };
    Napi::Object object = Napi::Object::New(env);
    object["lion"] = kernels({
        {"vote", Napi::Function::New<vote>(env, "vote", data)},
        {"mix", Napi::Function::New<mix>(env, "mix", data)},
        {"step", Napi::Function::New<step>(env, "step", data)},
        {"applySigns", Napi::Function::New<apply_signs>(env, "applySigns", data)},
        {"applyTernary", Napi::Function::New<apply_ternary>(env, "applyTernary", data)},
        {"applyTally", Napi::Function::New<apply_tally>(env, "applyTally", data)},
    });
    object["adamw"] = kernels({{"step", Napi::Function::New<adamw_step>(env, "step", data)}});
    object["sgd"] = kernels({{"step", Napi::Function::New<sgd_step>(env, "step", data)}});
    object["moments"] = kernels({
        {"accumulate", Napi::Function::New<accumulate>(env, "accumulate", data)},
        {"squares", Napi::Function::New<squares>(env, "squares", data)},
        {"apply", Napi::Function::New<apply>(env, "apply", data)},
        {"refresh", Napi::Function::New<refresh>(env, "refresh", data)},
    });
    object["lowRank"] = kernels({
        {"add", Napi::Function::New<low_rank_add>(env, "add", data)},
        {"normalize", Napi::Function::New<low_rank_normalize>(env, "normalize", data)},
    });
    object["reductions"] = kernels({{"sumOfSquares", Napi::Function::New<sum_of_squares>(env, "sumOfSquares", data)}});
    object["fingerprint"] = Napi::Function::New<fingerprint>(env, "fingerprint", data);
    return object;
}
