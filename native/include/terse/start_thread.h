// Starts a thread, with words for the error where none can be started.
#pragma once
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace terse {

template <class Run>
std::thread start_thread(Run&& run) {
    try {
        return std::thread(std::forward<Run>(run));
    } catch (const std::system_error& error) {
        throw std::runtime_error(
            std::string("no thread can be started (") + error.what() +
            "): allow more processes (ulimit -u, or the container's limit) or memory (ulimit -v), or start fewer");
    }
}

}  // namespace terse
