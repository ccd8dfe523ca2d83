// Where a rank listens, with the secret by which one peer proves that the rendezvous told it so.
#pragma once
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace terse::collectives::tcp {

constexpr size_t secret_bytes = 16;

struct Address {
    sockaddr_storage place{};
    uint8_t secret[secret_bytes] = {};

    socklen_t length() const { return place.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }
    const sockaddr* name() const { return reinterpret_cast<const sockaddr*>(&place); }
    sockaddr* name() { return reinterpret_cast<sockaddr*>(&place); }
    in_port_t& port() {
        return place.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(place).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(place).sin_port;
    }

    // As the rendezvous carries it.
    std::string bytes() const { return {reinterpret_cast<const char*>(this), sizeof *this}; }
    static Address of(const std::string& bytes);
};

Address parse_address(const std::string& numeric);  // throws std::runtime_error
std::string text_of(Address address);               // 10.0.0.1:1234 or [fd00::1]:1234
bool same_machine(Address a, Address b);
bool same_secret(const uint8_t* a, const uint8_t* b);  // in constant time

// The sentence for an errno of this engine, which always asks the kernel for any free port.
std::string describe_errno(int error);

}  // namespace terse::collectives::tcp
