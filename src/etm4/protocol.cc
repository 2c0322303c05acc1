#include "waymark/etm4/protocol.h"
#include "waymark/etm4/access.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "recognise.h"
#include "waymark/core/numbers.h"
#include "waymark/etm4/decoder.h"
#include "waymark/etm4/explain.h"
#include "waymark/etm4/parallel_decoder.h"
#include "waymark/etm4/parser.h"
#include "waymark/etm4/recover.h"
#include "waymark/etm4/reference_decoder.h"
#include "waymark/etm4/register_reference.h"
#include "waymark/etm4/registers.h"
#include "waymark/etm4/state.h"
#include "waymark/etm4/text.h"
#include "waymark/etm4/unit.h"
#include "waymark/flow/summary.h"
#include "waymark/follow/head.h"
#include "waymark/follow/place.h"
#include "waymark/protocol/adapters.h"
#include "waymark/protocol/profile.h"
#include "waymark/protocol/version.h"

namespace waymark::etm4 {

namespace {

using protocol::CaptureFinding;
using protocol::Setting;
using protocol::Severity;
using protocol::Stretch;
using protocol::Survey;

/// Results of a survey that only ETMv4 and ETE have.
class More {
public:
    explicit More(const Config& config) : state_(config) {}

    template <class P>
    void see(const P& packet, Extent at, const OffsetMap& offsets, Survey& survey) {
        const Meaning meaning = state_(packet);
        if constexpr (std::is_same_v<P, Context>) {
            if (packet.has_payload) ++levels_.at(level_index(packet));
        } else if constexpr (std::is_base_of_v<ContextFields, P>) {
            ++levels_.at(level_index(packet));
        }
        if constexpr (std::is_same_v<P, ASync>) {
            if (!survey.first_sync) survey.first_sync = offsets.capture(at.first);
        } else if constexpr (std::is_same_v<P, TraceInfo>) {
            ++infos_;
        } else if constexpr (std::is_same_v<P, Overflow>) {
            ++overflows_;
        } else if constexpr (std::is_same_v<P, Timestamp>) {
            if (!meaning.timestamp) return;
            survey.last_timestamp = meaning.timestamp;
            if (!survey.first_timestamp) survey.first_timestamp = meaning.timestamp;
        }
    }
    void gap() { state_(Gap{}); }
    void finish(Survey& survey) const {
        for (unsigned i = 0; i < levels_.size(); ++i) {
            const ContextFields level{.el = static_cast<std::uint8_t>(i & 3U),
                                      .ns = (i & 8U) != 0,
                                      .sf = (i & 4U) != 0,
                                      .nse = (i & 16U) != 0};
            if (levels_[i] != 0) survey.levels.emplace(context_text(level, {}), levels_[i]);
        }
        if (survey.first_sync && infos_ == 0) survey.troubles.emplace_back("no Trace Info, so nothing can be decoded");
        if (overflows_ != 0)
            survey.troubles.push_back(
                fmt::format("its FIFO overflowed {}; execution is missing there", times(overflows_)));
    }

private:
    static unsigned level_index(const ContextFields& p) {
        return (p.nse ? 16U : 0U) | (p.ns ? 8U : 0U) | (p.sf ? 4U : 0U) | p.el;
    }

