// Our own transport: plain TCP, driven by the threads that wait.
#pragma once
#include <memory>
#include <string>

#include "../engine.h"

namespace terse::collectives {

// Listens on `address` (numeric) until everybody is connected. A connection on which nothing is acknowledged for `silence` counts as broken. Throws
// std::runtime_error where it cannot listen.
std::unique_ptr<MeetingEngine> make_tcp(int rank, int size, const std::string& address, Clock::duration connect_timeout, Clock::duration silence);

}  // namespace terse::collectives
