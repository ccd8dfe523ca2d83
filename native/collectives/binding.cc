// Communicators for JavaScript. Every operation is a promise; one thread-safe function per communicator brings results back, and
// keeps Node alive only while something is pending.
#include <napi.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "beat.h"
#include "communicator.h"
#include "faulty/faulty.h"
#include "gloo/gloo.h"
#include "loopback/loopback.h"
#include "mpi/mpi.h"
#include "nccl/nccl_communicator.h"
#include "paced/paced.h"
#include "reduce.h"
#include "tcp/tcp.h"
#include "terse/napi_buffer.h"
#include "wire_communicator.h"

namespace terse::collectives {
namespace {

// All communicators. process.exit() runs no finalizer, so exit() has to stop them before static objects go.
class Registry {
public:
    static Registry& get() {
        static Registry* registry = [] {
            std::atexit([] { get().stop(); });
            return new Registry;  // outlives every static object
        }();
        return *registry;
    }
    void add(const std::shared_ptr<Communicator>& communicator) {
        std::lock_guard lock(mutex_);
        std::erase_if(communicators_, [](const auto& weak) { return weak.expired(); });
        communicators_.push_back(communicator);
    }

    void stop() {
        std::lock_guard lock(mutex_);
        for (const auto& weak : communicators_)
            if (const auto communicator = weak.lock()) communicator->stop();
        finish_mpi();
    }

private:
    std::mutex mutex_;
    std::vector<std::weak_ptr<Communicator>> communicators_;
};

const char* name_of(Reason reason) {
    switch (reason) {
        case Reason::transport: return "transport";
        case Reason::mismatch: return "mismatch";
        case Reason::timeout: return "timeout";
        case Reason::aborted: return "aborted";
        case Reason::argument: return "argument";
        case Reason::lost: return "lost";
        case Reason::device: return "device";
        case Reason::withdrawn: return "withdrawn";
    }
    return "transport";
}

Clock::duration seconds(const Napi::Value& value) {
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(value.ToNumber().DoubleValue(), 1e8)));
}

std::chrono::milliseconds milliseconds(const Napi::Value& value) { return std::chrono::milliseconds(std::clamp<int64_t>(value.ToNumber().Int64Value(), 1, 1 << 30)); }

// Where a group of NCCL's is split.
struct Place {
    std::shared_ptr<nccl::NcclCommunicator> group;
    std::shared_ptr<nccl::Split> split;
};

class CommunicatorObject : public Napi::ObjectWrap<CommunicatorObject> {
public:
    static Napi::Function define(Napi::Env env) {
        return DefineClass(env, "Communicator",
                           {InstanceMethod<&CommunicatorObject::operate>("operate"), InstanceMethod<&CommunicatorObject::connect>("connect"),
                            InstanceMethod<&CommunicatorObject::abort>("abort"), InstanceMethod<&CommunicatorObject::cancel>("cancel"), InstanceMethod<&CommunicatorObject::close>("close"),
                            InstanceMethod<&CommunicatorObject::sent>("sent"), InstanceMethod<&CommunicatorObject::flush>("flush"),
                            InstanceMethod<&CommunicatorObject::split>("split")});
    }

    explicit CommunicatorObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<CommunicatorObject>(info), env_(info.Env()) {
        if (info.Length() < 1 || !info[0].IsExternal()) throw Napi::TypeError::New(env_, "communicators are made by loopback, tcp, gloo, mpi and nccl");
        auto* start = info[0].As<Napi::External<Start>>().Data();
        meets_ = start->meets;
        has_to_connect_ = !start->connects;
        napi_value name = Napi::String::New(env_, "terse collectives");
        check(napi_create_threadsafe_function(env_, nullptr, nullptr, name, 0, 1, nullptr, nullptr, this, on_completed, &completed_));
        check(napi_unref_threadsafe_function(env_, completed_));
        // Runs before the hook of the thread-safe function: no wire thread calls it after its end.
        check(napi_add_env_cleanup_hook(env_, leave, this));
        try {
            communicator_ = start->make([completed = completed_] { napi_call_threadsafe_function(completed, nullptr, napi_tsfn_nonblocking); });
        } catch (const std::exception& error) {  // there is no thread left
            napi_remove_env_cleanup_hook(env_, leave, this);
            napi_release_threadsafe_function(completed_, napi_tsfn_abort);
            throw Napi::Error::New(env_, error.what());
        }
        nccl_ = std::dynamic_pointer_cast<nccl::NcclCommunicator>(communicator_);
        if (start->connects) {
            Operation connect;
            connect.kind = Kind::connect;
            communicator_->submit(std::move(connect));
        }
        Registry::get().add(communicator_);
        info.This().As<Napi::Object>().Set("rank", communicator_->rank);
        info.This().As<Napi::Object>().Set("size", communicator_->size);
    }

