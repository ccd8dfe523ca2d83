// Why an operation failed.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

namespace terse::collectives {

enum class Reason {
    transport,  // the connection to `rank` broke; this does not say which side is to blame
    mismatch,   // `rank` called something else than this rank
    timeout,    // `rank` took no part before the deadline
    aborted,    // abort was called, here or on another rank
    argument,   // these arguments are not possible; the communicator stays usable
    lost,       // `rank` is certainly gone
    device,     // this rank's device or its library failed; no other rank is to blame
    cancelled,  // taken back before it started; the communicator stays usable
};

struct Failure : std::runtime_error {
    Failure(Reason reason, int rank, const std::string& sentence)
        : std::runtime_error(sentence), reason(reason), rank(rank) {}
    Reason reason;
    int rank;  // the other rank, or −1
};

// What helps where ranks of two machines cannot connect.
constexpr char how_to_connect[] =
    "; the machines must accept each other's connections at any port: let their firewalls pass them, or choose another "
    "network with TERSE_ADDRESS";

inline Failure timed_out(int peer) {
    return {
        Reason::timeout, peer,
        "rank " + std::to_string(peer) + " did not take part in time; check what it is doing, or raise timeoutSeconds"};
}

}  // namespace terse::collectives
