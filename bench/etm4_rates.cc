/// How fast the packets of ETMv4 are parsed and encoded, beside OpenCSD's packet processor where its library is. The
/// stream has the packets of real captures (Linux on Cortex-A53 and A57) in the shares they have there; items are
/// packets.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <random>
#include <utility>
#include <variant>
#include <vector>

#include "waymark/etm4/encoder.h"
#include "waymark/etm4/parser.h"
#include "waymark/etm4/state.h"

#ifdef WAYMARK_OPENCSD
#include <opencsd/c_api/opencsd_c_api.h>
#endif

namespace {

using namespace waymark;
using namespace waymark::etm4;

constexpr std::size_t stream_packets = 4 << 20;

struct Stream {
    Config config;
    std::vector<Packet> packets;
    std::vector<std::uint8_t> bytes;
};

Atoms atoms_of_format(unsigned format, wire::Random& random) {
    for (;;) {
        const auto header = static_cast<std::uint8_t>(0xc0 + random() % 64);
        if (atom_format(header) == format) return atoms_of(header);
    }
}

/// One packet, by its share of a thousand.
Packet usual(wire::Random& random) {
    constexpr std::array<std::pair<unsigned, unsigned>, 6> formats{
        {{3, 340}, {1, 112}, {5, 105}, {2, 83}, {6, 42}, {4, 42}}};
    auto draw = static_cast<unsigned>(random() % 1000);
    for (const auto& [format, share] : formats) {
        if (draw < share) return Atom{atoms_of_format(format, random)};
        draw -= share;
    }
    SentAddress address;
    const auto sized = [&](std::uint8_t bytes) {
        address.bytes = bytes;
        address.value = random() & address_mask(bytes, false);
        return address;
    };
    if (draw < 114) return ShortAddress{sized(static_cast<std::uint8_t>(1 + random() % 2))};
    if (draw < 217) return LongAddress{sized(4)};
    if (draw < 262) return ExactMatchAddress{static_cast<std::uint8_t>(random() % 3)};
    if (draw < 268) return LongAddress{sized(8)};
    if (draw < 271) return Exception{.type_4_0 = 0xe, .e0 = true};
    if (draw < 274) {
        AddressWithContext packet;
        packet.address = sized(8);
        packet.el = 1;
        packet.ns = packet.sf = true;
        return packet;
    }
    return Timestamp{.value = {random() & 0x1ffffff, 4}, .cycles = 0, .has_cycles = false};
}

const Stream& stream() {
    static Stream s;
    if (!s.bytes.empty()) return s;
    s.config.version = 0x43;
    wire::Random random(1);
    for (std::size_t i = 0; i < stream_packets; ++i) {
        // Every 4 KB of trace or so.
        if (i % 2600 == 0) {
            s.packets.emplace_back(ASync{});
            s.packets.emplace_back(TraceInfo{});
        }
        s.packets.push_back(usual(random));
    }
    for (const Packet& packet : s.packets) encode(s.bytes, packet, s.config);
    return s;
}

void count(benchmark::State& state, const Stream& s) {
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * s.packets.size()));
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * s.bytes.size()));
}

/// Only counts, to see that all packets arrived.
struct Counter {
    std::uint64_t packets = 0, gaps = 0, atoms = 0;
    void operator()(const Atom& packet, Extent) { ++packets, atoms += packet.atoms.count; }
    void operator()(const auto&, Extent) { ++packets; }
    void operator()(const Gap&) { ++gaps; }
};
void parse(benchmark::State& state) {
    const Stream& s = stream();
    for (auto _ : state) {
        Counter counter;
        FastParser<Counter> parser(s.config, counter);
        parser.feed(s.bytes);
        parser.finish();
        if (counter.packets != s.packets.size() || counter.gaps != 0) state.SkipWithError("packets are missing");
        benchmark::DoNotOptimize(counter.atoms);
    }
    count(state, s);
}
BENCHMARK(parse)->Unit(benchmark::kMillisecond);

/// Completes addresses and timestamps too, as OpenCSD's packet processor does.
struct Completer {
    PacketState state;
    std::uint64_t packets = 0, gaps = 0, sum = 0;
    template <class P>
    void operator()(const P& packet, Extent) {
        ++packets;
        const Meaning meaning = state(packet);
        if (meaning.address) sum += meaning.address->address.value;
    }
    void operator()(const Gap& gap) { state(gap), ++gaps; }
};
void parse_and_complete(benchmark::State& state) {
    const Stream& s = stream();
    for (auto _ : state) {
        Completer completer{.state = PacketState(s.config)};
        FastParser<Completer> parser(s.config, completer);
        parser.feed(s.bytes);
        parser.finish();
        if (completer.packets != s.packets.size() || completer.gaps != 0) state.SkipWithError("packets are missing");
        benchmark::DoNotOptimize(completer.sum);
    }
    count(state, s);
}
BENCHMARK(parse_and_complete)->Unit(benchmark::kMillisecond);

void encode_all(benchmark::State& state) {
    const Stream& s = stream();
    std::vector<std::uint8_t> out;
    for (auto _ : state) {
        out.clear();
        for (const Packet& packet : s.packets) encode(out, packet, s.config);
        benchmark::DoNotOptimize(out.data());
    }
    count(state, s);
}
BENCHMARK(encode_all)->Unit(benchmark::kMillisecond);

#ifdef WAYMARK_OPENCSD
ocsd_datapath_resp_t take(const void* context, const ocsd_datapath_op_t op, const ocsd_trc_index_t, const void*) {
    if (op == OCSD_OP_DATA) ++*static_cast<std::uint64_t*>(const_cast<void*>(context));
    return OCSD_RESP_CONT;
}

void opencsd(benchmark::State& state) {
    const Stream& s = stream();
    const RegisterValues r = to_registers(s.config);
    for (auto _ : state) {
        const dcd_tree_handle_t tree = ocsd_create_dcd_tree(OCSD_TRC_SRC_SINGLE, 0);
        ocsd_etmv4_cfg config{};
        config.reg_idr0 = *r.idr0;
        config.reg_idr1 = *r.idr1;
        config.reg_idr2 = *r.idr2;
        config.reg_configr = *r.configr;
        config.arch_ver = ARCH_V8;
        config.core_prof = profile_CortexA;
        unsigned char id = 0;
        std::uint64_t packets = 0;
        if (ocsd_dt_create_decoder(tree, OCSD_BUILTIN_DCD_ETMV4I, OCSD_CREATE_FLG_PACKET_PROC, &config, &id) !=
                OCSD_OK ||
            ocsd_dt_attach_packet_callback(tree, id, OCSD_C_API_CB_PKT_SINK, reinterpret_cast<void*>(&take),
                                           &packets) != OCSD_OK)
            state.SkipWithError("OpenCSD refuses the configuration");
        for (std::size_t at = 0; at < s.bytes.size();) {
            const auto piece = static_cast<std::uint32_t>(std::min<std::size_t>(s.bytes.size() - at, 1 << 20));
            std::uint32_t used = 0;
            if (OCSD_DATA_RESP_IS_FATAL(ocsd_dt_process_data(tree, OCSD_OP_DATA, static_cast<ocsd_trc_index_t>(at),
                                                             piece, s.bytes.data() + at, &used)))
                break;
            at += used;
        }
        ocsd_destroy_dcd_tree(tree);
        if (packets != s.packets.size()) state.SkipWithError("OpenCSD gives another number of packets");
    }
    count(state, s);
}
BENCHMARK(opencsd)->Unit(benchmark::kMillisecond);
#endif

}  // namespace

BENCHMARK_MAIN();
