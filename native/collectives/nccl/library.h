// NCCL and the CUDA driver, opened at run time. Where one is absent the reason is a sentence, and nothing else breaks.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "api.h"
#include "driver_api.h"

namespace terse::nccl {

constexpr int oldest_version = 21800;

std::string version_text(int version);  // 22907 → "2.29.7"

struct Library {
#define TERSE_MEMBER(name, result, ...) result (*name)(__VA_ARGS__) = nullptr;
    TERSE_NCCL_REQUIRED(TERSE_MEMBER)
    TERSE_NCCL_OPTIONAL(TERSE_MEMBER)
#undef TERSE_MEMBER
    int version = 0;
    std::string path;                 // the file that was opened
    std::vector<std::string> absent;  // symbols of the second table that it lacks
};

struct Driver {
#define TERSE_MEMBER(name, symbol, ...) CUresult (*name)(__VA_ARGS__) = nullptr;
    TERSE_CUDA_DRIVER(TERSE_MEMBER)
#undef TERSE_MEMBER
    int version = 0;
    int devices = 0;
    std::string path;
};

// Opened once per file and never closed: both start threads that would run on in memory that is gone. `reason` is why not.
template <typename T>
struct Opened {
    const T* library = nullptr;
    std::string reason;
};

// `path` names the file; empty: TERSE_NCCL, one that is open already, the system's, pip's beside libtorch.
Opened<Library> open_library(const std::string& path);

// `path` names the file; empty: TERSE_CUDA_DRIVER, libcuda.so.1. Initialises the driver and counts its devices.
Opened<Driver> open_driver(const std::string& path);

}  // namespace terse::nccl
