#include "verify.h"

#include "../dpu/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>

#include "waymark/core/numbers.h"
#include "waymark/pipeline/damage.h"
#include "waymark/record/perf_file.h"
#include "waymark/record/thread_comparison.h"
#include "waymark/record/truth.h"

namespace waymark::cli {

namespace {

using record::SourceTruth;
using record::ThreadExecution;
using record::ThreadExecutions;
using ThreadNumber = std::optional<std::uint32_t>;

class PerfVerification {
public:
    PerfVerification(const InputOptions& options, const pipeline::Session& session,
                     const std::vector<const pipeline::Source*>& selected, const record::Truth& truth)
        : options_(options), session_(session), selected_(selected), truth_(truth) {}

    /// Of one thread, or of all: the worst.
    enum class Outcome : std::uint8_t { equal, not_compared, different };

    Outcome run(Output& out) {
        decode();
        for (const SourceTruth& thread : truth_.sources)
            for (const bool lost : {thread.wrapped, thread.lost_ranges != 0}) partial_ |= lost;
        partial_ |= !truth_.complete || lost_trace_ || selected_.size() != session_.sources.size();
        // Without threads in the trace, what all did together.
        const bool together = decoded_.size() == 1 && decoded_.contains(std::nullopt);
        if (together) return compare_together(out);
        Outcome all = Outcome::equal;
        for (const SourceTruth& thread : truth_.sources) {
            const auto number = record::thread_of_truth(thread);
            const auto found = number ? decoded_.find(*number) : decoded_.end();
            static const ThreadExecution none;
            const Outcome one = compare(thread.source, {&thread}, found == decoded_.end() ? none : found->second, out);
            all = std::max(all, one);
            if (found != decoded_.end()) decoded_.erase(found);
        }
        for (const auto& [thread, execution] : decoded_) {
            out.print("thread {}: DIFFERENT\n  {} instructions decoded of a thread that did not run\n",
                      thread ? std::to_string(*thread) : "not known", grouped(execution.instructions));
            all = Outcome::different;
        }
        return all;
    }
    [[nodiscard]] std::uint64_t instructions() const { return instructions_; }
    [[nodiscard]] bool read_errors() const { return read_errors_; }

private:
    void decode() {
        std::deque<record::ThreadExecutionSink> sinks;
        const auto make = [&](const pipeline::StreamInfo& stream) -> std::unique_ptr<pipeline::Consumer> {
            if (!stream.source.has_flow()) return nullptr;
            // A thread's own ring.
            ThreadNumber of_ring;
            if (!stream.buffer.parts.empty()) of_ring = stream.buffer.parts.front().thread;
            auto& sink = sinks.emplace_back([this, of_ring](const flow::Context& context) {
                const ThreadNumber thread = session_.capture.spaces->thread_of(context.context_id, context.vmid);
                return thread ? thread : of_ring;
            });
            return pipeline::flow_consumer(stream, sink, pipeline::DecoderKind::fast, 1,
                                           pipeline::Addresses::as_they_were);
        };
        const pipeline::Report report = pipeline::run(session_, selected_, make);
        read_errors_ = report_read_errors(report);
        for (const record::ThreadExecutionSink& sink : sinks) {
            sink.add_to(decoded_);
            no_memory_ += sink.no_memory();
        }
        lost_trace_ = std::any_of(session_.problems.begin(), session_.problems.end(),
                                  [](const capture::Problem& p) { return p.kind == capture::Problem::Kind::part; });
        for (const pipeline::Damage& damage : pipeline::missing_code(session_, report)) say("warning", damage.sentence);
    }

    Outcome compare_together(Output& out) {
        std::vector<const SourceTruth*> threads;
        for (const SourceTruth& thread : truth_.sources) threads.push_back(&thread);
        out.write("threads are not in the trace: what all executed together is compared\n");
        return compare("all", threads, decoded_[std::nullopt], out);
    }

