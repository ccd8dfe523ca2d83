// Opens the module beside the addon, with RTLD_GLOBAL: plugins of some builds of Open MPI look for libmpi's symbols in
// the process's global scope.
#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "engines/mpi/mpi.h"

namespace terse::collectives {
namespace {

std::atomic<Mpi*> opened = nullptr;

std::filesystem::path module_file() {
    Dl_info info{};
    dladdr(reinterpret_cast<void*>(&module_file), &info);
    return std::filesystem::path(info.dli_fname).parent_path() / "collectives_mpi.so";
}

}  // namespace

bool has_mpi() {
    std::error_code ignored;
    return std::filesystem::exists(module_file(), ignored);
}

Mpi* open_mpi(std::string& why) {
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    if (opened) return opened;
    void* library = dlopen(module_file().c_str(), RTLD_NOW | RTLD_GLOBAL);
    auto* entry = library ? reinterpret_cast<Mpi* (*)()>(dlsym(library, "terse_mpi")) : nullptr;
    auto* interface = entry ? reinterpret_cast<const char* (*)()>(dlsym(library, "terse_mpi_interface")) : nullptr;
    if (interface && std::strcmp(interface(), TERSE_MPI_INTERFACE) == 0) {
        opened = entry();
    } else if (entry) {
        why =
            "MPI does not open: its module is not from the same build as the addon; build both again with `./terse "
            "setup`";
    } else {
        const char* cause = dlerror();
        why = std::string("MPI does not open: ") + (cause ? cause : "its module is not the one of this addon");
    }
    return opened;
}

void finish_mpi() noexcept {
    if (Mpi* mpi = opened) mpi->finish();
}

}  // namespace terse::collectives
