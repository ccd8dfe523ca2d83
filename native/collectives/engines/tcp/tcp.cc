#include "engines/tcp/tcp.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <deque>
#include <mutex>
#include <vector>

#include "engines/distance.h"
#include "engines/outage.h"
#include "engines/tcp/connector.h"
#include "engines/tcp/transfer.h"

namespace terse::collectives {
namespace tcp {
namespace {

class Tcp final : public RendezvousEngine {
public:
    Tcp(int rank, int size, const std::string& address, Clock::duration connect_timeout, Clock::duration outage)
        : RendezvousEngine(rank, size),
          outage_(outage),
          connect_timeout_(connect_timeout),
          connector_(rank, size, address, outage) {
        state_.silence_limit = silence_limit_of(outage);
        connections_.resize(size);
        is_far_.resize(size);
        for (int peer = 0; peer < size; peer++) {
            if (peer == rank) continue;
            for (const int channel : {collectives_channel, point_to_point_channel})
                for (const bool sends : {false, true}) {
                    Stream& stream = connections_[peer][channel].streams[sends];
                    stream.peer = peer;
                    stream.sends = sends;
                    if (channel == point_to_point_channel)
                        point_to_point_.emplace_back();  // each direction has a thread of its own
                    stream.group = channel == point_to_point_channel ? &point_to_point_.back() : &collectives_;
                    stream.group->streams.push_back(&stream);
                }
        }
    }
    ~Tcp() override { release(); }

    std::vector<std::string> addresses() const override { return connector_.addresses(); }
    void set_peers(std::vector<std::string> addresses) override { connector_.set_peers(addresses); }

    bool connect(Clock::time_point deadline) override {
        connector_.connect(
            std::min(deadline, Clock::now() + connect_timeout_), collectives_.wake, state_.aborted,
            [this](Descriptor socket, int peer, int channel) { add_connection(std::move(socket), peer, channel); });
        std::lock_guard lock(mutex_);
        for (auto& peer : connections_)
            for (Connection& connection : peer)
                for (Stream& stream : connection.streams) stream.keepalive_fd = peer[keepalive_channel].socket.get();
        for (int peer = 0; peer < size; peer++)
            if (peer != rank)
                is_far_[peer] = !connector_.is_on_this_machine(peer) &&
                                !is_near(connections_[peer][collectives_channel].socket.get());
        return false;
    }

    bool is_behind_switch(int peer) const override { return !connector_.is_on_this_machine(peer); }
    bool is_far(int peer) const override { return is_far_[peer]; }

    std::unique_ptr<Transfer> send(int peer, uint32_t slot, const void* data, size_t bytes) override {
        return std::make_unique<TcpTransfer>(state_, stream(peer, slot, true), const_cast<void*>(data), bytes,
                                             !is_payload(slot));
    }
    std::unique_ptr<Transfer> recv(int peer, uint32_t slot, void* data, size_t room) override {
        return std::make_unique<TcpTransfer>(state_, stream(peer, slot, false), data, room, !is_payload(slot));
    }

    void abort() noexcept override {
        state_.aborted = true;
        std::lock_guard lock(mutex_);
        collectives_.wake.notify();
        for (const StreamGroup& group : point_to_point_) group.wake.notify();
    }

    void disconnect() noexcept override {
        std::lock_guard lock(mutex_);
        for (auto& peer : connections_)
            for (Connection& connection : peer)
                if (connection.socket) shutdown(connection.socket.get(), SHUT_RDWR);
    }

    void release() noexcept override {
        std::lock_guard lock(mutex_);
        for (auto& peer : connections_)
            for (Connection& connection : peer) connection.socket = Descriptor();
        connector_.stop_listening();
        collectives_.wake.close();
        for (StreamGroup& group : point_to_point_) group.wake.close();
    }

private:
    struct Connection {
        Descriptor socket;
        std::array<Stream, 2> streams;  // [sends]; unused on the keepalive channel
    };

    Stream& stream(int peer, uint32_t slot, bool sends) {
        return connections_[peer][is_point_to_point(slot) ? point_to_point_channel : collectives_channel]
            .streams[sends];
    }

    void add_connection(Descriptor socket, int peer, int channel) {
        const int on = 1;
        setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        survive_outage(socket.get(), outage_);
        std::lock_guard lock(mutex_);
        Connection& connection = connections_[peer][channel];
        connection.socket = std::move(socket);
        if (channel == keepalive_channel) return;
        for (Stream& each : connection.streams) {
            std::lock_guard group(each.group->mutex);
            each.fd = connection.socket.get();
        }
    }

    const Clock::duration outage_, connect_timeout_;
    Connector connector_;
    EngineState state_;
    std::vector<std::array<Connection, channels>> connections_;
    std::vector<char> is_far_;  // [peer], when all are connected
    StreamGroup collectives_;
    std::deque<StreamGroup> point_to_point_;  // one for each peer and direction
    std::mutex mutex_;                        // guards the sockets and the wake events against their end
};

}  // namespace
}  // namespace tcp

std::unique_ptr<RendezvousEngine> make_tcp(int rank, int size, const std::string& address,
                                           Clock::duration connect_timeout, Clock::duration outage) {
    return std::make_unique<tcp::Tcp>(rank, size, address, connect_timeout, outage);
}

}  // namespace terse::collectives
