/// Private to this layer: readers of whole streams whose speed matters.
#pragma once

#include <memory>

#include "waymark/core/offset_map.h"
#include "waymark/protocol/packet_rows.h"
#include "waymark/stm/config.h"

namespace waymark::stm {

/// Its Surveyor is a protocol::MessageCounter too.
[[nodiscard]] std::unique_ptr<protocol::Surveyor> make_surveyor(const Config& config, const OffsetMap& offsets);
[[nodiscard]] std::unique_ptr<protocol::Reader> make_row_writer(const Config& config, protocol::PacketRows& rows);

}  // namespace waymark::stm
