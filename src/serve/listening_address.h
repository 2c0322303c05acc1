/// Addresses of IP at which a server listens, and which requests name.
#pragma once

#include <arpa/inet.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace waymark::serve {

/// An address as numbers, which are the same for every notation. Empty: the text is not an address. IPv4: 4 bytes;
/// IPv6: 16.
inline std::vector<std::uint8_t> address_of(const std::string& text) {
    std::array<std::uint8_t, sizeof(in6_addr)> out{};
    if (inet_pton(AF_INET, text.c_str(), out.data()) == 1) return {out.begin(), out.begin() + sizeof(in_addr)};
    if (inet_pton(AF_INET6, text.c_str(), out.data()) == 1) return {out.begin(), out.end()};
    return {};
}
inline bool is_loopback(const std::vector<std::uint8_t>& address) {
    if (address.size() == sizeof(in_addr)) return address.front() == 127;
    return address == address_of("::1");
}

}  // namespace waymark::serve
