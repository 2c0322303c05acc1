#include "waymark/mtb/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "waymark/core/numbers.h"
#include "waymark/mtb/arrangement.h"
#include "waymark/mtb/decoder.h"
#include "waymark/mtb/encoder.h"
#include "waymark/mtb/listing.h"
#include "waymark/mtb/parser.h"
#include "waymark/mtb/register_reference.h"
#include "waymark/mtb/registers.h"
#include "waymark/mtb/text.h"
#include "waymark/protocol/adapters.h"
#include "waymark/protocol/listed_packets.h"
#include "waymark/protocol/ring.h"

namespace waymark::mtb {

namespace {

using protocol::CaptureFinding;
using protocol::Certainty;
using protocol::Setting;
using protocol::Stretch;
using protocol::Survey;

/// Results of a survey that only an MTB has.
class More {
public:
    explicit More(const Config&) {}
    void see(const JumpPacket& packet, Extent at, const OffsetMap& offsets, Survey& survey) {
        if (!survey.first_sync) survey.first_sync = offsets.capture(at.first);
        starts_ += packet.starts() ? 1 : 0;
        breaks_ += before_ && !can_follow(*before_, packet) ? 1 : 0;
        before_ = packet;
    }
    void gap() { before_.reset(); }
    void finish(Survey& survey) const {
        if (starts_ > 1)
            survey.troubles.push_back(
                fmt::format("tracing began {}; execution between is missing", counted(starts_, "time")));
        if (breaks_ != 0)
            survey.troubles.push_back(fmt::format(
                "{} cannot follow the packet before: software may have used the memory, or the oldest packet "
                "is another one",
                counted(breaks_, "packet")));
    }

private:
    std::optional<JumpPacket> before_;
    std::uint64_t starts_ = 0, breaks_ = 0;
};

/// Collects the addresses in the trace.
class NamedAddresses {
public:
    NamedAddresses(const Config&, const std::function<void(const follow::Place&)>& take) : take_(take) {}
    void operator()(const JumpPacket& p, Extent) {
        if (p.destination.address < first_return_value) take_({{p.destination.address}, isa::Isa::t32});
    }
    void operator()(const Gap&) {}

private:
    const std::function<void(const follow::Place&)>& take_;
};

/// Whether a return to this value exists in ARMv8-M only: FNC_RETURN of a function that Non-secure code called, or an
/// EXC_RETURN with bit 6 clear, which means that the registers are on a Non-secure stack (docs/spec/mtb.md, 1).
bool is_armv8_return(std::uint32_t value) {
    constexpr std::uint32_t fnc_return = 0xfefffffe, exc_return = 0xffffff80, secure_stack = 0x40;
    return value == fnc_return || ((value & exc_return) == exc_return && (value & secure_stack) == 0);
}

/// The result of parsing. In words with another meaning, pairs do not lead forward to the next pair.
struct Likeness : protocol::Likeness {
    std::uint64_t pairs{}, breaks{}, backward{}, starts{}, exceptions{};
    std::uint64_t armv8_returns{};  ///< values that only ARMv8-M has as return addresses
    bool different = false;         ///< packets differ
    std::optional<JumpPacket> before{};
    std::vector<JumpPacket> all{};

