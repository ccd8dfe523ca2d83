// Signs of life, from threads that JavaScript cannot hold up: a rank's to the rendezvous, and back from the process that holds it.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace terse::collectives {

// Writes a line to the rendezvous every so often.
class Beat {
public:
    // Connects to a numeric address, writes `hello` and then a line every `interval`. A connection that fails is made again: whether
    // this rank is lost is for the server to say. Where the other side answers, `silent` is called when it no longer does for `silence`.
    Beat(std::string host, int port, std::string hello, std::chrono::milliseconds interval, std::chrono::milliseconds silence, std::function<void()> silent);
    ~Beat();

private:
    struct Body;
    std::unique_ptr<Body> body_;
};

// The answer to beats: a line every so often on each of the connections that were added.
class Answers {
public:
    explicit Answers(std::chrono::milliseconds interval);
    ~Answers();

    uint64_t add(int fd);  // takes a descriptor of its own for the same connection; returns its number here
    void remove(uint64_t number);

private:
    struct Body;
    std::unique_ptr<Body> body_;
};

}  // namespace terse::collectives