    PacketState state_;
    std::uint64_t infos_ = 0, overflows_ = 0;
    std::array<std::uint64_t, 32> levels_{};  // contexts, by exception level and state
};

/// Collects the addresses in the trace.
class NamedAddresses {
public:
    NamedAddresses(const Config& config, const std::function<void(const follow::Place&)>& take)
        : state_(config), take_(take) {}
    template <class P>
    void operator()(const P& packet, Extent) {
        if constexpr (std::is_base_of_v<ContextFields, P>) see(packet);
        const Meaning meaning = state_(packet);
        // The width of addresses is known after the first context; an exception's address is its return address.
        if (std::is_same_v<P, Exception>) returns_ = true;
        if (!meaning.address || !sf_ || meaning.address->known != ~std::uint64_t{0}) return;
        if (std::exchange(returns_, false)) return;
        const bool is1 = meaning.address->is1;
        take_({meaning.address->address, *sf_ ? isa::Isa::a64 : is1 ? isa::Isa::t32 : isa::Isa::a32});
    }
    void operator()(const Gap& gap) {
        state_(gap);
        sf_.reset();
        returns_ = false;
    }

private:
    void see(const Context& p) {
        if (p.has_payload) sf_ = p.sf;
    }
    void see(const AddressWithContext& p) { sf_ = p.sf; }

    PacketState state_;
    const std::function<void(const follow::Place&)>& take_;
    std::optional<bool> sf_;
    bool returns_ = false;
};

/// The registers that configure a unit, by name. `Values` is RegisterValues, const or not.
template <class Values>
[[nodiscard]] auto named(Values& r) {
    using Value = decltype(&r.configr);
    return std::array<std::pair<std::string_view, Value>, 12>{{{Trcconfigr::name, &r.configr},
                                                               {Trctraceidr::name, &r.traceidr},
                                                               {"TRCIDR0", &r.idr0},
                                                               {"TRCIDR1", &r.idr1},
                                                               {"TRCIDR2", &r.idr2},
                                                               {"TRCIDR8", &r.idr8},
                                                               {"TRCIDR9", &r.idr9},
                                                               {"TRCIDR10", &r.idr10},
                                                               {"TRCIDR11", &r.idr11},
                                                               {"TRCIDR12", &r.idr12},
                                                               {"TRCIDR13", &r.idr13},
                                                               {"TRCDEVARCH", &r.devarch}}};
}

/// Compares the registers of the description with what the bytes show. A description is trusted unless the bytes
/// contradict it.
protocol::Settled settle_on(const Recognised& found, const Config& described, const std::vector<Stretch>& stretches,
                            std::string_view source) {
    const Likeness parse = likeness(stretches, described);
    const std::uint64_t conflicts = parse.lost_bytes == 0 ? depth_conflicts(stretches, described) : 0;
    const bool lost = parse.lost_bytes > found.likeness.lost_bytes, worse = conflicts > found.conflicts;
    if (!lost && !worse) return {configuration(described), {}};
    Config config = described;
    std::vector<CaptureFinding> findings;
    const auto report = [&](std::string kind, std::string what, std::string expected, std::string cause,
                            std::string advice) {
        findings.push_back({Severity::error,
                            std::move(kind),
                            {},
                            {},
                            lost ? parse.first_error : parse.first_async,
                            std::move(what),
                            std::move(expected),
                            std::move(cause),
                            std::move(advice)});
    };
    const std::string reading =
        lost ? fmt::format("{} {} in no packet", counted(parse.lost_bytes, "byte"), are(parse.lost_bytes))
             : fmt::format("packets contradict each other {} about what is committed", times(conflicts));
    const auto wrong = [&](auto member, const char* kind, std::string_view register_name) {
        if (config.*member == found.config.*member) return;
        report(kind, fmt::format("{} says {}; read so, {}", register_name, config.*member, reading),
               fmt::format("{}", found.config.*member),
               "the registers were read before or after another setting was in force, or from another unit",
               fmt::format("correct {} of {}", register_name, source));
        config.*member = found.config.*member;
    };
    if (lost) {
        if (described.ete() != found.config.ete()) {
            report("version",
                   fmt::format("the registers are of {}; read with them, {}", version_text(described), reading),
                   version_text(found.config), "the registers are of another unit",
                   fmt::format("correct TRCIDR1 and TRCDEVARCH of {}", source));
            config.version = found.config.version;
        }
        if (found.likeness.vmids != 0) wrong(&Config::vmid_bytes, "vmid-size", "TRCIDR2.VMIDSIZE");
        if (found.likeness.context_ids != 0) wrong(&Config::context_id_bytes, "context-id-size", "TRCIDR2.CIDSIZE");
        if (found.likeness.qs != 0) wrong(&Config::q_elements, "q-elements", "TRCCONFIGR.QE with TRCIDR0.QSUPP");
        if (found.likeness.m_only != 0 && described.profile != found.config.profile) {
            config.profile = found.config.profile;
            report("profile", "the core is described as one without packets of the M profile; " + reading,
                   "a core of the M profile", "type= of the core is missing or wrong",
                   "give the core's type: type=Cortex-M33");
        }
    }
    if (found.likeness.cycle_counts != 0) wrong(&Config::commit_mode_1, "commit-mode", "TRCIDR0.COMMOPT");
    if (worse || findings.empty()) wrong(&Config::max_speculation, "speculation", "TRCIDR8");
    const Likeness corrected = likeness(stretches, config);
    const std::uint64_t left = corrected.lost_bytes == 0 ? depth_conflicts(stretches, config) : 0;
    // Damage remains under every setting.
    if (lost ? corrected.lost_bytes * 4 > parse.lost_bytes : left * 4 > conflicts)
        return {configuration(described), {}};
    return {configuration(config), std::move(findings)};
}

using Base = protocol::FlowConfigurationOf<protocol::ConfigurationOf<Config, Parser, Explainer, More>, Parser,
                                           ReferenceDecoder, Decoder, NamedAddresses>;
class Configured final : public Base, public follow::Cuttable {
public:
    /// `commit_mode_open`: the bytes alone do not show whether cycle counts commit.
    explicit Configured(const Config& config, bool commit_mode_open = false)
        : Base(config), commit_mode_open_(commit_mode_open) {}

