#include "backward_thread.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "gradient_hook.h"
#include "libtorch.h"
#include "openmp.h"
#include "terse/start_thread.h"

namespace terse {
namespace {

// Calls JavaScript's callback with a token. If it throws, Node reports an uncaught exception.
void tell(napi_env env, napi_ref callback, double token) {
    napi_value function, receiver, argument;
    if (callback && napi_get_reference_value(env, callback, &function) == napi_ok &&
        napi_get_undefined(env, &receiver) == napi_ok && napi_create_double(env, token, &argument) == napi_ok)
        napi_call_function(env, receiver, function, 1, &argument, nullptr);
}

// The memory of the leaves that a pass from `root` reaches. Those inside of checkpointed parts are not seen.
std::vector<const c10::StorageImpl*> leaves_of(const at::Tensor& root) {
    using torch::autograd::Node;
    std::vector<const c10::StorageImpl*> leaves;
    const auto add = [&](const at::Tensor& leaf) {
        if (!leaf.has_storage()) return;
        const c10::StorageImpl* storage = leaf.storage().unsafeGetStorageImpl();
        if (std::find(leaves.begin(), leaves.end(), storage) == leaves.end()) leaves.push_back(storage);
    };
    if (!root.grad_fn()) add(root);
    std::vector<const Node*> open{root.grad_fn().get()};
    std::unordered_set<const Node*> seen{nullptr};
    while (!open.empty()) {
        const Node* node = open.back();
        open.pop_back();
        if (!seen.insert(node).second) continue;
        if (const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(node)) add(leaf->variable);
        for (const auto& edge : node->next_edges()) open.push_back(edge.function.get());
    }
    return leaves;
}

void replace(napi_env env, napi_ref& callback, napi_value function) {
    if (callback) napi_delete_reference(env, callback);
    callback = nullptr;
    check(env, napi_create_reference(env, function, 1, &callback));
}

}  // namespace

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

at::Tensor Channel::recompute(double token, std::vector<at::Tensor> inputs, const ForwardState& state) {
    const auto recomputation = std::make_shared<Recomputation>(
        Recomputation{token, std::move(inputs), &state, {}, {}, false});
    end_team();
    send({.kind = Message::Kind::recompute, .recomputation = recomputation});
    {
        std::unique_lock lock(mutex_);
        answered_.wait(lock, [&] { return recomputation->ended || stopping_; });
        if (!recomputation->ended) throw std::runtime_error("the process ends");
    }
    begin_team();
    if (!recomputation->failure.empty()) throw std::runtime_error(recomputation->failure);
    return std::move(recomputation->result);
}

void Channel::answer(Recomputation& recomputation, at::Tensor result, std::string failure) {
    {
        std::lock_guard lock(mutex_);
        recomputation.result = std::move(result);
        recomputation.failure = std::move(failure);
        recomputation.ended = true;
    }
    answered_.notify_all();
}

void Channel::stop() {
    {
        std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    answered_.notify_all();
}

BackwardThread::BackwardThread(Context& context) : context_(context) {
    const napi_env env = context.env;
    check(env, napi_create_threadsafe_function(env, nullptr, nullptr, text(env, "terse tensor"), 0, 1, nullptr, nullptr,
                                               this, receive, &function_));
    check(env, napi_unref_threadsafe_function(env, function_));
    channel_->open(function_);
}

BackwardThread::~BackwardThread() {
    stop();
    channel_->close();
}

void BackwardThread::stop() {
    {
        std::lock_guard lock(mutex_);
        stopping_ = true;
        jobs_.clear();
    }
    wake_.notify_all();
    channel_->stop();
    if (thread_.joinable()) thread_.join();
}

napi_value BackwardThread::backward(at::Tensor root, at::Tensor gradient, bool retain_graph) {
    const napi_env env = context_.env;
    // First: where no thread can be started, nothing may be left that waits for one.
    if (!thread_.joinable()) thread_ = start_thread([this] { work(); });
    std::vector<const c10::StorageImpl*> leaves = leaves_of(root);
    end_team();
    Job job{std::move(root), std::move(gradient), retain_graph, nullptr, std::exchange(replaced_, {})};
    napi_value promise;
    check(env, napi_create_promise(env, &job.deferred, &promise));
    if (under_way_.empty()) check(env, napi_ref_threadsafe_function(env, function_));
    under_way_.push_back(std::move(leaves));
    {
        std::lock_guard lock(mutex_);
        jobs_.push_back(std::move(job));
    }
    wake_.notify_one();
    return promise;
}

void BackwardThread::work() {
    pthread_setname_np(pthread_self(), "terse-backward");
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
        const auto attempt = [&](auto&& what) {  // the first error is reported
            try {
                what();
            } catch (...) {
                if (message.kind == Channel::Message::Kind::failed) return;
                message.kind = Channel::Message::Kind::failed;
                message.failure = current_failure("backward(self: " + describe(job.root) + ")");
            }
        };
        attempt([&] {
            apply_thread_count();
            backward_has_begun();
            begin_team();
            torch::autograd::variable_list gradients;
            if (job.gradient.defined()) gradients.push_back(job.gradient);
            torch::autograd::backward({job.root}, gradients, job.retain_graph);
        });
        attempt([&] { zero_unreached(job.replaced); });  // fails too where the device has failed
        end_team();
        job = {};  // free the graph before the promise settles
        channel_->send(std::move(message));
    }
}

void BackwardThread::receive(napi_env env, napi_value, void* self, void* data) {
    const std::unique_ptr<Channel::Message> message(static_cast<Channel::Message*>(data));
    if (!env) return;  // the environment is being destroyed
    auto& thread = *static_cast<BackwardThread*>(self);
    using Kind = Channel::Message::Kind;
    if (message->kind == Kind::ready) return tell(env, thread.ready_, message->token);
    if (message->kind == Kind::recompute) return thread.recompute(*message->recomputation);
    if (message->kind == Kind::forget) return tell(env, thread.recompute_, message->token);
    begin_team();  // the backward thread has ended its team
    thread.under_way_.pop_front();
    if (thread.under_way_.empty()) napi_unref_threadsafe_function(env, thread.function_);
    try {
        if (message->kind == Kind::done) napi_resolve_deferred(env, message->deferred, undefined(env));
        else napi_reject_deferred(env, message->deferred, error_of(thread.context_, message->failure));
    } catch (...) {
    }
}

void BackwardThread::recompute(Recomputation& recomputation) {
    const napi_env env = context_.env;
    at::Tensor result;
    std::string failure;
    begin_team();
    const bool recording = c10::GradMode::is_enabled();
    const ForwardState before = recomputation.state->enter();
    c10::GradMode::set_enabled(true);
    try {
        napi_value callback;
        check(env, napi_get_reference_value(env, recompute_, &callback));
        const napi_value handles = array(env, recomputation.inputs.size());
        for (size_t i = 0; i < recomputation.inputs.size(); i++)
            set(env, handles, static_cast<uint32_t>(i), number(env, context_.handles.add(recomputation.inputs[i])));
        const napi_value arguments[] = {number(env, recomputation.token), handles};
        check(env, napi_call_function(env, undefined(env), callback, 2, arguments, nullptr));
        result = std::move(recomputed_);
    } catch (const Pending&) {
        napi_value error, message;
        failure = "a checkpointed function failed when it was computed again";
        if (napi_get_and_clear_last_exception(env, &error) == napi_ok &&
            napi_coerce_to_string(env, error, &message) == napi_ok)
            failure += ": " + text_of(env, message);
    } catch (...) {
        failure = current_failure("a checkpointed function").message;
    }
    c10::GradMode::set_enabled(recording);
    before.enter();
    end_team();
    channel_->answer(recomputation, std::move(result), std::move(failure));
}

bool BackwardThread::is_under_way(const at::Tensor& leaves) const {
    if (under_way_.empty() || !leaves.has_storage()) return false;
    const c10::StorageImpl* storage = leaves.storage().unsafeGetStorageImpl();
    return std::any_of(under_way_.begin(), under_way_.end(),
                       [&](const auto& pass) { return std::find(pass.begin(), pass.end(), storage) != pass.end(); });
}

void BackwardThread::add_gradient_hook(const at::Tensor& leaf, double token) {
    if (!leaf.is_leaf() || !leaf.requires_grad())
        throw std::invalid_argument("only a leaf that requires a gradient can have a gradient hook");
    tell_when_ready(leaf, channel_, token);
}

void BackwardThread::remove_gradient_hook(const at::Tensor& leaf) {
    if (hook_of(leaf)) tell_when_ready(leaf, nullptr, 0);
}

void BackwardThread::replace_gradients(const std::vector<at::Tensor>& leaves) {
    for (const at::Tensor& leaf : leaves) {
        replace_gradient(leaf);
        replaced_.push_back(leaf);
    }
}

void BackwardThread::on_gradient_ready(napi_value callback) { replace(context_.env, ready_, callback); }

void BackwardThread::on_recompute(napi_value callback) { replace(context_.env, recompute_, callback); }

void BackwardThread::recomputed(at::Tensor result) { recomputed_ = std::move(result); }

}  // namespace terse
