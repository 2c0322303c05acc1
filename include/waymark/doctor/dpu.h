/// Facts about a capture of a Debug and Profiling Unit that every command needs: missing parts of its buffer, why the
/// buffer may be empty, and the setup for adding up its counters (docs/spec/dpu.md, 7.5).
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

/// Whether there is anything other than padding.
[[nodiscard]] bool has_content(const dpu::Totals& totals);

/// Number of bytes that the unit wrote (lines_written, at most the whole buffer) but that are missing from the buffer's
/// file of `there` bytes.
[[nodiscard]] std::uint64_t missing_bytes(const capture::DpuCapture& capture, const pipeline::DpuTrace& trace,
                                          std::uint64_t there);

/// The trace mode, if one mode applies to the whole trace.
[[nodiscard]] std::optional<dpu::TraceMode> mode_of(const pipeline::DpuTrace& trace);
/// All trace modes in order of use.
[[nodiscard]] std::string mode_text(const pipeline::DpuTrace& trace);

/// The reason why the buffer is empty, and what to do.
[[nodiscard]] std::string why_nothing(const capture::DpuCapture& capture, const pipeline::DpuTrace& trace, Bytes dump);

/// The event of a counter, and when it counts.
struct DpuCounter {
    std::optional<dpu::EventWire> event;  ///< nullopt: the registers do not tell
    /// A few words, such as `user`, `one-shot`, `from EDCA0 to EDCA1`; empty: the counter counts all occurrences while
    /// tracing was on.
    std::string when;
    std::string rule;  ///< the same as a clause: `A0 counts CYCLES in user state only`; empty if `when` is empty
    bool rewritten =
        false;         ///< its value was written while tracing was on: differences across that write are not counts
    std::string name;  ///< `CYCLES`, or `A0 CYCLES` if two counters count the same, `CYCLES (user)`; `A0` if not known
    [[nodiscard]] bool counts_all() const { return when.empty(); }
};
/// The counters A0 to B2, according to the registers and to the capture's statements about their history.
[[nodiscard]] std::array<DpuCounter, dpu::counter_count> counters_of(const capture::DpuCapture& capture);

/// The setup for adding up the counters.
[[nodiscard]] analysis::DpuSetup setup_of(const capture::DpuCapture& capture, const pipeline::DpuTrace& trace);

/// The capture's statements and the results of decoding, without `problems`. `there`: bytes of the buffer's file.
[[nodiscard]] analysis::DpuSaid said_of(const capture::DpuCapture& capture, const pipeline::DpuTrace& trace,
                                        const analysis::DpuSetup& setup, const pipeline::DpuDecoded& decoded,
                                        std::uint64_t there);
/// Whether the event input of a counter was connected (7.5, events.driven).
[[nodiscard]] bool is_driven(const capture::DpuCapture& capture, const DpuCounter& counter);
/// A parameter of the recording; empty if there is none with that name.
[[nodiscard]] std::string parameter(const capture::DpuCapture& capture, std::string_view name);

/// A trace, decoded and added up.
struct DpuSums {
    pipeline::DpuDecoded decoded;
    std::unique_ptr<analysis::DpuCosts> costs;  ///< finished
};
/// Creates another sink for elements that are added up with this setup; null: none is needed. It is borrowed.
using DpuBeside = std::function<dpu::ElementSink*(const analysis::DpuSetup&)>;
/// Adds up the readings. If counters decreased implausibly, the false readings are searched (analysis/dpu_doubts.h); if
/// there are any, they become `setup.doubtful`, and everything is added up again without them. The sink from `beside`
/// receives the same elements. Errors: the errors of pipeline::decode_dpu.
[[nodiscard]] Result<DpuSums> add_up(const pipeline::DpuTrace& trace, Bytes dump, analysis::DpuSetup& setup,
                                     const analysis::DpuCode& code, const DpuBeside& beside = {});

/// A program of the capture that cannot be used.
struct DpuImageProblem {
    capture::DpuImage image;
    std::string what;  ///< why, as a sentence without its end
};
/// The consequences of such a missing program, and what to do, as the rest of the sentence.
[[nodiscard]] std::string cost_and_remedy(const DpuImageProblem& problem);
/// Adds the programs and names of the capture to `code`, each with the place and time of its mapping. `trace_bytes`:
/// the size of pipeline::trace_file.
std::vector<DpuImageProblem> name_code(const capture::DpuCapture& capture, const pipeline::DpuTrace& trace,
                                       std::uint64_t trace_bytes, analysis::DpuCode& code);
/// For code that may belong to several files, because nothing tells when each was mapped: the consequences, and what to
/// do, in a sentence without its end; empty if there is none.
[[nodiscard]] std::string turns_not_known(const capture::DpuCapture& capture, const analysis::DpuCode& code);

}  // namespace waymark::doctor
