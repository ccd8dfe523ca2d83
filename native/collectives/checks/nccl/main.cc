// Checks the NCCL engine without Node, on a machine with a GPU or with the fakes of fake/.
//
//   nccl_check                 one rank, then two in processes of their own: on two devices, or both on one
//   nccl_check threads N       N ranks in this process, each on a device of its own
//   nccl_check rank WHAT R N DEVICE FILE    one rank of the first form; FILE passes the unique id
//
// TERSE_NCCL_CHECK_LARGE=1: vectors of more than 2³¹ elements too, 2 GiB for each rank.
// Prints one line for each check. The exit status is not 0 if one failed.
#include <cstdio>

#include "checks/nccl/check.h"

namespace terse::nccl::check {
namespace {

bool run_threads(int size) {
    const UniqueId id = unique_id(device_of(0)->nccl);
    std::atomic<bool> well = true;
    std::vector<std::thread> all;
    for (int rank = 0; rank < size; rank++)
        all.emplace_back([&, rank] {
            try {
                Group group(device_of(rank), rank, size, id);
                group.connect();
                if (!run_checks(group)) well = false;
            } catch (const std::exception& error) {
                print("FAILED rank " + std::to_string(rank) + ": " + error.what());
                well = false;
            }
        });
    for (auto& thread : all) thread.join();
    return well;
}

int run(int count, char** arguments) {
    const auto argument = [&](int i) { return std::string(i < count ? arguments[i] : ""); };
    if (argument(1) == "rank")
        return run_rank(argument(2), std::stoi(argument(3)), std::stoi(argument(4)), std::stoi(argument(5)),
                        argument(6))
                   ? 0
                   : 1;
    const auto library = open_library("");
    const auto driver = open_driver("");
    if (!library.library || !driver.library) {
        print("FAILED: " + library.reason + (library.reason.empty() ? "" : "; ") + driver.reason);
        return 1;
    }
    std::string absent;
    for (const std::string& symbol : library.library->absent) absent += " " + symbol;
    print("NCCL " + version_text(library.library->version) + " (" + library.library->path +
          (absent.empty() ? ", which lacks nothing)" : ", which lacks" + absent + ")"));
    print("driver for CUDA " + std::to_string(driver.library->version / 1000) + "." +
          std::to_string(driver.library->version % 1000 / 10) + " (" + driver.library->path + "), " +
          std::to_string(driver.library->devices) + " GPU");
    if (argument(1) == "threads") return run_threads(std::stoi(argument(2))) ? 0 : 1;
    bool well = run_processes(arguments[0], "checks", 1);
    well &= run_processes(arguments[0], "checks", 2);
    well &= run_processes(arguments[0], "hang", 2);
    return well ? 0 : 1;
}

}  // namespace
}  // namespace terse::nccl::check

int main(int count, char** arguments) {
    try {
        return terse::nccl::check::run(count, arguments);
    } catch (const std::exception& error) {
        std::printf("FAILED: %s\n", error.what());
        return 1;
    }
}