    void see(const JumpPacket& packet, Extent, const Stretch&) {
        if (before && !packet.starts()) {
            ++pairs;
            // Address 0 contains the first word of a vector table, not code.
            breaks += can_follow(*before, packet) && packet.destination.address != 0 ? 0 : 1;
            different |= *before != packet;
        }
        backward += packet.destination.address < packet.source.address ? 1 : 0;
        starts += packet.starts() ? 1 : 0;
        exceptions += packet.atomic() && packet.source.address < first_return_value ? 1 : 0;
        armv8_returns += is_armv8_return(packet.destination.address) ? 1 : 0;
        before = packet;
        all.push_back(packet);
    }
    /// Whether the pairs are convincing. One break occurs where a buffer wrapped. Sorted numbers also lead forward, but
    /// never back.
    [[nodiscard]] bool convinces() const {
        return pairs >= 3 && different && breaks <= 1 + pairs / 16 && (pairs >= 6 || breaks == 0) &&
               backward * 8 >= packets;
    }
    /// The pairs that follow one another, if they are too many for words that only resemble them.
    [[nodiscard]] std::uint64_t linked() const {
        constexpr std::uint64_t least_linked = 6;
        return pairs - breaks < least_linked ? 0 : pairs - breaks;
    }
    [[nodiscard]] std::string text() const {
        return fmt::format("{}, {} of which cannot follow the one before",
                           counted(packets, "pair of words", "pairs of words"), breaks);
    }
};

using FlowBase = protocol::FlowConfigurationOf<protocol::ConfigurationOf<Config, Parser, Explainer, More>, Parser,
                                               ReferenceDecoder, Decoder, NamedAddresses>;
class Configured final : public FlowBase, public protocol::RingSource {
public:
    using FlowBase::FlowBase;
    [[nodiscard]] const protocol::Protocol& protocol() const override { return row(); }
    [[nodiscard]] std::string source_type() const override { return "MTB"; }
    [[nodiscard]] std::string core_type() const override {
        return config_.core.empty() ? FlowBase::core_type() : config_.core;
    }
    [[nodiscard]] std::shared_ptr<const protocol::Configuration> beside(std::string_view core) const override {
        // The attributes of an ELF file give, for example, `ARMv8-M.main`.
        const std::string_view architecture = core.substr(0, core.find("-M") == core.npos ? 0 : core.find("-M") + 2);
        if (architecture.empty() || architecture == core_type()) return nullptr;
        // A core also runs code of earlier architectures.
        if (core_type().starts_with("ARMv8") && !architecture.starts_with("ARMv8")) return nullptr;
        Config config = config_;
        config.core = architecture;
        return configuration(config);
    }
    [[nodiscard]] std::vector<RegisterValue> registers() const override {
        std::vector<RegisterValue> out;
        const auto add = [&](std::string_view name, const std::optional<std::uint32_t>& value) {
            if (value) out.push_back({std::string(name), *value});
        };
        add(MtbPosition::name, config_.position);
        add(MtbMaster::name, config_.master);
        add(MtbFlow::name, config_.flow);
        add(MtbBase::name, config_.base);
        if (config_.vtor != 0) add(Vtor::name, config_.vtor);
        return out;
    }
    [[nodiscard]] std::vector<Setting> settings() const override {
        std::vector<Setting> out;
        if (config_.master)
            out.push_back({"buffer_bytes", std::uint64_t{1} << (from_value<MtbMaster>(*config_.master).mask + 4U)});
        if (config_.position) {
            const auto position = from_value<MtbPosition>(*config_.position);
            out.push_back({"pointer", fmt::format("{:#010x}", *config_.position & ~7U)});
            out.push_back({"wrapped", position.wrap});
        }
        if (config_.base) out.push_back({"base", fmt::format("{:#010x}", *config_.base)});
        out.push_back({"vector_table", fmt::format("{:#010x}", config_.vtor)});
        return out;
    }
    [[nodiscard]] std::unique_ptr<follow::Parallel> parallel_decoder(
        const isa::CodeReader& code, flow::BlockTable& table, flow::Sink& sink,
        const follow::ParallelOptions& options) const override {
        return std::make_unique<ParallelDecoder>(config_, code, table, sink, options);
    }
    [[nodiscard]] protocol::Arrangement arrange(Bytes dump) const override { return mtb::arrange(dump, config_); }
};

class ProtocolRow final : public protocol::Protocol, public protocol::ListedPackets {
public:
    [[nodiscard]] const protocol::Words& words() const override {
        static constexpr protocol::Words words{.unit = "MTB",
                                               .unit_title = "Micro Trace Buffer",
                                               .trace = "Micro Trace Buffer jumps",
                                               .title = "Micro Trace Buffer (MTB)",
                                               .types = "MTB",
                                               .settings = "MTB_POSITION and MTB_MASTER",
                                               .core_type = "ARMv6-M",
                                               .sync = "packet",
                                               .sync_bytes = "a source and a destination, 8 bytes",
                                               .type_names = {"MTB"}};
        return words;
    }
    [[nodiscard]] std::string type_of_option(std::string_view option) const override {
        return protocol::upper(option) == "MTB" ? "MTB" : "";
    }
    [[nodiscard]] std::string_view option_names() const override { return "mtb"; }
    [[nodiscard]] UnitReference register_reference() const override { return mtb::register_reference(); }
    void visit_register(const RegisterValue& value, protocol::FieldVisitor& visitor) const override {
        protocol::visit_one_of<MtbPosition, MtbMaster, MtbFlow, MtbBase, Vtor>(value, visitor);
    }
    [[nodiscard]] protocol::Configured configure(const protocol::Description& source) const override {
        Config config;
        const auto take = [&](std::string_view name, auto& into) {
            if (const RegisterValue* r = find_register(source.registers, name))
                into = static_cast<std::uint32_t>(r->value);
        };
        take(MtbPosition::name, config.position);
        take(MtbMaster::name, config.master);
        take(MtbFlow::name, config.flow);
        take(MtbBase::name, config.base);
        take(Vtor::name, config.vtor);
        return {configuration(config), {}};  // missing registers may not matter: arrange() reports them
    }
    [[nodiscard]] bool decodes_flow() const override { return true; }
    [[nodiscard]] bool aarch32_only() const override { return true; }
    [[nodiscard]] std::vector<std::string> packet_names() const override { return protocol::names_of<Packets>(); }

