// An engine in front of another one. It hands on what a wrapper does not change.
#pragma once
#include <memory>
#include <utility>

#include "engines/engine.h"

namespace terse::collectives {

class Wrapper : public Engine {
public:
    explicit Wrapper(std::unique_ptr<Engine> engine) : Engine(engine->rank, engine->size), engine_(std::move(engine)) {}

    bool connect(Clock::time_point deadline) override { return engine_->connect(deadline); }
    void established() override { engine_->established(); }
    bool is_behind_switch(int peer) const override { return engine_->is_behind_switch(peer); }
    bool is_far(int peer) const override { return engine_->is_far(peer); }
    bool waits_for_room() const override { return engine_->waits_for_room(); }
    std::unique_ptr<Transfer> send(int peer, uint32_t slot, const void* data, size_t bytes) override {
        return engine_->send(peer, slot, data, bytes);
    }
    std::unique_ptr<Transfer> recv(int peer, uint32_t slot, void* data, size_t room) override {
        return engine_->recv(peer, slot, data, room);
    }
    void before(uint32_t collective) override { engine_->before(collective); }
    void abort() noexcept override { engine_->abort(); }
    void disconnect() noexcept override { engine_->disconnect(); }
    void release() noexcept override { engine_->release(); }

protected:
    const std::unique_ptr<Engine> engine_;
};

}  // namespace terse::collectives