    ~CommunicatorObject() {
        if (!communicator_) return;
        napi_remove_env_cleanup_hook(env_, leave, this);
        leave(this);
    }

    const std::shared_ptr<nccl::NcclCommunicator>& nccl() const { return nccl_; }

    struct Start {
        // Gets what the communicator calls whenever something has completed.
        std::function<std::shared_ptr<Communicator>(std::function<void()>)> make;
        bool connects;  // at once, because it knows everybody already
        MeetingEngine* meets = nullptr;  // the engine, or what it is in front of
    };

    static Start over(std::unique_ptr<Engine> engine, Clock::duration timeout, bool connects, MeetingEngine* meets = nullptr) {
        // A std::function can be copied, and an engine cannot.
        auto held = std::make_shared<std::unique_ptr<Engine>>(std::move(engine));
        return {[held, timeout](std::function<void()> completed) { return std::make_shared<WireCommunicator>(std::move(*held), timeout, std::move(completed)); }, connects, meets};
    }

    static Napi::Object make(Napi::Function constructor, Start start) {
        return constructor.New({Napi::External<Start>::New(constructor.Env(), &start)});
    }

private:
    struct Pending {
        Napi::Promise::Deferred promise;
        Napi::ObjectReference keeps;  // the arguments, and this object
        Napi::ObjectReference given;  // the promise; a Deferred's own handle to it ends with the call
    };

    void check(napi_status status) {
        if (status != napi_ok) throw Napi::Error::New(env_);
    }

    static void leave(void* self) {
        auto* that = static_cast<CommunicatorObject*>(self);
        that->communicator_->stop();
        that->nccl_.reset();
        that->communicator_.reset();
        napi_release_threadsafe_function(that->completed_, napi_tsfn_abort);
    }

    // operate(kind, reduction, peer, parts, incoming, note, promises) → the notes of all ranks, for an all-to-all
    // promises: 1, packed; 2, even; see operation.h
    Napi::Value operate(const Napi::CallbackInfo& info) {
        Operation operation;
        operation.kind = static_cast<Kind>(info[0].ToNumber().Uint32Value());
        operation.reduction = static_cast<Reduction>(info[1].ToNumber().Uint32Value());
        operation.peer = info[2].ToNumber().Int32Value();
        operation.parts = memories(info[3], "parts");
        operation.incoming = memories(info[4], "incoming");
        place(operation, {info[3], info[4]});
        const uint32_t promises = info[6].IsNumber() ? info[6].ToNumber().Uint32Value() : 0;
        operation.packed = promises & 1;
        operation.even = promises & 2;
        const uint32_t note = info[5].IsNumber() ? info[5].ToNumber().Uint32Value() : 0;
        if (note > max_note) throw Napi::RangeError::New(env_, "a note is a number from 0 to 127");
        operation.note = static_cast<uint8_t>(note);
        validate(operation);
        return submit(info, std::move(operation));
    }

    std::vector<BufferView> memories(const Napi::Value& list, const char* what) {
        const auto array = list.As<Napi::Array>();
        std::vector<BufferView> memories;
        for (uint32_t i = 0; i < array.Length(); i++) {
            Napi::HandleScope scope(env_);
            memories.push_back(buffer_of(array.Get(i), what));
        }
        return memories;
    }

    // On which device all of it lies, and which stream fills it.
    void place(Operation& operation, std::initializer_list<Napi::Value> lists) {
        bool first = true;
        for (const Napi::Value& list : lists) {
            const auto array = list.As<Napi::Array>();
            for (uint32_t i = 0; i < array.Length(); i++) {
                Napi::HandleScope scope(env_);
                const Napi::Value value = array.Get(i);
                int device = -1;
                uint64_t stream = 0;
                if (!value.IsTypedArray()) {
                    const auto object = value.As<Napi::Object>();
                    const Napi::Value where = object.Get("device"), handle = object.Get("stream");
                    const std::string name = where.IsString() ? where.As<Napi::String>().Utf8Value() : "cpu";
                    if (name == "cuda") device = 0;
                    else if (name.rfind("cuda:", 0) == 0) device = std::atoi(name.c_str() + 5);
                    else if (name != "cpu") throw Napi::TypeError::New(env_, "collectives move memory of cpu and of cuda, and not of " + name);
                    bool lossless;
                    if (handle.IsBigInt()) stream = handle.As<Napi::BigInt>().Uint64Value(&lossless);
                }
                // A copy goes from one to the other.
                if (operation.kind == Kind::copy && device < 0) continue;
                if (!first && (device != operation.device || stream != operation.stream))
                    throw Napi::TypeError::New(env_, "all memory of an operation must be on one device, and on one stream");
                first = false;
                operation.device = device;
                operation.stream = stream;
            }
        }
    }

