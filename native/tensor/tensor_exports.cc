#include <cstring>

#include "exports.h"
#include "openmp.h"
#include "tensor_memory.h"

namespace terse {

namespace {

struct Bytes {
    void* data;
    size_t length;
};

// The memory of a typed array.
Bytes bytes_of(napi_env env, napi_value value) {
    napi_typedarray_type type;
    size_t elements;
    void* data;
    if (napi_get_typedarray_info(env, value, &type, &elements, &data, nullptr, nullptr) != napi_ok)
        throw TypeError("expected a typed array");
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

napi_value integers(napi_env env, c10::IntArrayRef values) {
    const napi_value list = array(env, values.size());
    for (size_t i = 0; i < values.size(); i++) set(env, list, static_cast<uint32_t>(i), integer(env, values[i]));
    return list;
}

napi_value shape(const Call& call) { return integers(call.env, call.tensor().sizes()); }
napi_value strides(const Call& call) { return integers(call.env, call.tensor().strides()); }

napi_value dtype(const Call& call) { return text(call.env, name_of(call.tensor().scalar_type())); }
napi_value device(const Call& call) { return text(call.env, call.tensor().device().str()); }
napi_value length(const Call& call) { return integer(call.env, call.tensor().numel()); }
napi_value is_contiguous(const Call& call) { return boolean(call.env, call.tensor().is_contiguous()); }
napi_value requires_grad(const Call& call) { return boolean(call.env, call.tensor().requires_grad()); }
napi_value is_leaf(const Call& call) { return boolean(call.env, call.tensor().is_leaf()); }

void set_data(const Call& call) {
    const at::Tensor& tensor = call.tensor();
    tensor.set_data(call.tensor(1, "the data").detach());
}

napi_value pointer(const Call& call) {
    const at::Tensor& tensor = call.tensor();
    if (!tensor.is_contiguous())
        throw RangeError("a tensor " + describe(tensor) +
                         " is not contiguous, so it has no single address; call contiguous() first");
    napi_value address;
    check(call.env, napi_create_bigint_uint64(call.env, reinterpret_cast<uintptr_t>(tensor.data_ptr()), &address));
    return address;
}

napi_value retain(const Call& call) { return number(call.env, call.context.retained.add(call.tensor().storage())); }

void release_retained(const Call& call) { call.context.retained.release(call.number(0)); }

napi_value item(const Call& call) {
    const at::Tensor& tensor = call.tensor();
    if (tensor.numel() != 1)
        throw RangeError("a tensor " + describe(tensor) + " has " + std::to_string(tensor.numel()) +
                         " elements, but item() needs exactly one; reduce or select first, or use toTypedArray()");
    const c10::Scalar value = tensor.item();
    if (value.isIntegral(false)) return integer(call.env, value.toLong());
    if (value.isBoolean()) return number(call.env, value.toBool());
    if (value.isFloatingPoint()) return number(call.env, value.toDouble());
    throw RangeError("a tensor " + describe(tensor) +
                     " cannot be read as a JavaScript number; use to() to convert it first");
}

// fromBytes(typed array, dtype) returns a tensor (n) with a copy of the bytes.
napi_value from_bytes(const Call& call) {
    const Bytes bytes = bytes_of(call.env, call.values[0]);
    const c10::ScalarType type = dtype_of(text_of(call.env, call.values[1]));
    const size_t size = c10::elementSize(type);
    if (bytes.length % size)
        throw RangeError(std::to_string(bytes.length) + " bytes are not a multiple of the " + std::to_string(size) +
                         " bytes of a " + name_of(type) + " element");
    static const auto empty = c10::Dispatcher::singleton().findSchemaOrThrow("aten::empty", "memory_format");
    std::vector<c10::IValue> stack{c10::List<int64_t>({static_cast<int64_t>(bytes.length / size)}),
                                   type,
                                   c10::IValue(),
                                   c10::Device(c10::kCPU),
                                   c10::IValue(),
                                   c10::IValue()};
    empty.callBoxed(stack);
    at::Tensor tensor = std::move(stack[0]).toTensor();
    if (bytes.length) std::memcpy(tensor.data_ptr(), bytes.data, bytes.length);
    return call.handle(std::move(tensor));
}

constexpr int64_t grain_of_copy = 1 << 19;  // bytes for each thread: about 100 us

// toBytes(tensor, typed array) copies the elements into the array, in row-major order.
void to_bytes(const Call& call) {
    const at::Tensor source = contiguous_on_cpu(call.tensor());
    const Bytes target = bytes_of(call.env, call.values[1]);
    if (target.length != source.nbytes())
        throw RangeError("a tensor " + describe(source) + " has " + std::to_string(source.nbytes()) +
                         " bytes, but the array has " + std::to_string(target.length));
    const auto* from = static_cast<const char*>(source.const_data_ptr());
    auto* to = static_cast<char*>(target.data);
    if (target.length)
        parallel_for(static_cast<int64_t>(target.length), grain_of_copy, [&](int64_t begin, int64_t end) {
            std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
        });
}

void dispose(const Call& call) {
    const double handle = call.number(0);
    release(call.context, &handle, 1);
}

// disposeAll(Float64Array of handles, count)
void dispose_all(const Call& call) {
    const Bytes bytes = bytes_of(call.env, call.values[0]);
    const double count = call.number(1);
    if (!(count >= 0 && count * sizeof(double) <= bytes.length)) throw RangeError("the count is larger than the array");
    release(call.context, static_cast<const double*>(bytes.data), static_cast<size_t>(count));
}

// Tells the garbage collector how much memory this tensor holds. For tensors that no scope frees.
void keep(const Call& call) {
    call.tensor();  // throws now, and not at its next use, if the tensor was disposed
    int64_t total;
    if (const int64_t bytes = call.context.handles.count_external(call.number(0)))
        check(call.env, napi_adjust_external_memory(call.env, bytes, &total));
}

napi_value memory(const Call& call) {
    const Handles::Usage usage = call.context.handles.usage();
    napi_value object;
    check(call.env, napi_create_object(call.env, &object));
    set(call.env, object, "tensors", number(call.env, static_cast<double>(usage.tensors)));
    set(call.env, object, "bytes", number(call.env, static_cast<double>(usage.bytes)));
    return object;
}

void count_memory(const Call&) { begin_counting(); }

napi_value counted_memory(const Call& call) { return integers(call.env, end_counting()); }

}  // namespace

std::span<const Export> tensor_exports() {
    static const Export all[] = {
        TERSE_EXPORT("shape", shape),
        TERSE_EXPORT("strides", strides),
        TERSE_EXPORT("dtype", dtype),
        TERSE_EXPORT("device", device),
        TERSE_EXPORT("length", length),
        TERSE_EXPORT("isContiguous", is_contiguous),
        TERSE_EXPORT("requiresGrad", requires_grad),
        TERSE_EXPORT("isLeaf", is_leaf),
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
        TERSE_EXPORT("countMemory", count_memory),
        TERSE_EXPORT("countedMemory", counted_memory),
    };
    return all;
}

}  // namespace terse
