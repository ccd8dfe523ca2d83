// One rank that measures Gloo's own collectives, and ours over Gloo's point-to-point layer. Each has its own context,
// and both use Gloo's sockets. Arguments: RANK SIZE ADDRESS FOLDER; all ranks share the folder. Reads lines "SIDE
// COLLECTIVE BYTES TIMES" and answers each with the milliseconds of every call, as JSON. A barrier comes before each
// call. SIDE is ours, gloo, or checked: Gloo's collective after every rank has received a header from each rank that
// will send to it, and compared it as ours are compared. BYTES is the size of all ranks' parts together.
#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/alltoall.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "algorithms/algorithms.h"
#include "engines/gloo/gloo.h"

using namespace terse;
using namespace terse::collectives;

namespace {

constexpr int root = 0;
constexpr auto patience = std::chrono::minutes(10);

struct World {
    World(int rank, int size) : rank(rank), size(size) {}

    const int rank, size;
    std::shared_ptr<gloo::rendezvous::Context> context;
    std::unique_ptr<RendezvousEngine> engine;
    std::unique_ptr<Wire> wire;
    Counters counters;
    uint32_t tag = 0;
};

std::unique_ptr<World> meet(int rank, int size, const std::string& address, const std::string& folder) {
    auto met = std::make_unique<World>(rank, size);
    World& world = *met;
    gloo::transport::tcp::attr attr;
    attr.hostname = address;
    gloo::rendezvous::FileStore store(folder);
    auto device = gloo::transport::tcp::CreateDevice(attr);
    world.context = std::make_shared<gloo::rendezvous::Context>(rank, size);
    world.context->setTimeout(patience);
    world.context->connectFullMesh(store, device);

    world.engine = make_gloo(rank, size, address, patience, patience);
    const auto key = [](int from, int to) { return "ours-" + std::to_string(from) + "-" + std::to_string(to); };
    const auto mine = world.engine->addresses();
    for (int peer = 0; peer < size; peer++)
        if (peer != rank) store.set(key(rank, peer), {mine[peer].begin(), mine[peer].end()});
    std::vector<std::string> theirs(size);
    for (int peer = 0; peer < size; peer++) {
        if (peer == rank) continue;
        store.wait({key(peer, rank)});
        const auto blob = store.get(key(peer, rank));
        theirs[peer] = {blob.begin(), blob.end()};
    }
    world.engine->set_peers(theirs);
    world.engine->connect(Clock::time_point::max());
    world.wire = std::make_unique<Wire>(*world.engine, world.counters, 0);
    world.wire->post_header_receives();
    return met;
}

void synchronise(World& world) {
    gloo::BarrierOptions options(world.context);
    options.setTag(++world.tag);
    gloo::barrier(options);
}

// One call of a collective, on memory that is allocated before.
struct Case {
    std::function<void()> ours, gloo;
    std::vector<int> leaving, arriving;  // the peers that Gloo's collective sends to, and receives from
    bool rooted = false;
};

Case make_case(World& world, const std::string& name, size_t bytes) {
    const int n = world.size, rank = world.rank;
    const size_t floats = std::max<size_t>(bytes / sizeof(float), 1), each = std::max<size_t>(floats / n, 1);
    auto x = std::make_shared<std::vector<float>>(each * n, 0.f),
         y = std::make_shared<std::vector<float>>(each * n, 0.f);
    const auto memory = [](float* data, size_t length) { return BufferView{data, length, DType::f32, true}; };
    const auto parts = [=](const std::shared_ptr<std::vector<float>>& whole) {
        std::vector<BufferView> all;
        for (int r = 0; r < n; r++) all.push_back(memory(whole->data() + r * each, each));
        return all;
    };
    auto operation = std::make_shared<Operation>();
    const auto ours = [&](Kind kind, std::vector<BufferView> leaving, std::vector<BufferView> incoming,
                          void (*run)(Wire&, const Operation&)) {
        operation->kind = kind;
        operation->peer = root;
        operation->parts = std::move(leaving);
        operation->incoming = std::move(incoming);
        return [&world, operation, run, x, y] {
            operation->sequence++;
            run(*world.wire, *operation);
        };
    };
    // Gloo's options have no common base class, and each call needs new ones.
    const auto theirs = [&]<class Options>(void (*run)(Options&), auto set) {
        return [&world, run, set, x, y] {
            std::remove_const_t<Options> options(world.context);
            set(options);
            options.setTag(++world.tag);
            run(options);
        };
    };
    std::vector<int> others;
    for (int distance = 1; distance < n; distance++) others.push_back((rank + distance) % n);
    const std::vector<int> next = {(rank + 1) % n}, before = {(rank - 1 + n) % n};
    const std::vector<int> none, from_root = rank == root ? none : std::vector{root},
                                 to_root = rank == root ? others : none;
    float* const in = x->data();
    float* const out = y->data();
    const size_t whole = each * n;

    const auto sum = static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>);
    const auto all_reduce_by = [&](gloo::AllreduceOptions::Algorithm algorithm) {
        return theirs(static_cast<void (*)(const gloo::AllreduceOptions&)>(&gloo::allreduce), [=](auto& options) {
            options.setOutput(in, whole);
            options.setAlgorithm(algorithm);
            options.setReduceFunction(sum);
        });
    };
    const auto own_all_reduce = ours(Kind::all_reduce, {memory(in, whole)}, {}, all_reduce);
    if (name == "all-reduce-ring")
        return {own_all_reduce, all_reduce_by(gloo::AllreduceOptions::Algorithm::RING), before, next};
    if (name == "all-reduce-bcube")
        return {own_all_reduce, all_reduce_by(gloo::AllreduceOptions::Algorithm::BCUBE), others, others};
    if (name == "all-reduce-halving-doubling") {
        auto algorithm = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(world.context, std::vector<float*>{in},
                                                                                 static_cast<int>(whole));
        return {own_all_reduce, [algorithm] { algorithm->run(); }, others, others};
    }
    const auto gathered = parts(x);
    const auto own_all_gather = ours(Kind::all_gather, gathered, {}, all_gather);
    if (name == "all-gather")
        return {own_all_gather,
                theirs(&gloo::allgather,
                       [=](auto& options) {
                           options.setInput(in + rank * each, each);
                           options.setOutput(out, whole);
                       }),
                next, before};
    if (name == "all-gatherv")
        return {own_all_gather,
                theirs(&gloo::allgatherv,
                       [=](auto& options) {
                           options.setInput(in + rank * each, each);
                           options.setOutput(out, std::vector<size_t>(n, each));
                       }),
                next, before};
    const auto own_all_to_all = ours(Kind::all_to_all, parts(x), parts(y), all_to_all);
    if (name == "all-to-all")
        return {own_all_to_all,
                theirs(&gloo::alltoall,
                       [=](auto& options) {
                           options.setInput(in, whole);
                           options.setOutput(out, whole);
                       }),
                others, others};
    if (name == "all-to-allv")
        return {own_all_to_all,
                theirs(&gloo::alltoallv,
                       [=](auto& options) {
                           options.setInput(in, std::vector<int64_t>(n, each));
                           options.setOutput(out, std::vector<int64_t>(n, each));
                       }),
                others, others};
    if (name == "broadcast")
        return {ours(Kind::broadcast, {memory(in, whole)}, {}, broadcast),
                theirs(&gloo::broadcast,
                       [=](auto& options) {
                           options.setOutput(in, whole);
                           options.setRoot(root);
                       }),
                to_root, from_root, true};
    if (name == "gather")
        return {ours(Kind::gather, {memory(in, each)}, rank == root ? parts(y) : std::vector<BufferView>(), gather),
                theirs(&gloo::gather,
                       [=](auto& options) {
                           options.setInput(in, each);
                           if (rank == root) options.setOutput(out, whole);
                           options.setRoot(root);
                       }),
                from_root, to_root, true};
    if (name == "scatter")
        return {ours(Kind::scatter, rank == root ? parts(x) : std::vector<BufferView>(), {memory(out, each)}, scatter),
                theirs(&gloo::scatter,
                       [=](auto& options) {
                           std::vector<float*> all;
                           for (int r = 0; r < n; r++) all.push_back(in + r * each);
                           if (rank == root) options.setInputs(all, each);
                           options.setOutput(out, each);
                           options.setRoot(root);
                       }),
                to_root, from_root, true};
    if (name == "barrier") return {ours(Kind::barrier, {}, {}, barrier), [&world] { synchronise(world); }, {}, {}};
    throw std::runtime_error("there is no collective " + name);
}

