#include "plan.h"

#include <algorithm>

namespace terse::nccl {

using collectives::Kind;
using collectives::Operation;
using collectives::Reduction;

namespace {

Reduce reduce_of(Reduction reduction) {
    static const Reduce numbers[] = {Reduce::sum, Reduce::prod, Reduce::min, Reduce::max, Reduce::avg};
    return numbers[static_cast<int>(reduction)];
}

const void* in(CUdeviceptr memory) { return reinterpret_cast<const void*>(memory); }
void* out(CUdeviceptr memory) { return reinterpret_cast<void*>(memory); }

template <typename Spans>
bool are_equal(const Spans& spans) {
    return std::ranges::all_of(spans, [&](const auto& span) { return span.bytes == spans[0].bytes; });
}

}  // namespace

Type Plan::type_of(DType dtype) const {
    switch (dtype) {
        case DType::i8: return Type::i8;
        case DType::i32: return Type::i32;
        case DType::i64: return Type::i64;
        case DType::f16: return Type::f16;
        case DType::bf16: return Type::bf16;
        case DType::f32: return Type::f32;
        case DType::f64: return Type::f64;
        default: return Type::u8;  // i16 and bool are only ever moved
    }
}

void Plan::work(std::function<void()> what) {
    flight_.steps.push_back([what = std::move(what)] {
        what();
        return success;
    });
}

void Plan::group(std::vector<Step> calls) {
    if (calls.empty()) return;
    flight_.steps.push_back([&member = member_, calls = std::move(calls)] {
        const Library& nccl = member.issuer_.nccl;
        member.accept(nccl.GroupStart(), "ncclGroupStart");
        Result wrong = success;
        for (const Step& call : calls) {
            const Result result = call();
            if (result != success && result != in_progress) wrong = result;
            if (wrong != success) break;
        }
        const Result end = nccl.GroupEnd();  // in any case: the group belongs to the thread
        return wrong != success ? wrong : end;
    });
}

void Plan::copy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    if (!bytes || to == from) return;
    work([&member = member_, to, from, bytes] { member.issuer_.check(member.issuer_.cuda.copy(to, from, bytes, member.stream_), "cuMemcpyDtoDAsync"); });
}

// Where memory lies on the device: there already, or in scratch into which it is copied (`in`), and from which later (`out`).
std::vector<Plan::Span> Plan::bring(const std::vector<BufferView>& list, bool in, bool out, bool on_host) {
    std::vector<Span> spans;
    size_t total = 0;
    for (const BufferView& memory : list) total += memory.bytes();
    CUdeviceptr next = on_host && total ? member_.scratch(total) : 0;
    for (const BufferView& memory : list) {
        const size_t bytes = memory.bytes();
        if (!on_host) {
            spans.push_back({reinterpret_cast<CUdeviceptr>(memory.data), memory.length, bytes});
            continue;
        }
        spans.push_back({next, memory.length, bytes});
        if (in && bytes)
            work([&member = member_, next, from = memory.data, bytes] { member.issuer_.check(member.issuer_.cuda.copy_in(next, from, bytes, member.stream_), "cuMemcpyHtoDAsync"); });
        if (out && bytes) flight_.copies.push_back({memory.data, next, bytes});
        next += bytes;
    }
    return spans;
}

// The spans as one: where they are, or copied to scratch.
CUdeviceptr Plan::side_by_side(const std::vector<Span>& spans, bool in) {
    bool already = true;
    size_t total = 0;
    for (const Span& span : spans) {
        already &= !span.bytes || span.memory == spans[0].memory + total;
        total += span.bytes;
    }
    if (already) return spans[0].memory;
    const CUdeviceptr whole = member_.scratch(total);
    size_t at = 0;
    for (const Span& span : spans) {
        if (in) copy(whole + at, span.memory, span.bytes);
        at += span.bytes;
    }
    return whole;
}

void Plan::spread(CUdeviceptr whole, const std::vector<Span>& spans, size_t skip) {
    size_t at = 0;
    for (size_t i = 0; i < spans.size(); i++) {
        if (i != skip) copy(spans[i].memory, whole + at, spans[i].bytes);
        at += spans[i].bytes;
    }
}

void Plan::make() {
    for (const Call& call : flight_.request.calls)
        if (call.ready) work([&member = member_, ready = call.ready] { member.issuer_.check(member.issuer_.cuda.stream_wait(member.stream_, ready, 0), "cuStreamWaitEvent"); });
    for (const Call& call : flight_.request.calls) operation(call.operation);
    group(std::move(exchange_));
}

