/// The model of the macrocell with any registers and choices, given any code and any execution of it: its trace parses
/// without a bad packet and encodes to the same bytes again, and the decoders agree on it. Where the execution kept to
/// the code they also find nothing wrong, and no range that did not run.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <variant>
#include <vector>

#include "pft_input.h"
#include "support/elements.h"
#include "waymark/core/byte_sink.h"
#include "waymark/flow/blocks.h"
#include "waymark/follow/paths.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/encoder.h"
#include "waymark/pft/model.h"
#include "waymark/pft/parser.h"
#include "waymark/pft/reference_decoder.h"

namespace {

using namespace waymark;
using isa::Isa;
using isa::Waypoint;
using pft::Place;
using synthetic::Element;
using synthetic::Kind;

/// The code of the input, then ordinary instructions in every instruction set, longer than a large block, then it
/// again.
class FuzzCode final : public isa::CodeReader {
public:
    static constexpr std::uint32_t base = 0x8000, ordinary_bytes = 0x1400;
    explicit FuzzCode(Bytes code) : bytes_(code.begin(), code.end()) {
        bytes_.resize((bytes_.size() + 3) / 4 * 4 + ordinary_bytes);
        bytes_.insert(bytes_.end(), code.begin(), code.end());
    }
    [[nodiscard]] isa::Code at(Address address, const isa::Space&) const override {
        if (address.value < base || address.value - base >= bytes_.size()) return {};
        return {Bytes(bytes_).subspan(address.value - base), 0};
    }
    [[nodiscard]] isa::Space view(const isa::Space&) const override { return {}; }
    [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(bytes_.size()); }

private:
    std::vector<std::uint8_t> bytes_;
};

std::uint32_t number(fuzz::Input& input, unsigned bytes) {
    std::uint32_t value = 0;
    for (unsigned i = 0; i < bytes; ++i) value |= std::uint32_t{input.byte()} << 8 * i;
    return value;
}

template <class E>
void choose(fuzz::Input& input, E& choice, unsigned count) {
    choice = static_cast<E>(input.byte() % count);
}
void choose(fuzz::Input& input, bool& choice) { choice = (input.byte() & 1U) != 0; }

pft::ModelConfig model_config(fuzz::Input& input) {
    pft::ModelConfig m;
    pft::Registers& r = m.registers;
    r.set(0x79, 0x411cf302 | std::uint32_t{input.byte() % 2U} << 4);
    r.set(0x00, number(input, 4));
    r.set(0x7a, number(input, 4));
    r.set(0x78, input.byte());
    for (unsigned more = input.byte() % 16; more != 0; --more) {
        const std::uint8_t which = input.byte();
        // The settings that decide the form of packets are fixed; the first registers written are mostly comparators.
        if (which != 0x00 && which != 0x79 && which != 0x7a) r.set(which, number(input, 4));
    }
    pft::ModelChoices& c = m.choices;
    choose(input, c.update_base, 3);
    c.return_stack_depth = input.byte();
    choose(input, c.matched_change, 2);
    // Decoders keep an entry that was popped without a sign in the trace: right for a depth of one only
    // (docs/spec/pft.md, 4.5).
    if (c.return_stack_depth > 1) c.matched_change = {};
    choose(input, c.large_block_address, 2);
    choose(input, c.large_block_test, 2);
    choose(input, c.hyp_information, 2);
    choose(input, c.cycle_overflow, 3);
    choose(input, c.start_and_stop, 3);
    choose(input, c.broadcast_barrier, 2);
    choose(input, c.prohibited_entry, 2);
    choose(input, c.short_information);
    choose(input, c.overflow_async);
    choose(input, c.hyp_entry_updates);
    choose(input, c.async_flushes_atoms);
    choose(input, c.timestamp_filter, 2);
    choose(input, c.exception_state, 2);
    choose(input, c.trace_on_timestamp);
    c.fifo_bytes = input.byte();
    c.drain_bytes = input.byte();
    c.drain_cycles = input.byte();
    c.isync_delay_waypoints = input.byte();
    c.packet_delay_cycles = input.byte();
    c.timestamp_first = number(input, 4);
    c.timestamp_numerator = input.byte();
    c.timestamp_denominator = input.byte();
    return m;
}

/// Executes: drives the model, and remembers where blocks ended.
class Core {
public:
    struct Ending {
        std::uint64_t address;
        bool taken, waypoint;
    };

