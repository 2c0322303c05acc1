#include "waymark/etm3/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/etm3/decoder.h"
#include "waymark/etm3/parser.h"
#include "waymark/etm3/register_reference.h"
#include "waymark/etm3/registers.h"
#include "waymark/etm3/state.h"
#include "waymark/etm3/text.h"
#include "waymark/etm3/unit.h"
#include "waymark/flow/summary.h"
#include "waymark/pft/explain.h"
#include "waymark/pft/likeness.h"
#include "waymark/pft/parser.h"
#include "waymark/pft/protocol.h"
#include "waymark/protocol/adapters.h"
#include "waymark/protocol/profile.h"
#include "waymark/protocol/version.h"

namespace waymark::etm3 {

namespace {

using protocol::CaptureFinding;
using protocol::Certainty;
using protocol::Setting;
using protocol::Severity;
using protocol::Stretch;
using protocol::Survey;

/// Results of a survey that only ETMv3 has.
class More {
public:
    explicit More(const Config& config) : config_(config), time_config_(timestamp_config(config)) {}

    template <class P>
    void see(const P& packet, Extent at, const OffsetMap& offsets, Survey& survey) {
        if constexpr (std::is_same_v<P, ASync>) {
            if (!survey.first_sync) survey.first_sync = offsets.capture(at.first);
        } else if constexpr (std::is_base_of_v<ISync, P>) {
            ++isyncs_[static_cast<unsigned>(packet.reason)];
            ++levels_[(packet.hyp ? 2U : 0U) + (packet.ns ? 1U : 0U)];
        } else if constexpr (std::is_same_v<P, Timestamp>) {
            timestamps_.update(packet.value, time_config_);
            if (timestamps_.known()) {
                survey.last_timestamp = timestamps_.value(time_config_);
                if (!survey.first_timestamp) survey.first_timestamp = survey.last_timestamp;
            }
        } else if constexpr (std::is_same_v<P, DataSuppressed>) {
            ++suppressed_;
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
        if (config_.data_only) survey.troubles.emplace_back("only data was traced, so there is no program flow");
        const auto times = [](std::uint64_t n) { return n == 1 ? std::string("once") : counted(n, "time"); };
        if (const std::uint64_t n = isyncs_[static_cast<unsigned>(ISyncReason::overflow_restart)]; n != 0)
            survey.troubles.push_back(fmt::format("its FIFO overflowed {}; execution is missing there", times(n)));
        if (suppressed_ != 0)
            survey.troubles.push_back(
                fmt::format("its FIFO was nearly full {}; data packets are missing there", times(suppressed_)));
    }

private:
    const Config& config_;
    const pft::Config time_config_;
    std::array<std::uint64_t, 4> isyncs_{}, levels_{};
    std::uint64_t suppressed_ = 0;
    TimestampState timestamps_;
};

/// Collects the addresses in the trace.
class NamedAddresses {
public:
    NamedAddresses(const Config& config, const std::function<void(const Place&)>& take)
        : config_(config), take_(take) {}
    void operator()(const ISync& p, Extent) { see(p); }
    void operator()(const ISyncCycles& p, Extent) { see(p); }
    void operator()(const BranchAddress& p, Extent) {
        if (!known_ && p.target.bytes != 5) return;
        last_ = branch_state(p, last_, config_);
        known_ = true;
        if (p.exception() == 0) take_(last_.place());
    }
    void operator()(const Gap&) { known_ = false; }
    void operator()(const auto&, Extent) {}

private:
    void see(const ISync& p) {
        if (config_.data_only) return;
        last_ = isync_state(p, {}, config_);
        known_ = true;
        take_(last_.place());
    }

