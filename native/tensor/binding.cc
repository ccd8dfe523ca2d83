// The functions that src/native.ts declares. JavaScript gives and gets tensors as handles.
#include <ATen/autocast_mode.h>
#include <ATen/cpu/Utils.h>

#include <dlfcn.h>

#include <cstring>

#include "backward_thread.h"
#include "checkpoint.h"
#include "fused_operators.h"
#include "kept_memory.h"
#include "libtorch.h"
#include "openmp.h"
#include "operators.h"

namespace terse {

namespace {

constexpr size_t max_parameters = 4;

// The arguments of an exported function; undefined where JavaScript gave none.
struct Call {
    Context& context;
    napi_env env;
    napi_value values[max_parameters];

    const at::Tensor& tensor(size_t i = 0, const char* what = "the tensor") const { return tensor_of(context, values[i], what); }
    at::Tensor tensor_or_none(size_t i, const char* what) const {
        const napi_valuetype type = type_of(env, values[i]);
        return type == napi_null || type == napi_undefined ? at::Tensor() : tensor(i, what);
    }
    bool flag(size_t i) const {
        bool value;
        if (napi_get_value_bool(env, values[i], &value) != napi_ok) throw TypeError("expected true or false");
        return value;
    }
    double number(size_t i) const {
        double value;
        if (napi_get_value_double(env, values[i], &value) != napi_ok) throw TypeError("expected a number");
        return value;
    }
    napi_value handle(at::Tensor tensor) const { return tensor.defined() ? terse::number(env, context.handles.add(std::move(tensor))) : null(env); }
};

struct Bytes {
    void* data;
    size_t length;
};

// The memory of a typed array.
Bytes bytes_of(napi_env env, napi_value value) {
    napi_typedarray_type type;
    size_t elements;
    void* data;
    if (napi_get_typedarray_info(env, value, &type, &elements, &data, nullptr, nullptr) != napi_ok) throw TypeError("expected a typed array");
    static const size_t sizes[] = {1, 1, 1, 2, 2, 4, 4, 4, 8, 8, 8, 2};  // in the order of napi_typedarray_type
    if (static_cast<size_t>(type) >= std::size(sizes)) throw TypeError("this kind of typed array is not supported");
    return {data, elements * sizes[type]};
}

at::Tensor contiguous_on_cpu(const at::Tensor& tensor) {
    return tensor.detach().to(c10::Device(c10::kCPU)).contiguous();
}

void release(Context& context, const double* handles, size_t count) {
    int64_t external = 0, total;
    for (size_t i = 0; i < count; i++) context.handles.remove(handles[i], external);
    if (external) napi_adjust_external_memory(context.env, -external, &total);
}

using Body = napi_value (*)(const Call&);

template <size_t N>
struct Name {
    char text[N];
    constexpr Name(const char (&given)[N]) { std::copy_n(given, N, text); }
};

template <Name name, Body body>
napi_value exported(napi_env env, napi_callback_info info) {
    Context* context;
    napi_value values[max_parameters];
    size_t count = max_parameters;
    napi_get_cb_info(env, info, &count, values, nullptr, reinterpret_cast<void**>(&context));
    return guard(*context, [] { return std::string(name.text); }, [&] {
        const Call call{*context, env, {values[0], values[1], values[2], values[3]}};
        return body(call);
    });
}

napi_value shape(const Call& call) {
    const at::Tensor& tensor = call.tensor();
    const napi_value sizes = array(call.env, tensor.dim());
    for (int64_t i = 0; i < tensor.dim(); i++) set(call.env, sizes, static_cast<uint32_t>(i), integer(call.env, tensor.size(i)));
    return sizes;
}

napi_value strides(const Call& call) {
    const at::Tensor& tensor = call.tensor();
    const napi_value steps = array(call.env, tensor.dim());
    for (int64_t i = 0; i < tensor.dim(); i++) set(call.env, steps, static_cast<uint32_t>(i), integer(call.env, tensor.stride(i)));
    return steps;
}

napi_value dtype(const Call& call) { return text(call.env, name_of(call.tensor().scalar_type())); }
napi_value device(const Call& call) { return text(call.env, call.tensor().device().str()); }
napi_value length(const Call& call) { return integer(call.env, call.tensor().numel()); }
napi_value is_contiguous(const Call& call) { return boolean(call.env, call.tensor().is_contiguous()); }
napi_value requires_grad(const Call& call) { return boolean(call.env, call.tensor().requires_grad()); }
napi_value is_leaf(const Call& call) { return boolean(call.env, call.tensor().is_leaf()); }

napi_value set_requires_grad(const Call& call) {
    call.tensor().requires_grad_(call.flag(1));
    return undefined(call.env);
}

napi_value grad(const Call& call) { return call.handle(call.tensor().grad()); }

napi_value set_grad(const Call& call) {
    const at::Tensor& tensor = call.tensor();
    at::Tensor gradient = call.tensor_or_none(1, "the gradient");
    if (gradient.defined() && (gradient.sizes() != tensor.sizes() || gradient.scalar_type() != tensor.scalar_type() || gradient.device() != tensor.device()))
        throw RangeError("a gradient " + describe(gradient) + " does not fit a tensor " + describe(tensor) + "; give one of the same shape, dtype and device");
    tensor.mutable_grad() = std::move(gradient);
    return undefined(call.env);
}

napi_value set_data(const Call& call) {
    const at::Tensor& tensor = call.tensor();
    const at::Tensor& data = call.tensor(1, "the data");
    tensor.set_data(data.detach());
    return undefined(call.env);
}

napi_value pointer(const Call& call) {
    const at::Tensor& tensor = call.tensor();
    if (!tensor.is_contiguous()) throw RangeError("a tensor " + describe(tensor) + " is not contiguous, so it has no single address; call contiguous() first");
    napi_value address;
    check(call.env, napi_create_bigint_uint64(call.env, reinterpret_cast<uintptr_t>(tensor.data_ptr()), &address));
    return address;
}

napi_value retain(const Call& call) { return number(call.env, call.context.retained.add(call.tensor().storage())); }

napi_value release_retained(const Call& call) {
    call.context.retained.release(call.number(0));
    return undefined(call.env);
}

napi_value item(const Call& call) {
    const at::Tensor& tensor = call.tensor();
    if (tensor.numel() != 1) throw RangeError("a tensor " + describe(tensor) + " has " + std::to_string(tensor.numel()) + " elements, but item() needs exactly one; reduce or select first, or use toTypedArray()");
    const c10::Scalar value = tensor.item();
    if (value.isIntegral(false)) return integer(call.env, value.toLong());
    if (value.isBoolean()) return number(call.env, value.toBool());
    if (value.isFloatingPoint()) return number(call.env, value.toDouble());
    throw RangeError("a tensor " + describe(tensor) + " cannot be read as a JavaScript number; use to() to convert it first");
}

// fromBytes(typed array, dtype) returns a tensor (n) with a copy of the bytes.
napi_value from_bytes(const Call& call) {
    const Bytes bytes = bytes_of(call.env, call.values[0]);
    const c10::ScalarType type = dtype_of(text_of(call.env, call.values[1]));
    const size_t size = c10::elementSize(type);
    if (bytes.length % size) throw RangeError(std::to_string(bytes.length) + " bytes are not a multiple of the " + std::to_string(size) + " bytes of a " + name_of(type) + " element");
    static const auto empty = c10::Dispatcher::singleton().findSchemaOrThrow("aten::empty", "memory_format");
    std::vector<c10::IValue> stack{c10::List<int64_t>({static_cast<int64_t>(bytes.length / size)}), type, c10::IValue(), c10::Device(c10::kCPU), c10::IValue(), c10::IValue()};
    empty.callBoxed(stack);
    at::Tensor tensor = std::move(stack[0]).toTensor();
    if (bytes.length) std::memcpy(tensor.data_ptr(), bytes.data, bytes.length);
    return call.handle(std::move(tensor));
}

constexpr int64_t grain_of_copy = 1 << 19;  // bytes for each thread: about 100 us

// toBytes(tensor, typed array) copies the elements into the array, in row-major order.
napi_value to_bytes(const Call& call) {
    const at::Tensor source = contiguous_on_cpu(call.tensor());
    const Bytes target = bytes_of(call.env, call.values[1]);
    if (target.length != source.nbytes()) throw RangeError("a tensor " + describe(source) + " has " + std::to_string(source.nbytes()) + " bytes, but the array has " + std::to_string(target.length));
    const auto *from = static_cast<const char*>(source.const_data_ptr());
    auto *to = static_cast<char*>(target.data);
    if (target.length) parallel_for(static_cast<int64_t>(target.length), grain_of_copy, [&](int64_t begin, int64_t end) { std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin)); });
    return undefined(call.env);
}

