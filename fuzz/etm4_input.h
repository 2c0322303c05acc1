/// Turns the first bytes of a fuzz input into a configuration of ETMv4 or ETE.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "pft_input.h"
#include "waymark/etm4/config.h"

namespace waymark::fuzz {

/// Any registers, each there or missing.
inline etm4::Config etm4_config(Input& input) {
    etm4::RegisterValues r;
    const unsigned given = input.byte();
    unsigned bit = 0;
    for (auto* value : {&r.configr, &r.traceidr, &r.idr0, &r.idr1, &r.idr2, &r.idr8, &r.devarch}) {
        if ((given >> bit++ & 1U) == 0) continue;
        std::uint32_t word = 0;
        for (unsigned i = 0; i < 4; ++i) word = word << 8 | input.byte();
        *value = word;
    }
    const auto profile = static_cast<etm4::CoreProfile>(input.byte() % 3);
    const etm4::ReadConfig read = etm4::read_config(r, profile);
    // The registers of a configuration give the same configuration, except for what the notes say.
    const etm4::ReadConfig again = etm4::read_config(etm4::to_registers(read.config), profile);
    if (read.notes.empty() && again.config.version != read.config.version) std::abort();
    return read.config;
}

}  // namespace waymark::fuzz