    const Config& config_;
    const std::function<void(const Place&)>& take_;
    LastState last_;
    bool known_ = false;
};

/// The number of bits in which I-syncs differ from the I-syncs before them. If the bytes are of another protocol, most
/// of an address comes from its low bits, or from the byte with the state.
class Wandering {
public:
    void see(std::uint32_t address, std::uint32_t state, std::uint32_t context_id) {
        if (before_) {
            constexpr unsigned other_state = 16;
            bits_ += static_cast<unsigned>(std::bit_width(address ^ before_->address));
            bits_ += state != before_->state ? other_state : 0U;
            bits_ += context_id != before_->context_id ? other_state : 0U;
            ++steps_;
        }
        before_ = Sync{address, state, context_id};
    }
    /// Compares the averages for each step.
    [[nodiscard]] bool less_than(const Wandering& other) const {
        return steps_ != 0 && other.steps_ != 0 && bits_ * other.steps_ < other.bits_ * steps_;
    }

private:
    struct Sync {
        std::uint32_t address, state, context_id;
    };
    std::optional<Sync> before_{};
    std::uint64_t bits_ = 0, steps_ = 0;
};

/// The I-syncs that a PTM would have sent.
struct PtmSyncs {
    Wandering wandering{};
    void operator()(const pft::ISync& p, Extent) {
        const unsigned state = (p.ns ? 1U : 0U) | (p.alt_isa ? 2U : 0U) | (p.hyp ? 4U : 0U);
        wandering.see(static_cast<std::uint32_t>(p.address().value), state, p.context_id);
    }
    void operator()(const auto&, Extent) {}
    void operator()(const Gap&) {}
};

struct Likeness : protocol::Likeness {
    std::uint64_t asyncs{}, isyncs{}, instructions{}, branches{}, timestamps{}, whole_timestamps{}, overflows{};
    std::uint64_t cycle_packets{};  ///< I-syncs with cycle counts, which only cycle-accurate mode has
    std::uint64_t data{};           ///< packets of data trace
    std::uint64_t unsaid{};         ///< periodic I-syncs whose Context ID differs from that of earlier packets
    std::optional<Offset> first_async{}, first_overflow{};
    std::optional<std::uint32_t> context{};
    Wandering wandering{};
    Config config{};

