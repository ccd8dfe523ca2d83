// One message to a peer, and one from a peer: a header, then payload in segments.
#pragma once
#include <memory>
#include <vector>

#include "wire/header.h"
#include "wire/wire.h"

namespace terse::collectives {

// Sends the header at once, or after the payload (`header_last`). Payload is pushed in order and must not change until
// `finish`.
class Outgoing {
public:
    Outgoing(Wire& wire, int peer, const Message& message, bool header_last = false);
    Outgoing(Outgoing&&) = default;
    void push(const void* data, size_t bytes);
    void finish();

private:
    void send_frame();
    Wire& wire_;
    int peer_;
    bool inlined_, header_last_;
    size_t bytes_, pushed_ = 0;
    std::vector<uint8_t> frame_;
    std::vector<std::unique_ptr<Transfer>> posted_;
};

// Waits for the header and throws Reason::mismatch unless it is the expected one. Then receives are posted in order,
// for pieces of the same sizes as the sender pushes.
class Incoming {
public:
    Incoming(Wire& wire, int peer, const Message& expected);
    ~Incoming();
    Incoming(Incoming&&) noexcept;
    void post(void* data, size_t bytes);
    void next();    // waits for the oldest posted segment
    void finish();  // waits for all of them
    uint8_t note() const { return note_; }

private:
    Wire* wire_;
    int peer_;
    bool inlined_;
    uint8_t note_ = 0;
    size_t taken_ = 0;  // bytes of the inlined payload
    std::vector<std::unique_ptr<Transfer>> posted_;
    size_t waited_ = 0;
};

}  // namespace terse::collectives
