#include "engines/mpi/mpi.h"

#include <napi.h>

#include "binding/arguments.h"
#include "binding/communicator_object.h"
#include "binding/engines.h"
#include "binding/functions.h"
#include "binding/stop_at_exit.h"

namespace terse::collectives::binding {
namespace {

Mpi& opened_mpi(Napi::Env env) {
    std::string why;
    if (Mpi* mpi = open_mpi(why)) return *mpi;
    throw Napi::Error::New(env, why);
}

// startMpi(deadlineSeconds) → promise of { rank, size, library }. The process has one MPI for all environments.
Napi::Value start_mpi(const Napi::CallbackInfo& info) {
    class Start : public Napi::AsyncWorker {
    public:
        Start(Napi::Env env, Mpi& mpi, Clock::duration timeout)
            : Napi::AsyncWorker(env), promise(Napi::Promise::Deferred::New(env)), mpi_(mpi), timeout_(timeout) {}
        Napi::Promise::Deferred promise;

    private:
        void Execute() override { world_ = mpi_.start(Clock::now() + timeout_); }
        void OnOK() override {
            auto world = Napi::Object::New(Env());
            world.Set("rank", world_.rank);
            world.Set("size", world_.size);
            world.Set("library", world_.library);
            promise.Resolve(world);
            stop_before_libraries();  // MPI's libraries have added exit handlers
        }
        void OnError(const Napi::Error& error) override { promise.Reject(error.Value()); }
        Mpi& mpi_;
        const Clock::duration timeout_;
        MpiWorld world_;
    };
    auto* start = new Start(info.Env(), opened_mpi(info.Env()), seconds(info[0]));
    const Napi::Value promise = start->promise.Promise();
    start->Queue();
    return promise;
}

// mpi(rank, size, timeoutSeconds, link) → [communicator, addresses]
Napi::Value mpi(const Napi::CallbackInfo& info) {
    return make_with_addresses(info.Env(), opened_mpi(info.Env()).make(info[0].ToNumber(), info[1].ToNumber()), info[3],
                               seconds(info[2]));
}

// mpiBootstrap(round, timeoutSeconds) → communicator of all processes of the job
Napi::Value mpi_bootstrap(const Napi::CallbackInfo& info) {
    auto engine = opened_mpi(info.Env()).make_bootstrap(info[0].ToNumber());
    return CommunicatorObject::make(info.Env(), CommunicatorObject::over(std::move(engine), seconds(info[1]), true));
}

}  // namespace

void add_mpi(Napi::Env env, Napi::Object exports) {
    exports.Set("startMpi", Napi::Function::New(env, start_mpi, "startMpi"));
    exports.Set("mpi", Napi::Function::New(env, mpi, "mpi"));
    exports.Set("mpiBootstrap", Napi::Function::New(env, mpi_bootstrap, "mpiBootstrap"));
    exports.Set("hasMpi", Napi::Boolean::New(env, has_mpi()));
}

}  // namespace terse::collectives::binding