    template <class P>
    void see(const P& packet, Extent at, const Stretch& stretch) {
        if constexpr (std::is_same_v<P, ASync>) {
            if (asyncs++ == 0) first_async = stretch.offsets.capture(at.first);
        } else if constexpr (std::is_base_of_v<ISync, P>) {
            ++isyncs;
            const unsigned state = (packet.ns ? 1U : 0U) | (packet.alt_isa ? 2U : 0U) | (packet.hyp ? 4U : 0U) |
                                   (packet.jazelle ? 8U : 0U) | (packet.in_progress ? 16U : 0U);
            wandering.see(packet.address & ~1U, state, packet.context_id);
            if constexpr (P::counted) ++cycle_packets;
            if (packet.reason == ISyncReason::overflow_restart && overflows++ == 0)
                first_overflow = stretch.offsets.capture(at.first);
            if (packet.reason == ISyncReason::periodic && context && *context != packet.context_id) ++unsaid;
            context = packet.context_id;
        } else if constexpr (std::is_same_v<P, ContextId>) {
            context = packet.context_id;
        } else if constexpr (std::is_same_v<P, PHeader>) {
            instructions += outcomes_of(packet.header, false).valid() ? outcomes_of(packet.header, false).count : 1U;
        } else if constexpr (std::is_same_v<P, BranchAddress>) {
            ++branches;
        } else if constexpr (std::is_same_v<P, Timestamp>) {
            ++timestamps;
            whole_timestamps += packet.value.bytes >= 7 ? 1 : 0;
        } else if constexpr (is_data<P>) {
            ++data;
        }
    }
    template <class P>
    static constexpr bool is_data = std::is_same_v<P, NormalData> || std::is_same_v<P, OutOfOrderData> ||
                                    std::is_same_v<P, OutOfOrderPlaceholder> || std::is_same_v<P, StoreFailed> ||
                                    std::is_same_v<P, DataSuppressed> || std::is_same_v<P, ValueNotTraced>;
    [[nodiscard]] std::uint64_t against() const {
        return errors + unsaid + (config.cycle_accurate ? 0 : cycle_packets) +
               (timestamps != 0 && whole_timestamps == 0 ? timestamps : 0);
    }
    [[nodiscard]] bool enough() const {
        return asyncs != 0 && isyncs != 0 && errors * 4 <= asyncs + isyncs && lost_bytes * 2 <= parsed_bytes();
    }
    [[nodiscard]] std::string verdict() const {
        if (asyncs == 0) return "no A-sync (00 00 00 00 00 80)";
        if (isyncs == 0) return counted(asyncs, "A-sync") + ", but no I-sync";
        return fmt::format("{}, {}, {}, {}", counted(packets, "packet"), counted(asyncs, "A-sync"),
                           counted(isyncs, "I-sync"), errors_text());
    }
};

/// Parses with the timestamp size of the configuration: a whole timestamp has this number of bytes.
Likeness likeness_under(const std::vector<Stretch>& stretches, const Config& config) {
    auto out = protocol::likeness<Likeness, Parser>(stretches, config);
    out.config = config;
    return out;
}

/// All configurations with this data trace.
std::vector<Likeness> alternatives(const std::vector<Stretch>& stretches, bool addresses, bool values) {
    std::vector<Likeness> out;
    for (const bool cycles : {false, true})
        for (const std::uint8_t context : std::initializer_list<std::uint8_t>{0, 1, 2, 4})
            for (const std::uint8_t timestamp : std::initializer_list<std::uint8_t>{7, 9})
                for (const bool other : {false, true}) {
                    Config c;
                    c.cycle_accurate = cycles;
                    c.context_id_bytes = context;
                    c.timestamp_bytes = timestamp;
                    c.alternative_branches = other;
                    c.data_address = addresses;
                    c.data_value = values;
                    out.push_back(likeness_under(stretches, c));
                }
    return out;
}
const Likeness& best_of(const std::vector<Likeness>& all) {
    return *std::min_element(all.begin(), all.end(), [](const Likeness& a, const Likeness& b) {
        return std::pair(a.against(), a.lost_bytes) < std::pair(b.against(), b.lost_bytes);
    });
}

/// The first bytes, which show whether data is traced.
std::vector<Stretch> part_of(const std::vector<Stretch>& stretches) {
    std::size_t left = std::size_t{1} << 18;
    std::vector<Stretch> out;
    for (const Stretch& stretch : stretches) {
        if (left == 0) break;
        out.push_back(stretch);
        if (stretch.bytes.size() > left) {
            out.back().bytes.resize(left);
            out.back().end_mark_bytes = 0;
        }
        left -= out.back().bytes.size();
    }
    return out;
}

/// The likely configurations: without data trace, or, if data packets disturb that, with the data trace that leaves the
/// fewest errors. `data_tried`: whether configurations with data trace were also compared.
std::vector<Likeness> alternatives(const std::vector<Stretch>& stretches, bool& data_tried) {
    std::vector<Likeness> out = alternatives(stretches, false, false);
    data_tried = best_of(out).errors >= 2 && best_of(out).asyncs != 0;
    if (!data_tried) return out;
    const std::vector<Stretch> part = part_of(stretches);
    const std::vector<Likeness> none = alternatives(part, false, false);
    const std::uint64_t errors_without = best_of(none).errors;
    std::optional<Config> found;
    std::uint64_t least = best_of(none).against();
    // If no packet has an address, both configurations with values alone parse the bytes.
    for (const auto& [addresses, values] : {std::pair{false, true}, {true, false}, {true, true}}) {
        const std::vector<Likeness> with = alternatives(part, addresses, values);
        // To a configuration that knows more headers, damage looks less like damage.
        const Likeness& best = best_of(with);
        if (best.data < 4 || best.errors * 4 > errors_without || best.against() >= least) continue;
        least = best.against();
        found = best.config;
    }
    if (!found) return out;
    std::vector<Likeness> with = alternatives(stretches, found->data_address, found->data_value);
    std::move(with.begin(), with.end(), std::back_inserter(out));
    return out;
}

/// A PTM has the same A-sync, and I-syncs with the same bytes in another order, so its bytes may also parse as ETMv3.
bool is_rather_ptm(const std::vector<Stretch>& stretches, const Likeness& as_etm) {
    protocol::Identity ptm;
    if (!pft::row().identify(stretches, ptm)) return false;
    // Damage causes some errors in both cases, the wrong protocol many.
    const std::uint64_t against_etm = as_etm.against();
    const std::uint64_t against_ptm = static_cast<const pft::Recognised&>(*ptm.evidence).likeness.against();
    if (against_ptm > 2 * against_etm + 1) return false;
    if (against_etm > 2 * against_ptm + 1) return true;
    PtmSyncs syncs;
    const pft::Config& config = pft::config_of(*ptm.configuration);
    for (const Stretch& stretch : stretches) {
        pft::Parser<PtmSyncs> parser(config, syncs);
        parser.feed(stretch.bytes);
        parser.finish();
    }
    return !as_etm.wandering.less_than(syncs.wandering);
}

using Base = protocol::FlowConfigurationOf<protocol::ConfigurationOf<Config, Parser, Explainer, More>, Parser,
                                           ReferenceDecoder, Decoder, NamedAddresses>;
class Configured final : public Base, public follow::Cuttable {
public:
    /// `others`: further configurations under which the bytes parse as well.
    explicit Configured(const Config& config, std::vector<Config> others = {})
        : Base(config), others_(std::move(others)) {}

