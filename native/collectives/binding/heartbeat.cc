#include "heartbeat/heartbeat.h"

#include <napi.h>

#include "binding/arguments.h"
#include "binding/functions.h"
#include "heartbeat/heartbeat_replies.h"

namespace terse::collectives::binding {
namespace {

// heartbeat(host, port, hello, intervalMs, silenceMs, onSilence) → stop()
Napi::Value heartbeat(const Napi::CallbackInfo& info) {
    // Stopped by the caller, by the garbage collector, or before the environment ends, whichever comes first.
    struct Held {
        Napi::Env env;
        Napi::ThreadSafeFunction on_silence;
        std::unique_ptr<Heartbeat> heartbeat;

        explicit Held(const Napi::CallbackInfo& info)
            : env(info.Env()),
              on_silence(Napi::ThreadSafeFunction::New(env, info[5].As<Napi::Function>(), "terse heartbeat", 0, 1)) {
            on_silence.Unref(env);
            try {
                heartbeat = std::make_unique<Heartbeat>(info[0].ToString(), info[1].ToNumber(), info[2].ToString(),
                                                        milliseconds(info[3]), milliseconds(info[4]),
                                                        [this] { on_silence.NonBlockingCall(); });
            } catch (...) {
                on_silence.Release();
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
            if (!held->heartbeat) return;
            held->heartbeat.reset();
            held->on_silence.Release();
        }
    };
    auto held = std::make_shared<Held>(info);
    return Napi::Function::New(info.Env(), [held](const Napi::CallbackInfo&) mutable { held.reset(); }, "stop");
}

// heartbeatReplies(intervalMs) → { add(fd) → number, remove(number), stop() }
Napi::Value heartbeat_replies(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    // All three functions share the replies; stop() destroys them.
    auto held = std::make_shared<std::unique_ptr<HeartbeatReplies>>(
        std::make_unique<HeartbeatReplies>(milliseconds(info[0])));
    auto object = Napi::Object::New(env);
    object.Set("add", Napi::Function::New(env, [held](const Napi::CallbackInfo& call) -> Napi::Value {
                   return Napi::Number::New(call.Env(),
                                            *held ? static_cast<double>((*held)->add(call[0].ToNumber())) : 0);
               }));
    object.Set("remove", Napi::Function::New(env, [held](const Napi::CallbackInfo& call) {
                   if (*held) (*held)->remove(static_cast<uint64_t>(call[0].ToNumber().Int64Value()));
               }));
    object.Set("stop", Napi::Function::New(env, [held](const Napi::CallbackInfo&) { held->reset(); }));
    return object;
}

}  // namespace

void add_heartbeat(Napi::Env env, Napi::Object exports) {
    exports.Set("heartbeat", Napi::Function::New(env, heartbeat, "heartbeat"));
    exports.Set("heartbeatReplies", Napi::Function::New(env, heartbeat_replies, "heartbeatReplies"));
}

}  // namespace terse::collectives::binding
