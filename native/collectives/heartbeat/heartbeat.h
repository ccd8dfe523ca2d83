// A rank's heartbeat to the rendezvous, on a thread that JavaScript cannot block.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <thread>

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
    Heartbeat(const Heartbeat&) = delete;

private:
    using milliseconds = std::chrono::milliseconds;
    using time_point = std::chrono::steady_clock::time_point;
    milliseconds patience() const;
    bool wait(int fd, short events, time_point until, bool& ready) const;
    void run();
    void run_connection();
    void send_heartbeats(int fd);
    void check_silence();

    const std::string host_, hello_;
    const int port_;
    const milliseconds interval_, silence_;
    const std::function<void()> on_silence_;
    const int stop_;  // a descriptor: readable at the end
    std::thread thread_;
    bool answered_ = false;  // these three are the thread's
    time_point last_reply_{}, checked_{};
};

}  // namespace terse::collectives