    // TypeScript has said this in better words; here nothing may get through that would touch foreign memory.
    void validate(const Operation& operation) {
        const size_t n = communicator_ ? communicator_->size : 0;
        const auto require = [&](bool holds, const char* sentence) {
            if (!holds) throw Napi::RangeError::New(env_, sentence);
        };
        const auto& parts = operation.parts;
        require(n > 0, "this environment is ending");
        require(operation.kind > Kind::connect && operation.kind < Kind::split, "unknown operation");
        require(operation.reduction <= Reduction::mean, "unknown reduction");
        for (const auto* list : {&parts, &operation.incoming})
            for (const BufferView& memory : *list) require(memory.dtype == (parts.empty() ? operation.incoming : parts)[0].dtype, "all parts must have one type");
        const bool lists = operation.kind == Kind::reduce_scatter || operation.kind == Kind::all_gather || operation.kind == Kind::all_to_all;
        const bool to_root = operation.kind == Kind::gather, from_root = operation.kind == Kind::scatter;
        const size_t root_list = operation.peer == communicator_->rank ? n : 0;
        require(parts.size() == (operation.kind == Kind::barrier ? 0 : from_root ? root_list : lists ? n : 1), "wrong number of parts");
        require(operation.incoming.size() == (operation.kind == Kind::all_to_all ? n : to_root ? root_list : from_root || operation.kind == Kind::copy ? 1 : 0), "wrong number of incoming parts");
        if (const char* why = communicator_->refusal(operation)) require(false, why);
        require(operation.kind != Kind::copy || parts[0].length == operation.incoming[0].length, "a copy is as long as what it is of");
        if (operation.even && operation.kind == Kind::all_to_all)
            for (const auto* list : {&parts, &operation.incoming})
                for (const BufferView& memory : *list) require(memory.length == parts[0].length, "parts that are called even must have one length");
        if (operation.kind == Kind::all_to_all) {
            const size_t me = communicator_->rank;
            require(parts[me].length == operation.incoming[me].length, "a rank's part for itself must be as long as the incoming one");
        }
        if ((to_root || from_root) && root_list)
            require(to_root ? parts[0].length == operation.incoming[operation.peer].length : parts[operation.peer].length == operation.incoming[0].length,
                    "the root's own part must be as long as its memory");
        if (is_rooted(operation.kind) || operation.kind == Kind::send || operation.kind == Kind::recv)
            require(operation.peer >= 0 && static_cast<size_t>(operation.peer) < n, "no such rank");
        if (operation.kind == Kind::send || operation.kind == Kind::recv) require(operation.peer != communicator_->rank, "a rank does not send to itself");
    }

    Napi::Value connect(const Napi::CallbackInfo& info) {
        if (!has_to_connect_) throw Napi::Error::New(env_, "this engine is connected from the start");
        Operation operation;
        operation.kind = Kind::connect;
        if (!meets_) return submit(info, std::move(operation));  // whom to meet is in the unique id
        const auto list = info[0].As<Napi::Array>();
        std::vector<std::string> addresses;
        for (uint32_t i = 0; i < list.Length(); i++) {
            const auto bytes = list.Get(i).As<Napi::Uint8Array>();
            addresses.emplace_back(reinterpret_cast<const char*>(bytes.Data()), bytes.ElementLength());
        }
        if (addresses.size() != static_cast<size_t>(communicator_->size)) throw Napi::RangeError::New(env_, "one address per rank is needed");
        const auto mine = meets_->addresses();
        for (int peer = 0; peer < communicator_->size; peer++)
            if (peer != communicator_->rank && addresses[peer].size() != mine[peer].size())
                throw Napi::TypeError::New(env_, "the address of rank " + std::to_string(peer) + " is not one of this engine's version");
        meets_->set_peers(std::move(addresses));
        return submit(info, std::move(operation));
    }

    Napi::Value submit(const Napi::CallbackInfo& info, Operation operation) {
        operation.id = expect(info);
        const Napi::Value promise = pending_.at(operation.id).promise.Promise();
        communicator_->submit(std::move(operation));
        return promise;
    }

    uint64_t expect(const Napi::CallbackInfo& info) {
        auto keeps = Napi::Array::New(env_, info.Length() + 1);
        keeps.Set(0u, info.This());
        for (uint32_t i = 0; i < info.Length(); i++) keeps.Set(i + 1, info[i]);
        if (pending_.empty()) napi_ref_threadsafe_function(env_, completed_);
        const auto promise = Napi::Promise::Deferred::New(env_);
        pending_.emplace(++last_id_, Pending{promise, Napi::Persistent(keeps.As<Napi::Object>()), Napi::Persistent(promise.Promise().As<Napi::Object>())});
        return last_id_;
    }

