/// The components before a sink: any program of the registers of funnel, replicator, trace port and cross triggers,
/// with trace and triggers amid it; and any saved registers of them, which are explained.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pft_input.h"
#include "waymark/core/result.h"
#include "waymark/coresight/deformatter.h"
#include "waymark/sink/bus.h"
#include "waymark/sink/cti.h"
#include "waymark/sink/explain.h"
#include "waymark/sink/tmc.h"
#include "waymark/sink/tpiu.h"

namespace {

using namespace waymark;
using coresight::TraceId;
using sink::BusFunnel, sink::BusReplicator, sink::Cti, sink::Tpiu;

using Streams = std::array<std::vector<std::uint8_t>, coresight::trace_ids>;
struct Unpacked {
    Streams bytes;
    void data(TraceId id, Bytes more, Offset) {
        if (coresight::is_source(id)) bytes[id.value].insert(bytes[id.value].end(), more.begin(), more.end());
    }
    void trigger(TraceId, Offset, std::uint8_t) {}
    void gap(const Gap&) {}
    void reset(Offset) {}
};

/// Counts what comes, and whether each source's bytes come in their order: they count up.
struct Ordered final : coresight::BusSink {
    std::array<std::uint8_t, coresight::trace_ids> next{};
    std::uint64_t bytes = 0;
    void write(TraceId id, Bytes more) override {
        for (const std::uint8_t byte : more) WM_CHECK(byte == next[id.value]++);
        bytes += more.size();
    }
    void flush() override {}
};

void check_funnel(fuzz::Input& in) {
    Ordered out;
    BusFunnel funnel(1 + in.byte() % 8, out);
    std::array<std::uint8_t, 8> sent{};
    std::uint64_t taken = 0;
    while (!in.rest().empty()) {
        switch (const unsigned what = in.byte(); what % 4) {
            case 0: {
                const std::uint32_t offset = what / 4 % 3 * 4;
                const std::uint32_t value = in.word();
                if (funnel.write_register(offset, value).empty())
                    WM_CHECK((funnel.read_register(offset) & ~value) == 0);
                break;
            }
            case 1: funnel.pass(what / 4); break;
            default: {
                const unsigned input = what / 4 % funnel.inputs();
                std::vector<std::uint8_t> piece(in.byte() % 20U);
                for (auto& byte : piece) byte = funnel.is_open(input) ? sent[input]++ : std::uint8_t{0};
                if (funnel.is_open(input)) taken += piece.size();
                funnel.offer(input, TraceId{static_cast<std::uint8_t>(0x10 + input)}, piece);
                break;
            }
        }
        WM_CHECK(out.bytes + funnel.waiting_bytes() == taken);
    }
    funnel.flush();
    WM_CHECK(out.bytes == taken && funnel.waiting_bytes() == 0);
}

void check_port(fuzz::Input& in) {
    const std::uint32_t widths = in.word();
    if (!sink::TpiuConfig{.widths = widths}.check()) return;
    Tpiu port({.widths = widths});
    sink::NoSink nothing;
    BusReplicator replicator(port, nothing);
    Streams given;
    std::vector<std::uint8_t> sent;
    bool plain = true;  // one formatter, in continuous mode from the beginning on
    port.write_register(Tpiu::ffcr, Tpiu::en_ftc | Tpiu::en_f_cont);
    const auto take = [&] {
        const auto some = port.take();
        sent.insert(sent.end(), some.begin(), some.end());
    };
    constexpr std::array offsets{Tpiu::sspsr, Tpiu::cspsr, Tpiu::stmr, Tpiu::tcvr, Tpiu::tmr,  Tpiu::stpr,
                                 Tpiu::ctpr,  Tpiu::tprcr, Tpiu::ffsr, Tpiu::ffcr, Tpiu::fscr, std::uint32_t{0xc}};
    while (!in.rest().empty()) {
        switch (const unsigned what = in.byte(); what % 8) {
            case 0: {
                const std::uint32_t offset = offsets[in.byte() % offsets.size()];
                const std::uint32_t value = what < 128 ? in.byte() : in.word();
                const bool was_stopped = port.stopped();
                port.write_register(offset, value);
                if (offset == Tpiu::ffcr && ((value & 3U) != 3 || was_stopped)) plain = false;
                break;
            }
            case 1: port.trigger(); break;
            case 2: port.flush(); break;
            case 3: port.idle(); break;
            case 4: take(); break;
            case 5: WM_CHECK(replicator.write_register(what / 8 % 2 * 4, in.word()).empty()); break;
            default: {
                const TraceId id{static_cast<std::uint8_t>(0x10 + 0x20 * (what % 3))};
                std::vector<std::uint8_t> piece(in.byte() % 40U + 1);
                for (auto& byte : piece) byte = static_cast<std::uint8_t>(in.byte());
                const std::uint64_t before = port.refused_bytes();
                replicator.write(id, piece);
                const auto lost = static_cast<std::ptrdiff_t>(port.refused_bytes() - before);
                auto& all = given[id.value];
                if (replicator.passes(0, id)) all.insert(all.end(), piece.begin(), piece.end() - lost);
            }
        }
        WM_CHECK(port.pins() >= 1 && port.pins() <= 32);
    }
    take();
    static_cast<void>(sink::explain_device("TPIU", port.registers(), true));
    if (!plain) return;
    Unpacked found;
    coresight::Deformatter reader({.framing = coresight::Framing::tpiu});
    reader.feed(sent, found);
    reader.finish(found);
    for (std::size_t id = 0; id < given.size(); ++id) {
        // The last frame may not have left yet.
        WM_CHECK(found.bytes[id].size() <= given[id].size());
        WM_CHECK(std::equal(found.bytes[id].begin(), found.bytes[id].end(), given[id].begin()));
    }
}

void check_triggers(fuzz::Input& in) {
    const unsigned triggers = 1 + in.byte() % 32, channels = 1 + in.byte() % 32;
    Cti first({.triggers = triggers, .channels = channels, .acknowledged = in.word()}), second({});
    sink::Ctm matrix;
    matrix.connect(first);
    matrix.connect(second);
    std::uint32_t outputs = 0;
    first.on_trigger_out([&](unsigned n, bool active) {
        WM_CHECK(n < triggers && (outputs >> n & 1U) != (active ? 1U : 0U));
        outputs ^= 1U << n;
    });
    while (!in.rest().empty()) {
        const unsigned what = in.byte();
        Cti& cti = what % 2 == 0 ? first : second;
        if (what % 4 < 2)
            cti.set_trigger_in(what / 8 % (what % 2 == 0 ? triggers : 8), (what & 4U) != 0);
        else
            cti.write_register(in.byte() * 4U, in.word());
        WM_CHECK(first.read_register(Cti::trigoutstatus) == outputs);
        if (triggers < 32) WM_CHECK(outputs >> triggers == 0);
    }
    static_cast<void>(sink::explain_device("CTI", first.registers()));
}

void check_explained(fuzz::Input& in) {
    constexpr std::string_view types[] = {"Funnel", "Replicator", "TPIU", "CTI"};
    constexpr std::string_view names[] = {"FUNCTL",   "PRICTL",    "IDFILTER0", "IDFILTER1", "FFCR",
                                          "FFSR",     "CSPSR",     "SSPSR",     "FSCR",      "CTPR",
                                          "STMR",     "CTIGATE",   "TCVR",      "Ctrl_Reg",  "CTICONTROL",
                                          "CTIINEN4", "CTIOUTEN1", "CTIINEN31", "CTIAPPSET"};
    std::vector<RegisterValue> registers;
    for (const std::string_view name : names)
        if (const unsigned how = in.byte(); how % 3 != 0)
            registers.push_back({std::string(name), how < 128 ? in.byte() : in.word(), {}, 32});
    for (const std::string_view type : types)
        for (const bool saved : {false, true}) {
            const auto device = sink::explain_device(type, registers, saved);
            WM_CHECK(device && !device->explanation.unit.empty() && !device->explanation.levels.empty());
            for (const protocol::TraceCondition& f : device->explanation.findings)
                WM_CHECK(!f.text.empty() && !f.field.empty() && !f.section.empty());
            WM_CHECK(sink::explain_device(type, {}, saved)->explanation.findings.empty());
        }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size > 4096) return 0;
    fuzz::Input in({data, size});
    switch (in.byte() % 4) {
        case 0: check_funnel(in); break;
        case 1: check_port(in); break;
        case 2: check_triggers(in); break;
        default: check_explained(in); break;
    }
    return 0;
}
