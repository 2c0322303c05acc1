/// The irregular fields of trace entries, each with `read`, `write`, `print`, `scan` and `random` (docs/spec/dpu.md,
/// section 7.1). They read words as four bytes, least significant first, independent of the byte order in memory, and
/// write whole words; `write` returns whether the value can be written.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/cursor.h"
#include "waymark/core/wire.h"
#include "waymark/dpu/format.h"

namespace waymark::dpu {

/// The values of all six counters at one instant: A0, A1, A2, B0, B1, B2; 31 bits each.
using Counters = std::array<std::uint32_t, counter_count>;

/// The contents of a task flag: privilege and the task ID, PID or DID as DP_TC.TIDS selects.
struct TaskContext {
    bool supervisor = false;
    std::uint8_t id{};
    friend bool operator==(const TaskContext&, const TaskContext&) = default;
};

WM_INLINE std::uint32_t read_word(Cursor& c) { return static_cast<std::uint32_t>(c.le(4)); }

/// P(pc) and P1(pc): an even address outside the flag page; bit 0 of the word is 1 if the word begins an entry.
struct ProgramCounter {
    const TraceFormat& format;
    bool first = false;

    WM_INLINE void read(Cursor& c, std::uint32_t& pc) const {
        const std::uint32_t word = read_word(c);
        if ((word & 1U) != static_cast<std::uint32_t>(first) || format.in_flag_page(word)) [[unlikely]]
            c.bad();
        pc = word & ~1U;
    }
    bool write(std::vector<std::uint32_t>& out, std::uint32_t pc) const {
        out.push_back(pc | static_cast<std::uint32_t>(first));
        return (pc & 1U) == 0 && !format.in_flag_page(pc);
    }
    static void print(std::string& out, std::uint32_t pc) { wire::append_number(out, pc); }
    bool scan(std::string_view text, std::uint32_t& pc) const {
        std::uint64_t value = 0;
        if (!wire::scan_number(text, value) || value > 0xffffffffU) return false;
        pc = static_cast<std::uint32_t>(value);
        return (pc & 1U) == 0 && !format.in_flag_page(pc);
    }
    void random(wire::Random& r, std::uint32_t& pc) const {
        do pc = static_cast<std::uint32_t>(wire::random_number(r, 32)) & ~1U;
        while (format.in_flag_page(pc));
    }
};

/// T: the task flag of a context.
struct TaskFlag {
    const TraceFormat& format;
    bool first = false;

    [[nodiscard]] WM_INLINE std::uint32_t word(const TaskContext& context) const {
        return format.word({context.supervisor ? FlagKind::supervisor_task : FlagKind::user_task, context.id, first});
    }
    WM_INLINE void read(Cursor& c, TaskContext& context) const {
        const std::uint32_t word = read_word(c);
        // Kinds 1 and 2 are bits 11:9.
        const std::uint32_t kind = (word ^ format.dpu_base) >> 9;
        if ((kind != 1 && kind != 2) || (word & 1U) != static_cast<std::uint32_t>(first)) [[unlikely]]
            c.bad();
        context = {kind == 2, static_cast<std::uint8_t>(word >> 1)};
    }
    bool write(std::vector<std::uint32_t>& out, const TaskContext& context) const {
        out.push_back(word(context));
        return true;
    }
    /// `user:5`, `supervisor:7`.
    static void print(std::string& out, const TaskContext& context);
    static bool scan(std::string_view text, TaskContext& context);
    static void random(wire::Random& r, TaskContext& context) {
        context = {r() % 2 == 0, static_cast<std::uint8_t>(wire::random_number(r, 8))};
    }
};

/// The head of tagged user data: a user data flag, and the task flag of the same ID.
struct TaggedContext {
    const TraceFormat& format;

    void read(Cursor& c, TaskContext& context) const {
        const auto flag = format.flag(read_word(c));
        if ((!flag || flag->kind != FlagKind::user_data || !flag->first) && c.step() == Step::ok) return c.bad();
        TaskFlag{format}.read(c, context);
        if (c.step() == Step::ok && flag->id != context.id) c.bad();
    }
    bool write(std::vector<std::uint32_t>& out, const TaskContext& context) const {
        out.push_back(format.word({FlagKind::user_data, context.id, true}));
        return TaskFlag{format}.write(out, context);
    }
    static void print(std::string& out, const TaskContext& context) { TaskFlag::print(out, context); }
    static bool scan(std::string_view text, TaskContext& context) { return TaskFlag::scan(text, context); }
    static void random(wire::Random& r, TaskContext& context) { TaskFlag::random(r, context); }
};

/// 32 bits in the low halves of two words, so that all bits survive the rule of bit 0.
struct SplitDatum {
    static void read(Cursor& c, std::uint32_t& datum) {
        const std::uint32_t high = read_word(c), low = read_word(c);
        if (((high | low) & 0xfffe0001U) != 0 && c.step() == Step::ok) return c.bad();
        datum = high >> 1 << 16 | low >> 1;
    }
    static bool write(std::vector<std::uint32_t>& out, std::uint32_t datum) {
        out.push_back(datum >> 16 << 1);
        out.push_back((datum & 0xffffU) << 1);
        return true;
    }
    static void print(std::string& out, std::uint32_t datum) { wire::append_number(out, datum); }
    static bool scan(std::string_view text, std::uint32_t& datum) {
        std::uint64_t value = 0;
        if (!wire::scan_number(text, value) || value > 0xffffffffU) return false;
        datum = static_cast<std::uint32_t>(value);
        return true;
    }
    static void random(wire::Random& r, std::uint32_t& datum) {
        datum = static_cast<std::uint32_t>(wire::random_number(r, 32));
    }
};

/// C(n), a count of at least 1: repetitions of a loop, lost entries.
struct CountField {
    static void read(Cursor& c, std::uint32_t& count) {
        const std::uint32_t word = read_word(c);
        if ((word == 0 || (word & 1U) != 0) && c.step() == Step::ok) return c.bad();
        count = word >> 1;
    }
    static bool write(std::vector<std::uint32_t>& out, std::uint32_t count) {
        out.push_back(count << 1);
        return count != 0 && count <= counter_mask;
    }
    static void print(std::string& out, std::uint32_t count) { out += std::to_string(count); }
    static bool scan(std::string_view text, std::uint32_t& count) {
        std::uint64_t value = 0;
        if (!wire::scan_number(text, value) || value == 0 || value > counter_mask) return false;
        count = static_cast<std::uint32_t>(value);
        return true;
    }
    static void random(wire::Random& r, std::uint32_t& count) {
        do count = static_cast<std::uint32_t>(wire::random_number(r, 31));
        while (count == 0);
    }
};

/// A word with any value.
struct RawWord {
    static void read(Cursor& c, std::uint32_t& word) { word = read_word(c); }
    static bool write(std::vector<std::uint32_t>& out, std::uint32_t word) {
        out.push_back(word);
        return true;
    }
    static void print(std::string& out, std::uint32_t word) { wire::append_number(out, word); }
    static bool scan(std::string_view text, std::uint32_t& word) { return SplitDatum::scan(text, word); }
    static void random(wire::Random& r, std::uint32_t& word) { SplitDatum::random(r, word); }
};

}  // namespace waymark::dpu