    Core(const pft::ModelConfig& config, const FuzzCode& code, fuzz::Input& input, ByteSink& trace)
        : model_(config, trace), code_(code), input_(input) {
        decode_.dmb_dsb_waypoints = config.packets().barrier_waypoints;
    }

    void run(bool keeps_to_code) {
        at_ = somewhere();
        model_.start(arrival());
        while (!input_.rest().empty()) {
            const unsigned what = input_.byte();
            cycle_ += input_.byte();
            if (!keeps_to_code && (what & 0x80U) != 0)
                anything(what & 0x7fU);
            else if ((what & 0x40U) != 0)
                happening(what & 0x3fU);
            else
                execute(what & 0x3fU);
        }
        model_.finish();
    }
    [[nodiscard]] const std::vector<Ending>& endings() const { return endings_; }

private:
    [[nodiscard]] pft::Arrival arrival() const { return {at_, ns_, hyp_, cycle_}; }
    Place aligned(std::uint32_t address, unsigned isa) {
        constexpr Isa sets[] = {Isa::a32, Isa::t32, Isa::tee, Isa::t32};
        const Isa chosen = sets[isa % 4];
        return {{address & (chosen == Isa::a32 ? ~3U : ~1U)}, chosen};
    }
    /// A place in the code, or now and then anywhere.
    Place somewhere() {
        const std::uint8_t which = input_.byte();
        if ((which & 0x80U) != 0) return aligned(number(input_, 4), which);
        return aligned(FuzzCode::base + number(input_, 2) % code_.size(), which);
    }
    void state(unsigned bits) {
        ns_ = (bits & 1U) != 0;
        hyp_ = ns_ && (bits & 2U) != 0;
    }
    void end(std::uint64_t address, bool taken, bool waypoint) {
        endings_.push_back({address, taken, waypoint});
        some_ = false;
    }

    /// Up to this many instructions, the last of them a waypoint instruction where one comes.
    void execute(unsigned what) {
        unsigned left = what >> 3 == 0 ? 4000 : what >> 3;
        std::uint32_t bytes = 0;
        std::uint8_t last_bytes = 0;
        const auto drive = [&] {
            model_.run(bytes, last_bytes, cycle_);
            bytes = 0;
        };
        for (; left != 0; --left) {
            const auto found = isa::decode_at(code_, {}, at_.address, at_.isa, decode_);
            if (!found) {  // nothing can run here
                drive();
                at_ = somewhere();
                if (at_.isa == Isa::jazelle) at_.isa = Isa::t32;
                some_ = false;
                return model_.discontinuity(arrival());
            }
            const isa::Instruction& i = *found;
            const Place behind{{(at_.address.value + i.bytes) & 0xffffffffU}, at_.isa};
            if (i.undefined) {
                drive();
                const Place raised = at_;
                at_ = behind;
                return exception(9, &raised, i.bytes);
            }
            if (i.waypoint == Waypoint::none) {
                some_ = true;
                if ((what & 4U) != 0 && input_.byte() % 8 == 0) {  // by itself, with a change of state behind it
                    drive();
                    state(input_.byte());
                    model_.retire({at_.address, at_.isa, i, true, (what & 1U) != 0, {}, ns_, hyp_, cycle_});
                } else {
                    bytes += i.bytes;
                    last_bytes = i.bytes;
                }
                at_ = behind;
                continue;
            }
            // A branch without a condition is taken; an indirect one of T32 may be in an IT block.
            const bool always = !i.conditional && (i.waypoint == Waypoint::direct ||
                                                   (i.waypoint == Waypoint::indirect && at_.isa == isa::Isa::a32));
            const bool passed = always || (what & 1U) == 0;
            pft::Retired w{at_.address, at_.isa, i, passed, (input_.byte() & 1U) != 0, behind, ns_, hyp_, {}};
            if (i.waypoint == Waypoint::direct) w.next = {i.target, i.target_isa};
            if (i.waypoint == Waypoint::indirect) {
                w.next = somewhere();
                if (w.passed) state(input_.byte());
                if ((input_.byte() & 0x1fU) == 0x1f) w.next.isa = Isa::jazelle;
            }
            w.ns = ns_;
            w.hyp = hyp_;
            w.cycle = cycle_ += 1 + (what & 2U);
            if ((what & 2U) != 0) {
                model_.retire_block(w, last_bytes);
            } else {
                drive();
                model_.retire(w);
            }
            end(behind.address.value, w.passed, true);
            at_ = w.passed ? w.next : behind;
            return;
        }
        drive();
    }
    void exception(std::uint32_t number, const Place* raised = nullptr, std::uint8_t bytes = 0) {
        pft::ExceptionTaken e;
        e.number = number;
        e.vector = somewhere();
        if (raised != nullptr) {
            e.raised_by = *raised;
            e.raised_by_bytes = bytes;
            some_ = true;
        }
        const std::uint64_t ran_to = at_.address.value;
        state(input_.byte());
        e.ns = ns_;
        e.hyp = hyp_;
        e.cycle = cycle_;
        model_.exception(e);
        if (some_) end(ran_to, false, false);
        at_ = e.vector;
    }

