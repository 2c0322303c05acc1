/// A sink that counts the elements it passes on.
#pragma once

#include <memory>
#include <utility>

#include "waymark/flow/flow.h"
#include "waymark/flow/summary.h"
#include "waymark/flow/troubles.h"

namespace waymark::flow {

/// Passes batches on to another sink, if there is one; counts them and their troubles.
class Tee final : public Sink {
public:
    Tee(MapOffset offset, std::unique_ptr<Sink> next) : offset_(std::move(offset)), next_(std::move(next)) {}
    void consume(const Batch& batch) override {
        summary_.consume(batch);
        troubles_.consume(batch, offset_);
        if (next_) next_->consume(batch);
    }
    [[nodiscard]] bool wants_cycles_in_ranges() const override { return next_ && next_->wants_cycles_in_ranges(); }
    // Can be split if the other sink can; the hash of all ranges is then not available.
    [[nodiscard]] Split split() const override { return next_ ? next_->split() : Split::none; }
    [[nodiscard]] std::unique_ptr<Sink> fork() const override { return std::make_unique<Tee>(offset_, next_->fork()); }
    void begin_at(const Context& context) override { next_->begin_at(context); }
    void join(Sink& sink) override {
        Tee& fork = static_cast<Tee&>(sink);
        troubles_ += fork.troubles_;
        summary_.add(fork.totals());
        next_->join(*fork.next_);
    }
    [[nodiscard]] const Totals& totals() const { return summary_.totals(); }
    [[nodiscard]] const Troubles& troubles() const { return troubles_; }

private:
    MapOffset offset_;
    Summary summary_;
    Troubles troubles_;
    std::unique_ptr<Sink> next_;
};

}  // namespace waymark::flow
