#include "waymark/pft/text.h"

#include <array>

namespace waymark::pft {

Result<Packet> from_text(std::string_view text, const Config& config) {
    const std::string_view packet_name = text.substr(0, text.find(' '));
    std::string_view rest = text.substr(packet_name.size());
    Packet out;
    bool found = false;
    std::string wrong;
    Packets::for_each([&]<class P>() {
        if (P::info.name != packet_name) return;
        found = true;
        P packet{};
        wire::Scanner scanner(rest);
        P::fields(scanner, packet, config);
        wrong = scanner.wrong();
        out = packet;
    });
    if (!found) return Error{Errc::bad_format, "no packet is called '" + std::string(packet_name) + "'"};
    if (!wrong.empty())
        return Error{Errc::bad_format,
                     std::string(packet_name) + ": cannot read '" + wrong + "' in '" + std::string(text) + "'"};
    return out;
}

std::string_view exception_name(std::uint32_t number) {
    constexpr std::array<std::string_view, 16> names{"none",
                                                     "Debug state entry",
                                                     "SMC",
                                                     "Hyp mode entry",
                                                     "asynchronous Data Abort",
                                                     "ThumbEE check failed",
                                                     "reserved",
                                                     "reserved",
                                                     "processor reset",
                                                     "Undefined Instruction",
                                                     "SVC",
                                                     "Prefetch Abort or breakpoint",
                                                     "synchronous Data Abort or watchpoint",
                                                     "generic",
                                                     "IRQ",
                                                     "FIQ"};
    return number < names.size() ? names[number] : "unknown";
}

std::string_view name(ISyncReason reason) {
    constexpr std::array<std::string_view, 4> names{"periodic", "trace enabled", "overflow restart", "debug exit"};
    return names[static_cast<std::size_t>(reason) & 3U];
}

}  // namespace waymark::pft