    void happening(unsigned what) {
        const std::uint8_t value = input_.byte();
        const bool level = (value & 0x80U) != 0;
        switch (what % 20) {
            case 0: {
                const std::uint32_t n = value == 1 ? 2U : value == 0 ? 256U : value;
                return exception(n);
            }
            case 1:
                model_.debug_entry(cycle_);
                if (some_) end(at_.address.value, false, false);
                cycle_ += value;
                if (level) model_.set_context_id(number(input_, 4));
                at_ = somewhere();
                state(value);
                return model_.debug_exit(arrival());
            case 2: return model_.set_context_id(number(input_, 4));
            case 3: return model_.set_vmid(value);
            case 4: return model_.request_sync();
            case 5: return model_.flush();
            case 6: return model_.wait(cycle_);
            case 7: return model_.clock_changed();
            case 8: return model_.set_external_input(1 + value % 4, level);
            case 9: return model_.set_extended_input(value & 0x7fU, level);
            case 10: return model_.set_watchpoint(1 + value % 8, level);
            case 11: return model_.set_instrumentation(1 + value % 4, level);
            case 12: return model_.set_authentication({(value & 1U) != 0, (value & 2U) != 0});
            case 13: return model_.set_programming(level, cycle_);
            case 14: return model_.set_user_mode(level);
            case 15:
                at_ = somewhere();
                some_ = false;
                return model_.discontinuity(arrival());
            case 16: cycle_ += number(input_, 4); return;
            case 17: cycle_ += std::uint64_t{number(input_, 4)} << 8; return;
            case 18: ticks_ += number(input_, 4); return model_.set_timestamp(ticks_);
            default: return;
        }
    }

    /// Events that no core produces. Nothing is executed in Jazelle state, though.
    void anything(unsigned what) {
        constexpr Isa sets[] = {Isa::a32, Isa::t32, Isa::tee, Isa::jazelle};
        const auto place = [&](unsigned count = 3) {
            const std::uint32_t address = number(input_, 4);
            return Place{{address}, sets[input_.byte() % count]};
        };
        const auto instruction = [&] {
            isa::Instruction i;
            const std::uint8_t bits = input_.byte();
            i.bytes = (bits & 1U) != 0 ? 4 : 2;
            i.waypoint = static_cast<Waypoint>(bits >> 1 & 3U);
            i.link = (bits & 8U) != 0;
            i.exception_return = (bits & 16U) != 0;
            return i;
        };
        const auto retired = [&] {
            const Place from = place();
            pft::Retired r{from.address, from.isa, instruction(), true, false, place(4), false, false, cycle_};
            const std::uint8_t bits = input_.byte();
            r.passed = (bits & 1U) != 0;
            r.dmb_dsb = (bits & 2U) != 0;
            r.ns = (bits & 4U) != 0;
            r.hyp = (bits & 8U) != 0;
            return r;
        };
        switch (what % 5) {
            case 0: return model_.retire(retired());
            case 1: {
                pft::Retired r = retired();
                if (r.instruction.waypoint == Waypoint::none) r.instruction.waypoint = Waypoint::direct;
                return model_.retire_block(r, input_.byte() % 3 * 2);
            }
            case 2: {
                const std::uint32_t bytes = number(input_, 2) * 2;
                return model_.run(bytes, bytes < 4 || input_.byte() % 2 == 0 ? 2 : 4, cycle_);
            }
            case 3: {
                const std::uint8_t bits = input_.byte();
                return model_.exception({number(input_, 2) & 0x1ffU, place(), (bits & 1U) != 0, (bits & 2U) != 0,
                                         cycle_, (bits & 4U) != 0 ? std::optional(place()) : std::nullopt, 2});
            }
            default: return model_.debug_entry(cycle_);
        }
    }

