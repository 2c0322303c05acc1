/// The execution of a Cortex-M core, from QEMU's log of single steps (-singlestep -d exec,nochain,int,cpu,in_asm): each
/// instruction with the registers before it, exceptions with their numbers and preferred return addresses, and returns.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/isa/decode_instr.h"

namespace waymark::record {

struct CoreRegisters {
    std::array<std::uint32_t, 16> r{};
    std::uint32_t xpsr{};
    bool has_states{}, ns{};  ///< whether the core has security states; Non-secure
};

/// The condition that an IT block sets for the instruction; nullopt if there is none (Thumb: bits 15 to 10 and 26 to 25
/// of the XPSR).
[[nodiscard]] std::optional<std::uint32_t> it_condition(std::uint32_t xpsr);
/// Whether a condition (0 to 14) is true with the flags of the XPSR.
[[nodiscard]] bool holds(std::uint32_t condition, std::uint32_t xpsr);

/// The number of the exception whose handler executes, by the XPSR; 0: the thread executes.
[[nodiscard]] std::uint32_t active_exception(std::uint32_t xpsr);

/// Mode and security state.
struct CoreMode {
    bool handler{}, ns{};
};
[[nodiscard]] inline CoreMode state_of(const CoreRegisters& registers) {
    return {active_exception(registers.xpsr) != 0, registers.ns};
}

struct CoreInstruction {
    std::uint32_t address{};
    std::uint32_t opcode{};  ///< as isa::decode_instr has it
    std::uint8_t bytes{};
    isa::Instruction decoded{};
    CoreRegisters before{};
    bool function_return = false;  ///< it branched to FNC_RETURN, which returns from Non-secure to Secure code
};

/// The address at which execution continues after a completed instruction, as far as the instruction and the registers
/// before it determine it; nullopt: the address comes from memory.
[[nodiscard]] std::optional<std::uint32_t> next_of(const CoreInstruction& instruction);

/// Whether the condition of a completed instruction held; true if it has none. Low-overhead loops (ARMv8.1-M) are taken
/// to go on.
[[nodiscard]] bool passes(const CoreInstruction& instruction);

class CoreListener {
public:
    virtual ~CoreListener() = default;
    /// The state after the next of these calls: instruction(), exception() or returned(). It stays until it is called
    /// again.
    virtual void state(const CoreMode& state) = 0;
    /// The instruction completed; `next` may be an EXC_RETURN value.
    virtual void instruction(const CoreInstruction& instruction, std::uint32_t next) = 0;
    /// The instruction completed, and an interrupt came at its target, which the log does not show.
    virtual void lost(const CoreInstruction& instruction) = 0;
    /// `preferred_return`: an EXC_RETURN value if the exception is chained to the one that ended; nullopt: not known.
    /// `vector`: address of the word with the handler's address.
    virtual void exception(std::uint32_t number, std::optional<std::uint32_t> preferred_return, std::uint32_t handler,
                           std::uint32_t vector) = 0;
    /// An exception ended, and the interrupted code continues. `resumed`: the number of the exception whose handler
    /// continues; 0: the thread.
    virtual void returned(std::uint32_t exc_return, std::uint32_t to, std::uint32_t resumed) = 0;
    /// The handler of an exception ends; a return or an exception that is chained to it comes next.
    virtual void handler_ended(std::uint32_t number) = 0;
    /// This code is about to execute for the first time, or for the first time since it changed.
    virtual void code(std::uint32_t address, Bytes bytes) = 0;
};

/// Converts text, which arrives in pieces, to calls of the listener.
class CoreLog {
public:
    /// `listener` is borrowed.
    explicit CoreLog(CoreListener& listener) : listener_(listener) {}
    void feed(std::string_view text);
    /// The reason why the rest of the log cannot be read; empty: it can be read.
    [[nodiscard]] const std::string& problem() const { return problem_; }

private:
    struct Opcode {
        std::uint32_t opcode{};
        std::uint8_t bytes{};
    };
    void line(std::string_view text);
    void code_line(std::string_view text);
    void registers_line(std::string_view text);
    void gate(std::uint32_t address);
    void begun();
    void complete(std::uint32_t next);
    void take_exception();

    CoreListener& listener_;
    std::string rest_;
    std::string problem_;
    std::unordered_map<std::uint32_t, Opcode> codes_;
    std::uint32_t pc_ = 0;
    CoreRegisters registers_;
    std::optional<CoreInstruction> waiting_;  ///< the instruction that began, and may not complete
    std::optional<std::uint32_t> place_;      ///< the place of execution while no instruction waits
    std::optional<std::uint32_t> returning_;  ///< the EXC_RETURN value of a return that is not complete
    std::uint32_t taking_ = 0, number_ = 0;
    std::uint32_t vector_ = 0, handler_ = 0;
    bool taken_ns_ = false;
};

}  // namespace waymark::record