napi_value dispose(const Call& call) {
    const double handle = call.number(0);
    release(call.context, &handle, 1);
    return undefined(call.env);
}

// disposeAll(Float64Array of handles, count)
napi_value dispose_all(const Call& call) {
    const Bytes bytes = bytes_of(call.env, call.values[0]);
    const double count = call.number(1);
    if (!(count >= 0 && count * sizeof(double) <= bytes.length)) throw RangeError("the count is larger than the array");
    release(call.context, static_cast<const double*>(bytes.data), static_cast<size_t>(count));
    return undefined(call.env);
}

// Tells the garbage collector how much memory this tensor holds. For tensors that no scope frees.
napi_value keep(const Call& call) {
    call.tensor();  // throws now, and not at its next use, if the tensor was disposed
    int64_t total;
    if (const int64_t bytes = call.context.handles.count_external(call.number(0))) check(call.env, napi_adjust_external_memory(call.env, bytes, &total));
    return undefined(call.env);
}

napi_value memory(const Call& call) {
    const Handles::Usage usage = call.context.handles.usage();
    napi_value object;
    check(call.env, napi_create_object(call.env, &object));
    set(call.env, object, "tensors", number(call.env, static_cast<double>(usage.tensors)));
    set(call.env, object, "bytes", number(call.env, static_cast<double>(usage.bytes)));
    return object;
}

