#include "engines/nccl/library.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <mutex>

namespace terse::nccl {
namespace {

struct Handle {
    void* handle = nullptr;
    std::string path;
};

// The file that contains a symbol, for libraries that were opened by a bare name.
std::string file_of(void* symbol, const std::string& otherwise) {
    Dl_info info;
    return symbol && dladdr(symbol, &info) && info.dli_fname ? info.dli_fname : otherwise;
}

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

std::string folder_of(const std::string& path) { return path.substr(0, path.find_last_of('/')); }

// pip installs NVIDIA's packages beside torch: torch/lib/libtorch_cpu.so, nvidia/nccl/lib/libnccl.so.2.
std::vector<std::string> beside_libtorch() {
    std::vector<std::string> roots;
    if (const std::string root = environment("LIBTORCH"); !root.empty()) roots.push_back(root);
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* found) {
            const std::string file = info->dlpi_name ? info->dlpi_name : "";
            if (file.ends_with("/libtorch_cpu.so"))
                static_cast<std::vector<std::string>*>(found)->push_back(folder_of(folder_of(file)));
            return 0;
        },
        &roots);
    std::vector<std::string> files;
    for (const std::string& root : roots) files.push_back(folder_of(root) + "/nvidia/nccl/lib/libnccl.so.2");
    return files;
}

// RTLD_LOCAL: a torch in this process may have an NCCL of another version.
Handle try_all(const std::vector<std::string>& files, std::string& reason) {
    for (const std::string& file : files) {
        if (file[0] == '/' && access(file.c_str(), F_OK) != 0) {
            reason += (reason.empty() ? "" : "; ") + file + " does not exist";
            continue;
        }
        if (void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) return {handle, file};
        const char* why = dlerror();
        reason += (reason.empty() ? "" : "; ") + std::string(why ? why : file + " does not open");
    }
    return {};
}

template <typename T>
Opened<T> once(const std::string& path, Opened<T> (*open)(const std::string&)) {
    static std::mutex mutex;
    static auto* opened = new std::map<std::string, Opened<T>>;
    std::lock_guard lock(mutex);
    if (const auto known = opened->find(path); known != opened->end()) return known->second;
    const Opened<T> result = open(path);
    if (result.library) opened->emplace(path, result);  // a failure is not kept: the file may be installed later
    return result;
}

Opened<Library> open_library_at(const std::string& path) {
    std::string reason;
    Handle found;
    if (!path.empty()) {
        found = try_all({path}, reason);
    } else {
        found.handle = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
        std::vector<std::string> files{"libnccl.so.2"};
        for (const std::string& file : beside_libtorch()) files.push_back(file);
        if (!found.handle) found = try_all(files, reason);
    }
    if (!found.handle)
        return {nullptr, "NCCL does not open (" + reason +
                             "): install it by `pip install nvidia-nccl-cu13` or `apt-get install libnccl2`, or set "
                             "TERSE_NCCL to its file"};

    auto library = std::make_unique<Library>();
    library->path = file_of(dlsym(found.handle, "ncclGetVersion"), found.path);
#define TERSE_REQUIRE(name, result, ...)                                                                      \
    library->name = reinterpret_cast<result (*)(__VA_ARGS__)>(dlsym(found.handle, "nccl" #name));             \
    if (!library->name)                                                                                       \
        return {nullptr, library->path + " lacks nccl" #name ", which NCCL " + version_text(oldest_version) + \
                             " and newer have"};
    TERSE_NCCL_REQUIRED(TERSE_REQUIRE)
#undef TERSE_REQUIRE
#define TERSE_TRY(name, result, ...)                                                              \
    library->name = reinterpret_cast<result (*)(__VA_ARGS__)>(dlsym(found.handle, "nccl" #name)); \
    if (!library->name) library->absent.push_back("nccl" #name);
    TERSE_NCCL_OPTIONAL(TERSE_TRY)
#undef TERSE_TRY
    const Result result = library->GetVersion(&library->version);
    if (result != success)
        return {nullptr, library->path + " does not report its version: " + library->GetErrorString(result)};
    if (library->version < oldest_version)
        return {nullptr, library->path + " is NCCL " + version_text(library->version) + ", and " +
                             version_text(oldest_version) + " or newer is needed"};
    return {library.release(), ""};
}

Opened<Driver> open_driver_at(const std::string& path) {
    std::string reason;
    const Handle found = try_all({path.empty() ? "libcuda.so.1" : path}, reason);
    if (!found.handle) return {nullptr, "the NVIDIA driver does not open (" + reason + ")"};
    auto driver = std::make_unique<Driver>();
    driver->path = file_of(dlsym(found.handle, "cuInit"), found.path);
#define TERSE_REQUIRE(name, symbol, ...)                                                     \
    driver->name = reinterpret_cast<CUresult (*)(__VA_ARGS__)>(dlsym(found.handle, symbol)); \
    if (!driver->name) return {nullptr, driver->path + " lacks " + symbol};
    TERSE_CUDA_DRIVER(TERSE_REQUIRE)
#undef TERSE_REQUIRE
    CUresult result = driver->init(0);
    if (result == cuda_success) result = driver->driver_version(&driver->version);
    if (result == cuda_success) result = driver->device_count(&driver->devices);
    if (result == cuda_success && driver->devices > 0) return {driver.release(), ""};
    const std::string why = result == cuda_success ? "no device" : name_of(*driver, result);
    return {nullptr, "the NVIDIA driver finds no GPU (" + why + ")"};
}

}  // namespace

std::string version_text(int version) {
    return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100);
}

std::string name_of(const Driver& cuda, CUresult error) {
    const char* name = nullptr;
    cuda.error_name(error, &name);
    return name ? name : "CUDA error " + std::to_string(error);
}

Opened<Library> open_library(const std::string& path) {
    return once<Library>(path.empty() ? environment("TERSE_NCCL") : path, open_library_at);
}
Opened<Driver> open_driver(const std::string& path) {
    return once<Driver>(path.empty() ? environment("TERSE_CUDA_DRIVER") : path, open_driver_at);
}

}  // namespace terse::nccl
