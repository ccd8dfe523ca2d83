// Opens NCCL and the CUDA driver at run time. If one is absent, the result says why, and everything else works.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engines/nccl/api.h"
#include "engines/nccl/driver_api.h"

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
    std::vector<std::string> absent;  // optional symbols that it lacks
};

struct Driver {
#define TERSE_MEMBER(name, symbol, ...) CUresult (*name)(__VA_ARGS__) = nullptr;
    TERSE_CUDA_DRIVER(TERSE_MEMBER)
#undef TERSE_MEMBER
    int version = 0;
    int devices = 0;
    std::string path;
};

std::string name_of(const Driver& cuda, CUresult error);

// Each file is opened once and never closed: both libraries start threads, which would then run in unmapped code.
// `reason` says why `library` is null.
template <typename T>
struct Opened {
    const T* library = nullptr;
    std::string reason;
};

// `path` names the file. If it is empty: TERSE_NCCL, a library that is already open, the system's, pip's package beside
// libtorch.
Opened<Library> open_library(const std::string& path);

// `path` names the file. If it is empty: TERSE_CUDA_DRIVER, libcuda.so.1. Initialises the driver and counts its
// devices.
Opened<Driver> open_driver(const std::string& path);

}  // namespace terse::nccl
