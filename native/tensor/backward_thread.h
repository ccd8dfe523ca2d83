// One native thread per environment that runs backward passes in order, while the JavaScript thread is free.
#pragma once
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "checkpoint.h"
#include "context.h"

namespace terse {

// Sends messages to the JavaScript thread. Gradient hooks and checkpoints share it, because they may outlive the
// environment.
class Channel {
public:
    struct Message {
        enum class Kind { done, failed, ready, recompute, forget } kind;
        napi_deferred deferred = nullptr;
        Failure failure{};
        double token = 0;
        std::shared_ptr<Recomputation> recomputation = nullptr;
    };

    void open(napi_threadsafe_function function);
    void close();
    void send(Message message);
    // Waits until the JavaScript thread has computed a checkpointed part again. Throws if that fails, or if the
    // environment ends meanwhile.
    at::Tensor recompute(double token, std::vector<at::Tensor> inputs, const ForwardState& state);
    // What `recompute` waits for. Called on the JavaScript thread.
    void answer(Recomputation& recomputation, at::Tensor result, std::string failure);
    void stop();  // no recomputation can be waited for any longer

private:
    std::mutex mutex_;
    std::condition_variable answered_;
    napi_threadsafe_function function_ = nullptr;
    bool stopping_ = false;
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
    // The next backward writes into the memory of the leaves' gradients and does not add to them. Until it has ended
    // they have none.
    void replace_gradients(const std::vector<at::Tensor>& leaves);
    void on_gradient_ready(napi_value callback);
    // To compute a checkpointed part again, JavaScript's callback gets its token and the handles of its inputs, and
    // gives the result to `recomputed`. When backward no longer needs the part, it gets the token alone.
    void on_recompute(napi_value callback);
    void recomputed(at::Tensor result);
    // Whether a pass that has not ended adds to the gradient of a leaf in this tensor's memory.
    bool is_under_way(const at::Tensor& leaves) const;
    std::shared_ptr<Channel> channel() const { return channel_; }

private:
    struct Job {
        at::Tensor root, gradient;
        bool retain_graph;
        napi_deferred deferred;
        std::vector<at::Tensor> replaced;  // leaves
    };

    static void receive(napi_env env, napi_value, void* self, void* message);
    void work();
    void recompute(Recomputation& recomputation);

    Context& context_;
    std::shared_ptr<Channel> channel_ = std::make_shared<Channel>();
    napi_threadsafe_function function_ = nullptr;
    napi_ref ready_ = nullptr, recompute_ = nullptr;
    at::Tensor recomputed_;
    std::vector<at::Tensor> replaced_;  // leaves whose gradients the next backward replaces
    // What unsettled passes add gradients for, in their order: the memory of leaves. While there are any, the event
    // loop stays alive. JavaScript thread only.
    std::deque<std::vector<const c10::StorageImpl*>> under_way_;

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<Job> jobs_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace terse
