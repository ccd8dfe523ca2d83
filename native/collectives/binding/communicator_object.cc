#include "binding/communicator_object.h"

#include "binding/operation_arguments.h"
#include "binding/stop_at_exit.h"
#include "communicator/wire_communicator.h"

namespace terse::collectives::binding {
namespace {

const char* name_of(Reason reason) {
    switch (reason) {
        case Reason::transport: return "transport";
        case Reason::mismatch: return "mismatch";
        case Reason::timeout: return "timeout";
        case Reason::aborted: return "aborted";
        case Reason::argument: return "argument";
        case Reason::lost: return "lost";
        case Reason::device: return "device";
        case Reason::cancelled: return "cancelled";
    }
    return "transport";
}

}  // namespace

CommunicatorObject::Start CommunicatorObject::over(std::unique_ptr<Engine> engine, Clock::duration timeout,
                                                   bool connects, RendezvousEngine* rendezvous) {
    auto held = std::make_shared<std::unique_ptr<Engine>>(std::move(engine));  // a std::function must be copyable
    return {[held, timeout](std::function<void()> completed) {
                return std::make_shared<WireCommunicator>(std::move(*held), timeout, std::move(completed));
            },
            connects, rendezvous};
}

void CommunicatorObject::define(Napi::Env env) {
    const auto constructor = DefineClass(
        env, "Communicator",
        {InstanceMethod<&CommunicatorObject::operate>("operate"),
         InstanceMethod<&CommunicatorObject::connect>("connect"), InstanceMethod<&CommunicatorObject::abort>("abort"),
         InstanceMethod<&CommunicatorObject::cancel>("cancel"), InstanceMethod<&CommunicatorObject::close>("close"),
         InstanceMethod<&CommunicatorObject::sent>("sent"), InstanceMethod<&CommunicatorObject::flush>("flush"),
         InstanceMethod<&CommunicatorObject::split>("split")});
    env.SetInstanceData(new Napi::FunctionReference(Napi::Persistent(constructor)));
}

Napi::Object CommunicatorObject::make(Napi::Env env, Start start) {
    return env.GetInstanceData<Napi::FunctionReference>()->New({Napi::External<Start>::New(env, &start)});
}

CommunicatorObject::CommunicatorObject(const Napi::CallbackInfo& info)
    : Napi::ObjectWrap<CommunicatorObject>(info), env_(info.Env()) {
    if (info.Length() < 1 || !info[0].IsExternal())
        throw Napi::TypeError::New(env_, "communicators are made by loopback, tcp, gloo, mpi and nccl");
    auto* start = info[0].As<Napi::External<Start>>().Data();
    rendezvous_ = start->rendezvous;
    has_to_connect_ = !start->connects;
    napi_value name = Napi::String::New(env_, "terse collectives");
    check(napi_create_threadsafe_function(env_, nullptr, nullptr, name, 0, 1, nullptr, nullptr, this, on_completed,
                                          &completed_));
    check(napi_unref_threadsafe_function(env_, completed_));
    // Runs before the hook of the thread-safe function, so no wire thread calls that function after its end.
    check(napi_add_env_cleanup_hook(env_, end, this));
    try {
        communicator_ = start->make(
            [completed = completed_] { napi_call_threadsafe_function(completed, nullptr, napi_tsfn_nonblocking); });
    } catch (const std::exception& error) {  // no thread can be started
        napi_remove_env_cleanup_hook(env_, end, this);
        napi_release_threadsafe_function(completed_, napi_tsfn_abort);
        throw Napi::Error::New(env_, error.what());
    }
    nccl_ = std::dynamic_pointer_cast<nccl::NcclCommunicator>(communicator_);
    if (start->connects) {
        Operation connect;
        connect.kind = Kind::connect;
        communicator_->submit(std::move(connect));
    }
    stop_at_exit(communicator_);
    info.This().As<Napi::Object>().Set("rank", communicator_->rank);
    info.This().As<Napi::Object>().Set("size", communicator_->size);
}

CommunicatorObject::~CommunicatorObject() {
    if (!communicator_) return;
    napi_remove_env_cleanup_hook(env_, end, this);
    end(this);
}

void CommunicatorObject::check(napi_status status) {
    if (status != napi_ok) throw Napi::Error::New(env_);
}

// The object is collected, or its environment ends.
void CommunicatorObject::end(void* self) {
    auto* that = static_cast<CommunicatorObject*>(self);
    that->communicator_->stop();
    that->nccl_.reset();
    that->communicator_.reset();
    napi_release_threadsafe_function(that->completed_, napi_tsfn_abort);
}

// → a promise of every rank's note, for an all-to-all
Napi::Value CommunicatorObject::operate(const Napi::CallbackInfo& info) {
    if (!communicator_) throw Napi::Error::New(env_, "this environment is ending");
    std::vector<std::shared_ptr<void>> pinned;
    Operation operation = read_operation(info, *communicator_, pinned);
    return submit(info, std::move(operation), std::move(pinned));
}

// connect(addresses by rank)
Napi::Value CommunicatorObject::connect(const Napi::CallbackInfo& info) {
    if (!has_to_connect_) throw Napi::Error::New(env_, "this engine is connected from the start");
    Operation operation;
    operation.kind = Kind::connect;
    if (!rendezvous_) return submit(info, std::move(operation));  // the unique id leads to the other ranks
    const auto list = info[0].As<Napi::Array>();
    std::vector<std::string> addresses;
    for (uint32_t i = 0; i < list.Length(); i++) {
        const auto bytes = list.Get(i).As<Napi::Uint8Array>();
        addresses.emplace_back(reinterpret_cast<const char*>(bytes.Data()), bytes.ElementLength());
    }
    if (addresses.size() != static_cast<size_t>(communicator_->size))
        throw Napi::RangeError::New(env_, "connect needs one address per rank");
    const auto mine = rendezvous_->addresses();
    for (int peer = 0; peer < communicator_->size; peer++)
        if (peer != communicator_->rank && addresses[peer].size() != mine[peer].size())
            throw Napi::TypeError::New(env_,
                                       "the address of rank " + std::to_string(peer) +
                                           " is not of this version of the engine; every rank must run the same build");
    rendezvous_->set_peers(std::move(addresses));
    return submit(info, std::move(operation));
}

Napi::Value CommunicatorObject::submit(const Napi::CallbackInfo& info, Operation operation,
                                       std::vector<std::shared_ptr<void>> pinned) {
    operation.id = add_pending(info, std::move(pinned));
    const Napi::Value promise = pending_.at(operation.id).deferred.Promise();
    communicator_->submit(std::move(operation));
    return promise;
}

uint64_t CommunicatorObject::add_pending(const Napi::CallbackInfo& info, std::vector<std::shared_ptr<void>> pinned) {
    auto arguments = Napi::Array::New(env_, info.Length() + 1);
    arguments.Set(0u, info.This());
    for (uint32_t i = 0; i < info.Length(); i++) arguments.Set(i + 1, info[i]);
    if (pending_.empty()) napi_ref_threadsafe_function(env_, completed_);
    const auto deferred = Napi::Promise::Deferred::New(env_);
    pending_.emplace(++last_id_, Pending{deferred, Napi::Persistent(arguments.As<Napi::Object>()),
                                         Napi::Persistent(deferred.Promise().As<Napi::Object>()), std::move(pinned)});
    return last_id_;
}

void CommunicatorObject::on_completed(napi_env env, napi_value, void* self, void*) {
    if (!env) return;
    try {
        static_cast<CommunicatorObject*>(self)->settle();
    } catch (const Napi::Error&) {  // the worker thread is being terminated
    }
}

void CommunicatorObject::settle() {
    if (!communicator_) return;
    Napi::HandleScope scope(env_);
    for (const Completion& completion : communicator_->take()) {
        auto node = pending_.extract(completion.id);
        if (node.empty()) continue;  // the connect of an engine that connects by itself
        if (pending_.empty()) napi_unref_threadsafe_function(env_, completed_);
        if (!completion.failure) {
            node.mapped().deferred.Resolve(notes_of(completion));
            continue;
        }
        auto error = Napi::Error::New(env_, completion.failure->what()).Value();
        error.Set("reason", name_of(completion.failure->reason));
        error.Set("peer", completion.failure->rank);
        if (completion.memory_in_use) {
            error.Set("memoryInUse", true);
            new auto(std::move(node.mapped().pinned));  // never freed
        }
        node.mapped().deferred.Reject(error);
    }
}

Napi::Value CommunicatorObject::notes_of(const Completion& completion) {
    if (completion.notes.empty()) return env_.Undefined();
    auto notes = Napi::Array::New(env_, completion.notes.size());
    for (uint32_t r = 0; r < completion.notes.size(); r++) notes.Set(r, Napi::Number::New(env_, completion.notes[r]));
    return notes;
}

Napi::Value CommunicatorObject::abort(const Napi::CallbackInfo& info) {
    if (communicator_) communicator_->abort(info[0].ToString());
    return env_.Undefined();
}

// cancel(an operation's promise) → the outcome
Napi::Value CommunicatorObject::cancel(const Napi::CallbackInfo& info) {
    auto outcome = CancelOutcome::finished;
    for (const auto& [id, pending] : pending_)
        if (communicator_ && pending.promise.Value().StrictEquals(info[0])) outcome = communicator_->cancel(id);
    static const char* names[] = {"finished", "cancelled", "started"};
    return Napi::String::New(env_, names[static_cast<int>(outcome)]);
}

Napi::Value CommunicatorObject::close(const Napi::CallbackInfo& info) {
    const uint64_t id = add_pending(info);
    const Napi::Value promise = pending_.at(id).deferred.Promise();
    communicator_->close(id);
    return promise;
}

Napi::Value CommunicatorObject::sent(const Napi::CallbackInfo&) {
    auto object = Napi::Object::New(env_);
    if (!communicator_) return object;
    const Counters& counters = communicator_->sent();
    object.Set("bytes", Napi::Number::New(env_, static_cast<double>(counters.bytes.load())));
    object.Set("messages", Napi::Number::New(env_, static_cast<double>(counters.messages.load())));
    object.Set("headerBytes", Napi::Number::New(env_, static_cast<double>(counters.header_bytes.load())));
    return object;
}

// split() → [pending split, promise of its end]
Napi::Value CommunicatorObject::split(const Napi::CallbackInfo& info) {
    if (!nccl_ || !nccl_->device()->nccl.CommSplit)
        throw Napi::Error::New(env_, "this communicator has no ncclCommSplit");
    const uint64_t id = add_pending(info);
    auto result = Napi::Array::New(env_, 2);
    result.Set(1u, pending_.at(id).deferred.Promise());
    auto* pending = new PendingSplit{nccl_, nccl_->split(id)};
    result.Set(
        0u, Napi::External<PendingSplit>::New(env_, pending, [](Napi::Env, PendingSplit* pending) { delete pending; }));
    return result;
}

Napi::Value CommunicatorObject::flush(const Napi::CallbackInfo&) {
    if (nccl_) nccl_->flush();
    return env_.Undefined();
}

}  // namespace terse::collectives::binding
