#include "engines/nccl/plan.h"

#include <algorithm>
#include <utility>

namespace terse::nccl {

using collectives::Kind;
using collectives::Operation;
using collectives::Reduction;

namespace {

Reduce reduce_of(Reduction reduction) {
    static const Reduce numbers[] = {Reduce::sum, Reduce::prod, Reduce::min, Reduce::max, Reduce::avg};
    return numbers[static_cast<int>(reduction)];
}

Type type_of(DType dtype) {
    switch (dtype) {
        case DType::i8: return Type::i8;
        case DType::i32: return Type::i32;
        case DType::i64: return Type::i64;
        case DType::f16: return Type::f16;
        case DType::bf16: return Type::bf16;
        case DType::f32: return Type::f32;
        case DType::f64: return Type::f64;
        default: return Type::u8;  // i16 and bool are only moved, never reduced
    }
}

const void* in(CUdeviceptr memory) { return reinterpret_cast<const void*>(memory); }
void* out(CUdeviceptr memory) { return reinterpret_cast<void*>(memory); }

template <typename Spans>
bool are_equal(const Spans& spans) {
    return std::ranges::all_of(spans, [&](const auto& span) { return span.bytes == spans[0].bytes; });
}

}  // namespace

void Plan::add_step(std::function<void()> what) {
    work_.steps.push_back([what = std::move(what)] {
        what();
        return success;
    });
}

void Plan::add_group(std::vector<Step> calls) {
    if (calls.empty()) return;
    work_.steps.push_back([&comm = comm_, calls = std::move(calls)] {
        const Library& nccl = comm.device_.nccl;
        comm.accept(nccl.GroupStart(), "ncclGroupStart");
        Result wrong = success;
        for (const Step& call : calls) {
            const Result result = call();
            if (result != success && result != in_progress) wrong = result;
            if (wrong != success) break;
        }
        const Result end = nccl.GroupEnd();  // always: the thread's group must be closed
        return wrong != success ? wrong : end;
    });
}

template <typename... Parameters, typename... Arguments>
Step Plan::nccl(Result (*Library::*function)(Parameters...), Arguments... arguments) const {
    return [&comm = comm_, function, arguments...] {
        return (comm.device_.nccl.*function)(arguments..., comm.handle_, comm.stream_);
    };
}

template <typename... Parameters, typename... Arguments>
void Plan::add_cuda(const char* name, CUresult (*Driver::*function)(Parameters...), Arguments... arguments) {
    add_step([&comm = comm_, name, function, arguments...] {
        comm.device_.check((comm.device_.cuda.*function)(arguments..., comm.stream_), name);
    });
}

void Plan::copy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    if (bytes && to != from) add_cuda("cuMemcpyDtoDAsync", &Driver::copy, to, from, bytes);
}

void Plan::copy_in(CUdeviceptr to, const void* from, size_t bytes) {
    if (bytes) add_cuda("cuMemcpyHtoDAsync", &Driver::copy_in, to, from, bytes);
}

void Plan::send(const Span& span, int to) {
    if (span.bytes) point_to_point_.push_back(nccl(&Library::Send, in(span.memory), span.bytes, Type::u8, to));
}

void Plan::recv(const Span& span, int from) {
    if (span.bytes) point_to_point_.push_back(nccl(&Library::Recv, out(span.memory), span.bytes, Type::u8, from));
}

// The buffers' memory on the device. CPU buffers get scratch: copied there first (`in`), and copied back afterwards
// (`out`).
std::vector<Plan::Span> Plan::stage(const std::vector<BufferView>& list, bool in, bool out, bool on_host) {
    std::vector<Span> spans;
    size_t total = 0;
    for (const BufferView& memory : list) total += memory.bytes();
    CUdeviceptr next = on_host && total ? comm_.scratch(total) : 0;
    for (const BufferView& memory : list) {
        const size_t bytes = memory.bytes();
        if (!on_host) {
            spans.push_back({reinterpret_cast<CUdeviceptr>(memory.data), memory.length, bytes});
            continue;
        }
        spans.push_back({next, memory.length, bytes});
        if (in) copy_in(next, memory.data, bytes);
        if (out && bytes) work_.copies.push_back({memory.data, next, bytes});
        next += bytes;
    }
    return spans;
}

