#include "waymark/pft/protocol.h"
#include "waymark/pft/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include "diagnosis.h"
#include "waymark/core/numbers.h"
#include "waymark/follow/head.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/explain.h"
#include "waymark/pft/likeness.h"
#include "waymark/pft/parallel_decoder.h"
#include "waymark/pft/parser.h"
#include "waymark/pft/recover.h"
#include "waymark/pft/reference_decoder.h"
#include "waymark/pft/register_reference.h"
#include "waymark/pft/registers.h"
#include "waymark/pft/state.h"
#include "waymark/pft/text.h"
#include "waymark/pft/unit.h"
#include "waymark/protocol/adapters.h"
#include "waymark/protocol/version.h"

namespace waymark::pft {

namespace {

using protocol::CaptureFinding;
using protocol::Setting;
using protocol::Stretch;
using protocol::Survey;

/// Results of a survey that only Program Flow Trace has.
class More {
public:
    explicit More(const Config& config) : config_(config) {}

    template <class P>
    void see(const P& packet, Extent at, const OffsetMap& offsets, Survey& survey) {
        if constexpr (std::is_same_v<P, ASync>) {
            if (!survey.first_sync) survey.first_sync = offsets.capture(at.first);
        } else if constexpr (std::is_same_v<P, ISync>) {
            ++isyncs_[static_cast<unsigned>(packet.reason)];
            ++levels_[(packet.hyp ? 2U : 0U) + (packet.ns ? 1U : 0U)];
        } else if constexpr (std::is_same_v<P, Timestamp>) {
            timestamps_.update(packet.value, config_);
            if (timestamps_.known()) {
                survey.last_timestamp = timestamps_.value(config_);
                if (!survey.first_timestamp) survey.first_timestamp = survey.last_timestamp;
            }
        }
    }
    void gap() { timestamps_.forget(); }
    void finish(Survey& survey) const {
        std::uint64_t sum = 0;
        for (unsigned reason = 0; reason < isyncs_.size(); ++reason) {
            sum += isyncs_[reason];
            if (isyncs_[reason] != 0)
                survey.syncs.emplace_back(name(static_cast<ISyncReason>(reason)), isyncs_[reason]);
        }
        constexpr std::array levels{"Secure", "Non-secure", "Hyp Secure", "Hyp Non-secure"};
        for (unsigned i = 0; i < levels_.size(); ++i)
            if (levels_[i] != 0) survey.levels.emplace(levels[i], levels_[i]);
        if (survey.first_sync && sum == 0) survey.troubles.emplace_back("no I-sync, so no address is known");
        if (const std::uint64_t n = isyncs_[static_cast<unsigned>(ISyncReason::overflow_restart)]; n != 0)
            survey.troubles.push_back(fmt::format("its FIFO overflowed {}; execution is missing there",
                                                  n == 1 ? "once" : counted(n, "time")));
        if (!config_.timestamps && survey.packets.contains(std::string(Timestamp::info.name)))
            survey.troubles.emplace_back(
                "ETMCR says no timestamps, but there are some; ETMCR may not be the value in force while tracing");
    }

private:
    const Config& config_;
    std::array<std::uint64_t, 4> isyncs_{}, levels_{};
    TimestampState timestamps_;
};

/// Collects the addresses in the trace.
class NamedAddresses {
public:
    NamedAddresses(const Config& config, const std::function<void(const Place&)>& take)
        : config_(config), take_(take) {}
    void operator()(const ISync& p, Extent) {
        last_ = {p.address(), p.isa()};
        known_ = true;
        take_(last_);
    }
    void operator()(const BranchAddress& p, Extent) {
        if (!known_ && p.target.bytes != 5) return;
        last_ = complete(p.target, last_);
        known_ = true;
        if (p.exception() == 0) take_(last_);
    }
    void operator()(const WaypointUpdate& p, Extent) {
        if (known_ && config_.update_is_compression_base) last_ = complete(p.target, last_);
    }
    void operator()(const Gap&) { known_ = false; }
    void operator()(const auto&, Extent) {}

private:
    const Config& config_;
    const std::function<void(const Place&)>& take_;
    Place last_;
    bool known_ = false;
};

using Base = protocol::FlowConfigurationOf<protocol::ConfigurationOf<Config, Parser, Explainer, More>, Parser,
                                           ReferenceDecoder, Decoder, NamedAddresses>;
class Configured final : public Base, public follow::Cuttable {
public:
    /// `context_sizes`: other possible sizes of Context IDs.
    explicit Configured(const Config& config, std::vector<std::uint8_t> context_sizes = {})
        : Base(config), context_sizes_(std::move(context_sizes)) {}

