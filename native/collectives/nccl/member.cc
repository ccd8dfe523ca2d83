#include "member.h"

#include <algorithm>

#include "plan.h"
#include "volume.h"

namespace terse::nccl {

using collectives::Kind;
using collectives::Operation;

namespace {

constexpr auto drain_patience = std::chrono::seconds(5), shut_patience = std::chrono::seconds(30);

// Touches memory of the CPU.
bool is_on_host(const Request& request) {
    return std::ranges::any_of(request.calls, [](const Call& call) {
        const auto on_cpu = [](const std::vector<Memory>& list) { return std::ranges::any_of(list, &Memory::on_cpu); };
        return on_cpu(call.operation.parts) || on_cpu(call.operation.incoming);
    });
}

std::string seconds_of(Clock::duration duration) {
    std::string text = std::to_string(std::chrono::duration<double>(duration).count());
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text + " s";
}

}  // namespace

Member::Member(Issuer& issuer, int rank, int size, UniqueId id, std::unique_ptr<Configuration> configuration, Clock::duration timeout, Clock::duration connect_timeout,
               std::function<void()> completed)
    : rank(rank), size(size), issuer_(issuer), id_(id), configuration_(std::move(configuration)), timeout_(timeout), connect_timeout_(connect_timeout), completed_(std::move(completed)) {}

// ---- with the mutex

void Member::complete(uint64_t id, std::optional<Failure> failure, std::vector<uint8_t> notes) {
    bound.erase(id);
    completions.push_back({id, std::move(failure), std::move(notes)});
    if (completed_) completed_();
}

void Member::fail(const Failure& first) {
    if (!failure) failure = first;
    issuer_.changed.notify_all();
}

void Member::flush(const std::shared_ptr<Member>& self) {
    if (forming.empty()) return;
    issuer_.queue.push_back({self, std::move(forming)});
    forming.clear();
    issuer_.changed.notify_all();
}

void Member::leave() {
    completed_ = nullptr;
    left_ = true;
    fail(Failure(Reason::aborted, -1, "the group was left"));
}

// What is on the CPU comes back from scratch only when it is done, and by then nothing else may have begun.
bool Member::may_begin(const Request& request) const {
    if (request.calls[0].operation.kind == Kind::connect) return !failure;
    if (!ready_ || failure) return false;
    if (flights_.empty()) return true;
    return !is_on_host(request) && !is_on_host(flights_.back().request);
}

void Member::bind(const Request& request) {
    for (const Call& call : request.calls) bound.insert(call.operation.id);
}

// ---- on the issuing thread

std::string Member::sentence(Result result, const char* what) const {
    const char* known = issuer_.nccl.GetErrorString(result);
    const char* last = issuer_.nccl.GetLastError(comm_);
    std::string text = std::string(what) + ": " + (known ? known : "NCCL error " + std::to_string(result));
    if (last && *last) text += std::string(" (") + last + ")";
    return text;
}

void Member::accept(Result result, const char* what) {
    if (result == success || result == in_progress) return;
    const bool usage = result == invalid_argument || result == invalid_usage;
    throw Failure(usage ? Reason::mismatch : Reason::transport, -1, sentence(result, what));
}

Result Member::state() {
    Result asynchronous = success;
    const Result result = issuer_.nccl.CommGetAsyncError(comm_, &asynchronous);
    return result == success ? asynchronous : result;
}

void Member::blame(const Operation& operation, Reason reason, const std::string& cause) {
    const std::string number = operation.sequence ? " number " + std::to_string(operation.sequence) : "";
    const std::string name = operation.kind == Kind::recv ? "receive" : name_of(operation.kind);
    std::lock_guard lock(issuer_.mutex);
    fail(Failure(reason, -1, name + number + " failed on rank " + std::to_string(rank) + ": " + cause));
}

void Member::connect(const Operation& operation) {
    connecting_ = operation;
    connect_deadline_ = Clock::now() + connect_timeout_;
    issuer_.check(issuer_.cuda.stream_create(&stream_, stream_non_blocking), "cuStreamCreate");
    accept(issuer_.nccl.CommInitRankConfig(&comm_, size, id_, rank, configuration_->get()), "ncclCommInitRankConfig");
}

bool Member::poll_connection() {
    const Result result = state();
    accept(result, "ncclCommInitRankConfig");
    if (result == in_progress) {
        if (Clock::now() > connect_deadline_)
            throw Failure(Reason::timeout, -1, "NCCL has not connected all " + std::to_string(size) + " ranks after " + seconds_of(connect_timeout_) + "; NCCL_DEBUG=INFO shows what it tries, and NCCL_SOCKET_IFNAME which interface it takes");
        return false;
    }
    int device = -1;
    accept(issuer_.nccl.CommCuDevice(comm_, &device), "ncclCommCuDevice");
    if (device != issuer_.device) throw Failure(Reason::transport, -1, "NCCL took cuda:" + std::to_string(device) + " instead of cuda:" + std::to_string(issuer_.device));
    std::lock_guard lock(issuer_.mutex);
    ready_ = true;
    complete(connecting_->id, {});
    connecting_.reset();
    return true;
}

void Member::begin(Request request) {
    const Operation operation = request.calls[0].operation;
    try {
        if (operation.kind == Kind::connect) return connect(operation);
        used_ = 0;  // the stream keeps the order of those who use scratch
        Flight& flight = flights_.emplace_back();
        flight.request = std::move(request);
        flight.deadline = Clock::now() + timeout_;
        flight.done = issuer_.take_event();
        Plan(*this, flight).make();
        push(flight);
    } catch (const Failure& cause) {
        blame(operation, cause.reason, cause.what());
    }
}

bool Member::push(Flight& flight) {
    while (!flight.steps.empty()) {
        const Result result = launching_ ? state() : flight.steps.front()();
        launching_ = result == in_progress;
        if (launching_) return false;
        accept(result, name_of(flight.request.calls[0].operation.kind));
        flight.steps.pop_front();
    }
    issuer_.check(issuer_.cuda.event_record(flight.done, stream_), "cuEventRecord");
    for (const Call& call : flight.request.calls) {
        // What the caller puts on its stream after this need not wait for the promise.
        if (call.ready) issuer_.check(issuer_.cuda.stream_wait(reinterpret_cast<CUstream>(call.operation.stream), flight.done, 0), "cuStreamWaitEvent");
        const Volume volume = volume_of(call.operation, rank, size);
        counters.bytes += volume.bytes;
        counters.messages += volume.messages;
        counters.header_bytes += volume.header_bytes;
    }
    flight.recorded = true;
    return true;
}

bool Member::poll_flights() {
    bool progress = false;
    Flight& last = flights_.back();
    if (!last.recorded) progress |= push(last);
    accept(state(), "NCCL");
    while (!flights_.empty() && flights_.front().recorded) {
        Flight& flight = flights_.front();
        const CUresult result = issuer_.cuda.event_query(flight.done);
        if (result == cuda_not_ready) break;
        issuer_.check(result, "cuEventQuery");
        progress = true;
        if (!flight.copies.empty()) {
            for (const CopyOut& copy : flight.copies) issuer_.check(issuer_.cuda.copy_out(copy.to, copy.from, copy.bytes, stream_), "cuMemcpyDtoHAsync");
            flight.copies.clear();
            issuer_.check(issuer_.cuda.event_record(flight.done, stream_), "cuEventRecord");
            continue;
        }
        finish(flight);
        flights_.pop_front();
        if (!flights_.empty()) flights_.front().deadline = Clock::now() + timeout_;  // it has waited for its turn
    }
    if (!flights_.empty() && Clock::now() > flights_.front().deadline)
        throw Failure(Reason::timeout, -1, "NCCL has not finished it after " + seconds_of(timeout_) + "; see whether every rank calls the same operations in the same order and with the same sizes");
    return progress;
}

void Member::finish(Flight& flight) {
    std::vector<uint8_t> heard;
    if (flight.notes) {
        heard.assign(flight.notes->arrived, flight.notes->arrived + size);
        notes_.push_back(*flight.notes);
    }
    for (const Call& call : flight.request.calls) issuer_.give_event(call.ready);
    issuer_.give_event(flight.done);
    std::lock_guard lock(issuer_.mutex);
    for (const Call& call : flight.request.calls) complete(call.operation.id, {}, heard);
}

bool Member::advance() {
    bool fails, closes;
    {
        std::lock_guard lock(issuer_.mutex);
        fails = failure.has_value();
        const bool queued = !forming.empty() || std::ranges::any_of(issuer_.queue, [this](const Request& request) { return request.member.get() == this; });
        closes = closing && !queued && flights_.empty() && !connecting_;
    }
    if (gone_) return false;
    if (fails && !torn_) {
        tear_down();
        return true;
    }
    if (torn_) {
        if (!closes && !left_) return false;
        vanish();
        return true;
    }
    const Operation* current = connecting_ ? &*connecting_ : !flights_.empty() ? &flights_.front().request.calls[0].operation : nullptr;
    if (!current) return closes && shut();
    const Operation operation = *current;
    try {
        return connecting_ ? poll_connection() : poll_flights();
    } catch (const Failure& cause) {
        blame(operation, cause.reason, cause.what());
        return true;
    }
}

// Ends the communicator's kernels, and waits until nothing touches the callers' memory any more.
void Member::tear_down() {
    if (comm_) issuer_.nccl.CommAbort(comm_);
    comm_ = nullptr;
    if (stream_) drained_ = drain();
    std::lock_guard lock(issuer_.mutex);
    torn_ = true;
    ready_ = false;
    if (connecting_) complete(connecting_->id, failure);
    connecting_.reset();
    for (const Flight& flight : flights_)
        for (const Call& call : flight.request.calls) complete(call.operation.id, failure);
    flights_.clear();
    for (Request& request : issuer_.queue)
        if (request.member.get() == this)
            for (const Call& call : request.calls) complete(call.operation.id, failure);
    std::erase_if(issuer_.queue, [this](const Request& request) { return request.member.get() == this; });
    for (const Call& call : forming) complete(call.operation.id, failure);
    forming.clear();
}

bool Member::drain() {
    const auto deadline = Clock::now() + drain_patience;
    try {
        const CUevent end = issuer_.take_event();
        issuer_.check(issuer_.cuda.event_record(end, stream_), "cuEventRecord");
        CUresult result;
        while ((result = issuer_.cuda.event_query(end)) == cuda_not_ready) {
            if (Clock::now() > deadline) return false;
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
        issuer_.give_event(end);
        return result == cuda_success;
    } catch (const Failure&) {
        return false;
    }
}

// The orderly end: all ranks finalize, then each destroys.
bool Member::shut() {
    if (!comm_) {
        vanish();
        return true;
    }
    if (!finalizing_) {
        finalizing_ = true;
        for (void* handle : enrolled_) issuer_.nccl.CommDeregister(comm_, handle);
        shut_deadline_ = Clock::now() + std::min<Clock::duration>(timeout_, shut_patience);
        const Result result = issuer_.nccl.CommFinalize(comm_);
        if (result != success && result != in_progress) shut_deadline_ = Clock::now();
    }
    const Result result = state();
    if (result == in_progress && Clock::now() < shut_deadline_) return false;
    if (result == success)
        issuer_.nccl.CommDestroy(comm_);
    else
        issuer_.nccl.CommAbort(comm_);  // somebody did not come: there is nothing left to lose
    comm_ = nullptr;
    drained_ = drain();
    vanish();
    return true;
}

void Member::vanish() {
    if (drained_) release();  // else something may still write there
    std::lock_guard lock(issuer_.mutex);
    gone_ = true;
    if (closing) complete(*closing, {});
    issuer_.changed.notify_all();
}

// ---- memory

CUdeviceptr Member::allocate(size_t bytes) {
    void* memory = issuer_.allocate(bytes);
    allocations_.push_back(memory);
    return reinterpret_cast<CUdeviceptr>(memory);
}

CUdeviceptr Member::scratch(size_t bytes) {
    constexpr size_t alignment = 256;
    const size_t room = (bytes + alignment - 1) / alignment * alignment;
    if (blocks_.empty() || used_ + room > blocks_.back().bytes) {
        const size_t grown = std::max({room, size_t{1} << 20, blocks_.empty() ? 0 : 2 * blocks_.back().bytes});
        blocks_.push_back({allocate(grown), grown});
        used_ = 0;
    }
    const CUdeviceptr memory = blocks_.back().memory + used_;
    used_ += room;
    return memory;
}

Notes Member::take_notes() {
    if (!notes_.empty()) {
        const Notes notes = notes_.back();
        notes_.pop_back();
        return notes;
    }
    void* arrived = nullptr;
    issuer_.check(issuer_.cuda.allocate_host(&arrived, size, 0), "cuMemHostAlloc");
    host_allocations_.push_back(arrived);
    return {allocate(1 + size), static_cast<uint8_t*>(arrived)};
}

void Member::enroll(void* memory, size_t bytes) {
    void* handle = nullptr;
    accept(issuer_.nccl.CommRegister(comm_, memory, bytes, &handle), "ncclCommRegister");
    enrolled_.push_back(handle);
}

void Member::release() {
    for (void* memory : allocations_) issuer_.free(memory);
    for (void* memory : host_allocations_) issuer_.cuda.free_host(memory);
    if (stream_) issuer_.cuda.stream_destroy(stream_);
    stream_ = nullptr;
}

}  // namespace terse::nccl
