#include "waymark/stm/protocol.h"

#include <fmt/format.h>

#include <set>
#include <type_traits>

#include "readers.h"
#include "waymark/core/numbers.h"
#include "waymark/protocol/adapters.h"
#include "waymark/protocol/message.h"
#include "waymark/protocol/overflow_finding.h"
#include "waymark/protocol/packet_rows.h"
#include "waymark/stm/message_decoder.h"
#include "waymark/stm/parser.h"
#include "waymark/stm/register_reference.h"
#include "waymark/stm/registers.h"
#include "waymark/stm/text.h"

namespace waymark::stm {

namespace {

using protocol::CaptureFinding;
using protocol::Stretch;
using protocol::Survey;

class Configured final : public protocol::ConfigurationWith<Config>,
                         public protocol::MessageSource,
                         public protocol::RowSource {
public:
    using ConfigurationWith::ConfigurationWith;
    [[nodiscard]] std::unique_ptr<protocol::Reader> list(protocol::PacketListener& listener) const override {
        return std::make_unique<protocol::ListerOf<Config, Parser, Explainer>>(config_, listener);
    }
    [[nodiscard]] std::unique_ptr<protocol::Surveyor> survey(const OffsetMap& offsets) const override {
        return make_surveyor(config_, offsets);
    }
    [[nodiscard]] std::unique_ptr<protocol::Reader> write_rows(protocol::PacketRows& rows) const override {
        return make_row_writer(config_, rows);
    }
    [[nodiscard]] const protocol::Protocol& protocol() const override { return row(); }
    [[nodiscard]] std::string source_type() const override { return "STM"; }
    [[nodiscard]] std::vector<RegisterValue> registers() const override {
        auto control = from_value<Stmtcsr>(0);
        control.hardware_events = config_.hardware_events;
        std::vector<RegisterValue> out{register_value(control)};
        if (config_.hardware_master) {
            auto master = from_value<Stmhemastr>(0);
            master.master = *config_.hardware_master;
            out.push_back(register_value(master));
        }
        return out;
    }
    [[nodiscard]] std::vector<protocol::Setting> settings() const override {
        std::vector<protocol::Setting> out{{"hardware_events", config_.hardware_events}};
        if (config_.hardware_master) out.push_back({"hardware_master", std::uint64_t{*config_.hardware_master}});
        return out;
    }
    [[nodiscard]] std::string_view clock() const override { return "timestamp"; }
    [[nodiscard]] std::unique_ptr<protocol::Reader> messages(protocol::MessageListener& listener) const override {
        return std::make_unique<MessageDecoder>(config_, listener);
    }
};

/// The result of parsing bytes.
struct Likeness : protocol::Likeness {
    std::uint64_t syncs{}, versions{}, data{};
    std::set<unsigned> forms{};
    protocol::Overflows overflows{};
    bool after_sync = false;
    template <class P>
    void see(const P& packet, Extent at, const Stretch& stretch) {
        if constexpr (std::is_same_v<P, VersionPacket>) {
            versions += after_sync ? 1 : 0;
            forms.insert(packet.version);
        } else if constexpr (std::is_same_v<P, MasterError> || std::is_same_v<P, GlobalError>) {
            overflows.add(stretch.offsets.capture(at.first));
        }
        after_sync = std::is_same_v<P, Async>;
        syncs += after_sync ? 1 : 0;
        if constexpr (requires { P::nibbles; }) ++data;
    }