    static void on_completed(napi_env env, napi_value, void* self, void*) {
        if (!env) return;
        try {
            static_cast<CommunicatorObject*>(self)->settle();
        } catch (const Napi::Error&) {  // its worker thread is being terminated: nobody is left to hear
        }
    }

    void settle() {
        if (!communicator_) return;
        Napi::HandleScope scope(env_);
        for (const Completion& completion : communicator_->take()) {
            auto node = pending_.extract(completion.id);
            if (node.empty()) continue;  // nobody waits for a connect without addresses
            if (pending_.empty()) napi_unref_threadsafe_function(env_, completed_);
            if (!completion.failure) {
                node.mapped().promise.Resolve(notes_of(completion));
                continue;
            }
            auto error = Napi::Error::New(env_, completion.failure->what()).Value();
            error.Set("reason", name_of(completion.failure->reason));
            error.Set("peer", completion.failure->rank);
            node.mapped().promise.Reject(error);
        }
    }

    Napi::Value notes_of(const Completion& completion) {
        if (completion.notes.empty()) return env_.Undefined();
        auto notes = Napi::Array::New(env_, completion.notes.size());
        for (uint32_t r = 0; r < completion.notes.size(); r++) notes.Set(r, Napi::Number::New(env_, completion.notes[r]));
        return notes;
    }

    Napi::Value abort(const Napi::CallbackInfo& info) {
        if (communicator_) communicator_->abort(info[0].ToString());
        return env_.Undefined();
    }

    // cancel(the promise of an operation) → what became of it
    Napi::Value cancel(const Napi::CallbackInfo& info) {
        auto outcome = Cancelled::finished;
        for (const auto& [id, pending] : pending_)
            if (communicator_ && pending.given.Value().StrictEquals(info[0])) outcome = communicator_->cancel(id);
        static const char* names[] = {"finished", "withdrawn", "bound"};
        return Napi::String::New(env_, names[static_cast<int>(outcome)]);
    }

    Napi::Value close(const Napi::CallbackInfo& info) {
        const uint64_t id = expect(info);
        const Napi::Value promise = pending_.at(id).promise.Promise();
        communicator_->close(id);
        return promise;
    }

    Napi::Value sent(const Napi::CallbackInfo&) {
        auto object = Napi::Object::New(env_);
        if (!communicator_) return object;
        const Counters& counters = communicator_->sent();
        object.Set("bytes", Napi::Number::New(env_, static_cast<double>(counters.bytes.load())));
        object.Set("messages", Napi::Number::New(env_, static_cast<double>(counters.messages.load())));
        object.Set("headerBytes", Napi::Number::New(env_, static_cast<double>(counters.header_bytes.load())));
        return object;
    }

    // split() → [its place in the order of operations, promise of its end]
    Napi::Value split(const Napi::CallbackInfo& info) {
        if (!nccl_ || !nccl_->issuer()->nccl.CommSplit) throw Napi::Error::New(env_, "only NCCL splits a group by itself, and not every version");
        const uint64_t id = expect(info);
        auto result = Napi::Array::New(env_, 2);
        result.Set(1u, pending_.at(id).promise.Promise());
        auto* place = new Place{nccl_, nccl_->split(id)};
        result.Set(0u, Napi::External<Place>::New(env_, place, [](Napi::Env, Place* place) { delete place; }));
        return result;
    }

    Napi::Value flush(const Napi::CallbackInfo&) {
        if (nccl_) nccl_->flush();
        return env_.Undefined();
    }

    const Napi::Env env_;
    bool has_to_connect_ = false;
    napi_threadsafe_function completed_ = nullptr;
    MeetingEngine* meets_ = nullptr;
    std::shared_ptr<Communicator> communicator_;
    std::shared_ptr<nccl::NcclCommunicator> nccl_;  // the same, where it is one
    std::map<uint64_t, Pending> pending_;
    uint64_t last_id_ = 0;
};