// Returns the previous setting.
napi_value set_grad_enabled(const Call& call) {
    const bool wanted = call.flag(0), before = c10::GradMode::is_enabled();
    c10::GradMode::set_enabled(wanted);
    return boolean(call.env, before);
}

// The dtype of autocast on a device type, or null where it is off.
napi_value autocast_dtype(const Call& call, c10::DeviceType type) {
    return at::autocast::is_autocast_enabled(type) ? text(call.env, name_of(at::autocast::get_autocast_dtype(type))) : null(call.env);
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
napi_value leave_autocast(const Call& call) {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    set_autocast(call, c10::Device(text_of(call.env, call.values[0])).type());
    return undefined(call.env);
}

napi_value manual_seed(const Call& call) {
    int64_t seed;
    bool lossless;
    if (napi_get_value_bigint_int64(call.env, call.values[0], &seed, &lossless) == napi_ok) {
        uint64_t bits = static_cast<uint64_t>(seed);
        if (!lossless) check(call.env, napi_get_value_bigint_uint64(call.env, call.values[0], &bits, &lossless));
        if (!lossless) throw RangeError("a seed must fit 64 bits");
        seed = static_cast<int64_t>(bits);
    } else {
        const double given = call.number(0);
        if (!(given >= -9007199254740991.0 && given <= 9007199254740991.0) || given != static_cast<double>(static_cast<int64_t>(given)))
            throw RangeError("a seed must be an integer or a bigint");
        seed = static_cast<int64_t>(given);
    }
    // at::manual_seed() asks for GPUs, and libtorch remembers the answer. Before libtorch_cuda.so is open the answer would be "none".
    if (cuda_is_open()) {
        at::manual_seed(static_cast<uint64_t>(seed));
        return undefined(call.env);
    }
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    std::lock_guard lock(generator.mutex());
    generator.set_current_seed(static_cast<uint64_t>(seed));
    return undefined(call.env);
}

napi_value random_state(const Call& call) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    std::lock_guard lock(generator.mutex());
    return call.handle(generator.get_state());
}

napi_value set_random_state(const Call& call) {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    std::lock_guard lock(generator.mutex());
    generator.set_state(call.tensor());
    return undefined(call.env);
}

