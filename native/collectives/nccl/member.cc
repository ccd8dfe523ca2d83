#include "member.h"

#include <algorithm>

#include "plan.h"
#include "volume.h"

namespace terse::nccl {

using collectives::Kind;
using collectives::Operation;

namespace {

constexpr auto poll_pause = std::chrono::microseconds(50);
constexpr auto drain_patience = std::chrono::seconds(5), shut_patience = std::chrono::seconds(30);
constexpr int most_notes = 16;  // all-to-alls that are under way at once
constexpr auto end_patience = std::chrono::seconds(30);  // then the promises of an abort that hangs reject all the same

// Touches memory of the CPU.
bool is_on_host(const Request& request) {
    return std::ranges::any_of(request.calls, [](const Call& call) {
        const auto on_cpu = [](const std::vector<BufferView>& list) { return std::ranges::any_of(list, &BufferView::on_cpu); };
        return on_cpu(call.operation.parts) || on_cpu(call.operation.incoming);
    });
}

std::string seconds_of(Clock::duration duration) {
    std::string text = std::to_string(std::chrono::duration<double>(duration).count());
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text + " s";
}

// All ranks finalize, then each destroys. False: somebody did not come, and there is nothing left to lose.
bool finalize(const Library& nccl, Comm comm, const std::vector<void*>& handles, Clock::time_point deadline, const Ending& ending) {
    for (void* handle : handles) nccl.CommDeregister(comm, handle);
    Result result = nccl.CommFinalize(comm);
    if (result != success && result != in_progress) return false;
    while (nccl.CommGetAsyncError(comm, &result) == success && result == in_progress) {
        if (ending.hurries || Clock::now() > deadline) return false;
        std::this_thread::sleep_for(poll_pause);
    }
    return result == success;
}

// True: the stream has come to its end.
bool drain(const Driver& cuda, CUstream stream) {
    const auto deadline = Clock::now() + drain_patience;
    CUevent end = nullptr;
    if (cuda.event_create(&end, event_disable_timing) != cuda_success) return false;
    CUresult result = cuda.event_record(end, stream);
    while (result == cuda_success && (result = cuda.event_query(end)) == cuda_not_ready) {
        if (Clock::now() > deadline) return false;
        result = cuda_success;
        std::this_thread::sleep_for(poll_pause);
    }
    cuda.event_destroy(end);
    return result == cuda_success;
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
    issuer_.queue.push_back({self, std::move(forming), nullptr});
    forming.clear();
    issuer_.changed.notify_all();
}

bool Member::holds(const void* memory, size_t bytes) const {
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    return std::ranges::any_of(enrolled_, [&](const Enrolled& each) { return each.begin < begin + bytes && begin < each.begin + each.bytes; });
}

void Member::forget(const std::shared_ptr<Member>& self, void* memory, size_t bytes) {
    if (failure) return;  // its registrations end with it
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    for (const Enrolled& each : enrolled_) {
        if (each.begin >= begin + bytes || begin >= each.begin + each.bytes) continue;
        Call call;
        call.operation.kind = Kind::disenroll;
        call.operation.device = issuer_.device;
        call.operation.parts.push_back({reinterpret_cast<void*>(each.begin), each.bytes, DType::u8, false});
        flush(self);
        issuer_.queue.push_back({self, {call}, nullptr});
    }
}

void Member::leave() {
    completed_ = nullptr;
    left_ = true;
    fail(Failure(Reason::aborted, -1, "the group was left"));
}

// What is on the CPU comes back from scratch only when it is done, and by then nothing else may have begun.
bool Member::may_begin(const Request& request) const {
    const Kind kind = request.calls[0].operation.kind;
    if (kind == Kind::connect) return !failure;
    if (!ready_ || failure) return false;
    // They may wait for all kernels of the device; a split wants none of this group's besides.
    if (kind == Kind::split) return request.split->settled && issuer_.is_idle();
    if (kind == Kind::enroll || kind == Kind::disenroll) return issuer_.is_idle();
    if (kind == Kind::all_to_all && notes_.empty()) return false;
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
    const bool others = result == remote_error || result == system_error;
    throw Failure(usage ? Reason::mismatch : others ? Reason::transport : Reason::device, -1, sentence(result, what));
}

Result Member::state() {
    Result asynchronous = success;
    const Result result = issuer_.nccl.CommGetAsyncError(comm_, &asynchronous);
    return result == success ? asynchronous : result;
}

void Member::blame(const Operation& operation, Reason reason, const std::string& cause) {
    const std::string number = operation.sequence ? " number " + std::to_string(operation.sequence) : "";
    const std::string name = name_of(operation.kind);
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
    if (device != issuer_.device) throw Failure(Reason::device, -1, "NCCL took cuda:" + std::to_string(device) + " instead of cuda:" + std::to_string(issuer_.device));
    make_notes();
    std::lock_guard lock(issuer_.mutex);
    ready_ = true;
    complete(connecting_->id, {});
    connecting_.reset();
    return true;
}

void Member::split(const Request& request) {
    splitting_ = request;
    connect_deadline_ = Clock::now() + connect_timeout_;
    Split& split = *request.split;
    accept(issuer_.nccl.CommSplit(comm_, split.color, split.key, &split.made, split.child ? split.child->configuration_->get() : nullptr), "ncclCommSplit");
}

// The communicator that is split answers for the new one until that is made.
bool Member::poll_split() {
    const Result result = state();
    accept(result, "ncclCommSplit");
    if (result == in_progress) {
        if (Clock::now() > connect_deadline_) throw Failure(Reason::timeout, -1, "NCCL has not split the group after " + seconds_of(connect_timeout_));
        return false;
    }
    const auto split = splitting_->split;
    if (split->child) {
        if (!split->made) throw Failure(Reason::device, -1, "ncclCommSplit made no communicator");
        split->child->adopt(std::exchange(split->made, nullptr));
    }
    std::lock_guard lock(issuer_.mutex);
    for (const Call& call : splitting_->calls) complete(call.operation.id, {});
    splitting_.reset();
    return true;
}

// A member that has ended before takes it all the same, and ends it.
void Member::adopt(Comm made) {
    comm_ = made;
    if (ending_) {
        issuer_.aside("terse-nccl-end", [&nccl = issuer_.nccl, made] { nccl.CommAbort(made); });
        return;
    }
    std::optional<Failure> failed;
    try {
        issuer_.check(issuer_.cuda.stream_create(&stream_, stream_non_blocking), "cuStreamCreate");
        make_notes();
    } catch (const Failure& cause) {
        failed = cause;
    }
    std::lock_guard lock(issuer_.mutex);
    if (failed) fail(*failed);
    ready_ = !failed;
}

void Member::begin(Request request) {
    const Operation operation = request.calls[0].operation;
    try {
        if (operation.kind == Kind::connect) return connect(operation);
        if (operation.kind == Kind::split) return split(request);
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

// A split holds up what comes after it: so it ends like an operation where the ranks do not come to it.
void Member::expire(const Request& request) {
    if (!request.split || request.split->settled || Clock::now() <= request.split->deadline) return;
    fail(Failure(Reason::timeout, -1, "split failed on rank " + std::to_string(rank) + ": not all ranks have called it after " + seconds_of(timeout_)));
}

bool Member::advance() {
    bool fails, closes, leaves;
    {
        std::lock_guard lock(issuer_.mutex);
        if (!issuer_.queue.empty() && issuer_.queue.front().member.get() == this) expire(issuer_.queue.front());
        fails = failure.has_value();
        leaves = left_;
        const bool queued = !forming.empty() || std::ranges::any_of(issuer_.queue, [this](const Request& request) { return request.member.get() == this; });
        closes = closing && !queued && flights_.empty() && !connecting_ && !splitting_;
    }
    if (gone_) return false;
    if (ending_) {
        if (leaves) ending_->hurries = true;
        return poll_end(closes);
    }
    if (fails) {
        end(false);
        return true;
    }
    const Operation* current = connecting_ ? &*connecting_ : splitting_ ? &splitting_->calls[0].operation : !flights_.empty() ? &flights_.front().request.calls[0].operation : nullptr;
    if (!current) {
        if (closes) end(true);
        return closes;
    }
    const Operation operation = *current;
    try {
        return connecting_ ? poll_connection() : splitting_ ? poll_split() : poll_flights();
    } catch (const Failure& cause) {
        blame(operation, cause.reason, cause.what());
        return true;
    }
}

// What waits for the device is left to a thread of its own, which has the communicator from now on.
void Member::end(bool in_order) {
    ending_ = std::make_shared<Ending>();
    ending_->patience = Clock::now() + (in_order ? std::min<Clock::duration>(timeout_, shut_patience) : Clock::duration::zero()) + end_patience;
    std::shared_ptr<Split> split;
    if (splitting_) split = splitting_->split;
    {
        std::lock_guard lock(issuer_.mutex);
        ready_ = false;
    }
    std::vector<void*> handles;
    for (const Enrolled& each : enrolled_)
        if (each.handle) handles.push_back(each.handle);
    const auto shut_deadline = Clock::now() + std::min<Clock::duration>(timeout_, shut_patience);
    issuer_.aside("terse-nccl-end", [&nccl = issuer_.nccl, &cuda = issuer_.cuda, ending = ending_, comm = std::exchange(comm_, nullptr), stream = std::exchange(stream_, nullptr), in_order, split, handles,
                                     shut_deadline, memory = std::move(allocations_), host_memory = std::move(host_allocations_)] {
        const bool destroys = comm && in_order && finalize(nccl, comm, handles, shut_deadline, *ending);
        if (destroys)
            nccl.CommDestroy(comm);
        else if (comm)
            nccl.CommAbort(comm);
        if (split && split->made) nccl.CommAbort(split->made);  // the abort has waited for who writes it, and nobody has taken it
        ending->drained = !stream || drain(cuda, stream);
        ending->quiet = true;
        if (ending->drained) {  // else something may still write there
            for (void* each : memory) release(nccl, cuda, each);
            for (void* each : host_memory) cuda.free_host(each);
            if (stream) cuda.stream_destroy(stream);
        }
        ending->over = true;
    });
}

bool Member::poll_end(bool closes) {
    const bool gives_up = Clock::now() > ending_->patience;
    if (!torn_) {
        if (!ending_->quiet && !gives_up) return false;
        settle();
        return true;
    }
    if (!closes && !left_) return false;
    if (!ending_->over && !gives_up) return false;
    issuer_.stuck |= !ending_->over;
    vanish();
    return true;
}

// Everything that was called ends with the first error.
void Member::settle() {
    const bool quiet = ending_->quiet;
    const auto give_back = [&](const Call& call) {
        if (quiet && ending_->drained) issuer_.give_event(call.ready);
    };
    std::lock_guard lock(issuer_.mutex);
    torn_ = true;
    const auto finish_all = [&](const std::vector<Call>& calls) {
        for (const Call& call : calls) {
            give_back(call);
            complete(call.operation.id, failure);
        }
    };
    if (connecting_) complete(connecting_->id, failure);
    connecting_.reset();
    if (splitting_) finish_all(splitting_->calls);
    splitting_.reset();
    for (const Flight& flight : flights_) {
        if (quiet && ending_->drained) issuer_.give_event(flight.done);
        finish_all(flight.request.calls);
    }
    flights_.clear();
    for (Request& request : issuer_.queue)
        if (request.member.get() == this) finish_all(request.calls);
    std::erase_if(issuer_.queue, [this](const Request& request) { return request.member.get() == this; });
    finish_all(forming);
    forming.clear();
    enrolled_.clear();
}

void Member::vanish() {
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

// All at once: later, to allocate memory of the CPU that the device sees may wait for what runs there.
void Member::make_notes() {
    void* arrived = nullptr;
    issuer_.check(issuer_.cuda.allocate_host(&arrived, most_notes * size, 0), "cuMemHostAlloc");
    host_allocations_.push_back(arrived);
    const CUdeviceptr memory = allocate(most_notes * (1 + size));
    for (int i = 0; i < most_notes; i++) notes_.push_back({memory + i * (1 + size), static_cast<uint8_t*>(arrived) + i * size});
}

Notes Member::take_notes() {
    const Notes notes = notes_.back();
    notes_.pop_back();
    return notes;
}

void Member::enroll(void* memory, size_t bytes) {
    void* handle = nullptr;
    accept(issuer_.nccl.CommRegister(comm_, memory, bytes, &handle), "ncclCommRegister");
    std::lock_guard lock(issuer_.mutex);
    enrolled_.push_back({reinterpret_cast<uintptr_t>(memory), bytes, handle});
}

void Member::disenroll(void* memory) {
    const auto found = std::ranges::find(enrolled_, reinterpret_cast<uintptr_t>(memory), &Enrolled::begin);
    if (found == enrolled_.end()) return;
    if (found->handle) accept(issuer_.nccl.CommDeregister(comm_, found->handle), "ncclCommDeregister");
    std::lock_guard lock(issuer_.mutex);
    enrolled_.erase(found);
}

}  // namespace terse::nccl
