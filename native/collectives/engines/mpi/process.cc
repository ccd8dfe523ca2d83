#include "engines/mpi/process.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

namespace terse::collectives::mpi {
namespace {

constexpr size_t segment = 1 << 20;   // the size of most transfers
constexpr size_t most_in_flight = 4;  // transfers of one tag queue
// Of all transfers in flight. Beyond it each tag queue has one: with none, ranks could deadlock.
constexpr size_t most_memory = 128 << 20;
constexpr auto exit_timeout = std::chrono::seconds(30);

std::string words_of(int error) {
    char text[MPI_MAX_ERROR_STRING + 1] = {};
    int length = 0;
    return MPI_Error_string(error, text, &length) == MPI_SUCCESS ? std::string(text, length)
                                                                 : "error " + std::to_string(error);
}

}  // namespace

MpiWorld Process::start(Clock::time_point deadline) {
    std::unique_lock lock(mutex);
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    if (!changed_.wait_until(lock, deadline, [&] { return state_ != State::starting; }))
        throw Failure(Reason::timeout, -1,
                      "MPI did not start in time: every process of the job must call it, and one has not");
    if (state_ != State::running)
        throw Failure(Reason::transport, -1, why_.empty() ? "MPI has ended in this process" : why_);
    return {rank, size, library_};
}

void Process::finish() noexcept {
    std::unique_lock lock(mutex);
    if (!thread_.joinable()) return;
    ending_ = true;
    news_.notify_all();
    // MPI_Init or MPI_Finalize may wait for ever for another process. This process ends all the same.
    if (changed_.wait_for(lock, state_ == State::starting ? Clock::duration(0) : exit_timeout,
                          [&] { return state_ == State::ended; })) {
        lock.unlock();
        thread_.join();
    } else {
        thread_.detach();
    }
}

void Process::submit(std::shared_ptr<Post> post, int peer, int tag, bool sends) {
    auto& queue = tag_queues_[{peer, tag, sends}];
    if (!queue) queue = std::make_unique<TagQueue>(TagQueue{peer, tag, sends, {}, 0, false});
    post->queue = queue.get();
    queue->waiting.push_back(std::move(post));
    ready_.insert(queue.get());
    news_.notify_one();
}

void Process::cancel(const std::shared_ptr<Post>& post) {
    if (post->state == Post::waiting) std::erase(post->queue->waiting, post);
    if (post->state != Post::active) return;
    post->unwanted = true;
    if (post->queue->sends) return;
    unwanted_.push_back(post);
    news_.notify_one();
}

void Process::leave(int peer, int tag, bool sends) {
    const auto found = tag_queues_.find({peer, tag, sends});
    if (found == tag_queues_.end()) return;
    found->second->closed = true;
    left_.insert(found->second.get());
    news_.notify_one();
}

int Process::take_tags(int blocks) {
    if (blocks > highest_tag_ / 8 - next_tags_)
        throw Failure(Reason::argument, -1,
                      "MPI has no tags left for another group: this process has made too many groups");
    const int first = next_tags_ * 8 + 4;
    next_tags_ += blocks;
    return first;
}

void Process::begin_mpi() {
    int given = MPI_THREAD_SINGLE, already = 0, over = 0;
    MPI_Initialized(&already);
    MPI_Finalized(&over);
    if (already || over) throw std::runtime_error("other code has already started MPI in this process");
    if (const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given); error != MPI_SUCCESS)
        throw std::runtime_error("MPI does not start: " + words_of(error));
    const auto check = [](int error) {
        if (error != MPI_SUCCESS) throw std::runtime_error("MPI: " + words_of(error));
    };
    for (MPI_Comm each : {MPI_COMM_WORLD, MPI_COMM_SELF}) check(MPI_Comm_set_errhandler(each, MPI_ERRORS_RETURN));
    if (given < MPI_THREAD_FUNNELED) throw std::runtime_error("this MPI was built without support for threads");
    check(MPI_Comm_dup(MPI_COMM_WORLD, &comm_));
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN));
    check(MPI_Comm_rank(comm_, &rank));
    check(MPI_Comm_size(comm_, &size));
    std::random_device random;
    job = static_cast<uint64_t>(random()) << 32 | random();
    check(MPI_Bcast(&job, 1, MPI_UINT64_T, 0, comm_));
    int* bound = nullptr;
    int known = 0;
    check(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &known));
    highest_tag_ = known ? *bound : 32767;
    char text[MPI_MAX_LIBRARY_VERSION_STRING + 1] = {};
    int length = 0;
    check(MPI_Get_library_version(text, &length));
    library_ = std::string(text, std::find_if(text, text + length, [](char c) { return c == ',' || c == '\n'; }));
}

void Process::run() {
    pthread_setname_np(pthread_self(), "terse-mpi");
    try {
        begin_mpi();
    } catch (const std::exception& error) {
        std::lock_guard lock(mutex);
        why_ = error.what();
        state_ = State::ended;
        changed_.notify_all();
        return;
    }
    std::unique_lock lock(mutex);
    state_ = State::running;
    changed_.notify_all();
    for (int idle = 0; !ending_;) {
        if (step(lock)) {
            idle = 0;
        } else if (waiting > 0 && ++idle < 100) {
            lock.unlock();
            sched_yield();
            lock.lock();
        } else if (waiting > 0) {
            news_.wait_for(lock, std::chrono::microseconds(50));
        } else {
            news_.wait_for(lock, std::chrono::milliseconds(engines > 0 ? 1 : 20));
        }
    }
    while (step(lock)) {
    }
    const bool orderly = !failed && engines == 0 && std::ranges::all_of(active_, [](const auto& post) {
        return post->unwanted && !post->queue->sends;
    });
    lock.unlock();
    if (orderly) {
        MPI_Comm_free(&comm_);
        MPI_Finalize();
    }
    lock.lock();
    state_ = State::ended;
    changed_.notify_all();
}

