/// What a capture of a Debug and Profiling Unit says of itself, as every command needs it: what is missing from its
/// buffer, why there may be nothing in it, and what adding up its counters begins with (docs/spec/dpu.md, 7.5).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/analysis/dpu.h"
#include "waymark/analysis/dpu_answers.h"
#include "waymark/capture/dpu_folder.h"
#include "waymark/dpu/events.h"
#include "waymark/pipeline/dpu.h"

namespace waymark::doctor {

/// There is something besides padding.
[[nodiscard]] bool has_content(const dpu::Totals& totals);

/// Bytes that the unit wrote (lines_written, at most the whole buffer) and that the buffer's file, of `there` bytes,
/// lacks.
[[nodiscard]] std::uint64_t missing_bytes(const capture::DpuCapture& capture, const pipeline::DpuTrace& trace,
                                          std::uint64_t there);

/// The mode whose answers hold for the whole trace.
[[nodiscard]] std::optional<dpu::TraceMode> mode_of(const pipeline::DpuTrace& trace);
/// Those there were, one after another.
[[nodiscard]] std::string mode_text(const pipeline::DpuTrace& trace);

/// Why there is nothing in the buffer, and what to do.
[[nodiscard]] std::string why_nothing(const capture::DpuCapture& capture, const pipeline::DpuTrace& trace, Bytes dump);

/// What a counter counts, and when.
struct DpuCounter {
    std::optional<dpu::EventWire> event;  ///< none: the registers do not say
    /// In a few words, such as `user`, `one-shot`, `from EDCA0 to EDCA1`; empty: all that happened while tracing was
    /// on.
    std::string when;
    std::string rule;        ///< the same as a clause: `A0 counts CYCLES in user state only`; empty as `when`
    bool rewritten = false;  ///< its value was written while tracing was on: differences across that are no counts
    std::string name;        ///< `CYCLES`, `A0 CYCLES` where two count the same, `CYCLES (user)`; `A0`: not known
    [[nodiscard]] bool counts_all() const { return when.empty(); }
};
/// The counters A0 to B2, from the registers and from what the capture says of their history.
[[nodiscard]] std::array<DpuCounter, dpu::counter_count> counters_of(const capture::DpuCapture& capture);

/// What adding up begins with.
[[nodiscard]] analysis::DpuSetup setup_of(const capture::DpuCapture& capture, const pipeline::DpuTrace& trace);

/// What the capture says of itself and decoding it gave, but for `problems`. `there`: bytes of the buffer's file.
[[nodiscard]] analysis::DpuSaid said_of(const capture::DpuCapture& capture, const pipeline::DpuTrace& trace,
                                        const analysis::DpuSetup& setup, const pipeline::DpuDecoded& decoded,
                                        std::uint64_t there);
/// A counter counts something that really happened (7.5, events.driven).
[[nodiscard]] bool is_driven(const capture::DpuCapture& capture, const DpuCounter& counter);
/// A parameter of the recording; empty: there is none of that name.
[[nodiscard]] std::string parameter(const capture::DpuCapture& capture, std::string_view name);

/// A trace, decoded and added up.
struct DpuSums {
    pipeline::DpuDecoded decoded;
    std::unique_ptr<analysis::DpuCosts> costs;  ///< finished
};
/// Makes a sink anew for elements that are added up with this setup; null: there is none. It is borrowed.
using DpuBeside = std::function<dpu::ElementSink*(const analysis::DpuSetup&)>;
/// Adds up what readings hold. Where counters went down by more than hardly can be, those that cannot be true are
/// looked for (analysis/dpu_doubts.h); if there are any, they become `setup.doubtful`, and all is added up once more
/// without them. What `beside` makes takes the same elements. Errors: the errors of pipeline::decode_dpu.
[[nodiscard]] Result<DpuSums> add_up(const pipeline::DpuTrace& trace, Bytes dump, analysis::DpuSetup& setup,
                                     const analysis::DpuCode& code, const DpuBeside& beside = {});

/// A program of the capture that cannot be used.
struct DpuImageProblem {
    capture::DpuImage image;
    std::string what;  ///< why, as a sentence without its end
};
/// What is lost without such a program, and what to do, as the rest of the sentence.
[[nodiscard]] std::string cost_and_remedy(const DpuImageProblem& problem);
/// Gives `code` the programs and names of the capture, each where and when it was mapped. `trace_bytes`: the size of
/// pipeline::trace_file.
std::vector<DpuImageProblem> name_code(const capture::DpuCapture& capture, const pipeline::DpuTrace& trace,
                                       std::uint64_t trace_bytes, analysis::DpuCode& code);
/// Of code for which several files are possible, since nothing says when each of them was there: what is lost, and what
/// to do, in a sentence without its end; empty: there is none.
[[nodiscard]] std::string turns_not_known(const capture::DpuCapture& capture, const analysis::DpuCode& code);

}  // namespace waymark::doctor