    [[nodiscard]] const protocol::Protocol& protocol() const override { return row(); }
    [[nodiscard]] std::string source_type() const override {
        return config_.ete() ? "ETE" : fmt::format("ETM{}.{}", config_.version >> 4, config_.version & 0xfU);
    }
    [[nodiscard]] std::vector<RegisterValue> registers() const override {
        const RegisterValues r = to_registers(config_);
        std::vector<RegisterValue> out;
        for (const auto& [name, value] : named(r))
            if (*value) out.push_back({std::string(name), **value, std::nullopt, 32});
        return out;
    }
    [[nodiscard]] std::vector<Setting> settings() const override {
        const Config& c = config_;
        std::vector<Setting> out{{"version", version_text(c)},
                                 {"cycle_counting", c.cycle_counting},
                                 {"context_id_bytes", std::uint64_t{c.context_id_trace ? c.context_id_bytes : 0U}},
                                 {"vmid_bytes", std::uint64_t{c.vmid_trace ? c.vmid_bytes : 0U}},
                                 {"return_stack", c.return_stack},
                                 {"branch_broadcast", c.branch_broadcast},
                                 {"timestamps", c.timestamps},
                                 {"timestamp_bits", std::uint64_t{c.timestamp_bits}},
                                 {"q_elements", c.q_elements},
                                 {"speculation_depth", std::uint64_t{c.max_speculation}},
                                 {"waits_are_waypoints", c.wfx_p0}};
        if (commit_mode_open_) out.push_back({"cycle_counts_commit", !c.commit_mode_1});
        return out;
    }
    [[nodiscard]] isa::DecodeOptions waypoints() const override {
        return {.wait_waypoints = config_.wfx_p0, .transaction_start_waypoints = config_.ete()};
    }
    [[nodiscard]] bool cycle_counts() const override { return config_.cycle_counting; }
    [[nodiscard]] bool cycle_counts_apart() const override { return config_.cycle_counting; }
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
        return etm4::recover_head(config_, code, extents, stream);
    }
    void decode_head(const follow::HeadRecovery& head, const isa::CodeReader& code, Bytes stream,
                     flow::BatchWriter& out) const override {
        etm4::decode_head(head, config_, code, stream, out);
    }
    [[nodiscard]] std::vector<std::shared_ptr<const protocol::Configuration>> variants() const override {
        std::vector<std::shared_ptr<const protocol::Configuration>> out;
        for (const bool commits : {false, true})
            for (const auto& [stack, waits] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
                Config c = config_;
                if ((waits && c.version < 0x43) || (commits && !commit_mode_open_)) continue;
                c.return_stack ^= stack;
                c.wfx_p0 ^= waits;
                c.commit_mode_1 ^= commits;
                if (c != config_) out.push_back(std::make_shared<Configured>(c, commit_mode_open_));
            }
        return out;
    }
    [[nodiscard]] std::string core_type() const override {
        if (config_.profile == CoreProfile::r) return "ARMv8-R";
        return config_.profile == CoreProfile::m ? "ARMv8-M" : std::string(protocol().words().core_type);
    }
    [[nodiscard]] std::shared_ptr<const protocol::Configuration> beside(std::string_view core) const override {
        Config c = config_;
        c.profile = isa::core_profile(core).value_or(CoreProfile::a);
        if (c.profile == CoreProfile::m && c.ete()) return nullptr;
        return c.profile == config_.profile ? nullptr : std::make_shared<Configured>(c, commit_mode_open_);
    }

private:
    bool commit_mode_open_;
};

class Etm4Protocol final : public protocol::Protocol {
public:
    [[nodiscard]] const protocol::Words& words() const override {
        static constexpr protocol::Words words{.unit = "ETM",
                                               .unit_title = "Embedded Trace Macrocell or Extension",
                                               .trace = "ETMv4 and ETE trace",
                                               .title = "ETMv4 and ETE instruction trace",
                                               .types = "ETM4.x and ETE",
                                               .settings = "TRCCONFIGR and TRCIDR0 to TRCIDR13",
                                               .core_type = "ARMv8-A",
                                               .sync = "A-sync",
                                               .sync_bytes = "00 00 00 00 00 00 00 00 00 00 00 80",
                                               .syncs = "Trace Info packets",
                                               .one_sync = "Trace Info",
                                               .type_names = {"ETM4", "ETMV4", "ETE"}};
        return words;
    }

