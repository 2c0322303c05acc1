#include "waymark/record_m/core_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace waymark::record {

namespace {

/// QEMU's own numbers for the causes of exceptions (target/arm/cpu.h).
enum QemuCause : std::uint32_t {
    supervisor_call = 2,
    prefetch_abort = 3,
    interrupt_request = 5,
    fast_interrupt = 6,
    exception_exit = 8,
    semihosting_call = 16
};
/// Whether the instruction that was begun last did not complete.
bool stops(std::uint32_t cause) {
    return cause != supervisor_call && cause != prefetch_abort && cause != interrupt_request &&
           cause != fast_interrupt && cause != exception_exit && cause != semihosting_call;
}

/// Reads the number after `key` in a line.
bool number(std::string_view text, std::string_view key, int base, std::uint32_t& value) {
    const std::size_t at = text.find(key);
    if (at == text.npos) return false;
    const char* const begin = text.data() + at + key.size();
    return std::from_chars(begin, text.data() + text.size(), value, base).ec == std::errc{};
}

std::optional<std::uint32_t> hex(std::string_view text) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace

std::optional<std::uint32_t> it_condition(std::uint32_t xpsr) {
    const std::uint32_t state = (xpsr >> 25 & 3U) | (xpsr >> 8 & 0xfcU);
    if ((state & 0xfU) == 0) return std::nullopt;
    return state >> 4;
}

bool holds(std::uint32_t condition, std::uint32_t xpsr) {
    const bool n = (xpsr >> 31 & 1U) != 0, z = (xpsr >> 30 & 1U) != 0, c = (xpsr >> 29 & 1U) != 0,
               v = (xpsr >> 28 & 1U) != 0;
    bool result = true;
    switch (condition >> 1) {
        case 0: result = z; break;
        case 1: result = c; break;
        case 2: result = n; break;
        case 3: result = v; break;
        case 4: result = c && !z; break;
        case 5: result = n == v; break;
        case 6: result = !z && n == v; break;
        default: return true;
    }
    return (condition & 1U) != 0 ? !result : result;
}

std::uint32_t active_exception(std::uint32_t xpsr) { return xpsr & 0x1ffU; }

namespace {

/// The outcome of a conditional direct branch without an IT block; nothing: the condition is not known.
std::optional<bool> branch_passes(const CoreInstruction& i) {
    const std::uint32_t op = i.opcode;
    if (i.bytes == 2 && (op & 0xf000U) == 0xd000U)  // B<c>
        return holds(op >> 8 & 0xfU, i.before.xpsr);
    if (i.bytes == 2 && (op & 0xf500U) == 0xb100U)  // CBZ, CBNZ
        return (i.before.r[op & 7U] != 0) == ((op & 0x800U) != 0);
    if (i.bytes == 4 && (op & 0xf800d000U) == 0xf0008000U)  // B<c>.W
        return holds(op >> 22 & 0xfU, i.before.xpsr);
    if (i.decoded.conditional) return std::nullopt;
    return true;
}

}  // namespace

bool passes(const CoreInstruction& i) {
    if (const auto condition = it_condition(i.before.xpsr)) return holds(*condition, i.before.xpsr);
    return i.decoded.waypoint != isa::Waypoint::direct || branch_passes(i).value_or(true);
}

std::optional<std::uint32_t> next_of(const CoreInstruction& i) {
    const std::uint32_t after = i.address + i.bytes;
    if (i.decoded.waypoint == isa::Waypoint::none || i.decoded.waypoint == isa::Waypoint::barrier) return after;
    if (const auto condition = it_condition(i.before.xpsr); condition && !holds(*condition, i.before.xpsr))
        return after;
    if (i.decoded.waypoint == isa::Waypoint::direct) {
        const auto passed = branch_passes(i);
        if (!passed) return std::nullopt;
        return *passed ? static_cast<std::uint32_t>(i.decoded.target.value) : after;
    }
    // BX, BLX, or MOV to the PC, with a register operand.
    const std::uint32_t op = i.opcode;
    if (i.bytes == 2 && ((op & 0xff00U) == 0x4700U || (op & 0xff87U) == 0x4687U))
        return i.before.r[op >> 3 & 0xfU] & ~1U;
    return std::nullopt;
}

void CoreLog::feed(std::string_view text) {
    rest_.append(text);
    std::size_t at = 0;
    for (std::size_t end = rest_.find('\n'); end != std::string::npos && problem_.empty(); end = rest_.find('\n', at)) {
        line(std::string_view(rest_).substr(at, end - at));
        at = end + 1;
    }
    rest_.erase(0, at);
    constexpr std::size_t longest_line = 1 << 16;
    if (rest_.size() > longest_line) rest_.clear();
}

/// A line with code that QEMU translates: `0x00000146: f7ff ffc7 bl #0xd8`.
void CoreLog::code_line(std::string_view text) {
    constexpr std::size_t digits = 8, begin = 2;
    const auto address = text.size() > begin + digits ? hex(text.substr(begin, digits)) : std::nullopt;
    if (!address || text[begin + digits] != ':') return;
    const std::size_t first = text.find_first_not_of(' ', begin + digits + 1);
    if (first == text.npos) return;
    const auto one = hex(text.substr(first, 4));
    if (!one || (first + 4 < text.size() && text[first + 4] != ' ')) return;
    Opcode code{*one, 2};
    if (isa::is_thumb_32(*one)) {
        const auto two = text.size() >= first + 9 ? hex(text.substr(first + 5, 4)) : std::nullopt;
        if (!two) return;
        code = {*one << 16 | *two, 4};
    }
    codes_[*address] = code;
    const std::uint32_t high = code.bytes == 4 ? code.opcode >> 16 : code.opcode;
    const std::array<std::uint8_t, 4> bytes{static_cast<std::uint8_t>(high), static_cast<std::uint8_t>(high >> 8),
                                            static_cast<std::uint8_t>(code.opcode),
                                            static_cast<std::uint8_t>(code.opcode >> 8)};
    listener_.code(*address, Bytes(bytes).first(code.bytes));
}

void CoreLog::registers_line(std::string_view text) {
    while (text.size() >= 12 && text[0] == 'R' && text[3] == '=') {
        std::uint32_t index = 0;
        const auto value = hex(text.substr(4, 8));
        if (!value || std::from_chars(text.data() + 1, text.data() + 3, index).ec != std::errc{} || index > 15) return;
        registers_.r[index] = *value;
        text.remove_prefix(std::min<std::size_t>(13, text.size()));
    }
}

void CoreLog::complete(std::uint32_t next) {
    if (!waiting_) return;
    const CoreInstruction done = *std::exchange(waiting_, std::nullopt);
    listener_.instruction(done, next);
}

/// The registers at the beginning of an instruction are complete.
void CoreLog::begun() {
    listener_.state(state_of(registers_));
    complete(pc_);
    if (returning_)
        listener_.returned(*std::exchange(returning_, std::nullopt), pc_, active_exception(registers_.xpsr));
    place_ = pc_;
    const auto code = codes_.find(pc_);
    if (code == codes_.end()) {
        problem_ = fmt::format("QEMU's log shows no code at {:#x}, which it executes", pc_);
        return;
    }
    waiting_ = CoreInstruction{
        pc_, code->second.opcode, code->second.bytes,
        isa::decode_instr({pc_}, isa::Isa::t32, code->second.opcode, code->second.bytes == 4, {}), registers_};
}

/// QEMU executes the SG at a gate from Non-secure to Secure code as the answer to a fault, and logs no instruction.
void CoreLog::gate(std::uint32_t address) {
    constexpr std::uint32_t sg = 0xe97fe97f;
    constexpr std::array<std::uint8_t, 4> bytes{0x7f, 0xe9, 0x7f, 0xe9};
    if (codes_.try_emplace(address, Opcode{sg, bytes.size()}).second) listener_.code(address, bytes);
    pc_ = address;
    begun();
}

void CoreLog::take_exception() {
    std::optional<std::uint32_t> back;
    if (returning_) {
        back = std::exchange(returning_, std::nullopt);
        // The return continued elsewhere, and an interrupt came before the first instruction there.
        if (taking_ != exception_exit) back.reset();
    } else if (waiting_ && stops(taking_)) {
        back = waiting_->address;
        waiting_.reset();
    } else if (waiting_) {
        back = next_of(*waiting_);
        if (back)
            complete(*back);
        else
            listener_.lost(*std::exchange(waiting_, std::nullopt));
    } else {
        back = place_;
    }
    listener_.state({true, taken_ns_});
    listener_.exception(number_, back, handler_, vector_);
    place_ = handler_;
}

void CoreLog::line(std::string_view text) {
    std::uint32_t value = 0;
    if (text.empty()) return;
    if (text[0] == 'R') {
        registers_line(text);
    } else if (text.starts_with("Trace ")) {
        const std::size_t slash = text.find('/');
        if (slash != text.npos && number(text.substr(slash), "/", 16, value)) pc_ = value;
    } else if (text.starts_with("XPSR=")) {
        if (const auto xpsr = hex(text.substr(5, 8))) registers_.xpsr = *xpsr;
        registers_.ns = text.find(" NS ") != text.npos;
        registers_.has_states = registers_.ns || text.find(" S ") != text.npos;
        begun();
    } else if (text.starts_with("0x")) {
        code_line(text);
    } else if (text.starts_with("cpu_io_recompile") || text.starts_with("Stopped execution of TB chain before")) {
        // The instruction was logged but did not begin, so it will be logged again.
        waiting_.reset();
    } else if (text.starts_with("Taking exception ")) {
        if (number(text, "exception ", 10, value)) taking_ = value;
    } else if (text.starts_with("...taking pending ") || text.starts_with("...taking existing ")) {
        if (number(text, "exception ", 10, value)) number_ = value;
        // A core without the Security Extension only has exceptions that QEMU calls nonsecure, and its registers show
        // no state.
        taken_ns_ = registers_.has_states && text.find(" nonsecure ") != text.npos;
    } else if (text.starts_with("...loading from element ")) {
        if (number(text, "vector table at 0x", 16, value)) vector_ = value;
    } else if (text.starts_with("...loaded new PC 0x")) {
        if (!number(text, "PC 0x", 16, value)) return;
        handler_ = value & ~1U;
        take_exception();
    } else if (text.starts_with("...really an SG instruction at 0x")) {
        if (number(text, "at 0x", 16, value)) gate(value);
    } else if (text.starts_with("...really v7M secure function return")) {
        if (waiting_) waiting_->function_return = true;
    } else if (text.starts_with("Exception return: magic PC ")) {
        if (!number(text, "magic PC ", 16, value)) return;
        std::uint32_t ended = 0;
        number(text, "previous exception ", 10, ended);
        returning_ = value & ~1U;
        complete(*returning_);
        place_.reset();
        listener_.handler_ended(ended);
    }
}

}  // namespace waymark::record
