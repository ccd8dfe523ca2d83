// What can be asked of this engine on a machine with a GPU, and with the stand-ins of fake/, without Node.
//
//   nccl_check                 one rank, then two in processes of their own: on two devices, or on one by the recipe below
//   nccl_check threads N       N ranks in this process, each on a device of its own
//   nccl_check rank WHAT R N DEVICE FILE    what the first starts; FILE brings the unique id
//
// TERSE_NCCL_CHECK_LARGE=1: as it is meant for a device, with vectors of more than 2³¹ elements, 2 GiB for each rank.
// One line for each check; the exit status is that of the worst.
#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>

extern char** environ;

namespace terse::nccl::check {
namespace {

const bool is_large = std::getenv("TERSE_NCCL_CHECK_LARGE") != nullptr;

struct Check {
    const char* name;
    std::function<void(Group&, bool on_device)> run;
    bool on_cpu_too = true;
};

// ---- sums

template <typename T>
void all_reduce(Group& group, bool on_device) {
    const int n = group.size();
    const size_t length = 1003;
    const auto give = [](int rank, size_t i) { return static_cast<double>((i * 7 + rank * 3) % 5 + 1); };
    for (const Reduction reduction : {Reduction::sum, Reduction::prod, Reduction::min, Reduction::max}) {
        Numbers<T> x(group, fill<T>(length, [&](size_t i) { return give(group.rank(), i); }), on_device);
        Operation operation = group.collective(Kind::all_reduce, {x.whole()});
        operation.reduction = reduction;
        group.run(operation);
        x.expect(fill<T>(length,
                         [&](size_t i) {
                             double all = give(0, i);
                             for (int r = 1; r < n; r++)
                                 all = reduction == Reduction::sum    ? all + give(r, i)
                                       : reduction == Reduction::prod ? all * give(r, i)
                                       : reduction == Reduction::min  ? std::min(all, give(r, i))
                                                                      : std::max(all, give(r, i));
                             return all;
                         }),
                 std::string(name_of(reduction)) + " of " + name_of(dtype_of<T>()));
    }
}

void sums(Group& group, bool on_device) {
    all_reduce<uint8_t>(group, on_device);
    all_reduce<int8_t>(group, on_device);
    all_reduce<int32_t>(group, on_device);
    all_reduce<int64_t>(group, on_device);
    all_reduce<float>(group, on_device);
    all_reduce<double>(group, on_device);
}

// Words of 8 bytes have the sums of bytes, where no byte is left.
void packed(Group& group, bool on_device) {
    for (const size_t length : {0, 1, 7, 8, 9, 64, 1003, 100'003}) {
        const auto give = [](int rank, size_t i) { return (i * 5 + rank * 11) % (255 / 16); };
        std::vector<uint8_t> sum(length);
        for (int r = 0; r < group.size(); r++)
            for (size_t i = 0; i < length; i++) sum[i] += static_cast<uint8_t>(give(r, i));
        for (const bool is_packed : {false, true}) {
            Numbers<uint8_t> x(group, fill<uint8_t>(length, [&](size_t i) { return give(group.rank(), i); }), on_device);
            Operation operation = group.collective(Kind::all_reduce, {x.whole()});
            operation.packed = is_packed;
            group.run(operation);
            x.expect(sum, is_packed ? "packed sum" : "sum of bytes");
        }
    }
}

// Sums that round, and means: near the exact ones, and the same bits on all ranks.
void rounded(Group& group, bool on_device) {
    const int n = group.size();
    const size_t length = 20'011;
    const auto give = [](int rank, size_t i) { return static_cast<float>(std::sin(i * 12.9898 + rank * 78.233) * std::ldexp(1, (i + rank) % 20)); };
    for (const Reduction reduction : {Reduction::sum, Reduction::mean}) {
        Numbers<float> x(group, fill<float>(length, [&](size_t i) { return give(group.rank(), i); }), on_device);
        Operation operation = group.collective(Kind::all_reduce, {x.whole()});
        operation.reduction = reduction;
        group.run(operation);
        const std::vector<float> mine = x.read();
        for (size_t i = 0; i < length; i++) {
            double exact = 0, magnitude = 0;
            for (int r = 0; r < n; r++) exact += give(r, i), magnitude += std::fabs(give(r, i));
            if (reduction == Reduction::mean) exact /= n, magnitude /= n;
            require(std::fabs(mine[i] - exact) <= 2.0 * n * std::ldexp(magnitude, -24), std::string(name_of(reduction)) + " that rounds: element " + std::to_string(i));
        }
        std::vector<float> all(length * n);
        std::copy(mine.begin(), mine.end(), all.begin() + static_cast<ptrdiff_t>(length * group.rank()));
        Numbers<float> everywhere(group, all, on_device);
        std::vector<BufferView> parts;
        for (int r = 0; r < n; r++) parts.push_back(everywhere.part(r * length, (r + 1) * length));
        group.run(group.collective(Kind::all_gather, parts));
        all = everywhere.read();
        for (int r = 0; r < n; r++) require(std::memcmp(all.data() + r * length, mine.data(), length * sizeof(float)) == 0, "rank " + std::to_string(r) + " has another result");
    }
}

// ---- parts

// n parts of 3, in order or backwards, so that they do not lie side by side.
void parts(Group& group, bool on_device) {
    const int n = group.size(), rank = group.rank();
    for (const bool backwards : {false, true}) {
        const auto place = [&](int r) { return backwards ? n - 1 - r : r; };
        const auto list = [&](Numbers<int32_t>& x) {
            std::vector<BufferView> memories;
            for (int r = 0; r < n; r++) memories.push_back(x.part(3 * place(r), 3 * place(r) + 3));
            return memories;
        };
        const auto each = [&](const std::function<double(int, size_t)>& f) { return fill<int32_t>(3 * n, [&](size_t at) { return f(place(static_cast<int>(at / 3)), at % 3); }); };

        Numbers<int32_t> scattered(group, each([&](int r, size_t i) { return 100 * r + 10 * rank + i; }), on_device);
        group.run(group.collective(Kind::reduce_scatter, list(scattered)));
        const auto own = scattered.read();
        for (size_t i = 0; i < 3; i++) require(own[3 * place(rank) + i] == n * (100 * rank + static_cast<int>(i)) + 10 * n * (n - 1) / 2, "reduce-scatter");

        Numbers<int32_t> gathered(group, each([&](int r, size_t i) { return r == rank ? 10.0 * rank + i : -1; }), on_device);
        group.run(group.collective(Kind::all_gather, list(gathered)));
        gathered.expect(each([](int r, size_t i) { return 10.0 * r + i; }), "all-gather");

        for (const bool even : {false, true}) {
            Numbers<int32_t> out(group, each([&](int r, size_t i) { return 100.0 * rank + 10 * r + i; }), on_device), in(group, each([](int, size_t) { return -1; }), on_device);
            Operation operation = group.collective(Kind::all_to_all, list(out), list(in));
            operation.even = even;
            operation.note = static_cast<uint8_t>(rank + 1);
            const auto notes = group.run(operation);
            for (int r = 0; r < n; r++) require(notes.size() == static_cast<size_t>(n) && notes[r] == r + 1, "notes of an all-to-all");
            in.expect(each([&](int r, size_t i) { return 100.0 * r + 10 * rank + i; }), even ? "even all-to-all" : "all-to-all");
        }
    }
}

// Parts of r elements for rank r, of which the first is empty.
void uneven(Group& group, bool on_device) {
    const int n = group.size(), rank = group.rank();
    const auto total = static_cast<size_t>(n * (n - 1) / 2);
    const auto list = [&](Numbers<double>& x) {
        std::vector<BufferView> memories;
        for (size_t r = 0, at = 0; r < static_cast<size_t>(n); at += r++) memories.push_back(x.part(at, at + r));
        return memories;
    };
    Numbers<double> x(group, fill<double>(total, [&](size_t) { return rank + 1; }), on_device);
    group.run(group.collective(Kind::reduce_scatter, list(x)));
    group.run(group.collective(Kind::all_gather, list(x)));
    x.expect(std::vector<double>(total, n * (n + 1) / 2), "parts of several lengths");
}

void rooted(Group& group, bool on_device) {
    const int n = group.size(), rank = group.rank(), last = n - 1;
    Numbers<int64_t> told(group, {rank, 7}, on_device);
    group.run(group.collective(Kind::broadcast, {told.whole()}, {}, last));
    told.expect({last, 7}, "broadcast");

    Numbers<int32_t> spread(group, fill<int32_t>(2 * n, [](size_t i) { return 5 * i; }), on_device), mine(group, {-1, -1}, on_device), back(group, std::vector<int32_t>(2 * n, -1), on_device);
    const auto list = [&](Numbers<int32_t>& x) {
        std::vector<BufferView> memories;
        for (int r = 0; r < n; r++) memories.push_back(x.part(2 * r, 2 * r + 2));
        return memories;
    };
    group.run(group.collective(Kind::scatter, rank == 0 ? list(spread) : std::vector<BufferView>{}, {mine.whole()}, 0));
    mine.expect({10 * rank, 10 * rank + 5}, "scatter");
    group.run(group.collective(Kind::gather, {mine.whole()}, rank == last ? list(back) : std::vector<BufferView>{}, last));
    if (rank == last) back.expect(fill<int32_t>(2 * n, [](size_t i) { return 5 * i; }), "gather");
}

void neighbours(Group& group, bool on_device) {
    const int n = group.size(), rank = group.rank();
    if (n == 1) return;
    Numbers<float> mine(group, {static_cast<float>(rank), 2}, on_device), heard(group, {-1, -1}, on_device);
    const uint64_t receives = group.start(group.collective(Kind::recv, {heard.whole()}, {}, (rank + n - 1) % n));
    const uint64_t sends = group.start(group.collective(Kind::send, {mine.whole()}, {}, (rank + 1) % n));
    group.communicator.flush();
    group.wait(receives);
    group.wait(sends);
    heard.expect({static_cast<float>((rank + n - 1) % n), 2}, "send and receive");
}

void nothing(Group& group, bool on_device) {
    Numbers<float> x(group, {}, on_device);
    const std::vector<BufferView> empty(group.size(), x.whole());
    group.run(group.collective(Kind::all_reduce, {x.whole()}));
    group.run(group.collective(Kind::broadcast, {x.whole()}, {}, 0));
    group.run(group.collective(Kind::reduce_scatter, empty));
    group.run(group.collective(Kind::all_gather, empty));
    group.run(group.collective(Kind::all_to_all, empty, empty));
    group.run(group.collective(Kind::barrier, {}));
}

// ---- what only memory of the device has

// The caller's stream is still filling the memory when the operation is called.
void streams(Group& group, bool) {
    const Driver& cuda = group.issuer->cuda;
    const size_t bytes = is_large ? size_t{1} << 28 : size_t{1} << 20;
    const int n = group.size(), rank = group.rank();
    Numbers<uint8_t> out(group, std::vector<uint8_t>(n, 99), true), in(group, std::vector<uint8_t>(n, 99), true), delay(group, std::vector<uint8_t>(bytes), true);
    CUstream stream = nullptr;
    CUcontext context = nullptr;
    CUdevice device = 0;
    const auto check = [&](CUresult result) { group.issuer->check(result, "a stream of the caller's"); };
    check(cuda.device_get(&device, group.issuer->device));
    check(cuda.context_retain(&context, device));
    check(cuda.context_push(context));
    check(cuda.stream_create(&stream, stream_non_blocking));
    for (uint8_t round = 0; round < 5; round++) {
        for (int i = 0; i < 50; i++) check(cuda.set_bytes(reinterpret_cast<CUdeviceptr>(delay.data()), round, bytes, stream));
        check(cuda.set_bytes(reinterpret_cast<CUdeviceptr>(out.data()), static_cast<uint8_t>(10 * round + rank), n, stream));
        std::vector<BufferView> from, to;
        for (int r = 0; r < n; r++) from.push_back(out.part(r, r + 1)), to.push_back(in.part(r, r + 1));
        Operation operation = group.collective(Kind::all_to_all, from, to);
        operation.stream = reinterpret_cast<uintptr_t>(stream);
        group.run(operation);
        in.expect(fill<uint8_t>(n, [&](size_t r) { return 10 * round + r; }), "after the caller's stream");
    }
    check(cuda.stream_destroy(stream));
    check(cuda.context_pop(&context));
    check(cuda.context_release(device));
}

void registered(Group& group, bool) {
    if (!group.issuer->nccl.CommRegister || !group.issuer->nccl.CommDeregister) throw Skipped("this version of NCCL registers no memory");
    const size_t length = is_large ? 1 << 24 : 1 << 14;
    for (int round = 0; round < 3; round++) {
        Numbers<float> x(group, fill<float>(length, [&](size_t i) { return group.rank() + i % 7; }), true);
        group.run(group.collective(Kind::enroll, {x.whole()}));
        const int n = group.size();
        group.run(group.collective(Kind::all_reduce, {x.whole()}));
        x.expect(fill<float>(length, [&](size_t i) { return n * (n - 1) / 2 + n * (i % 7); }), "sum of registered memory");
    }  // freed while it is registered
}

void large(Group& group, bool) {
    if (!is_large) throw Skipped("TERSE_NCCL_CHECK_LARGE is not set");
    const size_t length = (size_t{1} << 31) + 13;
    auto* memory = static_cast<uint8_t*>(group.issuer->lend(length));
    const auto part = [&](size_t from, size_t count) { return BufferView{memory + from, count, DType::u8, false}; };
    std::vector<uint8_t> ends(64);
    for (size_t i = 0; i < 64; i++) ends[i] = static_cast<uint8_t>(i + group.rank());
    const BufferView here{ends.data(), 64, DType::u8, true};
    group.run(group.collective(Kind::copy, {here}, {part(0, 64)}));
    group.run(group.collective(Kind::copy, {here}, {part(length - 64, 64)}));
    for (const bool is_packed : {false, true}) {
        Operation operation = group.collective(Kind::all_reduce, {part(0, length)});
        operation.packed = is_packed;
        group.run(operation);
    }
    const int n = group.size();
    for (const size_t at : {size_t{0}, length - 64}) {
        group.run(group.collective(Kind::copy, {part(at, 64)}, {here}));
        for (int i = 0; i < 64; i++) require(ends[i] == static_cast<uint8_t>(n * (n * i + n * (n - 1) / 2)), "sum of more than 2³¹ elements");
    }
    group.issuer->free(memory);
}

// ---- groups

std::unique_ptr<Group> split(Group& group, int color, int key, int rank, int size, double connect_timeout = 60) {
    const uint64_t id = group.next_id();
    const auto place = group.communicator.split(id);
    std::unique_ptr<Group> child;
    if (color >= 0) child = std::make_unique<Group>(group.issuer, rank, size, UniqueId{}, 60, connect_timeout);
    group.communicator.join(place, color, key, child ? &child->communicator : nullptr);
    group.wait(id);
    return child;
}

// In two halves, backwards, of which rank 0 is in none where there are three ranks or more; then all of them once more.
void splits(Group& group, bool on_device) {
    if (!group.issuer->nccl.CommSplit) throw Skipped("this version of NCCL has no ncclCommSplit");
    const int n = group.size(), rank = group.rank(), first = n > 2 ? 1 : 0;
    const auto color_of = [&](int r) { return r < first ? no_color : r % 2; };
    const int color = color_of(rank);
    std::vector<int> members;
    for (int r = n - 1; r >= 0; r--)
        if (color >= 0 && color_of(r) == color) members.push_back(r);
    const auto place = static_cast<int>(std::ranges::find(members, rank) - members.begin());
    const auto half = split(group, color, -rank, place, static_cast<int>(members.size()));
    require(!half == (color < 0), "a rank of no color has a group, or one of a color has none");
    if (half) {
        std::vector<int32_t> ranks(members.size(), -1);
        ranks[place] = rank;
        Numbers<int32_t> x(*half, ranks, on_device);
        std::vector<BufferView> list;
        for (size_t r = 0; r < members.size(); r++) list.push_back(x.part(r, r + 1));
        half->run(half->collective(Kind::all_gather, list));
        x.expect(std::vector<int32_t>(members.begin(), members.end()), "ranks of a split");
    }
    const auto again = split(group, 0, 0, rank, n);
    sums(*again, on_device);
    again->close();
    if (half) half->close();
}

const std::vector<Check>& tour() {
    static const std::vector<Check> checks{
        {"sums", sums},
        {"packed sums", packed},
        {"sums that round", rounded},
        {"parts", parts},
        {"parts of several lengths", uneven},
        {"roots", rooted},
        {"neighbours", neighbours},
        {"nothing", nothing},
        {"the caller's stream", streams, false},
        {"registration", registered, false},
        {"more than 2³¹ elements", large, false},
        {"splits", splits},
    };
    return checks;
}

std::mutex speaking;

void say(const std::string& line) {
    std::lock_guard lock(speaking);
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

// True: all is well.
bool go_through(Group& group) {
    const std::string who = "rank " + std::to_string(group.rank()) + " of " + std::to_string(group.size());
    for (const auto& [name, check, on_cpu_too] : tour())
        for (const bool on_device : {true, false}) {
            if (!on_device && !on_cpu_too) continue;
            const std::string what = who + ": " + name + (on_device ? ", on the device" : ", on the CPU");
            try {
                check(group, on_device);
                if (group.rank() == 0) say("ok " + what);
            } catch (const Skipped& reason) {
                if (group.rank() == 0) say("skipped " + what + ": " + reason.what());
            } catch (const std::exception& error) {
                say("FAILED " + what + ": " + error.what());
                group.communicator.abort("a check failed");
                return false;
            }
        }
    group.close();
    return true;
}

// The failure of what cannot end by itself.
template <typename Call>
std::string failure_of(Call call) {
    try {
        call();
    } catch (const Failure& failure) {
        return failure.what();
    }
    return "no failure";
}

bool is_said(const char* name, const std::string& said, const std::string& wanted) {
    const bool is = said.find(wanted) != std::string::npos;
    say(std::string(is ? "ok " : "FAILED ") + name + ": " + said);
    return is;
}

// Rank 0 calls what the others do not, in two groups at once: a deadline ends both, although the end of one waits for the device.
bool hang(Group& group) {
    auto inner = group.issuer->nccl.CommSplit ? split(group, 0, 0, group.rank(), group.size()) : nullptr;
    if (group.rank() != 0) {
        std::this_thread::sleep_for(std::chrono::seconds(8));
        return true;
    }
    Numbers<float> x(group, std::vector<float>(1000), true), y(group, std::vector<float>(1000), true);
    const uint64_t first = group.start(group.collective(Kind::all_reduce, {x.whole()}));
    const uint64_t second = inner ? inner->start(inner->collective(Kind::all_reduce, {y.whole()})) : 0;
    if (inner) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        inner->communicator.abort("enough");
        if (!is_said("abort of one group while another hangs", failure_of([&] { inner->wait(second); }), "enough")) return false;
    }
    return is_said("deadline", failure_of([&] { group.wait(first); }), "NCCL has not finished it after");
}

// ---- processes

bool run_rank(const std::string& what, int rank, int size, int device, const std::string& file) {
    const auto issuer = issuer_of(device);
    UniqueId id;
    if (rank == 0) {
        id = unique_id(issuer->nccl);
        std::ofstream(file + ".new", std::ios::binary).write(id.internal, sizeof id.internal);
        std::rename((file + ".new").c_str(), file.c_str());
    } else {
        const auto deadline = Clock::now() + std::chrono::seconds(60);
        while (access(file.c_str(), F_OK) != 0) {
            require(Clock::now() < deadline, "rank 0 has brought no unique id");
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        std::ifstream(file, std::ios::binary).read(id.internal, sizeof id.internal);
    }
    Group group(issuer, rank, size, id, what == "hang" ? 4 : 60);
    group.connect();
    return what == "hang" ? hang(group) : go_through(group);
}

struct Ended {
    int status = 1;
    std::string said;
};

// Several ranks on one device, which NCCL does not want: since 2.30 it can be told to, before that each rank says that it is on a host of
// its own, and they talk through sockets. Slow, and only for correctness. NVLS cannot be shared.
std::vector<std::string> recipe(const Library& nccl, const Driver& cuda, int rank, int size) {
    if (size == 1) return {"NCCL_RAS_ENABLE=0", "NCCL_SOCKET_IFNAME=lo"};
    std::vector<std::string> words{"NCCL_RAS_ENABLE=0", "NCCL_NVLS_ENABLE=0", "NCCL_MAX_CTAS=2", "NCCL_SOCKET_IFNAME=lo"};
    if (cuda.devices >= size) return words;
    if (nccl.version >= 23000) return words.emplace_back("NCCL_MULTI_RANK_GPU_ENABLE=1"), words;
    for (const std::string& word : {"NCCL_HOSTID=rank-" + std::to_string(rank), std::string("NCCL_NET=Socket"), std::string("NCCL_IB_DISABLE=1")}) words.push_back(word);
    return words;
}

Ended start(const char* program, std::vector<std::string> arguments, std::vector<std::string> variables, int seconds) {
    for (char** each = environ; *each; each++) {
        const std::string name = std::string(*each).substr(0, std::string(*each).find('=') + 1);
        if (std::ranges::none_of(variables, [&](const std::string& variable) { return variable.starts_with(name); })) variables.emplace_back(*each);
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
            ended.said += "FAILED: not ended after " + std::to_string(seconds) + " s\n";
            kill(child, SIGKILL);
            break;
        }
        if (poll(&waits, 1, static_cast<int>(left)) <= 0) continue;
        const ssize_t count = read(ends[0], buffer, sizeof buffer);
        if (count <= 0) break;
        ended.said.append(buffer, static_cast<size_t>(count));
    }
    close(ends[0]);
    waitpid(child, &ended.status, 0);
    return ended;
}

// True: well, or refused by this NCCL.
bool ranks(const char* program, const std::string& what, int size) {
    const auto library = open_library("");
    const auto driver = open_driver("");
    const std::string file = "/tmp/terse-nccl-check-" + std::to_string(getpid()) + "-" + what + "-" + std::to_string(size);
    std::vector<Ended> ended(size);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; rank++)
        threads.emplace_back([&, rank] {
            const int device = driver.library->devices >= size ? rank : 0;
            ended[rank] = start(program, {"rank", what, std::to_string(rank), std::to_string(size), std::to_string(device), file}, recipe(*library.library, *driver.library, rank, size), 120);
        });
    for (auto& thread : threads) thread.join();
    std::remove(file.c_str());
    const std::string name = std::to_string(size) + (size == 1 ? " rank" : driver.library->devices >= size ? " ranks" : " ranks on one device") + ", " + what;
    for (const auto& [status, said] : ended)
        for (const char* refusal : {"Duplicate GPU", "Multiple Ranks", "Multiple ranks"})
            if (said.find(refusal) != std::string::npos) {
                say("skipped " + name + ": this NCCL takes no two ranks on one GPU:\n" + said);
                return true;
            }
    bool well = true;
    for (int rank = 0; rank < size; rank++) {
        std::fputs(ended[rank].said.c_str(), stdout);
        if (ended[rank].status == 0) continue;
        well = false;
        say("FAILED " + name + ": rank " + std::to_string(rank) + " ended with " + (WIFSIGNALED(ended[rank].status) ? "signal " + std::to_string(WTERMSIG(ended[rank].status)) : "status " + std::to_string(WEXITSTATUS(ended[rank].status))));
    }
    if (well) say("ok " + name);
    return well;
}

bool threads(int size) {
    const UniqueId id = unique_id(issuer_of(0)->nccl);
    std::atomic<bool> well = true;
    std::vector<std::thread> all;
    for (int rank = 0; rank < size; rank++)
        all.emplace_back([&, rank] {
            try {
                Group group(issuer_of(rank), rank, size, id);
                group.connect();
                if (!go_through(group)) well = false;
            } catch (const std::exception& error) {
                say("FAILED rank " + std::to_string(rank) + ": " + error.what());
                well = false;
            }
        });
    for (auto& thread : all) thread.join();
    return well;
}

int run(int count, char** arguments) {
    const auto argument = [&](int i) { return std::string(i < count ? arguments[i] : ""); };
    if (argument(1) == "rank") return run_rank(argument(2), std::stoi(argument(3)), std::stoi(argument(4)), std::stoi(argument(5)), argument(6)) ? 0 : 1;
    const auto library = open_library("");
    const auto driver = open_driver("");
    if (!library.library || !driver.library) {
        say("FAILED: " + library.reason + (library.reason.empty() ? "" : "; ") + driver.reason);
        return 1;
    }
    std::string absent;
    for (const std::string& symbol : library.library->absent) absent += " " + symbol;
    say("NCCL " + version_text(library.library->version) + " (" + library.library->path + (absent.empty() ? ", which lacks nothing)" : ", which lacks" + absent + ")"));
    say("driver for CUDA " + std::to_string(driver.library->version / 1000) + "." + std::to_string(driver.library->version % 1000 / 10) + " (" + driver.library->path + "), " + std::to_string(driver.library->devices) + " GPU");
    if (argument(1) == "threads") return threads(std::stoi(argument(2))) ? 0 : 1;
    bool well = ranks(arguments[0], "tour", 1);
    well &= ranks(arguments[0], "tour", 2);
    well &= ranks(arguments[0], "hang", 2);
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
