/// Every instruction of the functions that ran, whether it ran or not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "flow_functions.h"
#include "waymark/isa/decode_instr.h"

namespace waymark::analysis {

class FlowInstructions {
public:
    /// An instruction of a function that ran.
    struct Code {
        isa::Instruction what;
        CodeFunction function;
        std::uint64_t times{}, cycles{}, taken{}, not_taken{};
        bool unobserved{};  // it could have run where flow was lost
        bool before{},
            passed_before{};  // it ran before the streams begin; then also flow continued to the next instruction
        bool taken_before{};  // and went elsewhere
        bool walked{};        // find_rest has seen where it leads
    };
    using CodeKey = std::pair<std::uint64_t, isa::Isa>;

    explicit FlowInstructions(FlowFunctions& functions);

    /// All instructions, by address. The index is an instruction's number.
    [[nodiscard]] const std::vector<Code*>& list() const { return list_; }
    [[nodiscard]] const std::vector<CodeKey>& keys() const { return keys_; }
    /// Numbers of the function's instructions.
    [[nodiscard]] const std::vector<std::uint32_t>& of(const CodeFunction& f) { return by_function_[f]; }
    /// With `FlowAnswersOptions::all_functions`: functions that were never seen to be entered.
    [[nodiscard]] const std::set<CodeFunction>& never_entered() const { return never_entered_; }
    /// Number of the instruction at an address; nullopt if no function that ran contains it.
    [[nodiscard]] std::optional<std::uint32_t> number(std::uint64_t address) const;
    /// Numbers of an instruction's successors by static control flow, within the function.
    [[nodiscard]] std::span<const std::uint32_t> next(std::uint32_t n) {
        link();
        return next_.of(n);
    }
    /// Numbers of its predecessors.
    [[nodiscard]] std::span<const std::uint32_t> prev(std::uint32_t n) {
        link();
        return prev_.of(n);
    }

private:
    using Kind = CodeFunction::Kind;
    [[nodiscard]] Code* code_at(const FlowStream& s, const isa::Space& space, std::uint64_t address, isa::Isa isa);
    void find_ran();
    void find_rest(const CodeFunction& function, const FlowStream& s, const isa::Space& space,
                   std::vector<CodeKey> waiting);
    struct Successors {
        std::array<CodeKey, 2> keys{};
        std::size_t count = 0;

        [[nodiscard]] const CodeKey* begin() const { return keys.data(); }
        [[nodiscard]] const CodeKey* end() const { return keys.data() + count; }
    };
    [[nodiscard]] static Successors successors(const CodeKey& key, const Code& code);
    [[nodiscard]] bool may_walk_to(const CodeKey& to, const CodeFunction& function);
    void number_code();
    void link();

    /// A stretch whose instructions are all listed; `known_end`: end of the code that is known.
    struct Listed {
        std::uint64_t end, known_end;
    };
    [[nodiscard]] std::map<std::uint64_t, Listed>::const_iterator listed_at(const CodeKey& key) const;
    void add_listed(std::uint64_t first, Listed stretch);

    /// Numbers by instruction: a table with open addressing, since each instruction is looked up several times.
    class Numbers {
    public:
        static constexpr std::uint32_t none = 0xffffffff;
        /// The number of an instruction, or `none`.
        [[nodiscard]] std::uint32_t find(const CodeKey& key) const { return slots_[slot_of(key)].number; }
        /// Precondition: it has no number.
        void add(const CodeKey& key, std::uint32_t number) {
            if (2 * ++count_ > slots_.size()) grow();
            slots_[slot_of(key)] = {key.first, number, key.second};
        }

    private:
        struct Slot {
            std::uint64_t address{};
            std::uint32_t number = none;  // none: the slot is free
            isa::Isa isa{};
        };
        [[nodiscard]] std::size_t slot_of(const CodeKey& key) const {
            const std::uint64_t h = (key.first ^ static_cast<unsigned>(key.second)) * 0x9e3779b97f4a7c15U;
            for (std::size_t i = static_cast<std::size_t>(h ^ h >> 32);; ++i) {
                const Slot& slot = slots_[i & (slots_.size() - 1)];
                if (slot.number == none || (slot.address == key.first && slot.isa == key.second))
                    return i & (slots_.size() - 1);
            }
        }
        void grow() {
            const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
            for (const Slot& slot : old)
                if (slot.number != none) slots_[slot_of({slot.address, slot.isa})] = slot;
        }

        std::vector<Slot> slots_ = std::vector<Slot>(1024);  // a power of two
        std::size_t count_ = 0;
    };
    /// For each instruction, the numbers of other instructions, in one vector.
    struct Ways {
        std::vector<std::size_t> begins;
        std::vector<std::uint32_t> to;

        [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t n) const {
            return std::span(to).subspan(begins[n], begins[n + 1] - begins[n]);
        }
    };

    FlowFunctions& functions_;
    std::map<std::uint64_t, Listed> listed_;  // by first address; stretches do not overlap
    std::deque<Code> code_;                   // in the order in which they were found
    std::vector<CodeKey> found_;              // of the same
    Numbers number_found_;                    // index in code_
    std::vector<Code*> list_;                 // code_, by number
    std::vector<CodeKey> keys_;               // of the same
    std::map<CodeFunction, std::vector<std::uint32_t>> by_function_;
    std::set<CodeFunction> never_entered_;
    Ways next_, prev_;  // empty until something asks
};

}  // namespace waymark::analysis