    Outcome compare(const std::string& name, const std::vector<const SourceTruth*>& threads,
                    const ThreadExecution& decoded, Output& out) {
        instructions_ += decoded.instructions;
        ThreadExecution executed;
        std::uint64_t left_out = 0, sum = 0, unfinished = 0;
        bool with_ranges = true;
        for (const SourceTruth* thread : threads) {
            sum += thread->instructions;
            unfinished += thread->unfinished_instructions;
            auto ranges = thread->file.empty() ? Result<record::RangeReader>(Error{Errc::not_found, ""})
                                               : record::RangeReader::open(folder() / thread->file);
            with_ranges &= ranges.has_value();
            if (!ranges) continue;
            const ThreadNumber number = record::thread_of_truth(*thread);
            const ThreadExecution one = record::execution_of(
                *ranges, [&](std::uint64_t address) { return has_code(number, address); }, left_out);
            executed.addresses += one.addresses;
            executed.instructions += one.instructions;
        }
        if (!with_ranges) {
            // Only the sums are known, so only all or nothing can be.
            const bool equal = sum == decoded.instructions;
            const bool comparable = equal || (!partial_ && no_memory_ == 0);
            const Outcome outcome = equal ? Outcome::equal : comparable ? Outcome::different : Outcome::not_compared;
            print(out, name, outcome, sum, decoded.instructions);
            if (!comparable)
                out.write("  trace or code is missing: only a recording made with --truth can be compared then\n");
            return outcome;
        }
        const auto difference =
            partial_ ? decoded.addresses.excess(executed.addresses) : decoded.addresses.difference(executed.addresses);
        print(out, name, difference ? Outcome::different : Outcome::equal, executed.instructions, decoded.instructions);
        if (left_out != 0)
            out.print("  {} instructions more executed in code that is in no file, which cannot be decoded\n",
                      grouped(left_out));
        if (unfinished != 0)
            out.print("  {} instructions executed after the last waypoint, which no unit traces\n",
                      grouped(unfinished));
        if (difference)
            out.print("  first difference: {:#x} was decoded {} {} often than it executed\n", difference->address,
                      counted(static_cast<std::uint64_t>(std::abs(difference->more)), "time"),
                      difference->more > 0 ? "more" : "less");
        return difference ? Outcome::different : Outcome::equal;
    }

    void print(Output& out, const std::string& name, Outcome outcome, std::uint64_t executed,
               std::uint64_t decoded) const {
        out.print("thread {}: {}\n  executed {}, decoded {} instructions\n", name,
                  outcome == Outcome::different      ? "DIFFERENT"
                  : outcome == Outcome::not_compared ? "NOT COMPARED"
                  : partial_                         ? "equal as far as it was kept"
                                                     : "equal",
                  grouped(executed), grouped(decoded));
    }

    [[nodiscard]] bool has_code(ThreadNumber thread, std::uint64_t address) const {
        const pipeline::ProcessCode& code = *session_.sources.front().code;
        constexpr std::uint64_t last = ~std::uint64_t{0};
        return !code.at(code.number(thread, 0, last), {address}).bytes.empty();
    }
    [[nodiscard]] std::filesystem::path folder() const { return std::filesystem::path(options_.capture).parent_path(); }

    const InputOptions& options_;
    const pipeline::Session& session_;
    const std::vector<const pipeline::Source*>& selected_;
    const record::Truth& truth_;
    ThreadExecutions decoded_;
    std::uint64_t instructions_ = 0, no_memory_ = 0;
    bool partial_ = false, lost_trace_ = false, read_errors_ = false;
};

}  // namespace

ExitStatus verify_perf(const InputOptions& options) {
    const auto truth = record::read_truth_file(record::perf_truth_file(options.capture));
    if (!truth) {
        const ExitStatus status = fail(truth.error());
        return truth.error().code == Errc::not_found ? static_cast<ExitStatus>(not_compared) : status;
    }
    auto opened = open_session(options);
    if (!opened) return fail(opened.error());
    const pipeline::Session session = std::move(*opened);
    warn(session);
    const auto selected = session.select(options.sources);
    if (!selected) return fail(selected.error());
    auto out = Output::open(options.output, options.files());
    if (!out) return fail(out.error());
    PerfVerification verification(options, session, *selected, *truth);
    using Outcome = PerfVerification::Outcome;
    Outcome outcome = verification.run(*out);
    if (outcome == Outcome::equal && verification.instructions() == 0) {
        say("error", "nothing to compare: no instruction is decoded");
        outcome = Outcome::not_compared;
    }
    out->print("{}: {} instructions of {}\n",
               outcome == Outcome::equal       ? "equal"
               : outcome == Outcome::different ? "DIFFERENT"
                                               : "NOT COMPARED",
               grouped(verification.instructions()), counted(truth->sources.size(), "thread"));
    if (out->close() != decoded) return unreadable;
    if (verification.read_errors()) return unreadable;
    return outcome == Outcome::equal       ? decoded
           : outcome == Outcome::different ? nothing
                                           : static_cast<ExitStatus>(not_compared);
}

}  // namespace waymark::cli
