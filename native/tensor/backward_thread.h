// One native thread per environment that runs backward passes in order, while the JavaScript thread is free.
#pragma once
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "context.h"

namespace terse {

// Sends messages to the JavaScript thread. Gradient hooks share it, because they may outlive the environment.
class Channel {
 public:
    struct Message {
        enum class Kind { done, failed, ready } kind;
        napi_deferred deferred = nullptr;
        Failure failure{};
        double token = 0;
    };

    void open(napi_threadsafe_function function);
    void close();
    void send(Message message);

 private:
    std::mutex mutex_;
    napi_threadsafe_function function_ = nullptr;
};

class BackwardThread {
 public:
    explicit BackwardThread(Context& context);
    ~BackwardThread();
    void stop();  // waits for the running job and drops the others

    // Returns a promise, which rejects with libtorch's error.
    napi_value backward(at::Tensor root, at::Tensor gradient, bool retain_graph);
    // When the gradient of `leaf` is complete, JavaScript's callback gets `token`. A leaf has at most one hook.
    void add_gradient_hook(const at::Tensor& leaf, double token);
    void remove_gradient_hook(const at::Tensor& leaf);
    void on_gradient_ready(napi_value callback);

 private:
    struct Job {
        at::Tensor root, gradient;
        bool retain_graph;
        napi_deferred deferred;
    };

    static void receive(napi_env env, napi_value, void* self, void* message);
    void work();

    Context& context_;
    std::shared_ptr<Channel> channel_ = std::make_shared<Channel>();
    napi_threadsafe_function function_ = nullptr;
    napi_ref ready_ = nullptr;
    size_t pending_ = 0;  // unsettled promises; while there are any, the event loop stays alive. JavaScript thread only

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Job> jobs_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace terse
