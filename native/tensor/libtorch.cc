#include "libtorch.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>

namespace caffe2 {
const std::map<std::string, std::string>& GetBuildOptions();  // every libtorch_cpu.so exports it, but not every
                                                              // libtorch has its header
}

namespace terse {
namespace {

std::atomic<bool> cuda_open{false}, engine_started{false};
std::mutex opening;

std::string real_path(const std::string& path) {
    char resolved[PATH_MAX];  // not a heap buffer from realpath(): with RTLD_DEEPBIND, its malloc and our free may be
                              // of different libraries
    return realpath(path.c_str(), resolved) ? resolved : path;
}

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::string file_of(const void* symbol) {
    Dl_info info;
    return dladdr(symbol, &info) && info.dli_fname ? real_path(info.dli_fname) : std::string();
}

// Files named `name` that are mapped into this process.
std::set<std::string> mapped(const char* name) {
    std::pair<const char*, std::set<std::string>> search{name, {}};
    dl_iterate_phdr(
        [](dl_phdr_info* info, size_t, void* data) {
            auto& [wanted, found] = *static_cast<std::pair<const char*, std::set<std::string>>*>(data);
            const char* slash = std::strrchr(info->dlpi_name, '/');
            if (slash && std::strcmp(slash + 1, wanted) == 0) found.insert(real_path(info->dlpi_name));
            return 0;
        },
        &search);
    return search.second;
}

void open_cuda() {
    std::lock_guard lock(opening);
    if (cuda_open) return;
    if (engine_started)
        throw std::runtime_error(
            "CUDA must be opened before the first backward(), because libtorch counts its devices then; make a tensor "
            "on \"cuda\" at the start of the program");
    const std::string file = libtorch_folder() + "/libtorch_cuda.so";
    // RTLD_LOCAL is enough: libtorch_cuda.so lists its own dependencies, and registers its kernels when it is loaded.
    if (!dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        const char* why = dlerror();
        throw std::runtime_error("no CUDA device can be used: " + file + " does not open (" +
                                 (why ? why : "no reason given") +
                                 "). It needs a CUDA build of libtorch, its CUDA libraries and a driver; `python3 -m "
                                 "pip install torch` installs the libraries");
    }
    if (c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA)->deviceCount() == 0)
        throw std::runtime_error(
            "no CUDA device can be used: " + file +
            " is open, but the driver has no device; `nvidia-smi` lists the devices of the driver");
    if (!at::globalContext().hasCUDA())
        throw std::runtime_error(
            "CUDA must be opened before libtorch is first asked for it; make a tensor on \"cuda\" at the start of the "
            "program");
    cuda_open = true;
}

}  // namespace

// at::show_config() asks for CUDA, and libtorch remembers the answer. Before libtorch_cuda.so is open the answer would
// be "none".
std::string loaded_version() {
    const auto& options = caffe2::GetBuildOptions();
    const auto version = options.find("TORCH_VERSION");
    return version == options.end() ? "of unknown version" : version->second;
}

std::string build_options() {
    std::string text;
    for (const auto& [name, value] : caffe2::GetBuildOptions()) text += name + "=" + value + "\n";
    return text;
}

std::string libtorch_folder() { return folder_of(file_of(reinterpret_cast<const void*>(&caffe2::GetBuildOptions))); }

void check_libraries() {
    const std::string built_root = real_path(TERSE_LIBTORCH_ROOT);
    const std::string rebuild =
        "; set LIBTORCH to the one to use and rebuild with `npx cmake-js rebuild` in native/tensor";
    for (const char* name : {"libc10.so", "libtorch_cpu.so"}) {
        const std::string expected = built_root + "/lib/" + name;
        const std::set<std::string> files = mapped(name);
        if (files.size() == 1 && *files.begin() == expected) continue;
        std::string all;
        for (const std::string& file : files) all += (all.empty() ? "" : " and ") + file;
        throw std::runtime_error("the tensor addon was built against " + expected + ", but this process has " +
                                 (all.empty() ? "none" : all) + rebuild);
    }
    const std::string loaded = loaded_version(), built = TORCH_VERSION;
    if (loaded.substr(0, loaded.find('+')) != built.substr(0, built.find('+')))
        throw std::runtime_error("the tensor addon was built against libtorch " + built + ", but " + built_root +
                                 " now holds " + loaded + rebuild);
}

c10::Device open_device(const std::string& name) {
    const c10::Device device(name);  // throws for an unknown name
    if (device.is_cuda()) {
        if (!cuda_open) open_cuda();
        const int devices = c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA)->deviceCount();
        if (device.index() >= devices)
            throw std::runtime_error(
                "there is no " + name + ": this machine has " +
                (devices == 1 ? "1 GPU, cuda:0"
                              : std::to_string(devices) + " GPUs, cuda:0 to cuda:" + std::to_string(devices - 1)));
    } else if (!device.is_cpu() && !device.is_meta()) {
        throw std::runtime_error("device \"" + name + "\" is not supported: use \"cpu\" or \"cuda:0\"");
    }
    return device;
}

void backward_has_begun() {
    std::lock_guard lock(opening);
    engine_started = true;
}

bool cuda_is_open() { return cuda_open; }

}  // namespace terse
