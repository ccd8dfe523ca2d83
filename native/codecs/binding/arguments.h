// What calls from JavaScript give: read, and checked, so that no call reads or writes outside its arrays.
#pragma once
#include <napi.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "terse/codecs.h"
#include "terse/napi_buffer.h"

namespace terse::codecs_binding {

uint8_t* bytes_of(const Napi::Value& value, const char* what, size_t length);
float* floats_of(const Napi::Value& value, const char* what, size_t& n);
float* so_many_floats_of(const Napi::Value& value, const char* what, size_t expected);
size_t count_of(const Napi::Value& value, const char* what);
uint32_t small_of(const Napi::Value& value, const char* what);
terse_zero zero_of(const Napi::Value& value, const char* what);
float number_of(const Napi::Value& value, const char* what);
Napi::Object options_of(const Napi::CallbackInfo& info, size_t i);

constexpr size_t bytes_of_bits(size_t n) { return n / 8 + (n % 8 != 0); }

// The options of one call, and the memory that they point to.
struct Options {
    terse_codec_options c{};
    std::vector<size_t> segments;

    explicit Options(const Napi::Object& parameters);  // the options that determine the wire
    Options(const Napi::Object& parameters, const Napi::Object& call, size_t n);
    Options(const Options&) = delete;
};

// An array of wires of this length; null stands for an absent rank where it may.
struct Wires {
    std::vector<uint8_t*> pointers;

    Wires(const Napi::Value& value, const char* what, size_t length, bool may_be_null = false);
};

// Throws the sentence of any other status.
void throw_unless_ok(Napi::Env env, terse_codec_status status);

size_t wire_bytes_of(Napi::Env env, const terse_codec& codec, size_t n, const Options& options);

// What a call with a wire begins with: its options are two arguments, the parameters and those of the call.
struct WireCall {
    size_t n;
    Options options;
    size_t bytes;
    uint8_t* wire;
    size_t bad = 0;

    WireCall(const Napi::CallbackInfo& info, const terse_codec& codec, size_t n, size_t wire_at, size_t options_at);
};

// Adds a method to the object of a table. Tables are static constants, so a bare pointer is all that it needs to carry.
template <auto function, typename Table>
void add_method(Napi::Object object, const char* name, const Table* table) {
    object[name] = Napi::Function::New<function>(object.Env(), name, const_cast<Table*>(table));
}

}  // namespace terse::codecs_binding
