#include "waymark/spe/reference_decoder.h"

#include "record_builder.h"

namespace waymark::spe {

class ReferenceDecoder::Machine {
public:
    Machine(RecordSink& out, Start start) : builder_(out, start), parser_(builder_) {}

    void feed(Bytes bytes) {
        while (!bytes.empty()) {
            builder_.resume();
            bytes = parser_.feed(bytes);
        }
    }
    void leave(bool jump, Start next) {
        if (jump)
            parser_.reset();
        else
            parser_.finish();
        builder_.leave(parser_.offset(), jump, next);
    }
    void flush() { builder_.flush(); }
    const Totals& totals() {
        builder_.totals().bytes = parser_.offset().value;
        return builder_.totals();
    }

private:
    RecordBuilder builder_;
    Parser<RecordBuilder> parser_;
};

ReferenceDecoder::ReferenceDecoder(RecordSink& out, Start start) : machine_(std::make_unique<Machine>(out, start)) {}
ReferenceDecoder::~ReferenceDecoder() = default;
void ReferenceDecoder::feed(Bytes bytes) { machine_->feed(bytes); }
void ReferenceDecoder::reset(Start start) { machine_->leave(true, start); }
void ReferenceDecoder::finish() {
    machine_->leave(false, Start::record);
    machine_->flush();
}
const Totals& ReferenceDecoder::totals() const { return machine_->totals(); }

}  // namespace waymark::spe