    [[nodiscard]] const protocol::Protocol& protocol() const override { return row(); }
    [[nodiscard]] std::string source_type() const override { return fmt::format("PTM1.{}", config_.minor_version); }
    [[nodiscard]] std::vector<RegisterValue> registers() const override {
        const Config& c = config_;
        Etmcr cr = from_value<Etmcr>(0);
        cr.cycle_accurate = c.cycle_accurate;
        cr.return_stack = c.return_stack;
        cr.branch_broadcast = c.branch_broadcast;
        cr.vmid_trace = c.vmid_trace;
        cr.timestamps = c.timestamps;
        constexpr std::array<std::uint8_t, 5> sizes{0, 1, 2, 0, 3};
        cr.context_id_size = sizes[std::min<std::size_t>(c.context_id_bytes, 4)];
        Etmccer ccer = from_value<Etmccer>(0);
        ccer.timestamp_64 = c.timestamp_bytes == 9;
        ccer.timestamp_binary = !c.gray_timestamps;
        ccer.timestamps = c.timestamps;
        ccer.return_stack = c.return_stack;
        ccer.barrier_waypoints = c.barrier_waypoints;
        Etmidr idr = from_value<Etmidr>(0x411cf300);
        idr.minor = c.minor_version;
        return {register_value(cr), register_value(idr), register_value(ccer)};
    }
    [[nodiscard]] std::vector<Setting> settings() const override {
        const Config& c = config_;
        return {{"version", fmt::format("PFT v1.{}", c.minor_version)},
                {"cycle_accurate", c.cycle_accurate},
                {"context_id_bytes", std::uint64_t{c.context_id_bytes}},
                {"vmid", c.vmid_trace},
                {"return_stack", c.return_stack},
                {"branch_broadcast", c.branch_broadcast},
                {"timestamps", c.timestamps},
                {"timestamp_bits", std::uint64_t{c.timestamp_bytes == 9 ? 64U : 48U}},
                {"timestamp_encoding", std::string(c.gray_timestamps ? "Gray" : "natural binary")},
                {"barriers_are_waypoints", std::string(c.barrier_waypoints ? "ISB, DMB, DSB" : "ISB")}};
    }

    [[nodiscard]] isa::DecodeOptions waypoints() const override {
        return {.dmb_dsb_waypoints = config_.barrier_waypoints};
    }
    [[nodiscard]] bool cycle_counts() const override { return config_.cycle_accurate; }
    [[nodiscard]] std::unique_ptr<follow::Parallel> parallel_decoder(
        const isa::CodeReader& code, flow::BlockTable& table, flow::Sink& sink,
        const follow::ParallelOptions& options) const override {
        return std::make_unique<ParallelDecoder>(config_, code, table, sink, options);
    }
    [[nodiscard]] std::unique_ptr<follow::Cutting> cutting(const isa::CodeReader& code,
                                                           flow::BatchWriter& out) const override {
        return make_cutting(config_, code, out);
    }

    [[nodiscard]] bool has_sync(Bytes held) const override { return follow::holds_sync(held, ParserRules::sync_zeros); }
    [[nodiscard]] follow::HeadRecovery recover_head(const isa::CodeReader& code,
                                                    std::span<const follow::CodeExtent> extents,
                                                    Bytes stream) const override {
        return pft::recover_head(config_, code, extents, stream);
    }
    void decode_head(const follow::HeadRecovery& head, const isa::CodeReader& code, Bytes stream,
                     flow::BatchWriter& out) const override {
        pft::decode_head(head, config_, code, stream, out);
    }

