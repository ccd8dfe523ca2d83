// Arguments that several functions of the addon take.
#pragma once
#include <napi.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "engines/engine.h"

namespace terse::collectives::binding {

inline Clock::duration seconds(const Napi::Value& value) {
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(std::min(value.ToNumber().DoubleValue(), 1e8)));
}

inline std::chrono::milliseconds milliseconds(const Napi::Value& value) {
    return std::chrono::milliseconds(std::clamp<int64_t>(value.ToNumber().Int64Value(), 1, 1 << 30));
}

inline std::string text_or_empty(const Napi::Value& value) {
    return value.IsString() ? value.As<Napi::String>().Utf8Value() : "";
}

}  // namespace terse::collectives::binding