    /// Whether the packets are convincing. Erased memory can have any number of F nibbles, but a unit sends a VERSION
    /// after each ASYNC.
    [[nodiscard]] bool convinces() const {
        return versions != 0 && versions == syncs && forms.size() == 1 && packets >= 4 && packets >= 8 * errors &&
               2 * lost_bytes <= bytes;
    }
    [[nodiscard]] std::string text() const {
        return fmt::format("{}, {}, {} with VERSION after it, {}", counted(packets, "packet"), counted(syncs, "ASYNC"),
                           versions, errors_text());
    }
};

class ProtocolRow final : public protocol::Protocol {
public:
    [[nodiscard]] const protocol::Words& words() const override {
        static constexpr protocol::Words words{.unit = "STM",
                                               .unit_title = "System Trace Macrocell",
                                               .trace = "system trace",
                                               .title = "system trace (STM, STPv2)",
                                               .types = "STM",
                                               .core_type = "any core",
                                               .sync = "ASYNC",
                                               .sync_bytes = "ten times FF, then 0F",
                                               .type_names = {"STM", "STM-500"}};
        return words;
    }
    [[nodiscard]] std::string type_of_option(std::string_view option) const override {
        return protocol::upper(option) == "STM" ? "STM" : "";
    }
    [[nodiscard]] std::string_view option_names() const override { return "stm"; }
    [[nodiscard]] std::optional<protocol::TraceIdField> trace_id() const override {
        return protocol::TraceIdField{Stmtcsr::name, 16};
    }
    [[nodiscard]] UnitReference register_reference() const override { return stm::register_reference(); }
    void visit_register(const RegisterValue& value, protocol::FieldVisitor& visitor) const override {
        protocol::visit_one_of<Stmtcsr, Stmhemastr>(value, visitor);
    }
    [[nodiscard]] protocol::Configured configure(const protocol::Description& source) const override {
        protocol::Configured out;
        Config config;
        if (const RegisterValue* value = find_register(source.registers, Stmtcsr::name))
            config.hardware_events = from_value<Stmtcsr>(static_cast<std::uint32_t>(value->value)).hardware_events;
        else
            out.problems.push_back(fmt::format(
                "source '{}' has no register STMTCSR; decoding goes on as if it were 0x0 (no hardware events). {}",
                source.name,
                source.from_command_line ? "Add --register STMTCSR=VALUE." : "Add 'STMTCSR=VALUE' to its [regs]."));
        if (const RegisterValue* value = find_register(source.registers, Stmhemastr::name))
            config.hardware_master = from_value<Stmhemastr>(static_cast<std::uint32_t>(value->value)).master;
        out.configuration = configuration(config);
        return out;
    }
    [[nodiscard]] std::vector<std::string> packet_names() const override { return protocol::names_of<Packets>(); }

    [[nodiscard]] bool identify(const std::vector<Stretch>& stretches, protocol::Identity& out) const override {
        const Likeness found = protocol::likeness<Likeness, Parser>(stretches, Config{});
        out.tried.push_back({std::string(words().trace), found.text()});
        if (!found.convinces()) return false;
        out.protocol = this;
        out.configuration = configuration(Config{});
        Survey survey;
        for (const Stretch& stretch : stretches) {
            if (out.first_sync) break;
            const auto surveyor = out.configuration->survey(stretch.offsets);
            surveyor->feed(stretch.bytes);
            out.first_sync = surveyor->survey().first_sync;
        }
        out.facts.push_back({"timestamps",
                             *found.forms.begin() == 3   ? "binary"
                             : *found.forms.begin() == 4 ? "Gray code"
                                                         : "not read",
                             protocol::Certainty::proven,
                             fmt::format("VERSION {} after each ASYNC", *found.forms.begin())});
        out.facts.push_back({"hardware events", "no", protocol::Certainty::assumed, "the bytes do not show them"});
        return true;
    }
    [[nodiscard]] std::vector<CaptureFinding> health(const protocol::Identity&,
                                                     const protocol::Configuration* configuration,
                                                     const std::vector<Stretch>& stretches,
                                                     std::string_view) const override {
        if (configuration == nullptr) return {};
        const auto found = protocol::likeness<Likeness, Parser>(stretches, config_of(*configuration));
        std::vector<CaptureFinding> out = found.findings(words());
        if (found.overflows.times != 0) out.push_back(found.overflows.finding("the unit lost writes"));
        return out;
    }
    [[nodiscard]] std::string how_to_read(std::string_view) const override { return {}; }
    [[nodiscard]] std::string next_step(std::string_view file) const override {
        return fmt::format("waymark messages {} --protocol stm lists what was written to the STM", file);
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

}  // namespace waymark::stm