    [[nodiscard]] std::vector<std::shared_ptr<const protocol::Configuration>> variants() const override {
        std::vector<std::shared_ptr<const protocol::Configuration>> out;
        std::vector<std::uint8_t> sizes{config_.context_id_bytes};
        sizes.insert(sizes.end(), context_sizes_.begin(), context_sizes_.end());
        for (const std::uint8_t size : sizes)
            for (const auto& [stack, barriers] :
                 {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
                Config c = config_;
                c.context_id_bytes = size;
                c.return_stack = stack;
                c.barrier_waypoints = barriers;
                if (c == config_) continue;
                std::vector<std::uint8_t> others = sizes;
                std::erase(others, size);
                out.push_back(std::make_shared<Configured>(c, std::move(others)));
            }
        return out;
    }
    [[nodiscard]] std::vector<CaptureFinding> differences(const protocol::Configuration& described,
                                                          std::string_view source) const override {
        return differences_of(config_, config_of(described), source);
    }

private:
    std::vector<std::uint8_t> context_sizes_;
};

class ProtocolRow final : public protocol::Protocol {
public:
    [[nodiscard]] const protocol::Words& words() const override {
        static constexpr protocol::Words words{.unit = "PTM",
                                               .unit_title = "Program Trace Macrocell",
                                               .trace = "Program Flow Trace",
                                               .title = "Program Flow Trace (PTM)",
                                               .types = "PTM1.x and PFT1.x",
                                               .settings = "ETMCR and ETMCCER",
                                               .core_type = "ARMv7-A",
                                               .sync = "A-sync",
                                               .sync_bytes = "00 00 00 00 00 80",
                                               .syncs = "I-syncs",
                                               .one_sync = "I-sync",
                                               .type_names = {"PTM1", "PFT1", "PTM", "PFT"}};
        return words;
    }

    [[nodiscard]] std::string type_of_option(std::string_view option) const override {
        const std::string name = protocol::upper(option);
        if (name == "PTM" || name == "PFT") return name + "1.1";
        return is_type(name) && protocol::is_version_up_to(name, 1) ? name : std::string();
    }
    [[nodiscard]] std::string_view option_names() const override { return "ptm (or pft), ptm1.0, ptm1.1"; }
    [[nodiscard]] std::span<const protocol::RegisterOption> register_options() const override {
        static constexpr std::array options{
            protocol::RegisterOption{"--etmcr", Etmcr::name,
                                     "Value of ETMCR: cycle-accurate, Context ID size, return stack …"},
            protocol::RegisterOption{"--etmccer", Etmccer::name,
                                     "Value of ETMCCER: timestamp size and encoding, barriers"},
            protocol::RegisterOption{"--etmidr", Etmidr::name, "Value of ETMIDR: version"}};
        return options;
    }
    [[nodiscard]] std::optional<protocol::TraceIdField> trace_id() const override {
        return protocol::TraceIdField{Etmtraceidr::name, 0, Etmtraceidr::number};
    }
    [[nodiscard]] UnitReference register_reference() const override { return pft::register_reference(); }
    void visit_register(const RegisterValue& r, protocol::FieldVisitor& visitor) const override {
        if (std::find(management_names.begin(), management_names.end(), r.name) != management_names.end())
            visitor.number("value", static_cast<std::uint32_t>(r.value));
        const RegisterPlace* const place = register_called(r.name);
        if (place == nullptr || !register_access(Registers{}, place->number).present) return;
        protocol::VisitFields walker(visitor);
        for_each_place(Registers{}, [&](auto one, const RegisterPlace& its) {
            if (its.number != place->number) return;
            one = from_value<decltype(one)>(static_cast<std::uint32_t>(r.value));
            decltype(one)::fields(walker, one);
        });
    }
    [[nodiscard]] std::vector<std::string> filters(const std::vector<RegisterValue>& registers) const override {
        return pft::filters(registers);
    }
    [[nodiscard]] std::optional<protocol::UnitExplanation> explain(const std::vector<RegisterValue>& registers,
                                                                   std::string_view) const override {
        return pft::explain(registers, Registers{}, Macrocell::ptm);
    }
    [[nodiscard]] protocol::Configured configure(const protocol::Description& source) const override;

    [[nodiscard]] bool decodes_flow() const override { return true; }
    [[nodiscard]] bool recovers_head() const override { return true; }
    [[nodiscard]] bool aarch32_only() const override { return true; }
    [[nodiscard]] std::span<const flow::UnitFactory* const> units() const override {
        static const std::array units{&unit_factory()};
        return units;
    }
    [[nodiscard]] std::vector<std::string> packet_names() const override { return protocol::names_of<Packets>(); }

