#include "waymark/mtb/model.h"

#include <algorithm>

#include "waymark/core/registers.h"
#include "waymark/mtb/encoder.h"
#include "waymark/mtb/parser.h"
#include "waymark/mtb/registers.h"

namespace waymark::mtb {

Model::Model(const ModelConfig& config) : config_(config), buffer_(std::size_t{1} << (config.mask + 4U)) {}

void Model::enable(bool on) {
    started_ = on && !enabled_;
    enabled_ = on;
}

void Model::write(std::uint32_t source, std::uint32_t destination, bool atomic) {
    if (!enabled_) return;
    std::vector<std::uint8_t> bytes;
    encode(bytes, {{source & ~1U, atomic}, {destination & ~1U, started_}});
    started_ = false;
    std::copy(bytes.begin(), bytes.end(), buffer_.begin() + at_);
    ++packets_;
    at_ += packet_bytes;
    if (at_ == buffer_.size()) {
        at_ = 0;
        wrapped_ = true;
    }
    if (config_.stop_at == config_.block + at_) enabled_ = false;
}

std::vector<RegisterValue> Model::registers() const {
    MtbPosition position;
    position.pointer = (config_.block + at_) / packet_bytes;
    position.wrap = wrapped_;
    MtbMaster master;
    master.enable = enabled_;
    master.mask = static_cast<std::uint8_t>(config_.mask);
    MtbFlow flow;
    flow.auto_stop = config_.stop_at.has_value();
    flow.watermark = config_.stop_at.value_or(0) / packet_bytes;
    MtbBase base;
    base.address = config_.base;
    return {register_value(position), register_value(master), register_value(flow), register_value(base)};
}

}  // namespace waymark::mtb