class CollectivesAddon : public Napi::Addon<CollectivesAddon> {
public:
    CollectivesAddon(Napi::Env env, Napi::Object exports) {
        constructor_ = Napi::Persistent(CommunicatorObject::define(env));
        DefineAddon(exports, {InstanceMethod("loopback", &CollectivesAddon::loopback), InstanceMethod("tcp", &CollectivesAddon::tcp), InstanceMethod("gloo", &CollectivesAddon::gloo),
                              InstanceMethod("ncclStatus", &CollectivesAddon::nccl_status), InstanceMethod("ncclDevice", &CollectivesAddon::nccl_device),
                              InstanceMethod("ncclUniqueId", &CollectivesAddon::nccl_unique_id), InstanceMethod("nccl", &CollectivesAddon::nccl), InstanceMethod("ncclSplit", &CollectivesAddon::nccl_split),
                              InstanceMethod("ncclAllocate", &CollectivesAddon::nccl_allocate), InstanceMethod("ncclFree", &CollectivesAddon::nccl_free),
                              InstanceMethod("link", &CollectivesAddon::link), InstanceMethod("beat", &CollectivesAddon::beat), InstanceMethod("answers", &CollectivesAddon::answers), InstanceMethod("reduce", &CollectivesAddon::reduce),
                              InstanceMethod("copy", &CollectivesAddon::copy), InstanceMethod("addressOf", &CollectivesAddon::address_of),
                              InstanceMethod("startMpi", &CollectivesAddon::start_mpi), InstanceMethod("mpi", &CollectivesAddon::mpi),
                              InstanceMethod("mpiMeeting", &CollectivesAddon::mpi_meeting), InstanceValue("hasMpi", Napi::Boolean::New(env, has_mpi())),
                              InstanceValue("hasGloo", Napi::Boolean::New(env, TERSE_HAS_GLOO)),
                              InstanceValue("inlineBytes", Napi::Number::New(env, inline_bytes)),
                              InstanceValue("segmentBytes", Napi::Number::New(env, segment_bytes))});
    }

private:
    // loopback(size, timeoutSeconds, faults, links)
    Napi::Value loopback(const Napi::CallbackInfo& info) {
        const int size = info[0].ToNumber().Int32Value();
        if (size < 1 || size > 4096) throw Napi::RangeError::New(info.Env(), "a loopback world has 1 to 4096 ranks");
        auto engines = make_loopback(size);
        const auto links = info[3].As<Napi::Array>();
        for (int rank = 0; rank < size; rank++) engines[rank] = behind(links.Get(rank), std::move(engines[rank]));
        std::vector<std::vector<Fault>> faults(size);
        const auto list_of_faults = info[2].As<Napi::Array>();
        for (uint32_t i = 0; i < list_of_faults.Length(); i++) {
            const auto fault = list_of_faults.Get(i).As<Napi::Object>();
            const auto number = [&](const char* name) { return fault.Get(name).ToNumber(); };
            faults.at(number("rank").Uint32Value()).push_back({static_cast<Fault::Kind>(number("kind").Uint32Value()), number("at").Uint32Value(),
                                                               number("milliseconds").DoubleValue(), number("to").Int32Value()});
        }
        auto list = Napi::Array::New(info.Env(), size);
        for (int rank = 0; rank < size; rank++) {
            if (!faults[rank].empty()) engines[rank] = make_faulty(std::move(engines[rank]), faults[rank]);
            list.Set(rank, CommunicatorObject::make(constructor_.Value(), CommunicatorObject::over(std::move(engines[rank]), seconds(info[1]), true)));
        }
        return list;
    }

    // link(bitsPerSecond, latencySeconds) → one rank's link, for all its groups
    Napi::Value link(const Napi::CallbackInfo& info) {
        const double bits = info[0].ToNumber(), latency = info[1].ToNumber();
        if (!(bits >= 1) || !(latency >= 0 && latency <= 3600)) throw Napi::RangeError::New(info.Env(), "a link has 1 bit per second or more, and a latency of at most an hour");
        return Napi::External<std::shared_ptr<Link>>::New(info.Env(), new std::shared_ptr<Link>(std::make_shared<Link>(bits, latency)),
                                                          [](Napi::Env, std::shared_ptr<Link>* link) { delete link; });
    }

    static std::unique_ptr<Engine> behind(const Napi::Value& link, std::unique_ptr<Engine> engine) {
        if (!link.IsExternal()) return engine;
        return make_paced(std::move(engine), *link.As<Napi::External<std::shared_ptr<Link>>>().Data());
    }

    // An emulated link keeps a thread from moving anything for as long as a segment takes.
    static Clock::duration standstill(const Napi::Value& link) {
        return link.IsExternal() ? (*link.As<Napi::External<std::shared_ptr<Link>>>().Data())->time_of(segment_bytes) : Clock::duration{};
    }

    // tcp(rank, size, address, timeoutSeconds, connectSeconds, link, silenceSeconds) → [communicator, addresses]
    Napi::Value tcp(const Napi::CallbackInfo& info) { return listening(info, make_tcp); }

    // gloo(…), alike
    Napi::Value gloo(const Napi::CallbackInfo& info) { return listening(info, make_gloo); }

    template <typename Make>
    Napi::Value listening(const Napi::CallbackInfo& info, Make make) {
        const Napi::Env env = info.Env();
        std::unique_ptr<MeetingEngine> engine;
        try {
            engine = make(info[0].ToNumber(), info[1].ToNumber(), info[2].ToString(), seconds(info[4]), seconds(info[6]) + standstill(info[5]));
        } catch (const std::exception& error) {
            throw Napi::Error::New(env, "this rank cannot listen on " + info[2].ToString().Utf8Value() + ": " + error.what());
        }
        if (!engine) throw Napi::Error::New(env, "this build has no Gloo");
        return meeting(env, std::move(engine), info[5], seconds(info[3]));
    }

