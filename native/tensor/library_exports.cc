#include <ATen/autocast_mode.h>
#include <ATen/cpu/Utils.h>

#include <dlfcn.h>

#include "exports.h"
#include "libtorch.h"
#include "openmp.h"

namespace terse {

namespace {

// The dtype of autocast on a device type, or null where it is off.
napi_value autocast_dtype(const Call& call, c10::DeviceType type) {
    return at::autocast::is_autocast_enabled(type) ? text(call.env, name_of(at::autocast::get_autocast_dtype(type)))
                                                   : null(call.env);
}

void set_autocast(const Call& call, c10::DeviceType type) {
    const napi_valuetype given = type_of(call.env, call.values[1]);
    const bool enabled = given != napi_null && given != napi_undefined;
    if (enabled) at::autocast::set_autocast_dtype(type, dtype_of(text_of(call.env, call.values[1])));
    at::autocast::set_autocast_enabled(type, enabled);
}

// enterAutocast(device type, dtype or null) returns the previous dtype or null, for leaveAutocast.
napi_value enter_autocast(const Call& call) {
    const c10::DeviceType type = c10::Device(text_of(call.env, call.values[0])).type();
    const napi_value before = autocast_dtype(call, type);
    set_autocast(call, type);
    at::autocast::increment_nesting();
    return before;
}

// leaveAutocast(device type, previous dtype or null). The outermost one frees the parameters' copies in the lower type.
void leave_autocast(const Call& call) {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    set_autocast(call, c10::Device(text_of(call.env, call.values[0])).type());
}

void manual_seed(const Call& call) {
    int64_t seed;
    bool lossless;
    if (napi_get_value_bigint_int64(call.env, call.values[0], &seed, &lossless) == napi_ok) {
        uint64_t bits = static_cast<uint64_t>(seed);
        if (!lossless) check(call.env, napi_get_value_bigint_uint64(call.env, call.values[0], &bits, &lossless));
        if (!lossless) throw RangeError("a seed must fit 64 bits");
        seed = static_cast<int64_t>(bits);
    } else {
        const double given = call.number(0);
        if (!(given >= -9007199254740991.0 && given <= 9007199254740991.0) ||
            given != static_cast<double>(static_cast<int64_t>(given)))
            throw RangeError("a seed must be an integer or a bigint");
        seed = static_cast<int64_t>(given);
    }
    // at::manual_seed() asks for GPUs, and libtorch remembers the answer. Before libtorch_cuda.so is open the answer
    // would be "none".
    if (cuda_is_open()) return at::manual_seed(static_cast<uint64_t>(seed));
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    std::lock_guard lock(generator.mutex());
    generator.set_current_seed(static_cast<uint64_t>(seed));
}

napi_value random_state(const Call& call) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    std::lock_guard lock(generator.mutex());
    return call.handle(generator.get_state());
}

void set_random_state(const Call& call) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    std::lock_guard lock(generator.mutex());
    generator.set_state(call.tensor());
}

// A capability as libtorch names it, such as amx_bf16.
napi_value processor_has(const Call& call) {
    const auto capabilities = at::cpu::get_cpu_capabilities();
    const auto found = capabilities.find(text_of(call.env, call.values[0]));
    return boolean(call.env, found != capabilities.end() && found->second.isBool() && found->second.toBool());
}

napi_value num_threads(const Call& call) { return integer(call.env, at::get_num_threads()); }

void set_num_threads(const Call& call) {
    const double threads = call.number(0);
    if (!(threads >= 1 && threads <= 4096) || threads != static_cast<int>(threads))
        throw RangeError("expected an integer number of threads, 1 or more");
    set_threads(static_cast<int>(threads));
}

napi_value team(const Call& call) {
    // Whoever has the address may call it as long as the process runs, also after a worker thread that has opened this
    // addon has ended.
    static const bool stays = [] {
        Dl_info info;
        return dladdr(reinterpret_cast<void*>(run_on_team), &info) && dlopen(info.dli_fname, RTLD_LAZY | RTLD_NODELETE);
    }();
    if (!stays) throw std::runtime_error("the addon does not find its own file");
    napi_value address;
    check(call.env, napi_create_bigint_uint64(call.env, reinterpret_cast<uint64_t>(run_on_team), &address));
    return address;
}

// setErrors(TensorError, TensorDisposedError)
void set_errors(const Call& call) {
    check(call.env, napi_create_reference(call.env, call.values[0], 1, &call.context.tensor_error));
    check(call.env, napi_create_reference(call.env, call.values[1], 1, &call.context.disposed_error));
}

napi_value describe_library(const Call& call) {
    napi_value object;
    check(call.env, napi_create_object(call.env, &object));
    set(call.env, object, "version", text(call.env, loaded_version()));
    set(call.env, object, "folder", text(call.env, libtorch_folder()));
    set(call.env, object, "configuration", text(call.env, build_options()));
    set(call.env, object, "cuda", boolean(call.env, cuda_is_open()));
    return object;
}

napi_value open(const Call& call) { return text(call.env, open_device(text_of(call.env, call.values[0])).str()); }

}  // namespace

std::span<const Export> library_exports() {
    static const Export all[] = {
        TERSE_EXPORT("enterAutocast", enter_autocast),
        TERSE_EXPORT("leaveAutocast", leave_autocast),
        TERSE_EXPORT("manualSeed", manual_seed),
        TERSE_EXPORT("randomState", random_state),
        TERSE_EXPORT("setRandomState", set_random_state),
        TERSE_EXPORT("processorHas", processor_has),
        TERSE_EXPORT("numThreads", num_threads),
        TERSE_EXPORT("setNumThreads", set_num_threads),
        TERSE_EXPORT("team", team),
        TERSE_EXPORT("setErrors", set_errors),
        TERSE_EXPORT("library", describe_library),
        TERSE_EXPORT("openDevice", open),
    };
    return all;
}

}  // namespace terse
