#include "compute.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "library.h"

namespace terse {
namespace {

// OpenMP keeps its number of threads per calling thread; 0: nobody has set one.
std::atomic<int> wanted_threads{0};

void adopt_threads() {
    thread_local int adopted = 0;
    const int wanted = wanted_threads;
    if (wanted != adopted) at::set_num_threads(adopted = wanted);
}

// Ends this thread's team of OpenMP workers; its next parallel region starts another, in some 50 µs. Forward and backward run on
// two threads, one after the other. With two teams alive libgomp counts more workers than processors, and sends each to sleep after
// every parallel region instead of letting it wait for the next: measured, a GPT step of 240 ms then takes 280.
void end_team() {
    static const auto pause = [] {
        void* symbol = dlsym(RTLD_DEFAULT, "omp_pause_resource_all");
        Dl_info info;
        // Other runtimes pause every thread's team by this, not the caller's own.
        const bool gnu = symbol && dladdr(symbol, &info) && info.dli_fname && std::strstr(info.dli_fname, "libgomp");
        return reinterpret_cast<int (*)(int)>(gnu ? symbol : nullptr);
    }();
    constexpr int soft = 1;  // omp_pause_soft
    if (pause && at::get_num_threads() > 1) pause(soft);
}

struct Announce : torch::autograd::PostAccumulateGradHook {
    Announce(std::shared_ptr<Channel> channel, double token) : channel(std::move(channel)), token(token) {}
    void operator()(const torch::autograd::Variable&) override { channel->send({.kind = Channel::Message::Kind::ready, .token = token}); }
    std::shared_ptr<Channel> channel;
    double token;
};

}  // namespace

void set_threads(int threads) {
    wanted_threads = threads;
    adopt_threads();
}

void Channel::open(napi_threadsafe_function function) {
    std::lock_guard lock(mutex_);
    function_ = function;
}

void Channel::close() {
    std::lock_guard lock(mutex_);
    if (function_) napi_release_threadsafe_function(function_, napi_tsfn_abort);
    function_ = nullptr;
}

void Channel::send(Message message) {
    std::lock_guard lock(mutex_);
    if (!function_) return;
    auto* heap = new Message(std::move(message));
    if (napi_call_threadsafe_function(function_, heap, napi_tsfn_nonblocking) != napi_ok) delete heap;
}

Compute::Compute(Context& context) : context_(context) {
    const napi_env env = context.env;
    check(env, napi_create_threadsafe_function(env, nullptr, nullptr, text(env, "terse tensor"), 0, 1, nullptr, nullptr, this, receive, &function_));
    check(env, napi_unref_threadsafe_function(env, function_));
    channel_->open(function_);
}

Compute::~Compute() {
    stop();
    channel_->close();
}

void Compute::stop() {
    {
        std::lock_guard lock(mutex_);
        stopping_ = true;
        jobs_.clear();
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
}

napi_value Compute::backward(at::Tensor root, at::Tensor gradient, bool retain_graph) {
    const napi_env env = context_.env;
    end_team();
    Job job{std::move(root), std::move(gradient), retain_graph, nullptr};
    napi_value promise;
    check(env, napi_create_promise(env, &job.deferred, &promise));
    if (pending_++ == 0) check(env, napi_ref_threadsafe_function(env, function_));
    {
        std::lock_guard lock(mutex_);
        jobs_.push_back(std::move(job));
        if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    }
    wake_.notify_one();
    return promise;
}

void Compute::work() {
    pthread_setname_np(pthread_self(), "terse-compute");
    for (;;) {
        Job job;
        {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
            if (stopping_) return;
            job = std::move(jobs_.front());
            jobs_.pop_front();
        }
        Channel::Message message{.kind = Channel::Message::Kind::done, .deferred = job.deferred};
        try {
            adopt_threads();
            backward_has_begun();
            torch::autograd::variable_list gradients;
            if (job.gradient.defined()) gradients.push_back(job.gradient);
            torch::autograd::backward({job.root}, gradients, job.retain_graph);
        } catch (...) {
            message.kind = Channel::Message::Kind::failed;
            message.failure = current_failure("backward(self: " + describe(job.root) + ")");
        }
        end_team();
        job = {};  // the graph goes before the promise settles
        channel_->send(std::move(message));
    }
}

void Compute::receive(napi_env env, napi_value, void* self, void* data) {
    const std::unique_ptr<Channel::Message> message(static_cast<Channel::Message*>(data));
    if (!env) return;  // the environment is going down
    auto& compute = *static_cast<Compute*>(self);
    if (message->kind == Channel::Message::Kind::ready) {
        napi_value callback, receiver, token;
        if (compute.ready_ && napi_get_reference_value(env, compute.ready_, &callback) == napi_ok && napi_get_undefined(env, &receiver) == napi_ok &&
            napi_create_double(env, message->token, &token) == napi_ok)
            napi_call_function(env, receiver, callback, 1, &token, nullptr);  // what it throws is Node's uncaught exception
        return;
    }
    if (--compute.pending_ == 0) napi_unref_threadsafe_function(env, compute.function_);
    try {
        if (message->kind == Channel::Message::Kind::done) napi_resolve_deferred(env, message->deferred, undefined(env));
        else napi_reject_deferred(env, message->deferred, error_of(compute.context_, message->failure));
    } catch (...) {
    }
}

void Compute::watch(const at::Tensor& leaf, double token) {
    if (!leaf.is_leaf() || !leaf.requires_grad()) throw std::invalid_argument("only a leaf that requires a gradient gets one");
    torch::autograd::impl::set_post_acc_grad_hooks(leaf, std::make_unique<Announce>(channel_, token));
}

void Compute::unwatch(const at::Tensor& leaf) { torch::autograd::impl::set_post_acc_grad_hooks(leaf, nullptr); }

void Compute::on_ready(napi_value callback) {
    if (ready_) napi_delete_reference(context_.env, ready_);
    ready_ = nullptr;
    check(context_.env, napi_create_reference(context_.env, callback, 1, &ready_));
}

}  // namespace terse
