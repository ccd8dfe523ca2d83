// Streams of the fake driver for JavaScript tests: an addon without Node's headers.
//   create() → handle
//   fill(handle, pointer, bytes, value, milliseconds)   waits on the stream, then sets the bytes
//   count(what) → a count of stream.h
//   breakContext(0 or 1)                                kernels fail, and memory cannot be freed
#include <chrono>
#include <cstring>
#include <thread>

#include "stream.h"

extern "C" {
using Environment = struct napi_env__*;
using Value = struct napi_value__*;
using Info = struct napi_callback_info__*;
int napi_create_function(Environment, const char*, size_t, Value (*)(Environment, Info), void*, Value*);
int napi_get_cb_info(Environment, Info, size_t*, Value*, Value*, void**);
int napi_get_value_bigint_uint64(Environment, Value, uint64_t*, bool*);
int napi_create_bigint_uint64(Environment, uint64_t, Value*);
int napi_get_value_int64(Environment, Value, int64_t*);
int napi_create_int64(Environment, int64_t, Value*);
int napi_set_named_property(Environment, Value, const char*, Value);
int cuDevicePrimaryCtxRetain(struct Context**, int);
int cuCtxPushCurrent_v2(struct Context*);
int cuCtxPopCurrent_v2(struct Context**);
int cuStreamCreate(CUstream_st**, unsigned);
}

static Value create(Environment env, Info) {
    Context* context;
    CUstream_st* stream = nullptr;
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxPushCurrent_v2(context);
    cuStreamCreate(&stream, 0);
    cuCtxPopCurrent_v2(&context);
    Value handle;
    napi_create_bigint_uint64(env, reinterpret_cast<uintptr_t>(stream), &handle);
    return handle;
}

static Value fill(Environment env, Info info) {
    Value given[5];
    size_t count = 5;
    napi_get_cb_info(env, info, &count, given, nullptr, nullptr);
    uint64_t stream = 0, pointer = 0;
    int64_t bytes = 0, value = 0, milliseconds = 0;
    bool lossless;
    napi_get_value_bigint_uint64(env, given[0], &stream, &lossless);
    napi_get_value_bigint_uint64(env, given[1], &pointer, &lossless);
    napi_get_value_int64(env, given[2], &bytes);
    napi_get_value_int64(env, given[3], &value);
    napi_get_value_int64(env, given[4], &milliseconds);
    reinterpret_cast<CUstream_st*>(stream)->enqueue([=] {
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        std::memset(reinterpret_cast<void*>(pointer), static_cast<int>(value), bytes);
    });
    return nullptr;
}

static int64_t first(Environment env, Info info) {
    Value given[1];
    size_t count = 1;
    napi_get_cb_info(env, info, &count, given, nullptr, nullptr);
    int64_t number = 0;
    napi_get_value_int64(env, given[0], &number);
    return number;
}

static Value count(Environment env, Info info) {
    Value answer;
    napi_create_int64(env, fake_cuda_counted(static_cast<Counted>(first(env, info))), &answer);
    return answer;
}

static Value break_context(Environment env, Info info) {
    fake_cuda_break(first(env, info) != 0);
    return nullptr;
}

extern "C" __attribute__((visibility("default"))) Value napi_register_module_v1(Environment env, Value exports) {
    const auto add = [&](const char* name, Value (*call)(Environment, Info)) {
        Value function;
        napi_create_function(env, name, ~size_t{0}, call, nullptr, &function);
        napi_set_named_property(env, exports, name, function);
    };
    add("create", create);
    add("fill", fill);
    add("count", count);
    add("breakContext", break_context);
    return exports;
}
