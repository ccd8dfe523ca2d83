// A communicator as a JavaScript object. Each operation is a promise. One thread-safe function delivers results, and
// keeps Node alive only while an operation is pending.
#pragma once
#include <napi.h>

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "communicator/communicator.h"
#include "engines/nccl/nccl_communicator.h"

namespace terse::collectives::binding {

// The place of a split in the order of operations of an NCCL group.
struct PendingSplit {
    std::shared_ptr<nccl::NcclCommunicator> group;
    std::shared_ptr<nccl::Split> split;
};

class CommunicatorObject : public Napi::ObjectWrap<CommunicatorObject> {
public:
    // How a communicator is made. `make` gets the function to call when an operation has completed.
    struct Start {
        std::function<std::shared_ptr<Communicator>(std::function<void()>)> make;
        bool connects;                           // at once, because no addresses must be exchanged
        RendezvousEngine* rendezvous = nullptr;  // the engine, perhaps behind a wrapper, if addresses must be exchanged
    };
    static Start over(std::unique_ptr<Engine> engine, Clock::duration timeout, bool connects,
                      RendezvousEngine* rendezvous = nullptr);

    static void define(Napi::Env env);
    static Napi::Object make(Napi::Env env, Start start);

    explicit CommunicatorObject(const Napi::CallbackInfo& info);
    ~CommunicatorObject();

    const std::shared_ptr<nccl::NcclCommunicator>& nccl() const { return nccl_; }

private:
    struct Pending {
        Napi::Promise::Deferred deferred;
        Napi::ObjectReference arguments;            // kept alive, with this object
        Napi::ObjectReference promise;              // the Deferred's own handle to it ends with the call
        std::vector<std::shared_ptr<void>> pinned;  // memory of typed arrays
    };

    void check(napi_status status);
    static void end(void* self);
    static void on_completed(napi_env env, napi_value, void* self, void*);
    void settle();
    Napi::Value notes_of(const Completion& completion);
    uint64_t add_pending(const Napi::CallbackInfo& info, std::vector<std::shared_ptr<void>> pinned = {});
    Napi::Value submit(const Napi::CallbackInfo& info, Operation operation,
                       std::vector<std::shared_ptr<void>> pinned = {});

    Napi::Value operate(const Napi::CallbackInfo& info);
    Napi::Value connect(const Napi::CallbackInfo& info);
    Napi::Value abort(const Napi::CallbackInfo& info);
    Napi::Value cancel(const Napi::CallbackInfo& info);
    Napi::Value close(const Napi::CallbackInfo& info);
    Napi::Value sent(const Napi::CallbackInfo& info);
    Napi::Value flush(const Napi::CallbackInfo& info);
    Napi::Value split(const Napi::CallbackInfo& info);

    const Napi::Env env_;
    bool has_to_connect_ = false;
    napi_threadsafe_function completed_ = nullptr;
    RendezvousEngine* rendezvous_ = nullptr;
    std::shared_ptr<Communicator> communicator_;
    std::shared_ptr<nccl::NcclCommunicator> nccl_;  // the same one, if it is NCCL's
    std::map<uint64_t, Pending> pending_;
    uint64_t last_id_ = 0;
};

}  // namespace terse::collectives::binding