    [[nodiscard]] const protocol::Protocol& protocol() const override { return row(); }
    [[nodiscard]] std::string source_type() const override { return fmt::format("ETM3.{}", config_.minor_version); }
    [[nodiscard]] std::string core_type() const override {
        return config_.m_profile ? "ARMv7-M" : std::string(protocol().words().core_type);
    }
    [[nodiscard]] std::vector<RegisterValue> registers() const override {
        const Config& c = config_;
        constexpr std::array<std::uint8_t, 5> sizes{0, 1, 2, 0, 3};
        Etm3cr cr;
        cr.cycle_accurate = c.cycle_accurate;
        cr.data_value = c.data_value;
        cr.data_address = c.data_address;
        cr.data_only = c.data_only;
        cr.branch_output = c.branch_output;
        cr.vmid_trace = c.vmid_trace;
        cr.timestamps = c.timestamps;
        cr.context_id_size = sizes[std::min<std::size_t>(c.context_id_bytes, 4)];
        Etm3idr idr = from_value<Etm3idr>(0x4100f200);
        idr.minor = c.minor_version;
        idr.alternative_branches = c.alternative_branches;
        Etmccer ccer = from_value<Etmccer>(0);
        ccer.timestamps = c.timestamps;
        ccer.timestamp_64 = c.timestamp_bytes == 9;
        ccer.timestamp_binary = !c.gray_timestamps;
        return {register_value(cr), register_value(idr), register_value(ccer)};
    }
    [[nodiscard]] std::vector<Setting> settings() const override {
        const Config& c = config_;
        return {{"version", fmt::format("ETMv3.{}", c.minor_version)},
                {"cycle_accurate", c.cycle_accurate},
                {"context_id_bytes", std::uint64_t{c.context_id_bytes}},
                {"vmid", c.vmid_trace},
                {"branch_output", c.branch_output},
                {"branch_encoding", std::string(c.alternative_branches ? "alternative" : "original")},
                {"instructions", !c.data_only},
                {"data_addresses", c.data_address},
                {"data_values", c.data_value},
                {"timestamps", c.timestamps},
                {"timestamp_bits", std::uint64_t{c.timestamp_bytes == 9 ? 64U : 48U}},
                {"timestamp_encoding", std::string(c.gray_timestamps ? "Gray" : "natural binary")},
                {"exceptions", std::string(c.m_profile ? "M profile" : "A or R profile")}};
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
    [[nodiscard]] std::vector<std::shared_ptr<const protocol::Configuration>> variants() const override {
        std::vector<std::shared_ptr<const protocol::Configuration>> out;
        for (const Config& other : others_) out.push_back(configuration(other));
        return out;
    }
    [[nodiscard]] std::shared_ptr<const protocol::Configuration> beside(std::string_view core) const override;

private:
    const std::vector<Config> others_;
};

/// Whether a core with an ETMv3 has the M profile, by its name or architecture.
class ProtocolRow final : public protocol::Protocol {
public:
    [[nodiscard]] const protocol::Words& words() const override {
        static constexpr protocol::Words words{.unit = "ETMv3",
                                               .unit_title = "Embedded Trace Macrocell v3",
                                               .trace = "ETMv3 instruction trace",
                                               .title = "Embedded Trace Macrocell v3 (ETMv3)",
                                               .types = "ETM3.x",
                                               .settings = "ETMCR, ETMIDR and ETMCCER",
                                               .core_type = "ARMv7-A",
                                               .sync = "A-sync",
                                               .sync_bytes = "00 00 00 00 00 80",
                                               .syncs = "I-syncs",
                                               .one_sync = "I-sync",
                                               .type_names = {"ETM3", "ETMV3"}};
        return words;
    }
    [[nodiscard]] std::string type_of_option(std::string_view option) const override {
        const std::string name = protocol::upper(option);
        if (name == "ETM3" || name == "ETMV3") return "ETM3.5";
        return is_type(name) && protocol::is_version_up_to(name, 5) ? name : std::string();
    }
    [[nodiscard]] std::string_view option_names() const override { return "etm3 (or etmv3), etm3.0 to etm3.5"; }
    [[nodiscard]] std::span<const protocol::RegisterOption> register_options() const override {
        static constexpr std::array options{
            protocol::RegisterOption{"--etmcr", Etm3cr::name,
                                     "Value of ETMCR: cycle-accurate, Context ID size, return stack …"},
            protocol::RegisterOption{"--etmccer", Etmccer::name,
                                     "Value of ETMCCER: timestamp size and encoding, barriers"},
            protocol::RegisterOption{"--etmidr", Etm3idr::name, "Value of ETMIDR: version"}};
        return options;
    }
    [[nodiscard]] std::optional<protocol::TraceIdField> trace_id() const override {
        return protocol::TraceIdField{Etmtraceidr::name, 0, Etmtraceidr::number};
    }
    [[nodiscard]] UnitReference register_reference() const override { return etm3::register_reference(); }
    void visit_register(const RegisterValue& r, protocol::FieldVisitor& visitor) const override {
        if (std::find(pft::management_names.begin(), pft::management_names.end(), r.name) !=
            pft::management_names.end())
            visitor.number("value", static_cast<std::uint32_t>(r.value));
        protocol::VisitFields walker(visitor);
        etm3::for_each_place(Registers{}, [&](auto one, const pft::RegisterPlace& place) {
            if (place.name != r.name) return;
            one = from_value<decltype(one)>(static_cast<std::uint32_t>(r.value));
            decltype(one)::fields(walker, one);
        });
    }
    [[nodiscard]] std::vector<std::string> filters(const std::vector<RegisterValue>& registers) const override {
        std::vector<std::string> out = pft::filters(registers);
        const RegisterValue* const singles = find_register(registers, pft::Etmtecr2::name);
        if (singles != nullptr && singles->value != 0) out.emplace_back(pft::Etmtecr2::name);
        return out;
    }
    [[nodiscard]] std::optional<protocol::UnitExplanation> explain(const std::vector<RegisterValue>& registers,
                                                                   std::string_view) const override;
    [[nodiscard]] protocol::Configured configure(const protocol::Description& source) const override;

