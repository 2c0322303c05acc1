#include "waymark/verify/perf.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

namespace waymark::verify {

namespace {

using record::SourceTruth;
using record::ThreadExecution;
using ThreadNumber = std::optional<std::uint32_t>;

/// Decodes while tracking the thread of the part of the buffer that is being decoded.
class OfParts final : public pipeline::FlowConsumer {
public:
    OfParts(std::unique_ptr<pipeline::FlowConsumer> consumer, ThreadNumber& thread)
        : consumer_(std::move(consumer)), thread_(thread) {}
    void begin(const capture::BufferPart& part) override {
        thread_ = part.thread;
        consumer_->begin(part);
    }
    void feed(Bytes bytes) override { consumer_->feed(bytes); }
    void reset(GapReason why) override { consumer_->reset(why); }
    void finish() override { consumer_->finish(); }
    void flush() override { consumer_->flush(); }
    [[nodiscard]] std::array<Offset, 2> pending() const override { return consumer_->pending(); }
    [[nodiscard]] bool amid_packet() override { return consumer_->amid_packet(); }
    [[nodiscard]] std::uint64_t packets() const override { return consumer_->packets(); }
    [[nodiscard]] std::vector<pipeline::MissingCode> missing() const override { return consumer_->missing(); }
    [[nodiscard]] std::vector<pipeline::UncertainCode> uncertain() const override { return consumer_->uncertain(); }

private:
    std::unique_ptr<pipeline::FlowConsumer> consumer_;
    ThreadNumber& thread_;
};

class PerfVerification {
public:
    PerfVerification(const pipeline::Session& session, const std::vector<const pipeline::Source*>& selected,
                     const record::Truth& truth, std::filesystem::path folder)
        : session_(session), selected_(selected), truth_(truth), folder_(std::move(folder)) {}

    VerifiedPerf run() {
        decode();
        for (const SourceTruth& thread : truth_.sources) out_.partial |= thread.wrapped || thread.lost_ranges != 0;
        // What the units did not trace is not in the truth either.
        out_.partial |= !truth_.complete || selected_.size() != session_.sources.size() ||
                        std::any_of(session_.problems.begin(), session_.problems.end(), [](const capture::Problem& p) {
                            return p.is_loss() && p.kind != capture::Problem::Kind::not_traced;
                        });
        out_.together = decoded_.size() == 1 && decoded_.contains(std::nullopt);
        if (out_.together) {
            std::vector<const SourceTruth*> threads;
            for (const SourceTruth& thread : truth_.sources) threads.push_back(&thread);
            compare("all", threads, decoded_[std::nullopt]);
            return std::move(out_);
        }
        for (const SourceTruth& thread : truth_.sources) {
            const ThreadNumber number = record::thread_of_truth(thread);
            const auto found = number ? decoded_.find(*number) : decoded_.end();
            compare(thread.source, {&thread}, found == decoded_.end() ? ThreadExecution{} : found->second);
            if (found != decoded_.end()) decoded_.erase(found);
        }
        for (const auto& [thread, execution] : decoded_) {
            VerifiedThread& more = out_.threads.emplace_back();
            more.name = thread ? std::to_string(*thread) : "not known";
            more.verdict = Verdict::different;
            more.ran = false;
            more.decoded = execution.instructions;
        }
        return std::move(out_);
    }

private:
    void decode() {
        std::deque<record::ThreadExecutionSink> sinks;
        std::deque<ThreadNumber> threads;
        const auto make = [&](const pipeline::StreamInfo& stream) -> std::unique_ptr<pipeline::Consumer> {
            if (!stream.source.has_flow()) return nullptr;
            ThreadNumber& of_part = threads.emplace_back();
            auto& sink = sinks.emplace_back([this, &of_part](const flow::Context& context) {
                const ThreadNumber thread = session_.capture.spaces->thread_of(context.context_id, context.vmid);
                return thread ? thread : of_part;
            });
            return std::make_unique<OfParts>(pipeline::flow_consumer(stream, sink, pipeline::DecoderKind::fast, 1,
                                                                     pipeline::Addresses::as_they_were),
                                             of_part);
        };
        out_.report = pipeline::run(session_, selected_, make);
        for (const record::ThreadExecutionSink& sink : sinks) {
            sink.add_to(decoded_);
            no_memory_ += sink.no_memory();
        }
        out_.missing = pipeline::code_damage(session_, out_.report);
    }

    void compare(std::string name, const std::vector<const SourceTruth*>& threads, const ThreadExecution& decoded) {
        VerifiedThread& to = out_.threads.emplace_back();
        to.name = std::move(name);
        to.decoded = decoded.instructions;
        to.with_ranges = true;
        out_.instructions += decoded.instructions;
        ThreadExecution executed;
        std::uint64_t sum = 0;
        for (const SourceTruth* thread : threads) {
            sum += thread->instructions;
            to.unfinished += thread->unfinished_instructions;
            to.not_traced += thread->filtered_instructions;
            auto ranges = thread->file.empty() ? Result<record::RangeReader>(Error{Errc::not_found, ""})
                                               : record::RangeReader::open(folder_ / thread->file);
            to.with_ranges &= ranges.has_value();
            if (!ranges) continue;
            const ThreadNumber number = record::thread_of_truth(*thread);
            const ThreadExecution one = record::execution_of(
                *ranges, [&](std::uint64_t address) { return has_code(number, address); }, to.without_file);
            executed.addresses += one.addresses;
            executed.instructions += one.instructions;
        }
        if (!to.with_ranges) {
            // Only the sums are known, so the result is that everything is equal, or nothing.
            to.executed = sum;
            const bool comparable = !out_.partial && no_memory_ == 0;
            to.verdict = sum == decoded.instructions ? Verdict::equal
                         : comparable                ? Verdict::different
                                                     : Verdict::not_compared;
            return;
        }
        to.executed = executed.instructions;
        to.difference = out_.partial ? decoded.addresses.excess(executed.addresses)
                                     : decoded.addresses.difference(executed.addresses);
        to.verdict = to.difference ? Verdict::different : Verdict::equal;
    }

    [[nodiscard]] bool has_code(ThreadNumber thread, std::uint64_t address) const {
        const pipeline::ProcessCode& code = *session_.sources.front().code;
        constexpr std::uint64_t last = ~std::uint64_t{0};
        return !code.at(code.number(thread, 0, last), {address}).bytes.empty();
    }

    const pipeline::Session& session_;
    const std::vector<const pipeline::Source*>& selected_;
    const record::Truth& truth_;
    const std::filesystem::path folder_;
    record::ThreadExecutions decoded_;
    std::uint64_t no_memory_ = 0;
    VerifiedPerf out_;
};

}  // namespace

Verdict VerifiedPerf::verdict() const {
    Verdict out = Verdict::equal;
    for (const VerifiedThread& thread : threads) out = std::max(out, thread.verdict);
    return out == Verdict::equal && instructions == 0 ? Verdict::not_compared : out;
}

VerifiedPerf verify_perf(const pipeline::Session& session, const std::vector<const pipeline::Source*>& selected,
                         const record::Truth& truth, const std::filesystem::path& folder) {
    return PerfVerification(session, selected, truth, folder).run();
}

}  // namespace waymark::verify
