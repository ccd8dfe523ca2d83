// The checks of the operations.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "checks/nccl/check.h"

namespace terse::nccl::check {
namespace {

const bool is_large = std::getenv("TERSE_NCCL_CHECK_LARGE") != nullptr;

// --- Sums ---

template <typename T>
void all_reduce(Group& group, bool on_device) {
    const int n = group.size();
    const size_t length = 1003;
    const auto give = [](int rank, size_t i) { return static_cast<double>((i * 7 + rank * 3) % 5 + 1); };
    for (const Reduction reduction : {Reduction::sum, Reduction::prod, Reduction::min, Reduction::max}) {
        Buffer<T> x(group, fill<T>(length, [&](size_t i) { return give(group.rank(), i); }), on_device);
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

// If no sum overflows its byte, words of 8 bytes have the same sums as bytes.
void packed(Group& group, bool on_device) {
    for (const size_t length : {0, 1, 7, 8, 9, 64, 1003, 100'003}) {
        const auto give = [](int rank, size_t i) { return (i * 5 + rank * 11) % (255 / 16); };
        std::vector<uint8_t> sum(length);
        for (int r = 0; r < group.size(); r++)
            for (size_t i = 0; i < length; i++) sum[i] += static_cast<uint8_t>(give(r, i));
        for (const bool is_packed : {false, true}) {
            Buffer<uint8_t> x(group, fill<uint8_t>(length, [&](size_t i) { return give(group.rank(), i); }), on_device);
            Operation operation = group.collective(Kind::all_reduce, {x.whole()});
            operation.packed = is_packed;
            group.run(operation);
            x.expect(sum, is_packed ? "packed sum" : "sum of bytes");
        }
    }
}

// Sums and means that round: close to the exact ones, and with the same bits on all ranks.
void rounded(Group& group, bool on_device) {
    const int n = group.size();
    const size_t length = 20'011;
    const auto give = [](int rank, size_t i) {
        return static_cast<float>(std::sin(i * 12.9898 + rank * 78.233) * std::ldexp(1, (i + rank) % 20));
    };
    for (const Reduction reduction : {Reduction::sum, Reduction::mean}) {
        Buffer<float> x(group, fill<float>(length, [&](size_t i) { return give(group.rank(), i); }), on_device);
        Operation operation = group.collective(Kind::all_reduce, {x.whole()});
        operation.reduction = reduction;
        group.run(operation);
        const std::vector<float> mine = x.read();
        for (size_t i = 0; i < length; i++) {
            double exact = 0, magnitude = 0;
            for (int r = 0; r < n; r++) exact += give(r, i), magnitude += std::fabs(give(r, i));
            if (reduction == Reduction::mean) exact /= n, magnitude /= n;
            require(std::fabs(mine[i] - exact) <= 2.0 * n * std::ldexp(magnitude, -24),
                    std::string(name_of(reduction)) + " that rounds: element " + std::to_string(i));
        }
        std::vector<float> all(length * n);
        std::copy(mine.begin(), mine.end(), all.begin() + static_cast<ptrdiff_t>(length * group.rank()));
        Buffer<float> everywhere(group, all, on_device);
        std::vector<BufferView> parts;
        for (int r = 0; r < n; r++) parts.push_back(everywhere.part(r * length, (r + 1) * length));
        group.run(group.collective(Kind::all_gather, parts));
        all = everywhere.read();
        for (int r = 0; r < n; r++)
            require(std::memcmp(all.data() + r * length, mine.data(), length * sizeof(float)) == 0,
                    "rank " + std::to_string(r) + " has another result");
    }
}

// --- Parts ---

// n parts of 3 elements, in order or in reverse order, which are not contiguous.
void parts(Group& group, bool on_device) {
    const int n = group.size(), rank = group.rank();
    for (const bool backwards : {false, true}) {
        const auto place = [&](int r) { return backwards ? n - 1 - r : r; };
        const auto list = [&](Buffer<int32_t>& x) {
            std::vector<BufferView> memories;
            for (int r = 0; r < n; r++) memories.push_back(x.part(3 * place(r), 3 * place(r) + 3));
            return memories;
        };
        const auto each = [&](const std::function<double(int, size_t)>& f) {
            return fill<int32_t>(3 * n, [&](size_t at) { return f(place(static_cast<int>(at / 3)), at % 3); });
        };

        Buffer<int32_t> scattered(group, each([&](int r, size_t i) { return 100 * r + 10 * rank + i; }), on_device);
        group.run(group.collective(Kind::reduce_scatter, list(scattered)));
        const auto own = scattered.read();
        for (size_t i = 0; i < 3; i++)
            require(own[3 * place(rank) + i] == n * (100 * rank + static_cast<int>(i)) + 10 * n * (n - 1) / 2,
                    "reduce-scatter");

        Buffer<int32_t> gathered(group, each([&](int r, size_t i) { return r == rank ? 10.0 * rank + i : -1; }),
                                 on_device);
        group.run(group.collective(Kind::all_gather, list(gathered)));
        gathered.expect(each([](int r, size_t i) { return 10.0 * r + i; }), "all-gather");

        for (const bool even : {false, true}) {
            Buffer<int32_t> out(group, each([&](int r, size_t i) { return 100.0 * rank + 10 * r + i; }), on_device),
                in(group, each([](int, size_t) { return -1; }), on_device);
            Operation operation = group.collective(Kind::all_to_all, list(out), list(in));
            operation.even = even;
            operation.note = static_cast<uint8_t>(rank + 1);
            const auto notes = group.run(operation);
            for (int r = 0; r < n; r++)
                require(notes.size() == static_cast<size_t>(n) && notes[r] == r + 1, "notes of an all-to-all");
            in.expect(each([&](int r, size_t i) { return 100.0 * r + 10 * rank + i; }),
                      even ? "even all-to-all" : "all-to-all");
        }
    }
}

// Parts of r elements for rank r. The first one is empty.
void uneven(Group& group, bool on_device) {
    const int n = group.size(), rank = group.rank();
    const auto total = static_cast<size_t>(n * (n - 1) / 2);
    const auto list = [&](Buffer<double>& x) {
        std::vector<BufferView> memories;
        for (size_t r = 0, at = 0; r < static_cast<size_t>(n); at += r++) memories.push_back(x.part(at, at + r));
        return memories;
    };
    Buffer<double> x(group, fill<double>(total, [&](size_t) { return rank + 1; }), on_device);
    group.run(group.collective(Kind::reduce_scatter, list(x)));
    group.run(group.collective(Kind::all_gather, list(x)));
    x.expect(std::vector<double>(total, n * (n + 1) / 2), "parts of several lengths");
}

void rooted(Group& group, bool on_device) {
    const int n = group.size(), rank = group.rank(), last = n - 1;
    Buffer<int64_t> told(group, {rank, 7}, on_device);
    group.run(group.collective(Kind::broadcast, {told.whole()}, {}, last));
    told.expect({last, 7}, "broadcast");

    Buffer<int32_t> spread(group, fill<int32_t>(2 * n, [](size_t i) { return 5 * i; }), on_device),
        mine(group, {-1, -1}, on_device), back(group, std::vector<int32_t>(2 * n, -1), on_device);
    const auto list = [&](Buffer<int32_t>& x) {
        std::vector<BufferView> memories;
        for (int r = 0; r < n; r++) memories.push_back(x.part(2 * r, 2 * r + 2));
        return memories;
    };
    group.run(group.collective(Kind::scatter, rank == 0 ? list(spread) : std::vector<BufferView>{}, {mine.whole()}, 0));
    mine.expect({10 * rank, 10 * rank + 5}, "scatter");
    group.run(
        group.collective(Kind::gather, {mine.whole()}, rank == last ? list(back) : std::vector<BufferView>{}, last));
    if (rank == last) back.expect(fill<int32_t>(2 * n, [](size_t i) { return 5 * i; }), "gather");
}

void neighbours(Group& group, bool on_device) {
    const int n = group.size(), rank = group.rank();
    if (n == 1) return;
    Buffer<float> mine(group, {static_cast<float>(rank), 2}, on_device), heard(group, {-1, -1}, on_device);
    const uint64_t receives = group.start(group.collective(Kind::recv, {heard.whole()}, {}, (rank + n - 1) % n));
    const uint64_t sends = group.start(group.collective(Kind::send, {mine.whole()}, {}, (rank + 1) % n));
    group.communicator.flush();
    group.wait(receives);
    group.wait(sends);
    heard.expect({static_cast<float>((rank + n - 1) % n), 2}, "send and receive");
}

void nothing(Group& group, bool on_device) {
    Buffer<float> x(group, {}, on_device);
    const std::vector<BufferView> empty(group.size(), x.whole());
    group.run(group.collective(Kind::all_reduce, {x.whole()}));
    group.run(group.collective(Kind::broadcast, {x.whole()}, {}, 0));
    group.run(group.collective(Kind::reduce_scatter, empty));
    group.run(group.collective(Kind::all_gather, empty));
    group.run(group.collective(Kind::all_to_all, empty, empty));
    group.run(group.collective(Kind::barrier, {}));
}

// --- Memory of the device only ---

// The caller's stream is still writing the memory when the operation is called.
void streams(Group& group, bool) {
    const Driver& cuda = group.device->cuda;
    const size_t bytes = is_large ? size_t{1} << 28 : size_t{1} << 20;
    const int n = group.size(), rank = group.rank();
    Buffer<uint8_t> out(group, std::vector<uint8_t>(n, 99), true), in(group, std::vector<uint8_t>(n, 99), true),
        delay(group, std::vector<uint8_t>(bytes), true);
    CUstream stream = nullptr;
    CUcontext context = nullptr;
    CUdevice device = 0;
    const auto check = [&](CUresult result) { group.device->check(result, "a stream of the caller's"); };
    check(cuda.device_get(&device, group.device->ordinal));
    check(cuda.context_retain(&context, device));
    check(cuda.context_push(context));
    check(cuda.stream_create(&stream, stream_non_blocking));
    for (uint8_t round = 0; round < 5; round++) {
        for (int i = 0; i < 50; i++)
            check(cuda.set_bytes(reinterpret_cast<CUdeviceptr>(delay.data()), round, bytes, stream));
        check(cuda.set_bytes(reinterpret_cast<CUdeviceptr>(out.data()), static_cast<uint8_t>(10 * round + rank), n,
                             stream));
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
    if (!group.device->nccl.CommRegister || !group.device->nccl.CommDeregister)
        throw Skipped("this version of NCCL cannot register memory");
    const size_t length = is_large ? 1 << 24 : 1 << 14;
    for (int round = 0; round < 3; round++) {
        Buffer<float> x(group, fill<float>(length, [&](size_t i) { return group.rank() + i % 7; }), true);
        group.run(group.collective(Kind::register_buffer, {x.whole()}));
        const int n = group.size();
        group.run(group.collective(Kind::all_reduce, {x.whole()}));
        x.expect(fill<float>(length, [&](size_t i) { return n * (n - 1) / 2 + n * (i % 7); }),
                 "sum of registered memory");
    }  // freed while it is registered
}

void large(Group& group, bool) {
    if (!is_large) throw Skipped("TERSE_NCCL_CHECK_LARGE is not set");
    const size_t length = (size_t{1} << 31) + 13;
    auto* memory = static_cast<uint8_t*>(group.device->allocate_buffer(length));
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
        for (int i = 0; i < 64; i++)
            require(ends[i] == static_cast<uint8_t>(n * (n * i + n * (n - 1) / 2)), "sum of more than 2³¹ elements");
    }
    group.device->free_buffer(memory);
}

// --- Groups ---

}  // namespace

std::unique_ptr<Group> split(Group& group, int color, int key, int rank, int size, double connect_timeout) {
    const uint64_t id = group.next_id();
    const auto place = group.communicator.split(id);
    std::unique_ptr<Group> child;
    if (color >= 0) child = std::make_unique<Group>(group.device, rank, size, UniqueId{}, 60, connect_timeout);
    group.communicator.join(place, color, key, child ? &child->communicator : nullptr);
    group.wait(id);
    return child;
}

namespace {

// Two halves in reverse order, then all ranks again. With three ranks or more, rank 0 is in neither half.
void splits(Group& group, bool on_device) {
    if (!group.device->nccl.CommSplit) throw Skipped("this version of NCCL has no ncclCommSplit");
    const int n = group.size(), rank = group.rank(), first = n > 2 ? 1 : 0;
    const auto color_of = [&](int r) { return r < first ? no_color : r % 2; };
    const int color = color_of(rank);
    std::vector<int> members;
    for (int r = n - 1; r >= 0; r--)
        if (color >= 0 && color_of(r) == color) members.push_back(r);
    const auto place = static_cast<int>(std::ranges::find(members, rank) - members.begin());
    const auto half = split(group, color, -rank, place, static_cast<int>(members.size()));
    require(!half == (color < 0), "a rank without a color has a group, or a rank with a color has none");
    if (half) {
        std::vector<int32_t> ranks(members.size(), -1);
        ranks[place] = rank;
        Buffer<int32_t> x(*half, ranks, on_device);
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

}  // namespace

const std::vector<Check>& all_checks() {
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

}  // namespace terse::nccl::check