Step Plan::broadcast(const Span& span, int root) const {
    return nccl(&Library::Broadcast, in(span.memory), out(span.memory), span.bytes, Type::u8, root);
}

// All spans as one span: their own memory if it is contiguous, else scratch, into which they are copied (`in`).
CUdeviceptr Plan::make_contiguous(const std::vector<Span>& spans, bool in) {
    bool already = true;
    size_t total = 0;
    for (const Span& span : spans) {
        already &= !span.bytes || span.memory == spans[0].memory + total;
        total += span.bytes;
    }
    if (already) return spans[0].memory;
    const CUdeviceptr whole = comm_.scratch(total);
    size_t at = 0;
    for (const Span& span : spans) {
        if (in) copy(whole + at, span.memory, span.bytes);
        at += span.bytes;
    }
    return whole;
}

// Copies a contiguous whole back into its spans, except number `skip`.
void Plan::unpack(CUdeviceptr whole, const std::vector<Span>& spans, size_t skip) {
    size_t at = 0;
    for (size_t i = 0; i < spans.size(); i++) {
        if (i != skip) copy(spans[i].memory, whole + at, spans[i].bytes);
        at += spans[i].bytes;
    }
}

void Plan::make() {
    for (const Call& call : work_.group_call.calls)
        if (call.ready)
            add_step([&comm = comm_, ready = call.ready] {
                comm.device_.check(comm.device_.cuda.stream_wait(comm.stream_, ready, 0), "cuStreamWaitEvent");
            });
    for (const Call& call : work_.group_call.calls) operation(call.operation);
    add_group(std::move(point_to_point_));
}

void Plan::operation(const Operation& operation) {
    const bool on_host = operation.device < 0;
    const Kind kind = operation.kind;
    if (kind == Kind::copy) return copy_between_devices(operation);
    const bool arrives = kind == Kind::recv || (kind == Kind::broadcast && comm_.rank != operation.peer);
    const bool results = kind == Kind::all_reduce || kind == Kind::reduce_scatter || kind == Kind::all_gather ||
                         arrives;
    parts_ = stage(operation.parts, !arrives, results, on_host);
    incoming_ = stage(operation.incoming, false, true, on_host);
    const int rank = comm_.rank, n = comm_.size, peer = operation.peer;
    switch (kind) {
        case Kind::all_reduce: return all_reduce(operation);
        case Kind::reduce_scatter: return reduce_scatter(operation);
        case Kind::all_gather: return all_gather();
        case Kind::all_to_all: return all_to_all(operation);
        case Kind::broadcast:
            if (parts_[0].bytes) add_group({broadcast(parts_[0], peer)});
            return;
        case Kind::gather:
            if (rank != peer) return send(parts_[0], peer);
            for (int r = 0; r < n; r++)
                r == rank ? copy(incoming_[r].memory, parts_[0].memory, parts_[0].bytes) : recv(incoming_[r], r);
            return;
        case Kind::scatter:
            if (rank != peer) return recv(incoming_[0], peer);
            for (int r = 0; r < n; r++)
                r == rank ? copy(incoming_[0].memory, parts_[r].memory, parts_[r].bytes) : send(parts_[r], r);
            return;
        case Kind::send: return send(parts_[0], peer);
        case Kind::recv: return recv(parts_[0], peer);
        case Kind::barrier: {
            const CUdeviceptr byte = comm_.scratch(1);
            return add_group({nccl(&Library::AllReduce, in(byte), out(byte), 1, Type::u8, Reduce::sum)});
        }
        case Kind::copy: return;
        case Kind::register_buffer:
            return add_step([&comm = comm_, memory = operation.parts[0].data, bytes = operation.parts[0].bytes()] {
                comm.register_buffer(memory, bytes);
            });
        case Kind::deregister_buffer:
            return add_step([&comm = comm_, memory = operation.parts[0].data] { comm.deregister_buffer(memory); });
        case Kind::split:
        case Kind::connect: return;
    }
}

void Plan::copy_between_devices(const Operation& operation) {
    const BufferView &from = operation.parts[0], &to = operation.incoming[0];
    const size_t bytes = from.bytes();
    const auto address = [](const BufferView& memory) { return reinterpret_cast<CUdeviceptr>(memory.data); };
    if (!bytes) return;
    if (from.on_cpu && !to.on_cpu) copy_in(address(to), from.data, bytes);
    else if (!from.on_cpu && to.on_cpu) work_.copies.push_back({to.data, address(from), bytes});
    else copy(address(to), address(from), bytes);
}

