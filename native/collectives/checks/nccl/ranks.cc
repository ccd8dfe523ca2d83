// What one rank does: all checks, or operations that hang.
#include <cstdio>

#include "checks/nccl/check.h"

namespace terse::nccl::check {

void print(const std::string& line) {
    static std::mutex printing;
    std::lock_guard lock(printing);
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

bool run_checks(Group& group) {
    const std::string who = "rank " + std::to_string(group.rank()) + " of " + std::to_string(group.size());
    for (const auto& [name, check, on_cpu_too] : all_checks())
        for (const bool on_device : {true, false}) {
            if (!on_device && !on_cpu_too) continue;
            const std::string what = who + ": " + name + (on_device ? ", on the device" : ", on the CPU");
            try {
                check(group, on_device);
                if (group.rank() == 0) print("ok " + what);
            } catch (const Skipped& reason) {
                if (group.rank() == 0) print("skipped " + what + ": " + reason.what());
            } catch (const std::exception& error) {
                print("FAILED " + what + ": " + error.what());
                group.communicator.abort("a check failed");
                return false;
            }
        }
    group.close();
    return true;
}

namespace {

// The failure of an operation that cannot succeed.
template <typename Call>
std::string failure_of(Call call) {
    try {
        call();
    } catch (const Failure& failure) {
        return failure.what();
    }
    return "no failure";
}

bool is_failure(const char* name, const std::string& message, const std::string& wanted) {
    const bool matches = message.find(wanted) != std::string::npos;
    print(std::string(matches ? "ok " : "FAILED ") + name + ": " + message);
    return matches;
}

}  // namespace

// Rank 0 calls operations that the others do not call, in two groups at once. An abort and a deadline end them,
// although ending one waits for the device.
bool run_hang(Group& group) {
    auto inner = group.device->nccl.CommSplit ? split(group, 0, 0, group.rank(), group.size()) : nullptr;
    if (group.rank() != 0) {
        std::this_thread::sleep_for(std::chrono::seconds(8));
        return true;
    }
    Buffer<float> x(group, std::vector<float>(1000), true), y(group, std::vector<float>(1000), true);
    const uint64_t first = group.start(group.collective(Kind::all_reduce, {x.whole()}));
    const uint64_t second = inner ? inner->start(inner->collective(Kind::all_reduce, {y.whole()})) : 0;
    if (inner) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        inner->communicator.abort("enough");
        if (!is_failure("abort of one group while another hangs", failure_of([&] { inner->wait(second); }), "enough"))
            return false;
    }
    return is_failure("deadline", failure_of([&] { group.wait(first); }), "NCCL has not finished it after");
}

}  // namespace terse::nccl::check
