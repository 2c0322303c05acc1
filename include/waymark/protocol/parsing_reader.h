/// The common part of readers that give bytes to a protocol's parser.
#pragma once

#include <array>

#include "waymark/core/gap.h"
#include "waymark/core/types.h"

namespace waymark::protocol {

/// A Reader, or an interface derived from it, that passes bytes on to `Parser<Handler>`. Handler derives from this
/// class, and the parser calls it with packets and gaps.
template <class Interface, class Config, template <class> class Parser, class Handler>
class ParsingReader : public Interface {
public:
    void feed(Bytes bytes) override { parser_.feed(bytes); }
    void reset(GapReason why) override { parser_.reset(why); }
    void finish() override { parser_.finish(); }
    [[nodiscard]] std::array<Offset, 2> pending() const override { return {parser_.pending(), parser_.pending()}; }
    [[nodiscard]] bool amid_packet() const override { return parser_.progress().amid_packet(); }

protected:
    ParsingReader(const Config& config, Handler& handler) : config_(config), parser_(config_, handler) {}

    const Config config_;

private:
    Parser<Handler> parser_;
};

}  // namespace waymark::protocol
