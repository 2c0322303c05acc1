/// QEMU's own log in the plugin's view: facts about an exception that the plugin API does not show, which are its
/// occurrence, its type and its return address. For a whole system the log is `-d int,exec,cpu`, limited to vector
/// tables; for a Linux program it is the trace events of delivered signals. Header only, for the plugin.
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
    /// QEMU's number of the exception that led there; nullopt if none did.
    std::optional<std::uint32_t> exception{};
    std::uint32_t pc{}, lr{};  ///< lr: of the mode in which the exception is handled
    std::uint32_t psr{};
    bool ns{}, hyp{}, thumb{};
    friend bool operator==(const LoggedEntry&, const LoggedEntry&) = default;
};

/// Converts text, which arrives in pieces, to whole lines.
class LogLines {
public:
    template <class F>
    void feed(std::string_view text, F&& line) {
        rest_.append(text);
        std::size_t at = 0;
        for (std::size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', at)) {
            line(std::string_view(rest_).substr(at, end - at));
            at = end + 1;
        }
        rest_.erase(0, at);
        if (rest_.size() > longest_line) rest_.clear();
    }

    /// The number that follows `key` in a line.
    template <class Number>
    static bool number(std::string_view text, std::string_view key, int base, Number& value) {
        const std::size_t at = text.find(key);
        if (at == text.npos) return false;
        const char* const begin = text.data() + at + key.size();
        return std::from_chars(begin, text.data() + text.size(), value, base).ec == std::errc{};
    }

private:
    static constexpr std::size_t longest_line = 4096;
    std::string rest_;
};

/// Converts text, which arrives in pieces, to entries in the order of the log. A line counts when its end has arrived.
class QemuLog {
public:
    template <class F>
    void feed(std::string_view text, F&& entry) {
        lines_.feed(text, [&](std::string_view whole) {
            if (line(whole)) entry(open_);
        });
    }

private:
    static constexpr unsigned max_cpus = 256;
    static constexpr std::uint32_t monitor_mode = 0x16, hyp_mode = 0x1a;

    static bool number(std::string_view text, std::string_view key, int base, std::uint32_t& value) {
        return LogLines::number(text, key, base, value);
    }

    /// Returns true if the line completes `open_`.
    bool line(std::string_view text) {
        std::uint32_t value = 0;
        if (text.starts_with("Taking exception ")) {
            if (!number(text, "on CPU ", 10, last_) || last_ >= max_cpus) last_ = 0;
            taken_[last_].reset();
            if (number(text, "exception ", 10, value)) taken_[last_] = value;
        } else if (text.starts_with("...hand")) {
            taken_[last_].reset();  // QEMU itself handled it (semihosting, PSCI)
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
            // Without EL3 neither state is logged, and everything counts as Non-secure; Monitor mode is Secure.
            open_.ns = text.find(" S ") == text.npos && mode != monitor_mode;
            open_.hyp = mode == hyp_mode;
            open_.thumb = (open_.psr & 0x20) != 0;
            open_.exception = std::exchange(taken_[open_.cpu], std::nullopt);
            return true;
        }
        return false;
    }

    LogLines lines_;
    std::array<std::optional<std::uint32_t>, max_cpus> taken_{};
    std::uint32_t last_ = 0;
    LoggedEntry open_;
    bool complete_ = false;
};

/// A signal for which a thread of a Linux program goes to its handler.
struct LoggedSignal {
    std::uint32_t number{};
    bool raised{};          ///< by an instruction of the thread, not by another sender
    std::uint64_t frame{};  ///< address of the interrupted state on the program's stack
    bool with_info{};       ///< the frame begins with a siginfo_t (SA_SIGINFO)
    friend bool operator==(const LoggedSignal&, const LoggedSignal&) = default;
};

/// Converts the trace events of one thread to the delivered signals, in order.
class SignalLog {
public:
    /// The events, as the argument of QEMU's -d.
    static constexpr const char* events =
        "trace:user_queue_signal,trace:user_handle_signal,trace:user_setup_frame,trace:user_setup_rt_frame";

    template <class F>
    void feed(std::string_view text, F&& signal) {
        lines_.feed(text, [&](std::string_view line) {
            std::uint32_t value = 0;
            if (line.find("user_queue_signal ") != line.npos) {
                // Only the signal of an instruction is queued; signals of other senders come from the host.
                if (LogLines::number(line, " signal ", 10, value)) queued_ = value;
            } else if (line.find("user_handle_signal ") != line.npos) {
                open_ = {};
                if (!LogLines::number(line, " signal ", 10, open_.number)) open_.number = 0;
                open_.raised = queued_ != 0 && queued_ == open_.number;
                if (open_.raised) queued_ = 0;
            } else if (line.find("user_setup_") != line.npos) {
                open_.with_info = line.find("user_setup_rt_frame ") != line.npos;
                if (open_.number != 0 && LogLines::number(line, "frame_addr=0x", 16, open_.frame)) signal(open_);
                open_ = {};
            }
        });
    }

private:
    LogLines lines_;
    LoggedSignal open_;
    std::uint32_t queued_ = 0;
};

/// Offset of the interrupted pc in a 32-bit Arm program's signal frame; the CPSR follows it.
struct SignalFrame {
    static constexpr std::uint32_t info_bytes = 128;  ///< siginfo_t
    static constexpr std::uint32_t pc = 92;           ///< in a ucontext: flags, link, stack, 3 words, r0 to r14
    static constexpr std::uint32_t thumb = 0x20;      ///< in the CPSR
};

/// The same for an AArch64 program, from the beginning of the frame: a siginfo_t, and a ucontext with flags, link,
/// stack, a mask of 128 bytes, the fault address, x0 to x30 and sp, aligned to 16 bytes.
inline constexpr std::uint64_t a64_frame_pc = 128 + 440;

}  // namespace waymark::record