void Plan::operation(const Operation& operation) {
    const bool on_host = operation.device < 0;
    const Kind kind = operation.kind;
    if (kind == Kind::copy) return copy_across(operation);
    const bool arrives = kind == Kind::recv || (kind == Kind::broadcast && member_.rank != operation.peer);
    const bool results = kind == Kind::all_reduce || kind == Kind::reduce_scatter || kind == Kind::all_gather || arrives;
    parts_ = bring(operation.parts, !arrives, results, on_host);
    incoming_ = bring(operation.incoming, false, true, on_host);
    const Library& nccl = member_.issuer_.nccl;
    const int rank = member_.rank, n = member_.size, peer = operation.peer;
    const auto send = [&](const Span& span, int to) {
        if (span.bytes) exchange_.push_back([&nccl, &member = member_, span, to] { return nccl.Send(in(span.memory), span.bytes, Type::u8, to, member.comm_, member.stream_); });
    };
    const auto recv = [&](const Span& span, int from) {
        if (span.bytes) exchange_.push_back([&nccl, &member = member_, span, from] { return nccl.Recv(out(span.memory), span.bytes, Type::u8, from, member.comm_, member.stream_); });
    };
    switch (kind) {
        case Kind::all_reduce: return all_reduce(operation);
        case Kind::reduce_scatter: return reduce_scatter(operation);
        case Kind::all_gather: return all_gather(operation);
        case Kind::all_to_all: return all_to_all(operation);
        case Kind::broadcast: {
            const Span span = parts_[0];
            if (span.bytes) group({[&nccl, &member = member_, span, peer] { return nccl.Broadcast(in(span.memory), out(span.memory), span.bytes, Type::u8, peer, member.comm_, member.stream_); }});
            return;
        }
        case Kind::gather:
            if (rank != peer) return send(parts_[0], peer);
            for (int r = 0; r < n; r++) r == rank ? copy(incoming_[r].memory, parts_[0].memory, parts_[0].bytes) : recv(incoming_[r], r);
            return;
        case Kind::scatter:
            if (rank != peer) return recv(incoming_[0], peer);
            for (int r = 0; r < n; r++) r == rank ? copy(incoming_[0].memory, parts_[r].memory, parts_[r].bytes) : send(parts_[r], r);
            return;
        case Kind::send: return send(parts_[0], peer);
        case Kind::recv: return recv(parts_[0], peer);
        case Kind::barrier: {
            const CUdeviceptr byte = member_.scratch(1);
            group({[&nccl, &member = member_, byte] { return nccl.AllReduce(in(byte), out(byte), 1, Type::u8, Reduce::sum, member.comm_, member.stream_); }});
            return;
        }
        case Kind::copy: return;
        case Kind::enroll:
            return work([&member = member_, memory = operation.parts[0].data, bytes = operation.parts[0].bytes()] { member.enroll(memory, bytes); });
        case Kind::disenroll: return work([&member = member_, memory = operation.parts[0].data] { member.disenroll(memory); });
        case Kind::split:
        case Kind::connect: return;
    }
}

void Plan::copy_across(const Operation& operation) {
    const BufferView &from = operation.parts[0], &to = operation.incoming[0];
    const size_t bytes = from.bytes();
    const auto address = [](const BufferView& memory) { return reinterpret_cast<CUdeviceptr>(memory.data); };
    if (!bytes) return;
    if (from.on_cpu && !to.on_cpu)
        work([&member = member_, to = address(to), from = from.data, bytes] { member.issuer_.check(member.issuer_.cuda.copy_in(to, from, bytes, member.stream_), "cuMemcpyHtoDAsync"); });
    else if (!from.on_cpu && to.on_cpu)
        flight_.copies.push_back({to.data, address(from), bytes});
    else
        copy(address(to), address(from), bytes);
}

// Packed fields are added by words of 8 bytes, of which NCCL has faster sums than of bytes, and the last 0 to 7 bytes by bytes.
void Plan::all_reduce(const Operation& operation) {
    const Span span = parts_[0];
    const Library& nccl = member_.issuer_.nccl;
    const Reduce reduce = reduce_of(operation.reduction);
    std::vector<Step> calls;
    const auto add = [&](size_t from, size_t count, Type type) {
        if (count)
            calls.push_back([&nccl, &member = member_, at = span.memory + from, count, type, reduce] { return nccl.AllReduce(in(at), out(at), count, type, reduce, member.comm_, member.stream_); });
    };
    if (operation.packed) {
        add(0, span.bytes / 8, Type::u64);
        add(span.bytes / 8 * 8, span.bytes % 8, Type::u8);
    } else {
        add(0, span.length, type_of(operation.parts[0].dtype));
    }
    group(std::move(calls));
}