    [[nodiscard]] bool identify(const std::vector<Stretch>& stretches, protocol::Identity& out) const override {
        const auto recognised = recognise(stretches, out);
        if (!recognised) return false;
        out.protocol = this;
        out.configuration = std::make_shared<Configured>(recognised->config, recognised->context_sizes);
        out.evidence = recognised;
        return true;
    }
    [[nodiscard]] protocol::Settled settle(const protocol::Identity& identity, const protocol::Configuration& described,
                                           const std::vector<Stretch>& stretches,
                                           std::string_view source) const override {
        return settle_on(static_cast<const Recognised&>(*identity.evidence), config_of(described), stretches, source);
    }
    [[nodiscard]] std::vector<CaptureFinding> health(const protocol::Identity&,
                                                     const protocol::Configuration* configuration,
                                                     const std::vector<Stretch>& stretches,
                                                     std::string_view) const override {
        return health_of(config_of(*configuration), stretches);
    }
    [[nodiscard]] std::string sentence(const flow::Inconsistency& what) const override { return sentence_of(what); }
    [[nodiscard]] std::string how_to_read(std::string_view) const override { return {}; }
    [[nodiscard]] std::string next_step(std::string_view file) const override {
        return fmt::format(
            "waymark doctor {} --image PROGRAM --write-snapshot DIR makes a folder that every command reads; or give "
            "the programming of the macrocell (--protocol ptm --etmcr VALUE …)",
            file);
    }
};

/// The minor version in a type such as `PTM1.1`, if there is one.
std::optional<unsigned> minor_version(std::string_view type) {
    const std::size_t dot = type.find('.');
    if (dot == std::string_view::npos || dot + 1 == type.size()) return {};
    const char digit = type[dot + 1];
    if (digit < '0' || digit > '9') return {};
    return static_cast<unsigned>(digit - '0');
}

protocol::Configured ProtocolRow::configure(const protocol::Description& source) const {
    protocol::Configured out;
    const auto problem = [&](std::string text) { out.problems.push_back(std::move(text)); };
    const auto value = [&](std::string_view register_name, std::uint32_t otherwise, const char* meaning) {
        if (const auto* r = find_register(source.registers, register_name)) return static_cast<std::uint32_t>(r->value);
        if (source.from_command_line) {
            const auto options = register_options();
            const auto option = std::find_if(options.begin(), options.end(),
                                             [&](const auto& o) { return o.register_name == register_name; });
            problem(fmt::format("{} is not given; decoding goes on as if {} were {:#x} ({}).", option->option,
                                register_name, otherwise, meaning));
        } else {
            problem(
                fmt::format("source '{}' has no register {}; decoding goes on as if it were {:#x} ({}). "
                            "Add '{}=VALUE' to its [regs].",
                            source.name, register_name, otherwise, meaning, register_name));
        }
        return otherwise;
    };
    const std::uint32_t minor = minor_version(source.type).value_or(1);
    const std::uint32_t cr = value(Etmcr::name, 0, "no cycle counts, Context IDs or return stack");
    const std::uint32_t idr = value(Etmidr::name, 0x4100f300 | minor << 4, "the version of its type");
    const std::uint32_t ccer = value(Etmccer::name, 0, "48-bit Gray coded timestamps, no barrier waypoints");
    auto identification = from_value<Etmidr>(idr);
    const bool is_ptm = identification.major == 3 && identification.family == 0xf;
    if (!is_ptm) identification.minor = static_cast<std::uint8_t>(minor);
    const Config config = Config::from_registers(from_value<Etmcr>(cr), from_value<Etmccer>(ccer), identification);
    out.configuration = configuration(config);
    if (const auto named = minor_version(source.type); named && *named != identification.minor)
        problem(
            fmt::format("source '{}' is of type {}, but its ETMIDR {:#010x} says PFT v1.{}; decoding follows the "
                        "register. Correct whichever is wrong.",
                        source.name, source.type, idr, identification.minor));
    if (!is_ptm)
        problem(
            fmt::format("source '{}' is of type {}, but its ETMIDR {:#010x} is not that of a PTM (bits [15:8] are "
                        "{:#04x}, expected 0xf3); decoding goes on as PFT v1.{}. Correct whichever is wrong.",
                        source.name, source.type, idr, idr >> 8 & 0xff, identification.minor));
    if (config.return_stack && config.branch_broadcast)
        problem(
            fmt::format("source '{}': ETMCR {:#010x} enables both return stack and branch broadcast, which a PTM "
                        "does not allow; the value may not be the one in force while tracing.",
                        source.name, cr));
    return out;
}

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

}  // namespace waymark::pft
