#include "waymark/itm/text.h"

#include <fmt/format.h>

#include <array>
#include <type_traits>
#include <variant>

namespace waymark::itm {

Result<Packet> from_text(std::string_view text) { return wire::packet_from_text<Packets, Packet>(text, "packet"); }

bool is_reserved(const HardwareSource& p) {
    const unsigned bytes = payload_bytes(p.size);
    switch (p.discriminator) {
        case 0: return bytes != 1 || (p.data & 0xc0U) != 0 || p.data == 0;
        case 1: return bytes != 2 || (p.data & 0xce00U) != 0 || (p.data >> 12 & 3U) == 0;
        case 2: return bytes == 2 || (bytes == 1 && p.data != 0 && p.data != 0xff);
        case 3: return bytes != 1;
        default: break;
    }
    if (p.discriminator < 8 || p.discriminator > 23) return true;
    if (p.discriminator >= 16) return false;
    const bool address = (p.discriminator & 1U) != 0;
    if (address) return bytes == 1;
    return bytes == 2 || (bytes == 1 && p.data != 1);
}

namespace {

std::string meaning(const HardwareSource& p) {
    if (is_reserved(p)) return "reserved";
    const unsigned bytes = payload_bytes(p.size), comparator = p.discriminator >> 1 & 3U;
    switch (p.discriminator) {
        case 0: {
            constexpr std::array names{"CPI", "EXC", "SLEEP", "LSU", "FOLD", "CYC"};
            std::string out;
            for (unsigned bit = 0; bit < names.size(); ++bit)
                if ((p.data >> bit & 1U) != 0) out += (out.empty() ? "wrapped: " : ", ") + std::string(names[bit]);
            return out;
        }
        case 1: {
            constexpr std::array what{"", "entered", "left", "returned to"};
            const unsigned number = p.data & 0x1ffU;
            const std::string_view does = what[p.data >> 12 & 3U];
            if (number == 0) return fmt::format("thread {}", does);
            if (number >= 16) return fmt::format("exception {} (IRQ {}) {}", number, number - 16, does);
            return fmt::format("exception {} {}", number, does);
        }
        case 2:
            if (bytes == 1) return p.data == 0 ? "sleeping" : "sampling is not permitted";
            return fmt::format("PC {:#010x}", p.data);
        case 3: return fmt::format("PMU counters overflowed: {:#04x}", p.data);
        default: break;
    }
    if (p.discriminator >= 16)
        return fmt::format("comparator {}: {} {:#0{}x}", comparator, (p.discriminator & 1U) != 0 ? "wrote" : "read",
                           p.data, 2 + 2 * bytes);
    if ((p.discriminator & 1U) != 0) return fmt::format("comparator {}: address …{:04x}", comparator, p.data);
    if (bytes == 1) return fmt::format("comparator {}: match", comparator);
    return fmt::format("comparator {}: PC {:#010x}", comparator, p.data);
}

std::string local_time(const SourceState& state, std::string_view relation) {
    return fmt::format("at {}{} cycles{}", state.exact() ? "" : "least ", state.local(), relation);
}

}  // namespace

std::string Explainer::operator()(const Packet& packet) {
    return std::visit(
        [&]<class P>(const P& p) -> std::string {
            state_.see(p);
            if constexpr (std::is_same_v<P, Stimulus>) {
                const auto port = state_.port(p);
                return port ? fmt::format("port {}", *port) : fmt::format("port {} of an unknown page", p.port);
            } else if constexpr (std::is_same_v<P, HardwareSource>) {
                return meaning(p);
            } else if constexpr (std::is_same_v<P, ShortTimestamp>) {
                return local_time(state_, "");
            } else if constexpr (std::is_same_v<P, LocalTimestamp>) {
                constexpr std::array relations{"", ", sent late", ", packets sent late", ", both sent late"};
                return local_time(state_, relations[static_cast<unsigned>(p.relation) & 3U]);
            } else if constexpr (std::is_same_v<P, GlobalTimestamp1> || std::is_same_v<P, GlobalTimestamp2>) {
                const auto time = state_.global();
                return time ? fmt::format("global time {}", *time) : "global time not known yet";
            } else if constexpr (std::is_same_v<P, Extension>) {
                return p.more || p.hardware ? "reserved" : fmt::format("page {}", p.low);
            } else if constexpr (std::is_same_v<P, Overflow>) {
                return "packets were lost before it";
            } else {
                return {};
            }
        },
        packet);
}

}  // namespace waymark::itm
