#include "waymark/itm/protocol.h"

#include <fmt/format.h>

#include <bit>

#include "readers.h"
#include "waymark/core/numbers.h"
#include "waymark/itm/message_decoder.h"
#include "waymark/itm/parser.h"
#include "waymark/itm/register_reference.h"
#include "waymark/itm/registers.h"
#include "waymark/itm/text.h"
#include "waymark/protocol/adapters.h"
#include "waymark/protocol/message.h"
#include "waymark/protocol/overflow_finding.h"
#include "waymark/protocol/packet_rows.h"

namespace waymark::itm {

namespace {

using protocol::CaptureFinding;
using protocol::Stretch;
using protocol::Survey;

std::string comparator_name(std::size_t number) { return fmt::format("DWT_COMP{}", number); }

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
    [[nodiscard]] std::string source_type() const override { return "ITM"; }
    [[nodiscard]] std::vector<RegisterValue> registers() const override {
        auto r = from_value<Itmtcr>(0);
        // The prescaler counts only with the asynchronous clock.
        r.asynchronous_clock = config_.prescaler != 1;
        r.prescaler = static_cast<std::uint8_t>(std::countr_zero(unsigned{config_.prescaler}) / 2);
        std::vector<RegisterValue> out{register_value(r)};
        for (std::size_t n = 0; n < config_.watched.size(); ++n)
            if (const auto& address = config_.watched[n]) out.push_back({comparator_name(n), *address});
        return out;
    }
    [[nodiscard]] std::optional<std::uint64_t> watched(std::uint32_t comparator) const override {
        if (comparator >= config_.watched.size()) return std::nullopt;
        return config_.watched[comparator];
    }
    [[nodiscard]] std::vector<protocol::Setting> settings() const override {
        return {{"timestamp_prescaler", std::uint64_t{config_.prescaler}}};
    }
    [[nodiscard]] std::unique_ptr<protocol::Reader> messages(protocol::MessageListener& listener) const override {
        return std::make_unique<MessageDecoder>(config_, listener);
    }
};

/// Whether all bytes are characters, as a program prints them; zeros fill up a word.
bool is_text(const Stimulus& packet) {
    for (unsigned i = 0; i < payload_bytes(packet.size); ++i) {
        const auto byte = static_cast<std::uint8_t>(packet.data >> 8 * i);
        const bool fills = byte == 0 && i != 0 && packet.data >> 8 * i == 0;
        if (!fills && (byte < ' ' || byte > '~') && byte != '\n' && byte != '\r' && byte != '\t') return false;
    }
    return true;
}

/// The result of parsing: numbers of packets that a unit sends, and of others.
struct Likeness : protocol::Likeness {
    std::uint64_t syncs{}, timestamps{}, stimuli{}, texts{}, hardware{}, odd{}, odd_inside{}, odd_bytes{};
    protocol::Overflows overflows{};
    std::uint64_t head_bytes{};
    std::optional<Offset> first_head{}, first_odd{};

    void gap(const Gap& gap, const Stretch& stretch) {
        if (gap.reason == GapReason::unsynchronised) {
            head_bytes += gap.bytes();
            if (!first_head) first_head = stretch.offsets.capture(gap.first);
        }
        protocol::Likeness::gap(gap, stretch);
    }
    void see(const Sync&, Extent, const Stretch&) { ++syncs; }
    void see(const ShortTimestamp&, Extent, const Stretch&) { ++timestamps; }
    void see(const LocalTimestamp&, Extent, const Stretch&) { ++timestamps; }
    void see(const GlobalTimestamp1&, Extent, const Stretch&) { ++timestamps; }
    void see(const GlobalTimestamp2&, Extent, const Stretch&) { ++timestamps; }
    void see(const Stimulus& p, Extent, const Stretch&) {
        ++stimuli;
        texts += is_text(p) ? 1 : 0;
    }
    void see(const HardwareSource& p, Extent at, const Stretch& stretch) {
        if (is_reserved(p))
            reserved(at, stretch);
        else
            ++hardware;
    }
    void see(const Extension& p, Extent at, const Stretch& stretch) {
        if (p.more || p.hardware) reserved(at, stretch);
    }
    void see(const Overflow&, Extent at, const Stretch& stretch) { overflows.add(stretch.offsets.capture(at.first)); }

    /// At the head of the stream, a packet seems reserved if the stream begins amid another one.
    void reserved(Extent at, const Stretch& stretch) {
        ++odd;
        const Offset place = stretch.offsets.capture(at.first);
        if (packets == odd) {
            head_bytes += at.bytes;
            if (!first_head) first_head = place;
            return;
        }
        ++odd_inside;
        odd_bytes += at.bytes;
        if (!first_odd) first_odd = place;
    }