// A capability as libtorch names it, such as amx_bf16.
napi_value processor_has(const Call& call) {
    const auto capabilities = at::cpu::get_cpu_capabilities();
    const auto found = capabilities.find(text_of(call.env, call.values[0]));
    return boolean(call.env, found != capabilities.end() && found->second.isBool() && found->second.toBool());
}

napi_value num_threads(const Call& call) { return integer(call.env, at::get_num_threads()); }

napi_value set_num_threads(const Call& call) {
    const double threads = call.number(0);
    if (!(threads >= 1 && threads <= 4096) || threads != static_cast<int>(threads)) throw RangeError("expected an integer number of threads, 1 or more");
    set_threads(static_cast<int>(threads));
    return undefined(call.env);
}

napi_value team(const Call& call) {
    // Whoever has the address may call it as long as the process runs, also after a worker thread that has opened this addon has ended.
    static const bool stays = [] {
        Dl_info info;
        return dladdr(reinterpret_cast<void*>(run_on_team), &info) && dlopen(info.dli_fname, RTLD_LAZY | RTLD_NODELETE);
    }();
    if (!stays) throw std::runtime_error("the addon does not find its own file");
    napi_value address;
    check(call.env, napi_create_bigint_uint64(call.env, reinterpret_cast<uint64_t>(run_on_team), &address));
    return address;
}

napi_value backward(const Call& call) {
    at::Tensor gradient = call.tensor_or_none(1, "the gradient");
    return call.context.backward_thread->backward(call.tensor(), std::move(gradient), call.flag(2));
}

// Waits for the running backward. Drops those that have not started; their promises never settle.
napi_value stop(const Call& call) {
    call.context.backward_thread->stop();
    return undefined(call.env);
}

napi_value add_gradient_hook(const Call& call) {
    call.context.backward_thread->add_gradient_hook(call.tensor(), call.number(1));
    return undefined(call.env);
}

napi_value remove_gradient_hook(const Call& call) {
    call.context.backward_thread->remove_gradient_hook(call.tensor());
    return undefined(call.env);
}

napi_value on_gradient_ready(const Call& call) {
    call.context.backward_thread->on_gradient_ready(call.values[0]);
    return undefined(call.env);
}

// beginCheckpoint(inputs, token) returns the tensors to compute the part from.
// The tensors of the array that is the first argument.
std::vector<at::Tensor> tensors_of(const Call& call, const char* what) {
    uint32_t count;
    check(call.env, napi_get_array_length(call.env, call.values[0], &count));
    std::vector<at::Tensor> tensors;
    for (uint32_t i = 0; i < count; i++) {
        napi_value handle;
        check(call.env, napi_get_element(call.env, call.values[0], i, &handle));
        tensors.push_back(tensor_of(call.context, handle, what));
    }
    return tensors;
}

napi_value replace_gradients(const Call& call) {
    call.context.backward_thread->replace_gradients(tensors_of(call, "a leaf"));
    return undefined(call.env);
}

napi_value begin_checkpoint(const Call& call) {
    std::vector<at::Tensor> inputs = tensors_of(call, "an input of the checkpoint");
    std::vector<at::Tensor> leaves = begin_checkpoint(call.context, call.context.backward_thread->channel(), std::move(inputs), call.number(1));
    const napi_value handles = array(call.env, leaves.size());
    for (uint32_t i = 0; i < leaves.size(); i++) set(call.env, handles, i, call.handle(std::move(leaves[i])));
    return handles;
}

// endCheckpoint(result or null) returns the result for autograd, or null where it needs no gradient.
napi_value end_checkpoint(const Call& call) { return call.handle(end_checkpoint(call.context, call.tensor_or_none(0, "the result of the checkpoint"))); }

napi_value recomputed(const Call& call) {
    call.context.backward_thread->recomputed(call.tensor());
    return undefined(call.env);
}

napi_value on_recompute(const Call& call) {
    call.context.backward_thread->on_recompute(call.values[0]);
    return undefined(call.env);
}

