// One native thread per environment on which backward runs, in the order asked for, so that JavaScript stays free meanwhile.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "context.h"

namespace terse {

// The way back to the JavaScript thread. Shared with gradient hooks, which may outlive the environment.
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

class Compute {
 public:
    explicit Compute(Context& context);
    ~Compute();
    void stop();  // waits for the running job; the others are dropped

    // A promise; rejects with what libtorch said.
    napi_value backward(at::Tensor root, at::Tensor gradient, bool retain_graph);
    // The gradient of `leaf` is complete: JavaScript's ready callback gets `token`. null stops that.
    void watch(const at::Tensor& leaf, double token);
    void unwatch(const at::Tensor& leaf);
    void on_ready(napi_value callback);

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
    size_t pending_ = 0;  // JavaScript thread only: keeps the event loop alive

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Job> jobs_;
    bool stopping_ = false;
    std::thread thread_;
};

// Intra-op threads, here and on every compute thread.
void set_threads(int threads);
// body(begin, end) over [0, n), on the caller's intra-op threads where each gets `grain` and more. The body does not throw.
void in_ranges(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& body);

}  // namespace terse