    [[nodiscard]] bool decodes_flow() const override { return true; }
    [[nodiscard]] bool aarch32_only() const override { return true; }
    [[nodiscard]] std::span<const flow::UnitFactory* const> units() const override {
        static const std::array units{&unit_factory()};
        return units;
    }
    [[nodiscard]] std::vector<std::string> packet_names() const override { return protocol::names_of<Packets>(); }

    [[nodiscard]] bool identify(const std::vector<Stretch>& stretches, protocol::Identity& out) const override;
    [[nodiscard]] protocol::Settled settle(const protocol::Identity& identity, const protocol::Configuration& described,
                                           const std::vector<Stretch>& stretches,
                                           std::string_view source) const override;
    [[nodiscard]] std::vector<CaptureFinding> health(const protocol::Identity&,
                                                     const protocol::Configuration* configuration,
                                                     const std::vector<Stretch>& stretches,
                                                     std::string_view) const override {
        const Likeness p = likeness_under(stretches, config_of(*configuration));
        auto out = p.findings(words());
        if (p.overflows != 0)
            out.push_back({Severity::warning,
                           "overflow",
                           {},
                           {},
                           p.first_overflow,
                           counted(p.overflows, "I-sync") + " after an overflow of the FIFO",
                           "none",
                           "the trace port takes fewer bytes than the unit makes",
                           "trace less (filters), stall the processor (ETMCR bit 7), or use a wider port"});
        return out;
    }
    [[nodiscard]] std::string how_to_read(std::string_view) const override { return {}; }
    [[nodiscard]] std::string next_step(std::string_view file) const override {
        return fmt::format(
            "waymark doctor {} --image PROGRAM --write-snapshot DIR makes a folder that every command reads; or give "
            "the programming of the macrocell (--protocol etm3 --etmcr VALUE …)",
            file);
    }
};

bool ProtocolRow::identify(const std::vector<Stretch>& stretches, protocol::Identity& out) const {
    bool data_tried = false;
    const std::vector<Likeness> all = alternatives(stretches, data_tried);
    const Likeness* const best = &best_of(all);
    constexpr unsigned without_data = 32, kinds_of_data = 3;  // addresses, values, both
    out.tried.push_back(
        {fmt::format("ETMv3, {} configurations of instruction trace{}", without_data,
                     data_tried ? fmt::format(", and {} with data trace", without_data * kinds_of_data) : ""),
         "at best " + best->verdict()});
    if (!best->enough()) return false;
    if (is_rather_ptm(stretches, *best)) {
        out.tried.back().result += "; Program Flow Trace fits better";
        return false;
    }
    const auto inferred = [](const Likeness& p) {
        Config c = p.config;
        c.timestamps = p.timestamps != 0;
        if (!c.timestamps) c.timestamp_bytes = Config{}.timestamp_bytes;
        return c;
    };
    const Config config = inferred(*best);
    // Only a program can distinguish configurations that parse equally well.
    std::vector<Config> others;
    for (const Likeness& p : all) {
        if (p.against() != best->against() || p.lost_bytes != best->lost_bytes) continue;
        const Config other = inferred(p);
        if (other != config && std::find(others.begin(), others.end(), other) == others.end()) others.push_back(other);
    }
    const auto fact = [&](std::string what, std::string value, auto&& field, auto&& words_of) {
        const Likeness* other = nullptr;
        for (const Likeness& p : all)
            if (field(p.config) != field(best->config) && (other == nullptr || p.against() < other->against()))
                other = &p;
        const bool open =
            std::any_of(others.begin(), others.end(), [&](const Config& c) { return field(c) != field(best->config); });
        // The program decides (Configuration::variants).
        if (open) return;
        const bool proven = other->against() > best->against();
        out.facts.push_back({std::move(what), std::move(value), proven ? Certainty::proven : Certainty::likely,
                             proven ? fmt::format("{}: {}, here {}", words_of(other->config),
                                                  counted(other->against(), "contradiction"), best->against())
                                    : fmt::format("{} would lose more bytes", words_of(other->config))});
    };
    const auto cycles = [](const Config& c) { return std::string(c.cycle_accurate ? "yes" : "no"); };
    const auto context = [](const Config& c) {
        return c.context_id_bytes == 0 ? std::string("not traced") : counted(c.context_id_bytes, "byte");
    };
    const auto branches = [](const Config& c) {
        return std::string(c.alternative_branches ? "alternative" : "original");
    };
    const auto bits = [](const Config& c) { return std::string(c.timestamp_bytes == 9 ? "64 bits" : "48 bits"); };
    fact("cycle counts", cycles(best->config), cycles, cycles);
    fact("Context ID", context(best->config), context, context);
    fact("branch encoding", branches(best->config), branches, branches);
    if (best->timestamps != 0) fact("timestamps", bits(best->config), bits, bits);
    const auto data = [](const Config& c) {
        return std::string(!c.data_address && !c.data_value ? "no"
                           : !c.data_value                  ? "addresses"
                           : !c.data_address                ? "values"
                                                            : "addresses and values");
    };
    if (best->data != 0) fact("data trace", data(best->config), data, data);
    out.protocol = this;
    out.configuration = std::make_shared<Configured>(config, std::move(others));
    out.waypoints = best->instructions + best->branches;
    out.first_sync = best->first_async;
    out.remarks.emplace_back("syncs", counted(best->asyncs, "A-sync"));
    return true;
}

protocol::Settled ProtocolRow::settle(const protocol::Identity& identity, const protocol::Configuration& described,
                                      const std::vector<Stretch>& stretches, std::string_view source) const {
    const Config& ini = config_of(described);
    const Config& seen = config_of(*identity.configuration);
    const Likeness as_described = likeness_under(stretches, ini), best = likeness_under(stretches, seen);
    if (as_described.against() <= best.against()) return {configuration(ini), {}};
    Config config = ini;
    config.cycle_accurate = seen.cycle_accurate;
    config.context_id_bytes = seen.context_id_bytes;
    config.timestamp_bytes = seen.timestamp_bytes;
    config.alternative_branches = seen.alternative_branches;
    config.data_value = seen.data_value;
    config.data_address = seen.data_address;
    config.data_only = false;
    if (config.alternative_branches && config.minor_version < 4) config.minor_version = 4;
    return {configuration(config),
            {{Severity::error,
              "registers",
              {},
              {},
              as_described.first_error,
              fmt::format("read as {} of {} have it, {}", words().settings, source, as_described.errors_text()),
              fmt::format("with other settings {}", best.errors_text()),
              "the registers were read before or after another setting was in force, or from another unit",
              fmt::format("correct {} of {}: compare the settings above", words().settings, source)}}};
}

std::optional<protocol::UnitExplanation> ProtocolRow::explain(const std::vector<RegisterValue>& registers,
                                                              std::string_view) const {
    Registers at_reset = tracing_registers();
    at_reset.ccr = {};  // no register says what the unit has
    protocol::UnitExplanation out = pft::explain(registers, at_reset, pft::Macrocell::etmv3);
    const RegisterValue* const control = find_register(registers, Etm3cr::name);
    if (control == nullptr) return out;
    const auto cr = from_value<Etm3cr>(static_cast<std::uint32_t>(control->value));
    if (cr.data_only)
        for (protocol::TraceContent& content : out.contents)
            if (content.what == "program flow") content = {content.what, false, "data-only mode", "ETMCR[20]"};
    out.contents.push_back({"addresses of data", cr.data_address, "", "ETMCR[3]"});
    out.contents.push_back({"values of data", cr.data_value, "", "ETMCR[2]"});
    return out;
}

protocol::Configured ProtocolRow::configure(const protocol::Description& source) const {
    protocol::Configured out;
    const auto problem = [&](std::string text) { out.problems.push_back(std::move(text)); };
    const auto value = [&](std::string_view register_name, std::string_view option, std::uint32_t otherwise,
                           std::string_view meaning) {
        if (const auto* r = find_register(source.registers, register_name)) return static_cast<std::uint32_t>(r->value);
        if (source.from_command_line)
            problem(fmt::format("{} is not given; decoding goes on as if {} were {:#x} ({}).", option, register_name,
                                otherwise, meaning));
        else
            problem(
                fmt::format("source '{}' has no register {}; decoding goes on as if it were {:#x} ({}). "
                            "Add '{}=VALUE' to its [regs].",
                            source.name, register_name, otherwise, meaning, register_name));
        return otherwise;
    };
    // The digit after the point of a type such as `ETM3.4`.
    const std::size_t dot = source.type.find('.');
    std::uint32_t minor = 5;
    if (dot != std::string_view::npos && dot + 1 < source.type.size() && source.type[dot + 1] >= '0' &&
        source.type[dot + 1] <= '9')
        minor = static_cast<std::uint32_t>(source.type[dot + 1] - '0');
    const auto cr = from_value<Etm3cr>(value(Etm3cr::name, "--etmcr", 0, "no cycle counts, Context IDs or data"));
    const std::uint32_t idr_value =
        value(Etm3idr::name, "--etmidr", 0x4100f200 | minor << 4, "the version of its type");
    const auto ccer = from_value<Etmccer>(value(Etmccer::name, "--etmccer", 0, "48-bit Gray coded timestamps, if any"));
    auto idr = from_value<Etm3idr>(idr_value);
    if (idr.major != 2) {
        problem(
            fmt::format("source '{}' is of type {}, but its ETMIDR {:#010x} is not that of an ETMv3 (bits [11:8] are "
                        "{:#x}, expected 0x2); decoding goes on as ETMv3.{}. Correct whichever is wrong.",
                        source.name, source.type, idr_value, idr.major, minor));
        idr.minor = static_cast<std::uint8_t>(minor);
    }
    Config config = Config::from_registers(cr, ccer, idr);
    config.m_profile = protocol::profile_of(source, out) == isa::CoreProfile::m;
    out.configuration = configuration(config);
    return out;
}

std::shared_ptr<const protocol::Configuration> Configured::beside(std::string_view core) const {
    const auto on_core = [&](Config c) {
        c.m_profile = isa::core_profile(core) == isa::CoreProfile::m;
        return c;
    };
    Config c = on_core(config_);
    if (c == config_) return nullptr;
    std::vector<Config> others;
    for (const Config& other : others_) others.push_back(on_core(other));
    // The macrocells of Cortex-M3 and M4, the only ones of the M profile, have the alternative encoding.
    if (c.m_profile && !c.alternative_branches) {
        Config usual = c;
        usual.alternative_branches = true;
        if (const auto found = std::find(others.begin(), others.end(), usual); found != others.end())
            std::swap(c, *found);
    }
    return std::make_shared<Configured>(c, std::move(others));
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

}  // namespace waymark::etm3