    [[nodiscard]] std::string_view unit_of(std::string_view source_type) const override {
        constexpr std::string_view extension = "ETE";
        return protocol::upper(source_type).starts_with(extension) ? extension : words().unit;
    }

    [[nodiscard]] std::string type_of_option(std::string_view option) const override {
        std::string name = protocol::upper(option);
        if (name.starts_with("ETMV4")) name.erase(3, 1);
        const bool known = name.starts_with("ETE") || protocol::is_version_up_to(name, 6);
        return is_type(name) && known ? name : std::string();
    }
    [[nodiscard]] std::string_view option_names() const override { return "etmv4, etm4.0 to etm4.6, ete"; }
    [[nodiscard]] std::optional<protocol::TraceIdField> trace_id() const override {
        return protocol::TraceIdField{Trctraceidr::name, 0, {}};
    }
    [[nodiscard]] UnitReference register_reference() const override { return etm4::register_reference(); }
    void visit_register(const RegisterValue& r, protocol::FieldVisitor& visitor) const override {
        const RegisterPlace* const place = register_called(r.name);
        if (place == nullptr) return;
        protocol::VisitFields walker(visitor);
        const Registers all;
        Registers::for_each(all, [&](auto one, unsigned offset) {
            if (offset != place->offset) return;
            one = from_value<decltype(one)>(static_cast<RegisterNumber<decltype(one)>>(r.value));
            decltype(one)::fields(walker, one);
        });
    }
    [[nodiscard]] std::vector<std::string> filters(const std::vector<RegisterValue>& registers) const override {
        std::vector<std::string> out;
        const auto look = [&]<class R>(R, auto&& leaves_out) {
            const RegisterValue* value = find_register(registers, R::name);
            if (value != nullptr && leaves_out(from_value<R>(static_cast<RegisterNumber<R>>(value->value))))
                out.emplace_back(R::name);
        };
        // Resource selector 1 is always true.
        look(Trcvictlr{}, [](const Trcvictlr& r) { return r.type || r.sel != 1; });
        look(Trcviiectlr{}, [](const Trcviiectlr& r) { return (r.include | r.exclude) != 0; });
        look(Trcvissctlr{}, [](const Trcvissctlr& r) { return (r.start | r.stop) != 0; });
        look(Trcvipcssctlr{}, [](const Trcvipcssctlr& r) { return (r.start | r.stop) != 0; });
        return out;
    }
    [[nodiscard]] std::optional<protocol::UnitExplanation> explain(const std::vector<RegisterValue>& registers,
                                                                   std::string_view core) const override {
        Registers all;
        for (const RegisterValue& r : registers) {
            const RegisterPlace* const place = register_called(r.name);
            if (place == nullptr) continue;
            all.set(place->offset, static_cast<std::uint32_t>(r.value));
            if (place->bytes == 8) all.set(place->offset + 4, static_cast<std::uint32_t>(r.value >> 32));
        }
        return etm4::explain(all, isa::core_profile(core).value_or(CoreProfile::a),
                             [&](std::string_view name) { return find_register(registers, name) != nullptr; });
    }
    [[nodiscard]] protocol::Configured configure(const protocol::Description& source) const override {
        protocol::Configured out;
        RegisterValues values;
        for (const auto& [name, value] : named(values))
            if (const RegisterValue* r = find_register(source.registers, name))
                *value = static_cast<std::uint32_t>(r->value);
        if (source.from_command_line && !values.devarch && !values.idr1) take_version(source.type, values);
        const ReadConfig read = read_config(values, protocol::profile_of(source, out));
        for (const std::string& note : read.notes)
            out.problems.push_back(fmt::format("source '{}': {}", source.name, note));
        if (read.config.p0_loads || read.config.p0_stores)
            out.problems.push_back(fmt::format(
                "source '{}': TRCCONFIGR.INSTP0 makes loads or stores P0 instructions, which Waymark does not follow: "
                "exceptions, contexts and times are shown, and atoms are counted",
                source.name));
        out.configuration = configuration(read.config);
        return out;
    }

