#include "waymark/etm4/decoder.h"

#include "decoder_machine.h"

namespace waymark::etm4 {

Decoder::Decoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out) {
    hold<Machine<flow::BatchWriter>>(config, code, out);
}
Decoder::Decoder(const Config& config, const isa::CodeReader& code, flow::CountWriter& out) {
    hold<Machine<flow::CountWriter>>(config, code, out);
}

}  // namespace waymark::etm4
