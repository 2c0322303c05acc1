/// What a decoder makes of bytes, for a program of which nothing is known.
#pragma once

#include <vector>

#include "support/elements.h"
#include "waymark/flow/blocks.h"
#include "waymark/isa/isa.h"

namespace waymark::fuzz {

class NoCode final : public isa::CodeReader {
public:
    [[nodiscard]] isa::Code at(Address, const isa::Space&) const override { return {}; }
};

template <class Decoder, class Config>
std::vector<synthetic::Element> decode(Bytes bytes, const Config& config) {
    synthetic::ElementSink sink;
    flow::BlockTable table;
    flow::BatchWriter out(table, sink);
    const NoCode code;
    Decoder decoder(config, code, out);
    decoder.feed(bytes);
    decoder.finish();
    return sink.take();
}

}  // namespace waymark::fuzz
