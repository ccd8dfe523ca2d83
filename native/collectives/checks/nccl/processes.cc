#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "checks/nccl/check.h"

extern char** environ;

namespace terse::nccl::check {

bool run_rank(const std::string& what, int rank, int size, int ordinal, const std::string& file) {
    const auto device = device_of(ordinal);
    UniqueId id;
    if (rank == 0) {
        id = unique_id(device->nccl);
        std::ofstream(file + ".new", std::ios::binary).write(id.internal, sizeof id.internal);
        std::rename((file + ".new").c_str(), file.c_str());
    } else {
        const auto deadline = Clock::now() + std::chrono::seconds(60);
        while (access(file.c_str(), F_OK) != 0) {
            require(Clock::now() < deadline, "rank 0 has written no unique id");
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        std::ifstream(file, std::ios::binary).read(id.internal, sizeof id.internal);
    }
    Group group(device, rank, size, id, what == "hang" ? 4 : 60);
    group.connect();
    return what == "hang" ? run_hang(group) : run_checks(group);
}

namespace {

struct Ended {
    int status = 1;
    std::string output;
};

// NCCL refuses several ranks on one device. From 2.30 on a variable allows them. Before that each rank pretends to be
// on a host of its own, and the ranks use sockets: slow, and good only to check correctness. NVLS cannot be shared.
std::vector<std::string> environment_of(const Library& nccl, const Driver& cuda, int rank, int size) {
    if (size == 1) return {"NCCL_RAS_ENABLE=0", "NCCL_SOCKET_IFNAME=lo"};
    std::vector<std::string> words{"NCCL_RAS_ENABLE=0", "NCCL_NVLS_ENABLE=0", "NCCL_MAX_CTAS=2",
                                   "NCCL_SOCKET_IFNAME=lo"};
    if (cuda.devices >= size) return words;
    if (nccl.version >= 23000) return words.emplace_back("NCCL_MULTI_RANK_GPU_ENABLE=1"), words;
    for (const std::string& word :
         {"NCCL_HOSTID=rank-" + std::to_string(rank), std::string("NCCL_NET=Socket"), std::string("NCCL_IB_DISABLE=1")})
        words.push_back(word);
    return words;
}

Ended start(const char* program, std::vector<std::string> arguments, std::vector<std::string> variables, int seconds) {
    for (char** each = environ; *each; each++) {
        const std::string name = std::string(*each).substr(0, std::string(*each).find('=') + 1);
        if (std::ranges::none_of(variables, [&](const std::string& variable) { return variable.starts_with(name); }))
            variables.emplace_back(*each);
    }
    std::vector<char*> argv{const_cast<char*>(program)}, envp;
    for (std::string& each : arguments) argv.push_back(each.data());
    for (std::string& each : variables) envp.push_back(each.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return {};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    pid_t child = 0;
    const int failed = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), envp.data());
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    Ended ended;
    if (failed) return close(ends[0]), ended;
    const auto deadline = Clock::now() + std::chrono::seconds(seconds);
    char buffer[4096];
    for (;;) {
        pollfd waits{ends[0], POLLIN, 0};
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
        if (left <= 0) {
            ended.output += "FAILED: not ended after " + std::to_string(seconds) + " s\n";
            kill(child, SIGKILL);
            break;
        }
        if (poll(&waits, 1, static_cast<int>(left)) <= 0) continue;
        const ssize_t count = read(ends[0], buffer, sizeof buffer);
        if (count <= 0) break;
        ended.output.append(buffer, static_cast<size_t>(count));
    }
    close(ends[0]);
    waitpid(child, &ended.status, 0);
    return ended;
}

}  // namespace

// True also if this NCCL refuses several ranks on one device.
bool run_processes(const char* program, const std::string& what, int size) {
    const auto library = open_library("");
    const auto driver = open_driver("");
    const std::string file = "/tmp/terse-nccl-check-" + std::to_string(getpid()) + "-" + what + "-" +
                             std::to_string(size);
    std::vector<Ended> ended(size);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; rank++)
        threads.emplace_back([&, rank] {
            const int device = driver.library->devices >= size ? rank : 0;
            ended[rank] = start(
                program, {"rank", what, std::to_string(rank), std::to_string(size), std::to_string(device), file},
                environment_of(*library.library, *driver.library, rank, size), 120);
        });
    for (auto& thread : threads) thread.join();
    std::remove(file.c_str());
    const std::string name = std::to_string(size) +
                             (size == 1                         ? " rank"
                              : driver.library->devices >= size ? " ranks"
                                                                : " ranks on one device") +
                             ", " + what;
    for (const auto& [status, output] : ended)
        for (const char* refusal : {"Duplicate GPU", "Multiple Ranks", "Multiple ranks"})
            if (output.find(refusal) != std::string::npos) {
                print("skipped " + name + ": this NCCL refuses two ranks on one GPU:\n" + output);
                return true;
            }
    bool well = true;
    for (int rank = 0; rank < size; rank++) {
        std::fputs(ended[rank].output.c_str(), stdout);
        if (ended[rank].status == 0) continue;
        well = false;
        print("FAILED " + name + ": rank " + std::to_string(rank) + " ended with " +
              (WIFSIGNALED(ended[rank].status) ? "signal " + std::to_string(WTERMSIG(ended[rank].status))
                                               : "status " + std::to_string(WEXITSTATUS(ended[rank].status))));
    }
    if (well) print("ok " + name);
    return well;
}

}  // namespace terse::nccl::check
