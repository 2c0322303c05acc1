/// Events of an AArch64 system in QEMU's log (`-d int,exec,cpu`): exceptions, exception returns, and registers where
/// `-dfilter` requests them. Header only, for the plugin.
///
/// The lines of one exception are adjacent only if one processor runs at a time (`-accel tcg,thread=single`).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "waymark/record/qemu_log.h"

namespace waymark::record {

struct A64Event {
    enum class Kind : std::uint8_t {
        exception,         ///< an exception was taken: `number`, `exception_class`, `elr`, `pc`, `el`
        exception_return,  ///< ERET: `pc`, `el`, `aarch32`; QEMU does not say which processor's
        registers,         ///< before the block at `pc`: `x`, `el`, `ns` if known
    } kind{};
    std::uint32_t cpu{};              ///< absent on exception return
    std::uint32_t number{};           ///< QEMU's number of the exception
    std::uint32_t exception_class{};  ///< ESR_ELx.EC
    std::uint64_t elr{};
    std::uint64_t pc{};  ///< address of the next instruction
    std::uint32_t el{};  ///< at `pc`
    bool aarch32{};      ///< the state at `pc` is AArch32
    std::optional<bool> ns{};
    std::array<std::uint64_t, 32> x{};  ///< [31]: 0
    friend bool operator==(const A64Event&, const A64Event&) = default;
};

/// Converts text, which arrives in pieces, to events in the order of the log. A line counts when its end has arrived.
class A64Log {
public:
    template <class F>
    void feed(std::string_view text, F&& event) {
        lines_.feed(text, [&](std::string_view whole) {
            if (line(whole)) event(open_);
        });
    }

private:
    template <class Number>
    static bool number(std::string_view text, std::string_view key, int base, Number& value) {
        return LogLines::number(text, key, base, value);
    }
    void open(A64Event::Kind kind, bool complete) {
        open_ = {};
        open_.kind = kind;
        complete_ = complete;
    }
    [[nodiscard]] bool is_open(A64Event::Kind kind) const { return complete_ && open_.kind == kind; }

    /// Returns true if the line completes `open_`.
    bool line(std::string_view text) {
        using Kind = A64Event::Kind;
        if (text.starts_with("...")) return is_open(Kind::exception) && exception_line(text);
        if (text.starts_with("Taking exception ")) {
            open(Kind::exception, true);
            complete_ = number(text, "exception ", 10, open_.number) && number(text, "on CPU ", 10, open_.cpu);
        } else if (text.starts_with("Exception return from AArch64 ")) {
            open(Kind::exception_return, false);
            open_.aarch32 = text.find("to AArch32 ") != text.npos;
            return number(text, open_.aarch32 ? "to AArch32 EL" : "to AArch64 EL", 10, open_.el) && open_.el <= 3 &&
                   number(text, "PC 0x", 16, open_.pc);
        } else if (text.starts_with("Trace ")) {
            open(Kind::registers, true);
            complete_ = number(text, "Trace ", 10, open_.cpu);
        } else if (is_open(Kind::registers)) {
            return register_line(text);
        }
        return false;
    }
    bool exception_line(std::string_view text) {
        std::uint32_t value = 0;
        if (text.starts_with("...with ESR ") && number(text, "ESR 0x", 16, value)) {
            open_.exception_class = value;
        } else if (text.starts_with("...with ELR ")) {
            complete_ = number(text, "ELR 0x", 16, open_.elr);
        } else if (text.starts_with("...to EL")) {
            const bool whole =
                number(text, "...to EL", 10, open_.el) && open_.el <= 3 && number(text, " PC 0x", 16, open_.pc);
            complete_ = false;
            return whole;
        } else if (text.starts_with("...hand")) {
            complete_ = false;  // QEMU itself handled it (semihosting, PSCI)
        }
        return false;
    }
    bool register_line(std::string_view text) {
        std::uint64_t value = 0;
        if (number(text, " PC=", 16, value)) open_.pc = value;
        for (std::size_t at = text.find('X'); at != text.npos; at = text.find('X', at + 1)) {
            const std::string_view rest = text.substr(at);
            std::uint32_t n = 0;
            if (number(rest.substr(0, 4), "X", 10, n) && n < 31 && rest.size() > 4 && rest[3] == '=' &&
                number(rest.substr(0, 20), "=", 16, value))
                open_.x[n] = value;
        }
        if (!text.starts_with("PSTATE=")) return false;
        complete_ = false;
        const std::size_t el = text.find(" EL");
        if (el == text.npos || !number(text.substr(el, 4), "EL", 10, open_.el) || open_.el > 3) return false;
        // If there is no EL3, QEMU prints neither state, and everything is Non-secure; EL3 is Secure.
        open_.ns = text.find(" S ") == text.npos && open_.el != 3;
        return true;
    }

    LogLines lines_;
    A64Event open_;
    bool complete_ = false;
};

}  // namespace waymark::record
