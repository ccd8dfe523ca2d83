// The sign of life: a thread that writes a line to the rendezvous every so often, whatever JavaScript is busy with.
#pragma once
#include <memory>
#include <string>

namespace terse::collectives {

class Beat {
public:
    // Connects to a numeric address, writes `hello` and then a line every `interval_ms`. A connection that fails ends the thread
    // quietly: whether this rank is lost is for the server to say.
    Beat(std::string host, int port, std::string hello, int interval_ms);
    ~Beat();

private:
    struct Body;
    std::unique_ptr<Body> body_;
};

}  // namespace terse::collectives