    pft::Model model_;
    const FuzzCode& code_;
    fuzz::Input& input_;
    isa::DecodeOptions decode_;
    Place at_;
    bool ns_ = false, hyp_ = false;
    bool some_ = false;  // an instruction ran since the last waypoint
    std::uint64_t cycle_ = 100, ticks_ = 0;
    std::vector<Ending> endings_;
};

struct Collector {
    std::vector<pft::Packet> packets;
    template <class P>
    void operator()(const P& packet, pft::Extent) {
        packets.emplace_back(packet);
    }
    void operator()(const Gap&) { std::abort(); }
};

void check_packets(const pft::Config& config, Bytes bytes) {
    Collector parsed;
    pft::Parser<Collector> parser(config, parsed);
    parser.feed(bytes);
    parser.finish();
    std::vector<std::uint8_t> again;
    for (const pft::Packet& packet : parsed.packets) pft::encode(again, packet, config);
    if (!std::equal(again.begin(), again.end(), bytes.begin(), bytes.end())) std::abort();
}

template <class Decoder>
std::vector<Element> decode(const pft::Config& config, const isa::CodeReader& code, Bytes bytes) {
    synthetic::ElementSink sink;
    flow::BlockTable table;
    flow::BatchWriter out(table, sink);
    follow::usual_paths.eager = true;  // inputs are short
    Decoder decoder(config, code, out);
    decoder.feed(bytes);
    decoder.finish();
    return sink.take();
}

/// The decoders find nothing wrong, and each decoded range ran, in this order.
void check_flow(const std::vector<Element>& decoded, const std::vector<Core::Ending>& ran) {
    auto next = ran.begin();
    for (std::size_t i = 0; i < decoded.size(); ++i) {
        const Element& e = decoded[i];
        if (e.kind == Kind::gap || e.kind == Kind::no_memory || e.kind == Kind::inconsistency) {
            std::fprintf(stderr, "%s\n", synthetic::to_text(e).c_str());
            std::abort();
        }
        if (e.kind != Kind::range) continue;
        const std::uint64_t end = (e.block.start + e.block.bytes) & 0xffffffffU;
        const bool waypoint = e.block.end != flow::End::not_a_waypoint;
        // The front of a large block: its waypoint instruction comes next.
        if (!waypoint) {
            std::size_t j = i + 1;
            while (j < decoded.size() && decoded[j].kind != Kind::range && decoded[j].kind != Kind::exception) ++j;
            if (j < decoded.size() && decoded[j].kind == Kind::range && decoded[j].block.start == end) continue;
        }
        next = std::find_if(next, ran.end(), [&](const Core::Ending& r) {
            return (r.address & 0xffffffffU) == end && r.waypoint == waypoint && r.taken == e.taken;
        });
        if (next == ran.end()) std::abort();
        ++next;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input({data, std::min<std::size_t>(size, 4096)});
    const bool keeps_to_code = (input.byte() & 1U) == 0;
    const pft::ModelConfig model = model_config(input);
    const FuzzCode code(input.take(input.byte()));
    ByteCollector trace;
    Core core(model, code, input, trace);
    core.run(keeps_to_code);

    check_packets(model.packets(), trace.bytes());
    for (const bool other : {false, true}) {
        using Base = pft::ModelChoices::UpdateBase;
        using Hyp = pft::ModelChoices::HypInformation;
        const pft::ModelChoices& choices = model.choices;
        pft::Config config = model.packets();
        config.update_is_compression_base =
            choices.update_base == Base::either ? !other : choices.update_base == Base::is_base;
        config.hyp_kept_without_info_1 = choices.hyp_information == Hyp::changed || !other;
        const auto reference = decode<pft::ReferenceDecoder>(config, code, trace.bytes());
        if (decode<pft::Decoder>(config, code, trace.bytes()) != reference) std::abort();
        if (keeps_to_code) check_flow(reference, core.endings());
    }
    return 0;
}
