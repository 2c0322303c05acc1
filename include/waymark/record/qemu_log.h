/// QEMU's own log (`-d int,exec,cpu`, limited to vector tables) as the plugin reads it: what the plugin API does not
/// show of an exception, which is that there was one, what it was and where it returns to. Header only, for the plugin.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace waymark::record {

/// A place that QEMU reached without following a chain of blocks, with the registers it logs there.
struct LoggedEntry {
    std::uint32_t cpu{};
    /// QEMU's number of the exception that led there; nothing: none did.
    std::optional<std::uint32_t> exception{};
    std::uint32_t pc{}, lr{};  ///< lr: of the mode the exception led to
    std::uint32_t psr{};
    bool ns{}, hyp{}, thumb{};
    friend bool operator==(const LoggedEntry&, const LoggedEntry&) = default;
};

/// Text in pieces as they come → entries, in the order of the log. A line is used when its end is there.
class QemuLog {
public:
    template <class F>
    void feed(std::string_view text, F&& entry) {
        rest_.append(text);
        std::size_t at = 0;
        for (std::size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', at)) {
            if (line(std::string_view(rest_).substr(at, end - at))) entry(open_);
            at = end + 1;
        }
        rest_.erase(0, at);
        if (rest_.size() > longest_line) rest_.clear();
    }

private:
    static constexpr std::size_t longest_line = 4096;
    static constexpr unsigned max_cpus = 256;
    static constexpr std::uint32_t monitor_mode = 0x16, hyp_mode = 0x1a;

    static bool number(std::string_view text, std::string_view key, int base, std::uint32_t& value) {
        const std::size_t at = text.find(key);
        if (at == text.npos) return false;
        const char* const begin = text.data() + at + key.size();
        return std::from_chars(begin, text.data() + text.size(), value, base).ec == std::errc{};
    }

    /// True where the line completes `open_`.
    bool line(std::string_view text) {
        std::uint32_t value = 0;
        if (text.starts_with("Taking exception ")) {
            if (!number(text, "on CPU ", 10, last_) || last_ >= max_cpus) last_ = 0;
            taken_[last_].reset();
            if (number(text, "exception ", 10, value)) taken_[last_] = value;
        } else if (text.starts_with("...hand")) {
            taken_[last_].reset();  // QEMU stood in for whoever would have handled it (semihosting, PSCI)
        } else if (text.starts_with("Trace ")) {
            open_ = {};
            complete_ = number(text, "Trace ", 10, open_.cpu) && open_.cpu < max_cpus;
            const std::size_t pc = text.find('/');
            complete_ = complete_ && pc != text.npos && number(text.substr(pc), "/", 16, open_.pc);
        } else if (text.starts_with("R12=")) {
            complete_ = complete_ && number(text, "R14=", 16, open_.lr);
        } else if (text.starts_with("PSR=")) {
            if (!complete_ || !number(text, "PSR=", 16, open_.psr)) return false;
            complete_ = false;
            const std::uint32_t mode = open_.psr & 0x1f;
            // Without EL3 neither is told, and everything is as if Non-secure; Monitor mode is Secure.
            open_.ns = text.find(" S ") == text.npos && mode != monitor_mode;
            open_.hyp = mode == hyp_mode;
            open_.thumb = (open_.psr & 0x20) != 0;
            open_.exception = std::exchange(taken_[open_.cpu], std::nullopt);
            return true;
        }
        return false;
    }

    std::string rest_;
    std::array<std::optional<std::uint32_t>, max_cpus> taken_{};
    std::uint32_t last_ = 0;
    LoggedEntry open_;
    bool complete_ = false;
};

}  // namespace waymark::record