// setErrors(TensorError, TensorDisposedError)
napi_value set_errors(const Call& call) {
    check(call.env, napi_create_reference(call.env, call.values[0], 1, &call.context.tensor_error));
    check(call.env, napi_create_reference(call.env, call.values[1], 1, &call.context.disposed_error));
    return undefined(call.env);
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

struct Export {
    const char* name;
    napi_callback function;
};

#define TERSE_EXPORT(name, body) {name, exported<name, body>}
const Export exports_table[] = {
    {"find", find_operator},
    {"call", call_operator},
    {"results", operator_results},
    TERSE_EXPORT("shape", shape),
    TERSE_EXPORT("strides", strides),
    TERSE_EXPORT("dtype", dtype),
    TERSE_EXPORT("device", device),
    TERSE_EXPORT("length", length),
    TERSE_EXPORT("isContiguous", is_contiguous),
    TERSE_EXPORT("isLeaf", is_leaf),
    TERSE_EXPORT("requiresGrad", requires_grad),
    TERSE_EXPORT("setRequiresGrad", set_requires_grad),
    TERSE_EXPORT("grad", grad),
    TERSE_EXPORT("setGrad", set_grad),
    TERSE_EXPORT("setData", set_data),
    TERSE_EXPORT("pointer", pointer),
    TERSE_EXPORT("retain", retain),
    TERSE_EXPORT("release", release_retained),
    TERSE_EXPORT("item", item),
    TERSE_EXPORT("fromBytes", from_bytes),
    TERSE_EXPORT("toBytes", to_bytes),
    TERSE_EXPORT("dispose", dispose),
    TERSE_EXPORT("disposeAll", dispose_all),
    TERSE_EXPORT("keep", keep),
    TERSE_EXPORT("memory", memory),
    TERSE_EXPORT("setGradEnabled", set_grad_enabled),
    TERSE_EXPORT("enterAutocast", enter_autocast),
    TERSE_EXPORT("leaveAutocast", leave_autocast),
    TERSE_EXPORT("manualSeed", manual_seed),
    TERSE_EXPORT("randomState", random_state),
    TERSE_EXPORT("setRandomState", set_random_state),
    TERSE_EXPORT("processorHas", processor_has),
    TERSE_EXPORT("numThreads", num_threads),
    TERSE_EXPORT("setNumThreads", set_num_threads),
    TERSE_EXPORT("team", team),
    TERSE_EXPORT("backward", backward),
    TERSE_EXPORT("stop", stop),
    TERSE_EXPORT("addGradientHook", add_gradient_hook),
    TERSE_EXPORT("removeGradientHook", remove_gradient_hook),
    TERSE_EXPORT("onGradientReady", on_gradient_ready),
    TERSE_EXPORT("replaceGradients", replace_gradients),
    TERSE_EXPORT("beginCheckpoint", begin_checkpoint),
    TERSE_EXPORT("endCheckpoint", end_checkpoint),
    TERSE_EXPORT("onRecompute", on_recompute),
    TERSE_EXPORT("recomputed", recomputed),
    TERSE_EXPORT("setErrors", set_errors),
    TERSE_EXPORT("library", describe_library),
    TERSE_EXPORT("openDevice", open),
};

napi_value initialise(napi_env env, napi_value exports) {
    auto context = std::make_unique<Context>(env);
    Context* data = context.get();
    return guard(*data, [] { return std::string("@terse/native-tensor"); }, [&] {
        check_libraries();
        register_fused_operators();
        keep_freed_memory();
        use_huge_pages();
        context->backward_thread = std::make_unique<BackwardThread>(*context);
        for (const Export& entry : exports_table) {
            napi_value function;
            check(env, napi_create_function(env, entry.name, NAPI_AUTO_LENGTH, entry.function, data, &function));
            set(env, exports, entry.name, function);
        }
        // The thread must end before the environment does, and the tensors must be freed before libtorch is unloaded.
        check(env, napi_add_env_cleanup_hook(env, [](void* given) { delete static_cast<Context*>(given); }, context.release()));
        return exports;
    });
}

}  // namespace
}  // namespace terse

NAPI_MODULE_INIT() { return terse::initialise(env, exports); }
