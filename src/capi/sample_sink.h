/// Converts samples to the columns of waymark.h.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "flow_sink.h"
#include "waymark/analysis/samples.h"

namespace waymark::capi {

/// Thrown to end decoding from within it. It passes only through code that reads samples on the caller's own thread.
struct Stopped {};

/// Forks deliver to the same callback: with one worker, in the order of the streams.
class CallbackSampleSink final : public analysis::SampleSink {
public:
    CallbackSampleSink(Callbacks& callbacks, std::uint64_t& samples) : callbacks_(callbacks), samples_(samples) {}
    void consume(const analysis::SampleBatch& batch) override;
    [[nodiscard]] std::unique_ptr<SampleSink> fork() const override {
        return std::make_unique<CallbackSampleSink>(callbacks_, samples_);
    }
    void join(SampleSink&) override {}

private:
    Callbacks& callbacks_;
    std::uint64_t& samples_;
};

}  // namespace waymark::capi