    [[nodiscard]] bool decodes_flow() const override { return true; }
    [[nodiscard]] bool recovers_head() const override { return true; }
    [[nodiscard]] std::span<const flow::UnitFactory* const> units() const override { return unit_factories(); }
    [[nodiscard]] std::vector<std::string> packet_names() const override { return protocol::names_of<Packets>(); }

    [[nodiscard]] bool identify(const std::vector<Stretch>& stretches, protocol::Identity& out) const override {
        const auto recognised = recognise(stretches, words().sync_bytes, out);
        if (!recognised) return false;
        out.protocol = this;
        out.configuration = std::make_shared<Configured>(recognised->config, recognised->commit_mode_open);
        out.evidence = recognised;
        return true;
    }
    [[nodiscard]] protocol::Settled settle(const protocol::Identity& identity, const protocol::Configuration& described,
                                           const std::vector<Stretch>& stretches,
                                           std::string_view source) const override {
        if (identity.evidence == nullptr) return {configuration(config_of(described)), {}};
        return settle_on(static_cast<const Recognised&>(*identity.evidence), config_of(described), stretches, source);
    }
    [[nodiscard]] std::vector<CaptureFinding> health(const protocol::Identity&,
                                                     const protocol::Configuration* configuration,
                                                     const std::vector<Stretch>& stretches,
                                                     std::string_view) const override {
        const Likeness found = likeness(stretches, config_of(*configuration));
        std::vector<CaptureFinding> out = found.findings(words());
        if (found.overflows.times != 0) out.push_back(found.overflows.finding("the unit's FIFO overflowed"));
        if (found.unsynchronised_bytes != 0)
            out.push_back({Severity::note,
                           "unsynchronised",
                           {},
                           {},
                           stretches.front().offsets.capture({0}),
                           fmt::format("{} before an A-sync", counted(found.unsynchronised_bytes, "byte")),
                           "an A-sync first",
                           stretches.size() > 1 ? "the beginning of a buffer that wrapped, and of each examined piece"
                                                : "the beginning of a buffer that wrapped",
                           "waymark flow --recover gives what can be recovered; a smaller TRCSYNCPR loses less"});
        return out;
    }
    [[nodiscard]] std::string sentence(const flow::Inconsistency& what) const override {
        using flow::Conflict;
        const auto hex = [](Address address) { return fmt::format("{:#x}", address.value); };
        switch (what.conflict) {
            case Conflict::update_behind:
                return fmt::format("the trace contains {}, which execution has passed ({} is next)", hex(what.expected),
                                   hex(what.found));
            case Conflict::no_return_address:
                return fmt::format("no address for the indirect branch at {}, nor a return stack entry",
                                   hex(what.found));
            case Conflict::undefined_reached:
                return fmt::format("an atom leads over the undefined instruction at {}", hex(what.found));
            case Conflict::runaway_walk:
                return fmt::format("an atom, but no branch up to {}, which is farther than any block goes",
                                   hex(what.found));
            case Conflict::update_disagrees:
                return fmt::format("the trace names {}, but the program leads to {}", hex(what.expected),
                                   hex(what.found));
            case Conflict::always_taken:
                return fmt::format("an atom shows that the branch at {} was not taken, but it has no condition",
                                   hex(what.found));
            case Conflict::address_disagrees:
                return fmt::format("the trace goes on at {}, and nothing leads there from {}", hex(what.expected),
                                   hex(what.found));
            case Conflict::no_exception_return:
                return fmt::format("an exception return, but the instruction at {} is not one", hex(what.found));
            case Conflict::time_goes_back:
                return fmt::format("a timestamp of {} after one of {}", what.expected.value, what.found.value);
            case Conflict::sync_disagrees:
            case Conflict::branch_disagrees:
            case Conflict::vmid_missing: break;
        }
        return std::string(flow::name(what.conflict));
    }
    [[nodiscard]] std::string how_to_read(std::string_view) const override { return {}; }
    [[nodiscard]] std::string next_step(std::string_view file) const override {
        return fmt::format(
            "waymark doctor {} --image PROGRAM --write-snapshot DIR makes a folder that every command reads; or give "
            "the programming of the unit (--protocol etmv4 --register TRCCONFIGR=VALUE …)",
            file);
    }

private:
    /// Takes the version from a type such as `ETM4.2` and `ETE`.
    static void take_version(std::string_view type, RegisterValues& values) {
        const std::size_t dot = type.find('.');
        const bool digit = dot != type.npos && dot + 1 < type.size() && type[dot + 1] >= '0' && type[dot + 1] <= '9';
        const std::uint32_t minor = digit ? static_cast<std::uint32_t>(type[dot + 1] - '0') : 0;
        constexpr std::uint32_t ete_1_0 = 0x47705a13, etm_4_0 = 0x4100f400;
        if (protocol::upper(type).starts_with("ETE"))
            values.devarch = ete_1_0 | minor << 16;
        else if (digit)
            values.idr1 = etm_4_0 | minor << 4;
    }
};

}  // namespace

const protocol::Protocol& row() {
    static const Etm4Protocol row;
    return row;
}

std::shared_ptr<const protocol::Configuration> configuration(const Config& config) {
    return std::make_shared<Configured>(config);
}

const Config& config_of(const protocol::Configuration& configuration) {
    return static_cast<const Configured&>(configuration).config();
}

}  // namespace waymark::etm4
