/// The `.wmt` files of tests/data/wmt: one situation each, with the program, the packets and the flow they must give,
/// so that a reader can check it by hand. Blank lines and text from `#` on are free everywhere.
///
///     # What is tested, and the reason for the expected flow.
///     # section 4.5: pop before push          one or more: the rule of docs/spec/pft.md, as coverage_test.cc names it
///     [config]                                default: pft::Config{}
///     ETMCR=0x20001000 ETMCCER=… ETMIDR=…     registers (first, if at all; ETMCCER is 0 and ETMIDR PFTv1.1 if not
///     given) return_stack=1                          or members of pft::Config by name offsets=1 flow lines end in
///     `@n`, the offset of their packet       [code A32 0x8000]                       A32, T32 or TEE; more:
///     section=name space=S|N|H context_id=n vmid=n 8000: eb000001  bl 0x800c               opcode as one word or, in
///     Thumb, as halfwords; then text for the reader 8004: e1a00000*4096  nop                so many times. Where
///     sections overlap, the last one is seen [packets] A-SYNC zeros=5                          as pft::from_text reads
///     it raw 08 54 05                            bytes reset                                   the bytes before and
///     after do not follow one another [flow] trace_on begin|enabled|overflow|debug_restart context S|NS [HYP]
///     [context_id=n] [vmid=n] range 0x8000..0x8008 2 A32 E direct link -> 0x800c
///           start..end, instructions, instruction set, E or N (- where no waypoint ends it), kind (none, direct,
///           indirect, barrier), any of link conditional return exception_return undefined, the direct target,
///           section=name if the section has one
///     exception 14 [return=address] [vector=address]
///     exception_return
///     no_memory 0x8000
///     timestamp 0x1234 [partial] [frequency_changed]
///     trigger
///     cycles 12
///     gap 6..10 reserved_header               bytes 6 to 9 of the stream, and why
///     inconsistency kind found=address expected=address
///
/// `cycles=n` follows the range, trace_on, exception or timestamp it belongs to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "support/wmt_text.h"
#include "waymark/core/result.h"
#include "waymark/flow/flow.h"
#include "waymark/isa/isa.h"
#include "waymark/pft/config.h"

namespace waymark::test {

/// The program of a .wmt file.
class WmtCode final : public isa::CodeReader {
public:
    struct Section {
        std::string name;  ///< empty: not shown
        isa::Isa isa{};
        std::uint64_t start{};
        std::vector<std::uint8_t> bytes;
        std::optional<bool> ns, hyp;  ///< absent: seen in both
        std::optional<std::uint32_t> context_id, vmid;
    };
    std::vector<Section> sections;

    [[nodiscard]] isa::Code at(Address address, const isa::Space& space) const override;
    [[nodiscard]] isa::Space view(const isa::Space& space) const override;
};

/// The parts of a stream, separated by `reset`.
using WmtStream = std::vector<std::vector<std::uint8_t>>;

struct Wmt {
    std::string file;                ///< as given, for messages
    std::vector<std::string> rules;  ///< `4.5: pop before push`
    pft::Config config;
    bool offsets = false;
    WmtCode code;
    WmtStream stream;
    std::vector<std::string> packets;  ///< the lines of [packets]; empty if any of them is `raw` or `reset`
    std::vector<std::string> flow;     ///< expected, one blank between words
    std::vector<std::string> lines;    ///< of the whole file
    std::size_t flow_line = 0;         ///< index in `lines` of the first line below [flow]
};

/// `bad_format`: the message begins with `file:line:`.
[[nodiscard]] Result<Wmt> parse_wmt(std::string_view text, const std::string& file);
[[nodiscard]] Result<Wmt> read_wmt(const std::filesystem::path& path);

/// Writes flow elements in the notation above.
class FlowText final : public flow::Sink {
public:
    FlowText(const Wmt& wmt, bool offsets) : wmt_(wmt), offsets_(offsets) {}
    void consume(const flow::Batch& batch) override;
    std::vector<std::string> lines;

private:
    void add(std::string line, Offset offset);
    const Wmt& wmt_;
    bool offsets_;
};

/// The text of the file with `found` as its flow; comments in [flow] stay.
[[nodiscard]] std::string with_flow(const Wmt& wmt, const std::vector<std::string>& found);

}  // namespace waymark::test
