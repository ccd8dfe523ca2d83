#include "library.h"

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
const std::map<std::string, std::string>& GetBuildOptions();  // exported by every libtorch_cpu.so; its header comes with some only
}

namespace terse {
namespace {

std::atomic<bool> cuda_open{false}, engine_started{false};
std::mutex opening;

std::string real_path(const std::string& path) {
    char resolved[PATH_MAX];  // not on the heap: under RTLD_DEEPBIND and another malloc, its owner and ours may differ
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
    if (engine_started) throw std::runtime_error("CUDA must be opened before the first backward(), because libtorch counts its devices there: make one tensor on \"cuda\" at the start");
    const std::string file = libtorch_folder() + "/libtorch_cuda.so";
    // Global neither here: what libtorch_cuda needs it names itself, and it registers its kernels when it is mapped.
    if (!dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        const char* why = dlerror();
        throw std::runtime_error("no CUDA device can be used: " + file + " does not open (" + (why ? why : "no reason given") +
                                 "). It needs a CUDA build of libtorch with its CUDA libraries and a driver; `python3 -m pip install torch` brings the libraries");
    }
    if (c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA)->deviceCount() == 0)
        throw std::runtime_error("no CUDA device can be used: " + file + " is open, but the driver shows no device; `nvidia-smi` says what the driver sees");
    if (!at::globalContext().hasCUDA())
        throw std::runtime_error("CUDA must be opened before libtorch was first asked whether it is there: make one tensor on \"cuda\" at the start");
    cuda_open = true;
}

}  // namespace

// Not at::show_config(): it asks for CUDA, and the answer "none" would stay although libtorch_cuda.so is opened later.
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
    const std::string rebuild = "; set LIBTORCH to the one you mean and rebuild with `npx cmake-js rebuild` in native/tensor";
    for (const char* name : {"libc10.so", "libtorch_cpu.so"}) {
        const std::string expected = built_root + "/lib/" + name;
        const std::set<std::string> files = mapped(name);
        if (files.size() == 1 && *files.begin() == expected) continue;
        std::string all;
        for (const std::string& file : files) all += (all.empty() ? "" : " and ") + file;
        throw std::runtime_error("the tensor addon was built against " + expected + ", but this process has " + (all.empty() ? "none" : all) + rebuild);
    }
    const std::string loaded = loaded_version(), built = TORCH_VERSION;
    if (loaded.substr(0, loaded.find('+')) != built.substr(0, built.find('+')))
        throw std::runtime_error("the tensor addon was built against libtorch " + built + ", but " + built_root + " now holds " + loaded + rebuild);
}

c10::Device open_device(const std::string& name) {
    const c10::Device device(name);  // says itself what is wrong with the name
    if (device.is_cuda()) {
        if (!cuda_open) open_cuda();
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