// Receives and compares one header from each rank that will send; only then can Gloo be told safely how much to
// receive.
void check(World& world, const Case& each, uint32_t sequence) {
    Operation operation;
    operation.peer = root;
    operation.sequence = sequence;
    operation.kind = each.rooted ? Kind::broadcast : Kind::barrier;
    const Message message = message_of(operation, 0, 0, static_cast<uint32_t>(root));
    std::vector<Outgoing> out;
    for (int to : each.leaving) out.emplace_back(*world.wire, to, message);
    for (int from : each.arriving) Incoming(*world.wire, from, message);
    for (Outgoing& o : out) o.finish();
}

}  // namespace

int main(int, char** argv) {
    const auto met = meet(std::atoi(argv[1]), std::atoi(argv[2]), argv[3], argv[4]);
    World& world = *met;
    std::cout << "{}" << std::endl;
    Case each;
    std::string side, name, last_name;
    size_t bytes, last_bytes = 0;
    int times;
    uint32_t sequence = 0;
    while (std::cin >> side >> name >> bytes >> times) {
        if (name != last_name || bytes != last_bytes) each = make_case(world, name, bytes);
        last_name = name;
        last_bytes = bytes;
        std::cout << "{\"milliseconds\":[";
        for (int i = 0; i < times; i++) {
            synchronise(world);
            const auto began = Clock::now();
            if (side == "checked") check(world, each, ++sequence);
            side == "ours" ? each.ours() : each.gloo();
            std::cout << (i ? "," : "") << std::chrono::duration<double, std::milli>(Clock::now() - began).count();
        }
        std::cout << "]}" << std::endl;
    }
    world.wire.reset();
    world.engine->release();
    return 0;
}
