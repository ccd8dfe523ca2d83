// A rank's heartbeat to the rendezvous, on a thread that JavaScript cannot block.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace terse::collectives {

class Heartbeat {
public:
    // Connects to a numeric address, writes `hello` and then a line every `interval`. A failed connection is made
    // again, and so is one without replies for two round trips: after an outage TCP may wait long before it tries
    // again, and a new connection does not. A round trip may take a tenth of `silence`, at most a second (more where
    // `interval` is longer). Whether this rank is lost is the server's decision. If the server has answered and then is
    // silent for `silence`, `on_silence` is called.
    Heartbeat(std::string host, int port, std::string hello, std::chrono::milliseconds interval,
              std::chrono::milliseconds silence, std::function<void()> on_silence);
    ~Heartbeat();

private:
    struct Body;
    std::unique_ptr<Body> body_;
};

}  // namespace terse::collectives
