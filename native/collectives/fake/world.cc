#include "world.h"

#include <cstring>

#include "elements.h"

namespace {

void compute(Slot& slot, int n) {
    const Operation& one = slot.arrived.begin()->second;
    const size_t bytes = one.count * size_of(one.type);
    std::vector<const void*> from;
    for (const auto& [rank, operation] : slot.arrived) from.push_back(operation.send);
    std::vector<char> result;
    const auto to = [&](int rank) { return slot.arrived.at(rank).recv; };
    switch (one.kind) {
        case Kind::all_reduce:
        case Kind::reduce:
            result.resize(bytes);
            reduce(one.type, from, result.data(), one.count, one.op);
            for (int rank = 0; rank < n; rank++)
                if (one.kind == Kind::all_reduce || rank == one.peer) std::memcpy(to(rank), result.data(), bytes);
            return;
        case Kind::reduce_scatter:
            result.resize(bytes * n);
            reduce(one.type, from, result.data(), one.count * n, one.op);
            for (int rank = 0; rank < n; rank++) std::memcpy(to(rank), result.data() + rank * bytes, bytes);
            return;
        case Kind::all_gather:
            for (const void* each : from)
                result.insert(result.end(), static_cast<const char*>(each), static_cast<const char*>(each) + bytes);
            for (int rank = 0; rank < n; rank++) std::memcpy(to(rank), result.data(), result.size());
            return;
        case Kind::all_to_all:
            for (int rank = 0; rank < n; rank++)
                for (int other = 0; other < n; other++)
                    std::memcpy(static_cast<char*>(to(rank)) + other * bytes,
                                static_cast<const char*>(from[other]) + rank * bytes, bytes);
            return;
        case Kind::broadcast:
            for (int rank = 0; rank < n; rank++) std::memmove(to(rank), from[one.peer], bytes);
            return;
        default: return;
    }
}

}  // namespace

void run(const std::shared_ptr<State>& state, const std::vector<Operation>& operations, uint64_t first) {
    World& world = *state->world;
    std::unique_lock lock(world.mutex);
    std::vector<std::pair<int, std::shared_ptr<Post>>> sent;
    for (const Operation& operation : operations)
        if (operation.kind == Kind::send) {
            sent.emplace_back(operation.peer,
                              std::make_shared<Post>(Post{operation.send, operation.count * size_of(operation.type)}));
            world.posts[{state->rank, operation.peer}].push_back(sent.back().second);
        }
    world.changed.notify_all();
    for (const Operation& operation : operations) {
        if (operation.kind == Kind::send || operation.kind == Kind::recv) continue;
        Slot& slot = world.slots[first++];
        slot.arrived.emplace(state->rank, operation);
        bool fits = true;
        for (const auto& [rank, other] : slot.arrived) fits &= other.fits(operation);
        if (fits && static_cast<int>(slot.arrived.size()) == world.size) {
            compute(slot, world.size);
            slot.done = true;
            world.changed.notify_all();
        }
        world.changed.wait(lock, [&] { return slot.done || state->aborted; });
        if (!slot.done) slot.arrived.erase(state->rank);
        if (state->aborted) break;
    }
    for (const Operation& operation : operations) {
        if (operation.kind != Kind::recv) continue;
        auto& posts = world.posts[{operation.peer, state->rank}];
        world.changed.wait(lock, [&] {
            return state->aborted ||
                   (!posts.empty() && posts.front()->bytes == operation.count * size_of(operation.type));
        });
        if (state->aborted) break;
        std::memcpy(operation.recv, posts.front()->data, posts.front()->bytes);
        posts.front()->taken = true;
        posts.pop_front();
        world.changed.notify_all();
    }
    for (const auto& [peer, post] : sent) {
        world.changed.wait(lock, [&] { return state->aborted || post->taken; });
        if (!post->taken) std::erase(world.posts[{state->rank, peer}], post);
    }
    state->running--;
}