    [[nodiscard]] bool identify(const std::vector<Stretch>& stretches, protocol::Identity& out) const override {
        const auto found = protocol::likeness<Likeness, Parser>(stretches, Config{});
        out.tried.push_back({"source and destination of jumps (MTB)", found.text()});
        if (!found.convinces()) return false;
        infer(stretches, found, false, out);
        out.entries = found.linked();
        return true;
    }
    void identify_listed(const std::vector<Stretch>& stretches, protocol::Identity& out) const override {
        infer(stretches, protocol::likeness<Likeness, Parser>(stretches, Config{}), true, out);
    }
    [[nodiscard]] std::optional<protocol::ListedTrace> read_text(std::string_view text) const override {
        const std::optional<Listing> found = read_listing(text);
        if (!found) return std::nullopt;
        protocol::ListedTrace out;
        out.how = fmt::format("a list of {}, the {} first", counted(found->jumps, "jump"),
                              found->newest_first ? "newest" : "oldest");
        for (const JumpPacket& packet : found->packets) encode(out.bytes, packet);
        const std::size_t left_out = found->packets.size() - found->jumps;
        // Words of zeros after the last packet show that the buffer did not wrap.
        out.bytes.resize(std::bit_ceil(out.bytes.size() + packet_bytes));
        const auto lack = [&](std::string kind, std::string what, std::string cause, std::string advice) {
            CaptureFinding& finding = out.lacks.emplace_back();
            finding.severity = protocol::Severity::warning;
            finding.kind = std::move(kind);
            finding.found = std::move(what);
            finding.expected = "all that the buffer has";
            finding.cause = std::move(cause);
            finding.advice = std::move(advice);
        };
        if (!found->marks_known)
            lack("list-without-marks", "the list does not tell exceptions from jumps (A and S bits)",
                 "bit 0 of the addresses was cleared before they were printed",
                 "save the memory itself; without it, exceptions show as branches, and one instruction too many before "
                 "each");
        if (left_out != 0)
            lack("list-with-gaps", fmt::format("packets are left out at {}", counted(left_out, "place")),
                 "the list was shortened", "save the whole list; there is a gap at each place");
        if (found->unreadable != 0)
            lack("list-damaged",
                 fmt::format("{} without a source or a destination", counted(found->unreadable, "packet")),
                 "lines are missing", "save the whole list; these packets are left out");
        return out;
    }
    /// The registers decide.
    [[nodiscard]] protocol::Settled settle(const protocol::Identity&, const protocol::Configuration& described,
                                           const std::vector<Stretch>&, std::string_view) const override {
        return {configuration(config_of(described)), {}};
    }
    [[nodiscard]] std::vector<CaptureFinding> health(const protocol::Identity&,
                                                     const protocol::Configuration* configuration,
                                                     const std::vector<Stretch>& stretches,
                                                     std::string_view) const override {
        if (configuration == nullptr) return {};
        return protocol::likeness<Likeness, Parser>(stretches, config_of(*configuration)).findings(words());
    }
    /// Packets are of jumps alone (spec/mtb.md, 3: start and stop).
    [[nodiscard]] std::vector<std::string> filters(const std::vector<RegisterValue>&) const override {
        return {"code before the first jump, and behind the last one"};
    }
    [[nodiscard]] std::string how_to_read(std::string_view) const override { return {}; }
    [[nodiscard]] std::string next_step(std::string_view file) const override {
        return fmt::format(
            "waymark flow {} --protocol mtb --register MTB_POSITION=VALUE --register MTB_MASTER=VALUE "
            "--image FILE decodes it",
            file);
    }

private:
    /// `listed`: the bytes are from a list, in which the oldest packet is the first one, and zeros stand for omitted
    /// packets.
    void infer(const std::vector<Stretch>& stretches, const Likeness& found, bool listed,
               protocol::Identity& out) const {
        Config config;
        out.protocol = this;
        out.waypoints = found.packets;
        out.first_sync = stretches.empty() ? Offset{0} : stretches.front().offsets.capture({});
        const Seam seam = find_seam(found.all);
        if (stretches.size() == 1 && stretches.front().bytes.size() >= 2 * packet_bytes &&
            std::has_single_bit(stretches.front().bytes.size())) {
            const Bytes dump = stretches.front().bytes;
            MtbMaster master;
            master.mask = static_cast<std::uint8_t>(std::countr_zero(dump.size()) - 4);
            MtbPosition position;
            const auto written = written_packets(dump, listed);
            const bool full = found.padding_bytes == 0 && found.bytes == found.all.size() * packet_bytes;
            if (written) {
                position.pointer = static_cast<std::uint32_t>(*written);
            } else if (full && seam.breaks == 1) {
                position.pointer = static_cast<std::uint32_t>(seam.oldest);
                position.wrap = true;
            }
            if (written || full) config.master = static_cast<std::uint32_t>(register_value(master).value);
            if (position.pointer != 0 || position.wrap)
                config.position = static_cast<std::uint32_t>(register_value(position).value);
        }
        if (found.armv8_returns != 0) config.core = "ARMv8-M";
        out.configuration = configuration(config);
        if (found.armv8_returns != 0)
            out.facts.push_back({"core", config.core, found.armv8_returns >= 2 ? Certainty::proven : Certainty::likely,
                                 counted(found.armv8_returns, "return") + " to a value that no other core has"});
        else
            out.facts.push_back({"core", std::string(words().core_type), Certainty::assumed,
                                 "every core of the M profile could have sent this"});
        if (listed)
            out.facts.push_back({"oldest packet", "the first of the list", Certainty::likely,
                                 "in this order most packets can follow the one before"});
        else if (config.position && !from_value<MtbPosition>(*config.position).wrap)
            out.facts.push_back({"oldest packet", "at offset 0x0", Certainty::likely,
                                 "the words behind the last packet are 0, so the buffer did not wrap"});
        else if (seam.breaks == 1)
            out.facts.push_back({"oldest packet", fmt::format("at offset {:#x}", seam.oldest * packet_bytes),
                                 Certainty::likely, "the only packet that cannot follow the one before"});
        else
            out.facts.push_back(
                {"oldest packet", "not known", Certainty::assumed,
                 seam.breaks == 0
                     ? "each packet can follow the one before; they are read as they lie"
                     : fmt::format("{} packets cannot follow the one before; they are read as they lie", seam.breaks)});
        out.remarks.emplace_back("exceptions", counted(found.exceptions, "packet") + " not made by an instruction");
    }
};

}  // namespace

const protocol::Protocol& row() {
    static const ProtocolRow row;
    return row;
}

std::shared_ptr<const protocol::Configuration> configuration(const Config& config) {
    return std::make_shared<Configured>(config);
}

const Config& config_of(const protocol::Configuration& configuration) {
    return static_cast<const Configured&>(configuration).config();
}

}  // namespace waymark::mtb
