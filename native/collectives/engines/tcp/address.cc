#include "engines/tcp/address.h"

#include <netdb.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace terse::collectives::tcp {

Address Address::of(const std::string& bytes) {
    Address address;
    std::memcpy(static_cast<void*>(&address), bytes.data(), std::min(sizeof address, bytes.size()));
    return address;
}

Address parse_address(const std::string& numeric) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    if (const int error = getaddrinfo(numeric.c_str(), "0", &hints, &found))
        throw std::runtime_error(gai_strerror(error));
    Address address;
    std::memcpy(&address.place, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return address;
}

std::string text_of(Address address) {
    char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
    getnameinfo(address.name(), address.length(), host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    return (address.place.ss_family == AF_INET6 ? "[" + std::string(host) + "]" : host) + ":" + port;
}

bool same_machine(Address a, Address b) {
    a.port() = b.port() = 0;
    return a.length() == b.length() && std::memcmp(&a.place, &b.place, a.length()) == 0;
}

bool same_secret(const uint8_t* a, const uint8_t* b) {
    unsigned difference = 0;
    for (size_t i = 0; i < secret_bytes; i++) difference |= a[i] ^ b[i];
    return difference == 0;
}

std::string describe_errno(int error) {
    return error == EADDRINUSE ? "no port is free; see net.ipv4.ip_local_port_range" : std::strerror(error);
}

}  // namespace terse::collectives::tcp