void Plan::reduce_scatter(const Operation& operation) {
    const Library& nccl = member_.issuer_.nccl;
    const Reduce reduce = reduce_of(operation.reduction);
    const Type type = type_of(operation.parts[0].dtype);
    const int rank = member_.rank;
    const size_t bytes = parts_[0].bytes, length = parts_[0].length;
    if (are_equal(parts_)) {
        if (!bytes) return;
        const CUdeviceptr whole = side_by_side(parts_, true), mine = whole + rank * bytes;
        group({[&nccl, &member = member_, whole, mine, length, type, reduce] { return nccl.ReduceScatter(in(whole), out(mine), length, type, reduce, member.comm_, member.stream_); }});
        return copy(parts_[rank].memory, mine, bytes);
    }
    std::vector<Step> calls;
    for (int root = 0; root < member_.size; root++)
        if (const Span span = parts_[root]; span.bytes)
            calls.push_back([&nccl, &member = member_, span, type, reduce, root] { return nccl.Reduce(in(span.memory), out(span.memory), span.length, type, reduce, root, member.comm_, member.stream_); });
    group(std::move(calls));
}

void Plan::all_gather(const Operation&) {
    const Library& nccl = member_.issuer_.nccl;
    const int rank = member_.rank;
    const size_t bytes = parts_[0].bytes;
    if (are_equal(parts_)) {
        if (!bytes) return;
        const CUdeviceptr whole = side_by_side(parts_, false), mine = whole + rank * bytes;
        copy(mine, parts_[rank].memory, bytes);
        group({[&nccl, &member = member_, whole, mine, bytes] { return nccl.AllGather(in(mine), out(whole), bytes, Type::u8, member.comm_, member.stream_); }});
        return spread(whole, parts_, rank);
    }
    std::vector<Step> calls;
    for (int root = 0; root < member_.size; root++)
        if (const Span span = parts_[root]; span.bytes)
            calls.push_back([&nccl, &member = member_, span, root] { return nccl.Broadcast(in(span.memory), out(span.memory), span.bytes, Type::u8, root, member.comm_, member.stream_); });
    group(std::move(calls));
}

// A rank knows the lengths of its own parts only: the caller says whether all are alike.
void Plan::all_to_all(const Operation& operation) {
    const Library& nccl = member_.issuer_.nccl;
    const int rank = member_.rank;
    if (operation.even && nccl.AlltoAll) {
        const size_t bytes = parts_[0].bytes;
        if (bytes) {
            const CUdeviceptr from = side_by_side(parts_, true), to = side_by_side(incoming_, false);
            group({[&nccl, &member = member_, from, to, bytes] { return nccl.AlltoAll(in(from), out(to), bytes, Type::u8, member.comm_, member.stream_); }});
            spread(to, incoming_, parts_.size());
        }
        return notes(operation.note);
    }
    std::vector<Step> calls;
    copy(incoming_[rank].memory, parts_[rank].memory, parts_[rank].bytes);
    for (int peer = 0; peer < member_.size; peer++) {
        if (peer == rank) continue;
        if (const Span span = parts_[peer]; span.bytes)
            calls.push_back([&nccl, &member = member_, span, peer] { return nccl.Send(in(span.memory), span.bytes, Type::u8, peer, member.comm_, member.stream_); });
        if (const Span span = incoming_[peer]; span.bytes)
            calls.push_back([&nccl, &member = member_, span, peer] { return nccl.Recv(out(span.memory), span.bytes, Type::u8, peer, member.comm_, member.stream_); });
    }
    group(std::move(calls));
    notes(operation.note);
}

// There are no headers that a note could ride in: a byte from everybody to everybody.
void Plan::notes(uint8_t note) {
    const Notes taken = member_.take_notes();
    flight_.notes = taken;
    Issuer& issuer = member_.issuer_;
    const size_t n = member_.size;
    work([&issuer, &member = member_, taken, note] { issuer.check(issuer.cuda.set_bytes(taken.memory, note, 1, member.stream_), "cuMemsetD8Async"); });
    group({[&issuer, &member = member_, taken] { return issuer.nccl.AllGather(in(taken.memory), out(taken.memory + 1), 1, Type::u8, member.comm_, member.stream_); }});
    work([&issuer, &member = member_, taken, n] { issuer.check(issuer.cuda.copy_out(taken.arrived, taken.memory + 1, n, member.stream_), "cuMemcpyDtoHAsync"); });
}

}  // namespace terse::nccl
