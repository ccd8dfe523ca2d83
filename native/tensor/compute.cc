#include "compute.h"

#include <dlfcn.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

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

// A function of GNU's OpenMP, which libtorch brings; null where another runtime is at work.
template <typename Function>
Function* of_gnu_openmp(const char* name) {
    void* symbol = dlsym(RTLD_DEFAULT, name);
    Dl_info info;
    const bool gnu = symbol && dladdr(symbol, &info) && info.dli_fname && std::strstr(info.dli_fname, "libgomp");
    return reinterpret_cast<Function*>(gnu ? symbol : nullptr);
}

// Ends this thread's team of OpenMP workers. Forward and backward run on two threads, one after the other. With two teams alive
// libgomp counts more workers than processors, and sends each to sleep after every parallel region instead of letting it wait for
// the next: measured, a GPT step of 240 ms then takes 280.
void end_team() {
    // Other runtimes pause every thread's team by this, not the caller's own.
    static const auto pause = of_gnu_openmp<int(int)>("omp_pause_resource_all");
    constexpr int soft = 1;  // omp_pause_soft
    if (pause && at::get_num_threads() > 1) pause(soft);
}

// Starts this thread's team and gives each worker a processor of its own, where the team is to have all there are. Left alone,
// Linux starts a worker now and then on the processor that its master is on, and finds out milliseconds later: measured on two
// processors, forward takes 35-41 ms instead of 27-29. The workers end with their team, so nothing is pinned for longer.
void begin_team() {
    static const auto parallel = of_gnu_openmp<void(void (*)(void*), void*, unsigned, unsigned)>("GOMP_parallel");
    static const auto thread_number = of_gnu_openmp<int()>("omp_get_thread_num");
    cpu_set_t allowed;
    const int threads = at::get_num_threads();
    if (!parallel || !thread_number || threads < 2 || sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) != threads) return;
    struct Places {
        std::vector<int> processors;  // the master's first
    } places;
    const int here = sched_getcpu();
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &allowed)) places.processors.push_back(i);
    const auto mine = std::find(places.processors.begin(), places.processors.end(), here);
    if (mine == places.processors.end()) return;
    std::rotate(places.processors.begin(), mine, places.processors.end());
    parallel(
        [](void* data) {
            const int number = thread_number();
            if (number == 0) return;
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(static_cast<Places*>(data)->processors[number], &one);
            pthread_setaffinity_np(pthread_self(), sizeof one, &one);
        },
        &places, threads, 0);
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
    begin_team();
}

void in_ranges(int64_t n, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
    static const auto parallel = of_gnu_openmp<void(void (*)(void*), void*, unsigned, unsigned)>("GOMP_parallel");
    static const auto thread_number = of_gnu_openmp<int()>("omp_get_thread_num");
    static const auto in_parallel = of_gnu_openmp<int()>("omp_in_parallel");
    // All threads or one: a team that changes its size ends some of its workers, and starts them again.
    const int64_t threads = at::get_num_threads();
    if (threads < 2 || n < threads * grain || !parallel || !thread_number || !in_parallel || in_parallel()) return body(0, n);
    struct Share {
        int64_t n, threads;
        const std::function<void(int64_t, int64_t)>& body;
    } share{n, threads, body};
    parallel(
        [](void* data) {
            const auto& [n, threads, body] = *static_cast<Share*>(data);
            const int64_t number = thread_number();
            body(n * number / threads, n * (number + 1) / threads);
        },
        &share, static_cast<unsigned>(threads), 0);
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
            begin_team();
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
    begin_team();  // the compute thread's has ended
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
