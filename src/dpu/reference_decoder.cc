#include "waymark/dpu/reference_decoder.h"

#include "element_builder.h"

namespace waymark::dpu {

class ReferenceDecoder::Machine {
public:
    Machine(const TraceFormat& format, ByteOrder order, ElementSink& out, const StartState& start)
        : builder_(out, start), parser_(format, order, builder_) {}

    void feed(Bytes bytes) { parser_.feed(bytes); }
    void reset() { parser_.reset(); }
    void restart(const TraceFormat& format, const StartState& start) {
        parser_.finish(true);  // tracing was closed, so everything was written (5.10)
        parser_.set_format(format);
        builder_.restart(start, parser_.offset());
    }
    void finish(bool complete) {
        parser_.finish(complete);
        builder_.flush();
    }
    const Totals& totals() {
        builder_.totals().bytes = parser_.offset().value;
        return builder_.totals();
    }

private:
    ElementBuilder builder_;
    Parser<ElementBuilder> parser_;
};

ReferenceDecoder::ReferenceDecoder(const TraceFormat& format, ByteOrder order, ElementSink& out,
                                   const StartState& start)
    : machine_(std::make_unique<Machine>(format, order, out, start)) {}
ReferenceDecoder::~ReferenceDecoder() = default;
void ReferenceDecoder::feed(Bytes bytes) { machine_->feed(bytes); }
void ReferenceDecoder::reset() { machine_->reset(); }
void ReferenceDecoder::restart(const TraceFormat& format, const StartState& start) { machine_->restart(format, start); }
void ReferenceDecoder::finish(bool complete) { machine_->finish(complete); }
const Totals& ReferenceDecoder::totals() const { return machine_->totals(); }

}  // namespace waymark::dpu
