/// Ranges per second of the decoders of ETMv4 (bench/flow_rates.h) on the streams of tests/support/measured_a64.h.
#include "flow_rates.h"

#include "support/measured_a64.h"
#include "waymark/etm4/decoder.h"
#include "waymark/etm4/parallel_decoder.h"
#include "waymark/etm4/reference_decoder.h"

namespace {

using namespace waymark;

struct Etm4 {
    static constexpr const char* program = "etm4_flow_rates";
    static constexpr const char* streams = synthetic::measured_a64_streams;
    // With return stack and exceptions, OpenCSD 1.3.3 ends with a segmentation fault
    // (TrcPktDecodeEtmV4I::processException).
    static constexpr const char* crash_opencsd = "d";
    using Part = synthetic::MeasuredA64Part;
    using Stream = synthetic::MeasuredA64Stream;
    using Decoder = etm4::Decoder;
    using ReferenceDecoder = etm4::ReferenceDecoder;
    using ParallelDecoder = etm4::ParallelDecoder;
    static Stream make(char which) { return synthetic::measured_a64_stream(which, bench::waypoints()); }
#ifdef WAYMARK_OPENCSD
    static bool create_decoder(dcd_tree_handle_t tree, const Part& part) {
        const etm4::RegisterValues r = etm4::to_registers(part.config);
        unsigned char id = 0;
        if (part.config.ete()) {
            const ocsd_ete_cfg config{*r.idr0,    *r.idr1,       *r.idr2, *r.idr8,        *r.devarch,
                                      *r.configr, part.id.value, ARCH_V8, profile_CortexA};
            return ocsd_dt_create_decoder(tree, OCSD_BUILTIN_DCD_ETE,
                                          OCSD_CREATE_FLG_FULL_DECODER | ETE_OPFLG_PKTDEC_SRCADDR_N_ATOMS, &config,
                                          &id) == OCSD_OK;
        }
        ocsd_etmv4_cfg config{};
        config.reg_idr0 = *r.idr0;
        config.reg_idr1 = *r.idr1;
        config.reg_idr2 = *r.idr2;
        config.reg_idr8 = *r.idr8;
        config.reg_configr = *r.configr;
        config.reg_traceidr = part.id.value;
        config.arch_ver = ARCH_V8;
        config.core_prof = profile_CortexA;
        return ocsd_dt_create_decoder(tree, OCSD_BUILTIN_DCD_ETMV4I, OCSD_CREATE_FLG_FULL_DECODER, &config, &id) ==
               OCSD_OK;
    }
#endif
};

}  // namespace

int main(int argc, char** argv) {
    return bench::main_of(argc, argv, [](auto&& f) { bench::for_each_decoder<Etm4>(f); });
}