    // → [communicator, addresses]
    Napi::Value meeting(Napi::Env env, std::unique_ptr<MeetingEngine> engine, const Napi::Value& link, Clock::duration timeout) {
        const auto addresses = engine->addresses();
        auto list = Napi::Array::New(env, addresses.size());
        for (uint32_t peer = 0; peer < addresses.size(); peer++)
            list.Set(peer, Napi::Buffer<char>::Copy(env, addresses[peer].data(), addresses[peer].size()));
        auto result = Napi::Array::New(env, 2);
        MeetingEngine* meets = engine.get();
        result.Set(0u, CommunicatorObject::make(constructor_.Value(), CommunicatorObject::over(behind(link, std::move(engine)), timeout, false, meets)));
        result.Set(1u, list);
        return result;
    }

    static std::string text(const Napi::Value& value) { return value.IsString() ? value.As<Napi::String>().Utf8Value() : ""; }

    // ncclStatus(library, driver): what was found; nothing throws
    Napi::Value nccl_status(const Napi::CallbackInfo& info) {
        const Napi::Env env = info.Env();
        const auto library = nccl::open_library(text(info[0]));
        const auto driver = nccl::open_driver(text(info[1]));
        auto status = Napi::Object::New(env);
        status.Set("available", library.library && driver.library);
        status.Set("reason", library.reason + (library.reason.empty() || driver.reason.empty() ? "" : "; ") + driver.reason);
        if (library.library) {
            status.Set("version", nccl::version_text(library.library->version));
            status.Set("path", library.library->path);
            auto absent = Napi::Array::New(env);
            for (const std::string& symbol : library.library->absent) absent.Set(absent.Length(), symbol);
            status.Set("absent", absent);
        }
        status.Set("devices", driver.library ? driver.library->devices : 0);
        return status;
    }

    const nccl::Library& library_of(const Napi::CallbackInfo& info, size_t at) {
        const auto library = nccl::open_library(text(info[at]));
        if (!library.library) throw Napi::Error::New(info.Env(), library.reason);
        return *library.library;
    }

    // ncclDevice(ordinal, library, driver) → what a rank's communicators on this device share
    Napi::Value nccl_device(const Napi::CallbackInfo& info) {
        const auto& library = library_of(info, 1);
        const auto driver = nccl::open_driver(text(info[2]));
        if (!driver.library) throw Napi::Error::New(info.Env(), driver.reason);
        try {
            auto issuer = std::make_unique<std::shared_ptr<nccl::Issuer>>(std::make_shared<nccl::Issuer>(library, *driver.library, info[0].ToNumber().Int32Value()));
            return Napi::External<std::shared_ptr<nccl::Issuer>>::New(info.Env(), issuer.release(), [](Napi::Env, std::shared_ptr<nccl::Issuer>* issuer) { delete issuer; });
        } catch (const std::exception& error) {
            throw Napi::Error::New(info.Env(), error.what());
        }
    }

    // ncclUniqueId(library) → 128 bytes, for one group
    Napi::Value nccl_unique_id(const Napi::CallbackInfo& info) {
        const auto& library = library_of(info, 0);
        nccl::UniqueId id;
        const nccl::Result result = library.GetUniqueId(&id);
        if (result != nccl::success) throw Napi::Error::New(info.Env(), std::string("ncclGetUniqueId: ") + library.GetErrorString(result) + " (" + library.GetLastError(nullptr) + ")");
        return Napi::Buffer<char>::Copy(info.Env(), id.internal, sizeof id.internal);
    }

    // ncclAllocate(device, bytes) → address; ncclFree(device, address)
    Napi::Value nccl_allocate(const Napi::CallbackInfo& info) {
        const auto& issuer = *info[0].As<Napi::External<std::shared_ptr<nccl::Issuer>>>().Data();
        try {
            return Napi::BigInt::New(info.Env(), static_cast<uint64_t>(reinterpret_cast<uintptr_t>(issuer->lend(static_cast<size_t>(info[1].ToNumber().Int64Value())))));
        } catch (const std::exception& error) {
            throw Napi::Error::New(info.Env(), error.what());
        }
    }

    Napi::Value nccl_free(const Napi::CallbackInfo& info) {
        const auto& issuer = *info[0].As<Napi::External<std::shared_ptr<nccl::Issuer>>>().Data();
        bool lossless;
        try {
            issuer->free(reinterpret_cast<void*>(static_cast<uintptr_t>(info[1].As<Napi::BigInt>().Uint64Value(&lossless))));
        } catch (const std::exception& error) {
            throw Napi::Error::New(info.Env(), error.what());
        }
        return info.Env().Undefined();
    }

