// What the methods of a family share. Their results do not depend on the number of threads.
#pragma once
#include <napi.h>

#include <algorithm>
#include <atomic>
#include <initializer_list>

#include "arguments.h"
#include "terse/parallel.h"

constexpr size_t GRAIN = 4096;  // elements: whole bytes of signs, whole groups of terse/walk.h

// Calls part(begin, end) on all threads. Elements do not depend on each other, so the bits do not depend on the number
// of threads.
template <typename Part>
void in_parallel(size_t n, Part part) {
    terse_parallel(
        n, GRAIN, [](void* context, size_t begin, size_t end) { (*static_cast<Part*>(context))(begin, end); }, &part);
}

// The same for kernels that return how many elements they accepted. Gives n, or the index of the first element that was
// not finite.
template <typename Part>
size_t accepted_in_parallel(size_t n, Part part) {
    std::atomic<size_t> accepted{n};
    in_parallel(n, [&](size_t begin, size_t end) {
        const size_t good = begin + part(begin, end - begin);
        size_t least = accepted;
        while (good < end && good < least && !accepted.compare_exchange_weak(least, good)) {
        }
    });
    return accepted;
}

// Calls part(chunk, begin, count) for all chunks of TERSE_REDUCTION_CHUNK elements, on all threads.
template <typename Part>
void in_chunks(size_t n, Part part) {
    auto several = [&](size_t begin, size_t end) {
        for (; begin < end; begin += TERSE_REDUCTION_CHUNK)
            part(begin / TERSE_REDUCTION_CHUNK, begin, std::min<size_t>(TERSE_REDUCTION_CHUNK, end - begin));
    };
    terse_parallel(
        n, TERSE_REDUCTION_CHUNK,
        [](void* context, size_t begin, size_t end) { (*static_cast<decltype(several)*>(context))(begin, end); },
        &several);
}

template <typename Table>
const Table& table_of(const Napi::CallbackInfo& info) {
    return *static_cast<const Table*>(info.Data());
}

inline Napi::Value accepted(const Napi::CallbackInfo& info, size_t count) {
    return Napi::Number::New(info.Env(), static_cast<double>(count));
}

struct Method {
    const char* name;
    Napi::Function (*make)(Napi::Env env, const char* name, void* table);
};

template <auto call>
Method method(const char* name) {
    return {name,
            [](Napi::Env env, const char* its, void* table) { return Napi::Function::New<call>(env, its, table); }};
}

// The tables of terse/optimizers.h as JavaScript objects: one per implementation, with a method for each function. The
// tables are static constants: a method's data is a pointer to its table, which is never freed.
template <typename Table>
Napi::Value implementations(const Napi::CallbackInfo& info, const Table* (*at)(size_t i),
                            std::initializer_list<Method> methods) {
    Napi::Array list = Napi::Array::New(info.Env());
    for (uint32_t i = 0; const Table* const table = at(i); i++) {
        Napi::Object object = Napi::Object::New(info.Env());
        object["implementation"] = table->implementation;
        for (const Method& each : methods)
            object[each.name] = each.make(info.Env(), each.name, const_cast<Table*>(table));
        list[i] = object;
    }
    return list;
}

// Each lists the implementations of its family.
Napi::Value lions(const Napi::CallbackInfo& info);
Napi::Value adamws(const Napi::CallbackInfo& info);
Napi::Value sgds(const Napi::CallbackInfo& info);
Napi::Value moments(const Napi::CallbackInfo& info);
Napi::Value low_ranks(const Napi::CallbackInfo& info);
Napi::Value reductions(const Napi::CallbackInfo& info);