    /// In random bytes about 42 of 100 packets are reserved or have damage before them; in programs it can be only 36.
    /// A synchronisation packet outweighs that in a short stream, and so does text: four in ten random values are
    /// characters.
    [[nodiscard]] bool convinces() const {
        const bool prints = stimuli >= 16 && 10 * texts >= 9 * stimuli;
        return stimuli + hardware >= 4 && (syncs != 0 || timestamps >= 4 || hardware >= 4 || prints) &&
               packets >= 10 * (odd + errors) + (syncs != 0 ? 0 : 16) && 10 * lost_bytes <= bytes;
    }
    [[nodiscard]] std::string text() const {
        return fmt::format("{}, {} of the DWT, {}, {} of reserved kinds, {}", counted(packets, "packet"), hardware,
                           counted(syncs, "synchronisation packet"), odd, errors_text());
    }
};

class ProtocolRow final : public protocol::Protocol {
public:
    [[nodiscard]] const protocol::Words& words() const override {
        static constexpr protocol::Words words{.unit = "ITM",
                                               .unit_title = "Instrumentation Trace Macrocell",
                                               .trace = "instrumentation and watchpoint trace",
                                               .title = "instrumentation and watchpoint trace (ITM, DWT)",
                                               .types = "ITM",
                                               .settings = "ITM_TCR",
                                               .core_type = "ARMv7-M",
                                               .sync = "packet",
                                               .sync_bytes = "such as 01 41",
                                               .type_names = {"ITM"}};
        return words;
    }
    [[nodiscard]] std::string type_of_option(std::string_view option) const override {
        return protocol::upper(option) == "ITM" ? "ITM" : "";
    }
    [[nodiscard]] std::string_view option_names() const override { return "itm"; }
    [[nodiscard]] std::optional<protocol::TraceIdField> trace_id() const override {
        return protocol::TraceIdField{Itmtcr::name, 16};
    }
    [[nodiscard]] UnitReference register_reference() const override { return itm::register_reference(); }
    void visit_register(const RegisterValue& value, protocol::FieldVisitor& visitor) const override {
        protocol::visit_one_of<Itmtcr>(value, visitor);
    }
    [[nodiscard]] protocol::Configured configure(const protocol::Description& source) const override {
        protocol::Configured out;
        Config config;
        if (const RegisterValue* value = find_register(source.registers, Itmtcr::name)) {
            const auto r = from_value<Itmtcr>(static_cast<std::uint32_t>(value->value));
            if (r.asynchronous_clock) config.prescaler = static_cast<std::uint8_t>(1U << 2 * r.prescaler);
        } else {
            out.problems.push_back(fmt::format(
                "source '{}' has no register ITMTCR; decoding goes on as if it were 0x0 (local timestamps "
                "count without a prescaler). {}",
                source.name,
                source.from_command_line ? "Add --register ITMTCR=VALUE." : "Add 'ITMTCR=VALUE' to its [regs]."));
        }
        for (std::size_t n = 0; n < config.watched.size(); ++n)
            if (const RegisterValue* value = find_register(source.registers, comparator_name(n)))
                config.watched[n] = static_cast<std::uint32_t>(value->value);
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
        out.first_sync = stretches.empty() ? Offset{0} : stretches.front().offsets.capture({});
        // Amid bytes that are no packets, a single one may be there by chance.
        const bool certain = found.syncs > 1 || (found.syncs == 1 && found.odd + found.errors == 0);
        out.facts.push_back({"synchronisation packets", found.syncs != 0 ? "yes" : "no",
                             certain ? protocol::Certainty::proven : protocol::Certainty::likely,
                             found.syncs != 0 ? counted(found.syncs, "synchronisation packet") + " found"
                                              : "packets parse from the first byte on"});
        out.facts.push_back({"timestamp prescaler", "1", protocol::Certainty::assumed, "the bytes do not show it"});
        return true;
    }
    [[nodiscard]] std::vector<CaptureFinding> health(const protocol::Identity&,
                                                     const protocol::Configuration* configuration,
                                                     const std::vector<Stretch>& stretches,
                                                     std::string_view) const override {
        if (configuration == nullptr) return {};
        const auto found = protocol::likeness<Likeness, Parser>(stretches, config_of(*configuration));
        std::vector<CaptureFinding> out = found.findings(words());
        if (found.odd_inside != 0)
            out.push_back({protocol::Severity::warning,
                           "reserved-packets",
                           {},
                           {},
                           found.first_odd,
                           fmt::format("{} ({}) of kinds that no unit sends", counted(found.odd_inside, "packet"),
                                       counted(found.odd_bytes, "byte")),
                           "packets of the kinds that are defined",
                           "bytes were damaged on their way, or the memory there was never written",
                           "these packets count as lost; read the buffer again if it matters"});
        if (found.overflows.times != 0) out.push_back(found.overflows.finding("the unit's FIFO overflowed"));
        if (found.head_bytes != 0)
            out.push_back({protocol::Severity::note,
                           "unsynchronised",
                           {},
                           {},
                           found.first_head,
                           fmt::format("{} at the head of the stream {} in no packet",
                                       counted(found.head_bytes, "byte"), are(found.head_bytes)),
                           "a packet that begins at the first byte",
                           "the stream begins amid a packet",
                           "nothing: packets follow from there on"});
        return out;
    }
    [[nodiscard]] std::string how_to_read(std::string_view) const override { return {}; }
    [[nodiscard]] std::string next_step(std::string_view file) const override {
        return fmt::format("waymark messages {} --protocol itm --kind all lists what ITM and DWT sent", file);
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

}  // namespace waymark::itm