// NCCL sums words of 8 bytes faster than bytes. So packed fields are summed as u64, and the last 0 to 7 bytes as u8.
void Plan::all_reduce(const Operation& operation) {
    const Span span = parts_[0];
    const Reduce reduce = reduce_of(operation.reduction);
    std::vector<Step> calls;
    const auto add = [&](size_t from, size_t count, Type type) {
        const CUdeviceptr at = span.memory + from;
        if (count) calls.push_back(nccl(&Library::AllReduce, in(at), out(at), count, type, reduce));
    };
    if (operation.packed) {
        add(0, span.bytes / 8, Type::u64);
        add(span.bytes / 8 * 8, span.bytes % 8, Type::u8);
    } else {
        add(0, span.length, type_of(operation.parts[0].dtype));
    }
    add_group(std::move(calls));
}

void Plan::reduce_scatter(const Operation& operation) {
    const Reduce reduce = reduce_of(operation.reduction);
    const Type type = type_of(operation.parts[0].dtype);
    const int rank = comm_.rank;
    const size_t bytes = parts_[0].bytes, length = parts_[0].length;
    if (are_equal(parts_)) {
        if (!bytes) return;
        const CUdeviceptr whole = make_contiguous(parts_, true), mine = whole + rank * bytes;
        add_group({nccl(&Library::ReduceScatter, in(whole), out(mine), length, type, reduce)});
        return copy(parts_[rank].memory, mine, bytes);
    }
    std::vector<Step> calls;
    for (int root = 0; root < comm_.size; root++)
        if (const Span& span = parts_[root]; span.bytes)
            calls.push_back(nccl(&Library::Reduce, in(span.memory), out(span.memory), span.length, type, reduce, root));
    add_group(std::move(calls));
}

void Plan::all_gather() {
    const int rank = comm_.rank;
    const size_t bytes = parts_[0].bytes;
    if (are_equal(parts_)) {
        if (!bytes) return;
        const CUdeviceptr whole = make_contiguous(parts_, false), mine = whole + rank * bytes;
        copy(mine, parts_[rank].memory, bytes);
        add_group({nccl(&Library::AllGather, in(mine), out(whole), bytes, Type::u8)});
        return unpack(whole, parts_, rank);
    }
    std::vector<Step> calls;
    for (int root = 0; root < comm_.size; root++)
        if (parts_[root].bytes) calls.push_back(broadcast(parts_[root], root));
    add_group(std::move(calls));
}

// A rank knows only the lengths of its own parts, so the caller says whether all lengths are equal (`even`).
void Plan::all_to_all(const Operation& operation) {
    const int rank = comm_.rank;
    if (operation.even && comm_.device_.nccl.AlltoAll) {
        const size_t bytes = parts_[0].bytes;
        if (bytes) {
            const CUdeviceptr from = make_contiguous(parts_, true), to = make_contiguous(incoming_, false);
            add_group({nccl(&Library::AlltoAll, in(from), out(to), bytes, Type::u8)});
            unpack(to, incoming_, parts_.size());
        }
        return notes(operation.note);
    }
    copy(incoming_[rank].memory, parts_[rank].memory, parts_[rank].bytes);
    for (int peer = 0; peer < comm_.size; peer++) {
        if (peer == rank) continue;
        send(parts_[peer], peer);
        recv(incoming_[peer], peer);
    }
    add_group(std::exchange(point_to_point_, {}));
    notes(operation.note);
}

// NCCL has no message headers that could carry a note, so an all-gather of one byte carries it.
void Plan::notes(uint8_t note) {
    const Notes taken = comm_.take_notes();
    work_.notes = taken;
    add_cuda("cuMemsetD8Async", &Driver::set_bytes, taken.memory, note, 1);
    add_group({nccl(&Library::AllGather, in(taken.memory), out(taken.memory + 1), 1, Type::u8)});
    add_cuda("cuMemcpyDtoHAsync", &Driver::copy_out, taken.received, taken.memory + 1, comm_.size);
}

}  // namespace terse::nccl
