#include "binding/stop_at_exit.h"

#include <cstdlib>
#include <mutex>
#include <vector>

#include "engines/mpi/mpi.h"

namespace terse::collectives::binding {
namespace {

struct Registry {
    std::mutex mutex;
    std::vector<std::weak_ptr<Communicator>> communicators;

    void stop() {
        std::lock_guard lock(mutex);
        for (const auto& weak : communicators)
            if (const auto communicator = weak.lock()) communicator->stop();
        finish_mpi();
    }
};

Registry& registry() {
    static Registry* registry = [] {
        std::atexit([] { binding::registry().stop(); });
        return new Registry;  // never destroyed
    }();
    return *registry;
}

}  // namespace

void stop_at_exit(const std::shared_ptr<Communicator>& communicator) {
    Registry& all = registry();
    std::lock_guard lock(all.mutex);
    std::erase_if(all.communicators, [](const auto& weak) { return weak.expired(); });
    all.communicators.push_back(communicator);
}

void stop_before_libraries() {
    static const int once = std::atexit([] { registry().stop(); });
    static_cast<void>(once);
}

}  // namespace terse::collectives::binding