bool Process::step(std::unique_lock<std::mutex>& lock) {
    bool moved = false;
    while (!ready_.empty()) {
        TagQueue* queue = *ready_.begin();
        ready_.erase(ready_.begin());
        // The rest follows when a transfer of this tag queue has ended.
        while (!queue->waiting.empty() && queue->active < most_in_flight &&
               (queue->active == 0 || memory_ < most_memory)) {
            const auto post = queue->waiting.front();
            queue->waiting.pop_front();
            begin_transfer(lock, post);
            moved = true;
        }
    }
    for (const auto& post : std::exchange(unwanted_, {}))
        if (post->state == Post::active) {
            lock.unlock();
            MPI_Cancel(&post->request);
            lock.lock();
            moved = true;
        }
    moved |= test(lock);
    for (TagQueue* queue : std::exchange(left_, {}))
        if (queue->active == 0 && queue->waiting.empty()) {
            ready_.erase(queue);  // a transfer that was submitted and cancelled while this thread was in MPI
            tag_queues_.erase({queue->peer, queue->tag, queue->sends});
        }
    return moved;
}

void Process::begin_transfer(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Post>& post) {
    TagQueue& queue = *post->queue;
    queue.active++;
    memory_ += post->bytes;
    post->buffer = take_buffer(post->bytes);
    post->state = Post::copying;
    lock.unlock();
    const int bytes = static_cast<int>(post->bytes);
    int error;
    if (queue.sends) {
        std::memcpy(post->buffer.get(), post->data, post->bytes);
        error = MPI_Isend(post->buffer.get(), bytes, MPI_BYTE, queue.peer, queue.tag, comm_, &post->request);
    } else {
        error = MPI_Irecv(post->buffer.get(), bytes, MPI_BYTE, queue.peer, queue.tag, comm_, &post->request);
    }
    lock.lock();
    post->state = Post::active;
    post->changed.notify_all();
    if (error == MPI_SUCCESS) {
        active_.push_back(post);
        requests_.push_back(post->request);
    } else {
        settle(post, error);
    }
}

bool Process::test(std::unique_lock<std::mutex>& lock) {
    if (active_.empty()) return false;
    const int count = static_cast<int>(active_.size());
    indices_.resize(count);
    statuses_.resize(count);
    int ended = 0;
    lock.unlock();
    const int outcome = MPI_Testsome(count, requests_.data(), &ended, indices_.data(), statuses_.data());
    lock.lock();
    if (outcome != MPI_SUCCESS && outcome != MPI_ERR_IN_STATUS) {
        // No transfer in flight will ever end.
        for (const auto& post : active_) settle(post, outcome);
        active_.clear();
        requests_.clear();
        return true;
    }
    if (ended == MPI_UNDEFINED || ended == 0) return false;
    for (int i = 0; i < ended; i++) {
        const auto post = active_[indices_[i]];
        const int error = outcome == MPI_ERR_IN_STATUS ? statuses_[i].MPI_ERROR : MPI_SUCCESS;
        if (error == MPI_SUCCESS && !post->queue->sends && !post->unwanted) {
            int received = 0;
            MPI_Get_count(&statuses_[i], MPI_BYTE, &received);
            post->state = Post::copying;
            lock.unlock();
            std::memcpy(post->data, post->buffer.get(), received);
            lock.lock();
        }
        settle(post, error);
    }
    std::sort(indices_.begin(), indices_.begin() + ended, std::greater());
    for (int i = 0; i < ended; i++) {
        active_[indices_[i]] = std::move(active_.back());
        active_.pop_back();
        requests_[indices_[i]] = requests_.back();
        requests_.pop_back();
    }
    return true;
}

void Process::settle(const std::shared_ptr<Post>& post, int error) {
    TagQueue& queue = *post->queue;
    queue.active--;
    if (!queue.waiting.empty()) ready_.insert(&queue);
    if (queue.closed) left_.insert(&queue);
    memory_ -= post->bytes;
    return_buffer(std::move(post->buffer), post->bytes);
    if (error != MPI_SUCCESS) {
        failed = true;
        int kind = MPI_ERR_OTHER;
        MPI_Error_class(error, &kind);
        post->reason = kind == MPI_ERR_TRUNCATE ? Reason::mismatch : Reason::transport;
        post->failure = words_of(error);
    }
    post->state = Post::done;
    post->changed.notify_all();
}

std::unique_ptr<uint8_t[]> Process::take_buffer(size_t bytes) {
    if (bytes != segment || spare_.empty()) return std::make_unique_for_overwrite<uint8_t[]>(bytes);
    auto memory = std::move(spare_.back());
    spare_.pop_back();
    return memory;
}

void Process::return_buffer(std::unique_ptr<uint8_t[]> memory, size_t bytes) {
    if (bytes == segment && spare_.size() < 16) spare_.push_back(std::move(memory));
}

}  // namespace terse::collectives::mpi