    // nccl(device, rank, size, uniqueId, config, timeoutSeconds, connectSeconds) → communicator; connect() joins the others
    Napi::Value nccl(const Napi::CallbackInfo& info) {
        const auto issuer = *info[0].As<Napi::External<std::shared_ptr<nccl::Issuer>>>().Data();
        const auto bytes = info[3].As<Napi::Uint8Array>();
        nccl::UniqueId id;
        if (bytes.ByteLength() != sizeof id.internal) throw Napi::RangeError::New(info.Env(), "a unique id has 128 bytes");
        std::copy_n(reinterpret_cast<const char*>(bytes.Data()), sizeof id.internal, id.internal);
        return nccl_member(info.Env(), issuer, info[1].ToNumber(), info[2].ToNumber(), id, info[4], info[5], info[6]);
    }

    // ncclSplit(place, color, key, rank, size, config, timeoutSeconds, connectSeconds) → communicator, usable when the split has come to
    // its end; color −1: none
    Napi::Value nccl_split(const Napi::CallbackInfo& info) {
        const Place& place = *info[0].As<Napi::External<Place>>().Data();
        const int color = info[1].ToNumber(), key = info[2].ToNumber();
        if (color == nccl::no_color) {
            place.group->join(place.split, color, key, nullptr);
            return info.Env().Undefined();
        }
        const Napi::Object object = nccl_member(info.Env(), place.group->issuer(), info[3].ToNumber(), info[4].ToNumber(), {}, info[5], info[6], info[7]);
        place.group->join(place.split, color, key, CommunicatorObject::Unwrap(object)->nccl().get());
        return object;
    }

    Napi::Object nccl_member(Napi::Env env, const std::shared_ptr<nccl::Issuer>& issuer, int rank, int size, const nccl::UniqueId& id, const Napi::Value& config,
                             const Napi::Value& timeout_seconds, const Napi::Value& connect_seconds) {
        auto configuration = std::make_shared<std::unique_ptr<nccl::Configuration>>(std::make_unique<nccl::Configuration>(issuer->nccl.version));
        const auto fields = config.As<Napi::Object>();
        const auto names = fields.GetPropertyNames();
        for (uint32_t i = 0; i < names.Length(); i++) {
            const std::string name = names.Get(i).ToString();
            const Napi::Value value = fields.Get(name);
            const std::string why = (*configuration)->set(name, value.IsString() ? std::variant<int, std::string>(text(value)) : value.ToNumber().Int32Value());
            if (!why.empty()) throw Napi::TypeError::New(env, why);
        }
        const auto timeout = seconds(timeout_seconds), connect_timeout = seconds(connect_seconds);
        return CommunicatorObject::make(constructor_.Value(), {[=](std::function<void()> completed) {
            return std::make_shared<nccl::NcclCommunicator>(issuer, rank, size, id, std::move(*configuration), timeout, connect_timeout, std::move(completed));
        }, false});
    }

    static Mpi& mpi_of(Napi::Env env) {
        std::string why;
        if (Mpi* mpi = open_mpi(why)) return *mpi;
        throw Napi::Error::New(env, why);
    }

    // startMpi(deadlineSeconds) → promise of { rank, size, library }; it is the same process for every environment
    Napi::Value start_mpi(const Napi::CallbackInfo& info) {
        class Start : public Napi::AsyncWorker {
        public:
            Start(Napi::Env env, Mpi& mpi, Clock::duration patience) : Napi::AsyncWorker(env), promise(Napi::Promise::Deferred::New(env)), mpi_(mpi), patience_(patience) {}
            Napi::Promise::Deferred promise;

        private:
            void Execute() override { place_ = mpi_.start(Clock::now() + patience_); }
            void OnOK() override {
                auto place = Napi::Object::New(Env());
                place.Set("rank", place_.rank);
                place.Set("size", place_.size);
                place.Set("library", place_.library);
                promise.Resolve(place);
                // Again, behind what MPI's own libraries have registered since: they go after it.
                static const int once = std::atexit([] { Registry::get().stop(); });
                static_cast<void>(once);
            }
            void OnError(const Napi::Error& error) override { promise.Reject(error.Value()); }
            Mpi& mpi_;
            const Clock::duration patience_;
            MpiPlace place_;
        };
        auto* start = new Start(info.Env(), mpi_of(info.Env()), seconds(info[0]));
        const Napi::Value promise = start->promise.Promise();
        start->Queue();
        return promise;
    }

    // mpi(rank, size, timeoutSeconds, link) → [communicator, addresses]
    Napi::Value mpi(const Napi::CallbackInfo& info) {
        try {
            return meeting(info.Env(), mpi_of(info.Env()).make(info[0].ToNumber(), info[1].ToNumber()), info[3], seconds(info[2]));
        } catch (const Failure& failure) {
            throw Napi::Error::New(info.Env(), failure.what());
        }
    }

