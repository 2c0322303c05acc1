/// The event of a statistical profile, and the unit's programming for it.
#pragma once

#include <cstdint>
#include <string_view>

#include "waymark/core/result.h"
#include "waymark/spe/model.h"

namespace waymark::record {

/// The programming of the unit; names and meaning as in perf's arm_spe events (docs/spec/spe.md, section 5.1).
struct SpeOptions {
    std::uint32_t period = 4096;  ///< operations from sample to sample; the low 8 bits have no effect
    bool ts_enable = true, pa_enable = false, jitter = true;
    bool branch_filter = false, load_filter = false, store_filter = false;  ///< any: only these
    bool discard = false;                                                   ///< the unit profiles, and writes nothing
    bool simd_filter = false, float_filter = false;
    /// With a mask, the type must equal the filter exactly, regardless of the other filters.
    bool branch_filter_mask = false, load_filter_mask = false, store_filter_mask = false, simd_filter_mask = false,
         float_filter_mask = false;
    std::uint64_t event_filter = 0;         ///< only operations with all of these events (4.5)
    std::uint32_t min_latency = 0;          ///< only operations that took at least this number of cycles
    std::uint64_t inv_event_filter = 0;     ///< only operations with none of these events
    std::uint64_t inv_data_src_filter = 0;  ///< no loads from these data sources, a bit for each modulo 64

    /// Calls `f(name, value, bit count, explanation)` for every term of the event.
    static void for_each(auto& o, auto&& f) {
        f("ts_enable", o.ts_enable, "records have timestamps");
        f("pa_enable", o.pa_enable, "records have physical addresses");
        f("jitter", o.jitter, "each interval is lengthened by up to 255, drawn");
        f("branch_filter", o.branch_filter, "keep branches");
        f("load_filter", o.load_filter, "keep loads, and atomics that give a value back");
        f("store_filter", o.store_filter, "keep stores and atomics");
        f("event_filter", o.event_filter, "keep operations with all of these events");
        f("min_latency", o.min_latency, "keep operations with at least this number of cycles, up to 4095");
        f("inv_event_filter", o.inv_event_filter, "keep operations with none of these events; v1.2");
        f("inv_data_src_filter", o.inv_data_src_filter, "keep no loads from these data sources; v1.4");
        f("simd_filter", o.simd_filter, "keep SIMD and SVE; v1.4");
        f("float_filter", o.float_filter, "keep floating point; v1.4");
        f("branch_filter_mask", o.branch_filter_mask, "branches exactly as branch_filter says; v1.4");
        f("load_filter_mask", o.load_filter_mask, "loads exactly as load_filter says; v1.4");
        f("store_filter_mask", o.store_filter_mask, "stores exactly as store_filter says; v1.4");
        f("simd_filter_mask", o.simd_filter_mask, "SIMD exactly as simd_filter says; v1.4");
        f("float_filter_mask", o.float_filter_mask, "floating point exactly as float_filter says; v1.4");
        f("discard", o.discard, "write nothing; v1.2");
    }
    [[nodiscard]] std::uint64_t config() const;
    /// Whether types are filtered by the extended filter (FEAT_SPE_EFT).
    [[nodiscard]] bool extended_types() const {
        return simd_filter || float_filter || branch_filter_mask || load_filter_mask || store_filter_mask ||
               simd_filter_mask || float_filter_mask;
    }
    /// The lowest version that has the requested terms: the unit is of that version.
    [[nodiscard]] spe::Version version() const;
    /// Sets the registers as the driver does, except interval and buffer.
    void program(spe::Registers& registers) const;
    /// The unit of this version or a later one, programmed so, with the choices of a Neoverse.
    [[nodiscard]] spe::ModelConfig unit(spe::Version version, const spe::ProfilingBuffer& buffer) const;
};
/// Parses an event in perf's notation: `arm_spe/load_filter=1,min_latency=30/`; a name without a value is 1. Errors:
/// `usage`.
[[nodiscard]] Status set_from_event(SpeOptions& options, std::string_view event);
/// Errors: `usage`.
[[nodiscard]] Status check(const SpeOptions& options);

}  // namespace waymark::record
