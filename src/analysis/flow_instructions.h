/// Every instruction of the functions that ran, whether it ran or not.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
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
        std::vector<std::uint32_t> next,
            prev;  // numbers of successors and predecessors by static control flow, within the function
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

private:
    using Kind = CodeFunction::Kind;
    [[nodiscard]] Code* code_at(const FlowStream& s, const isa::Space& space, std::uint64_t address, isa::Isa isa);
    void find_ran();
    void find_rest(const CodeFunction& function, const FlowStream& s, const isa::Space& space,
                   std::vector<CodeKey> waiting);
    [[nodiscard]] static std::vector<CodeKey> successors(const CodeKey& key, const Code& code);
    void number_code();

    /// A stretch whose instructions are all listed; `known_end`: end of the code that is known.
    struct Listed {
        std::uint64_t end, known_end;
    };
    [[nodiscard]] std::map<std::uint64_t, Listed>::const_iterator listed_at(const CodeKey& key) const;
    void add_listed(std::uint64_t first, Listed stretch);

    FlowFunctions& functions_;
    std::map<std::uint64_t, Listed> listed_;  // by first address; stretches do not overlap
    std::map<CodeKey, Code> code_;
    std::vector<Code*> list_;    // code_, by number
    std::vector<CodeKey> keys_;  // of the same
    std::map<CodeFunction, std::vector<std::uint32_t>> by_function_;
    std::set<CodeFunction> never_entered_;
};

}  // namespace waymark::analysis
