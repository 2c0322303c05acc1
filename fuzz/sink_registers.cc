/// Trace buffers: on the model, any program of registers, mixed with trace and triggers, leaves only input bytes in
/// memory, in their order; and saved registers of any value are explained: if a part of the registers shows that
/// nothing is traced, all registers show it.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/coresight/deformatter.h"
#include "waymark/sink/explain.h"
#include "waymark/sink/tmc.h"

namespace {

using namespace waymark;
using coresight::TraceId;
using sink::Tmc;

class Bytewise {
public:
    Bytewise(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
    [[nodiscard]] bool empty() const { return at_ == size_; }
    std::uint8_t next() { return empty() ? std::uint8_t{0} : data_[at_++]; }
    std::uint32_t word() {
        std::uint32_t out = 0;
        for (unsigned i = 0; i < 4; ++i) out |= std::uint32_t{next()} << 8 * i;
        return out;
    }

private:
    const std::uint8_t* data_;
    std::size_t size_, at_ = 0;
};

struct Unpacked {
    std::array<std::vector<std::uint8_t>, coresight::trace_ids> bytes;
    void data(TraceId id, Bytes more, Offset) {
        if (coresight::is_source(id)) bytes[id.value].insert(bytes[id.value].end(), more.begin(), more.end());
    }
    void trigger(TraceId, Offset, std::uint8_t) {}
    void gap(const Gap&) {}
    void reset(Offset) {}
};

constexpr std::array offsets{Tmc::rsz,  Tmc::sts,  Tmc::rrd,       Tmc::rrp,       Tmc::rwp,   Tmc::trg,   Tmc::ctl,
                             Tmc::rwd,  Tmc::mode, Tmc::lbuflevel, Tmc::bufwm,     Tmc::rrphi, Tmc::rwphi, Tmc::axictl,
                             Tmc::ffsr, Tmc::ffcr, Tmc::pscr,      Tmc::cbuflevel, Tmc::dbalo, Tmc::dbahi};

void check_model(Bytewise& in) {
    const auto kind = static_cast<sink::SinkKind>(in.next() % 4);
    Tmc tmc({.kind = kind, .memory_bytes = 64U * (in.next() % 16U + 1)});
    std::array<std::vector<std::uint8_t>, coresight::trace_ids> given;
    // What is written to memory through RWD, read, or kept from another session is not what sources sent.
    bool plain = true;
    unsigned sessions = 0;
    while (!in.empty()) {
        switch (const std::uint8_t what = in.next(); what % 8) {
            case 0:
            case 1: {
                const std::uint32_t offset = offsets[in.next() % offsets.size()];
                const std::uint32_t value = what < 128 ? in.next() : in.word();
                // An unformatted stream has no sources.
                if (offset == Tmc::ffcr && (value & sink::Ffcr::en_ft) == 0) plain = false;
                const bool on = (tmc.read_register(Tmc::ctl) & 1U) != 0;
                const std::string refused = tmc.write_register(offset, value);
                if (refused.empty() && (offset == Tmc::rwd || offset == Tmc::rwp || offset == Tmc::rrp)) plain = false;
                if (refused.empty() && offset == Tmc::ctl && (value & 1U) != 0 && !on) {
                    if (++sessions > 1 || (tmc.read_register(Tmc::ffcr) & sink::Ffcr::en_ft) == 0) plain = false;
                }
                break;
            }
            case 2: {
                const std::uint32_t offset = offsets[in.next() % offsets.size()];
                if (offset == Tmc::rrd) plain = false;
                static_cast<void>(tmc.read_register(offset));
                break;
            }
            case 3: tmc.trigger(); break;
            case 4: tmc.flush(); break;
            case 5:
                if (!tmc.drain(16U * (in.next() % 8U)).empty()) plain = false;
                break;
            default: {
                const TraceId id{static_cast<std::uint8_t>(0x10 + what % 3)};
                std::vector<std::uint8_t> piece(in.next() % 40U + 1);
                for (auto& byte : piece) byte = in.next();
                const std::uint64_t before = tmc.refused_bytes();
                tmc.write(id, piece);
                const auto taken = static_cast<std::ptrdiff_t>(piece.size() - (tmc.refused_bytes() - before));
                WM_CHECK(taken >= 0);
                auto& all = given[id.value];
                all.insert(all.end(), piece.begin(), piece.begin() + taken);
            }
        }
        WM_CHECK(tmc.contents().size() <= tmc.memory_bytes());
    }
    static_cast<void>(sink::explain(kind, tmc.registers(), true));
    if (!plain) return;
    Unpacked found;
    coresight::Deformatter reader;
    reader.feed(tmc.contents(), found);
    reader.finish(found);
    for (std::size_t id = 0; id < given.size(); ++id) {
        const auto& part = found.bytes[id];
        const auto& whole = given[id];
        // The last frame may not be in memory yet.
        WM_CHECK(part.size() <= whole.size());
        if (!part.empty()) WM_CHECK(std::search(whole.begin(), whole.end(), part.begin(), part.end()) != whole.end());
    }
}

void check_explained(Bytewise& in) {
    const auto kind = static_cast<sink::SinkKind>(in.next() % 4);
    std::vector<RegisterValue> all, part;
    for (const std::uint32_t offset : offsets) {
        const std::uint8_t how = in.next();
        if (how % 4 == 0) continue;
        all.push_back({std::string(Tmc::register_name(offset)), how < 128 ? in.next() : in.word(), {}, 32});
        if (how % 4 != 1) part.push_back(all.back());
    }
    for (const bool saved : {false, true}) {
        const protocol::UnitExplanation whole = sink::explain(kind, all, saved);
        WM_CHECK(!whole.unit.empty() && !whole.levels.empty());
        for (const protocol::TraceCondition& f : whole.findings) WM_CHECK(!f.text.empty() && !f.section.empty());
        WM_CHECK(sink::explain(kind, {}, saved).findings.empty());
        for (const protocol::TraceCondition& f : sink::explain(kind, part, saved).findings)
            if (f.effect == protocol::TraceEffect::stops)
                WM_CHECK(std::find(whole.findings.begin(), whole.findings.end(), f) != whole.findings.end());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size > 4096) return 0;
    Bytewise in(data, size);
    if (in.next() % 2 == 0)
        check_model(in);
    else
        check_explained(in);
    return 0;
}