    // mpiMeeting(round, timeoutSeconds) → communicator of all processes
    Napi::Value mpi_meeting(const Napi::CallbackInfo& info) {
        try {
            return CommunicatorObject::make(constructor_.Value(), CommunicatorObject::over(mpi_of(info.Env()).make_meeting(info[0].ToNumber()), seconds(info[1]), true));
        } catch (const Failure& failure) {
            throw Napi::Error::New(info.Env(), failure.what());
        }
    }

    // beat(host, port, hello, intervalMs, silenceMs, silent) → stop()
    Napi::Value beat(const Napi::CallbackInfo& info) {
        // Stopped by the caller, by the garbage collector, or before the environment ends, whichever comes first.
        struct Held {
            Napi::Env env;
            Napi::ThreadSafeFunction silent;
            std::unique_ptr<Beat> beat;

            explicit Held(const Napi::CallbackInfo& info) : env(info.Env()), silent(Napi::ThreadSafeFunction::New(env, info[5].As<Napi::Function>(), "terse beat", 0, 1)) {
                silent.Unref(env);
                try {
                    beat = std::make_unique<Beat>(info[0].ToString(), info[1].ToNumber(), info[2].ToString(), milliseconds(info[3]), milliseconds(info[4]),
                                                  [this] { silent.NonBlockingCall(); });
                } catch (...) {
                    silent.Release();
                    throw;
                }
                napi_add_env_cleanup_hook(env, stop, this);
            }
            ~Held() {
                napi_remove_env_cleanup_hook(env, stop, this);
                stop(this);
            }
            static void stop(void* self) {
                auto* held = static_cast<Held*>(self);
                if (!held->beat) return;
                held->beat.reset();
                held->silent.Release();
            }
        };
        auto held = std::make_shared<Held>(info);
        return Napi::Function::New(info.Env(), [held](const Napi::CallbackInfo&) mutable { held.reset(); }, "stop");
    }

    // answers(intervalMs) → { add(fd) → number, remove(number), stop() }
    Napi::Value answers(const Napi::CallbackInfo& info) {
        const Napi::Env env = info.Env();
        // A copy of each function holds this, and only stop() lets go of what it points to.
        auto held = std::make_shared<std::unique_ptr<Answers>>(std::make_unique<Answers>(milliseconds(info[0])));
        auto object = Napi::Object::New(env);
        object.Set("add", Napi::Function::New(env, [held](const Napi::CallbackInfo& call) -> Napi::Value {
                       return Napi::Number::New(call.Env(), *held ? static_cast<double>((*held)->add(call[0].ToNumber())) : 0);
                   }));
        object.Set("remove", Napi::Function::New(env, [held](const Napi::CallbackInfo& call) {
                       if (*held) (*held)->remove(static_cast<uint64_t>(call[0].ToNumber().Int64Value()));
                   }));
        object.Set("stop", Napi::Function::New(env, [held](const Napi::CallbackInfo&) { held->reset(); }));
        return object;
    }

    // reduce(reduction, dtype, into, from): bytes, as the wire threads add them
    Napi::Value reduce(const Napi::CallbackInfo& info) {
        const uint32_t reduction = info[0].ToNumber(), dtype = info[1].ToNumber();
        const BufferView into = buffer_of(info[2], "into"), from = buffer_of(info[3], "from");
        if (reduction > static_cast<uint32_t>(Reduction::max) || dtype >= static_cast<uint32_t>(DType::boolean) || into.bytes() != from.bytes())
            throw Napi::RangeError::New(info.Env(), "no such reduction");
        find_reduce(static_cast<Reduction>(reduction), static_cast<DType>(dtype))(into.data, from.data, into.bytes() / bytes_of(static_cast<DType>(dtype)));
        return info.Env().Undefined();
    }

    // copy(into, from): the same number of bytes
    Napi::Value copy(const Napi::CallbackInfo& info) {
        const BufferView into = buffer_of(info[0], "into"), from = buffer_of(info[1], "from");
        if (into.bytes() != from.bytes())
            throw Napi::RangeError::New(info.Env(), "copy: into has " + std::to_string(into.bytes()) + " bytes and from has " + std::to_string(from.bytes()));
        if (into.bytes()) std::memmove(into.data, from.data, into.bytes());
        return info.Env().Undefined();
    }

    // addressOf(typed array): of its first element
    Napi::Value address_of(const Napi::CallbackInfo& info) {
        return Napi::BigInt::New(info.Env(), static_cast<uint64_t>(reinterpret_cast<uintptr_t>(buffer_of(info[0], "the array").data)));
    }

    Napi::FunctionReference constructor_;
};

}  // namespace

NODE_API_ADDON(CollectivesAddon)

}  // namespace terse::collectives
