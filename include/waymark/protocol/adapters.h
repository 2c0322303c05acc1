/// Adapters from the classes that each protocol has (docs/architecture.md, "The shape of a protocol") to the classes of
/// protocol.h. For `src/<protocol>/protocol.cc`.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "waymark/core/numbers.h"
#include "waymark/core/registers.h"
#include "waymark/core/wire.h"
#include "waymark/protocol/parsing_reader.h"
#include "waymark/protocol/protocol.h"

namespace waymark::protocol {

/// A walker of core/wire.h that passes fields to a FieldVisitor.
class VisitFields {
public:
    explicit VisitFields(FieldVisitor& visitor) : visitor_(visitor) {}

    template <class... Parts>
    void byte(Parts... parts) {
        (pass(parts), ...);
    }
    template <class... Parts>
    void word(Parts... parts) {
        (pass(parts), ...);
    }
    template <class... Parts>
    void doubleword(Parts... parts) {
        (pass(parts), ...);
    }
    template <class T, class Codec>
    void field(std::string_view name, const T& value, const Codec& codec) {
        std::string text;
        codec.print(text, value);
        visitor_.text(name, text);
    }
    template <class T>
    void le(std::string_view name, const T& value, unsigned bytes) {
        if (bytes != 0) visitor_.number(name, static_cast<std::uint64_t>(value));
    }
    void impossible() {}

private:
    template <unsigned Hi, unsigned Lo, class T>
    void pass(wire::Bits<Hi, Lo, T> part) {
        visitor_.number(part.name, static_cast<std::uint64_t>(part.value));
    }
    template <unsigned Hi, unsigned Lo>
    void pass(wire::Fixed<Hi, Lo>) {}
    template <unsigned Hi, unsigned Lo>
    void pass(wire::ShouldBe<Hi, Lo>) {}

    FieldVisitor& visitor_;
};

/// The fields of the register that has the value's name (core/registers.h), among the given ones.
template <class... Registers>
void visit_one_of(const RegisterValue& value, FieldVisitor& visitor) {
    VisitFields walker(visitor);
    const auto visit = [&]<class Register>(Register r) {
        if (value.name != Register::name) return;
        r = from_value<Register>(static_cast<RegisterNumber<Register>>(value.value));
        Register::fields(walker, r);
    };
    (visit(Registers{}), ...);
}

/// The names of a packet list (wire::PacketList).
template <class Packets>
[[nodiscard]] std::vector<std::string> names_of() {
    std::vector<std::string> out;
    Packets::for_each([&]<class P>() { out.emplace_back(P::info.name); });
    return out;
}

/// A packet of any type, with the function that visits its fields.
template <class Config>
class ViewOf final : public PacketView {
public:
    /// All is borrowed.
    template <class P>
    ViewOf(const P& packet, const Config& config, const std::string& meaning)
        : name_(P::info.name), packet_(&packet), visit_(visit_fields<P>), config_(config), meaning_(meaning) {}
    [[nodiscard]] std::string_view name() const override { return name_; }
    [[nodiscard]] std::string fields_text() const override {
        FieldsText text;
        visit(text);
        return text.take();
    }
    void visit(FieldVisitor& visitor) const override { visit_(packet_, config_, visitor); }
    [[nodiscard]] const std::string& meaning() const override { return meaning_; }

private:
    template <class P>
    static void visit_fields(const void* packet, const Config& config, FieldVisitor& visitor) {
        VisitFields walker(visitor);
        P::fields(walker, *static_cast<const P*>(packet), config);
    }

    std::string_view name_;
    const void* packet_;
    void (*visit_)(const void* packet, const Config& config, FieldVisitor& visitor);
    const Config& config_;
    const std::string& meaning_;
};

/// Lists packets. `Parser<H>(config, handler)` is the protocol's parser, `Explainer(config)` gives the meaning of its
/// packets.
template <class Config, template <class> class Parser, class Explainer>
class ListerOf final : public ParsingReader<Reader, Config, Parser, ListerOf<Config, Parser, Explainer>> {
public:
    ListerOf(const Config& config, PacketListener& listener)
        : ListerOf::ParsingReader(config, *this), listener_(listener), explain_(this->config_) {}

    // Called by the parser.
    template <class P>
    void operator()(const P& packet, Extent at) {
        const std::string meaning = explain_(packet);
        listener_.packet(ViewOf<Config>(packet, this->config_, meaning), at);
    }
    void operator()(const Gap& gap) {
        explain_(gap);
        listener_.gap(gap);
    }

private:
    PacketListener& listener_;
    Explainer explain_;
};

/// Counts packets and gaps. `More(config)` adds the protocol's own counts: see(packet, at, offsets, survey) for each
/// packet, gap() or gap(gap, offsets) for each gap, finish(survey) on a copy of the counts. It may also count packets
/// itself, in take(…, offsets, survey), as PacketParser and other parsers let handlers do.
template <class Config, template <class> class Parser, class More>
class SurveyorOf : public ParsingReader<Surveyor, Config, Parser, SurveyorOf<Config, Parser, More>> {
public:
    SurveyorOf(const Config& config, const OffsetMap& offsets)
        : SurveyorOf::ParsingReader(config, *this), offsets_(offsets), more_(this->config_) {}
    [[nodiscard]] Survey survey() const override {
        Survey out = survey_;
        for (const auto& [name, times] : times_) out.packets[std::string(name)] += times;
        more_.finish(out);
        return out;
    }

    // Called by the parser.
    template <class P>
    void operator()(const P& packet, Extent at) {
        survey_.bytes_in_packets += at.bytes;
        count(P::info.name);
        more_.see(packet, at, offsets_, survey_);
    }
    template <class... Place>
    requires requires(More& more, const OffsetMap& offsets, Survey& survey, const Place&... place) {
        more.take(place..., offsets, survey);
    }
    auto take(const Place&... place) { return more_.take(place..., offsets_, survey_); }
    void operator()(const Gap& gap) {
        if constexpr (requires { more_.gap(gap, offsets_); })
            more_.gap(gap, offsets_);
        else
            more_.gap();
        Survey::Gaps& gaps = survey_.gaps[static_cast<unsigned>(gap.reason)];
        if (gaps.times++ == 0) gaps.first = offsets_.capture(gap.first);
        gaps.bytes += gap.bytes();
    }

protected:
    [[nodiscard]] const More& more() const { return more_; }

private:
    /// Few kinds of packets occur in a stream, and each has one name in memory.
    void count(std::string_view name) {
        for (auto& [known, times] : times_)
            if (known.data() == name.data()) {
                ++times;
                return;
            }
        times_.emplace_back(name, 1);
    }

    const OffsetMap& offsets_;
    Survey survey_;
    std::vector<std::pair<std::string_view, std::uint64_t>> times_;
    More more_;
};

/// The part of a Configuration that is the same in every protocol.
template <class Config>
class ConfigurationWith : public Configuration {
public:
    explicit ConfigurationWith(const Config& config) : config_(config) {}
    [[nodiscard]] const Config& config() const { return config_; }
    [[nodiscard]] bool equals(const Configuration& other) const override {
        return config_ == static_cast<const ConfigurationWith&>(other).config_;
    }

protected:
    const Config config_;
};

/// The same with lists and surveys of packets. A protocol's own class adds protocol, source_type, registers and
/// settings.
template <class Config, template <class> class Parser, class Explainer, class More>
class ConfigurationOf : public ConfigurationWith<Config> {
public:
    using ConfigurationWith<Config>::ConfigurationWith;
    [[nodiscard]] std::unique_ptr<Reader> list(PacketListener& listener) const override {
        return std::make_unique<ListerOf<Config, Parser, Explainer>>(this->config_, listener);
    }
    [[nodiscard]] std::unique_ptr<Surveyor> survey(const OffsetMap& offsets) const override {
        return std::make_unique<SurveyorOf<Config, Parser, More>>(this->config_, offsets);
    }
};

/// `Base`, a ConfigurationOf, for a protocol whose flow is decoded. `Config::max_walk_bytes` bounds a walk. `Named` is
/// made from (config, take) and handles packets: it calls `take` with the addresses at which execution continues.
template <class Base, template <class> class Parser, class ReferenceDecoder, class Decoder, class Named>
class FlowConfigurationOf : public Base {
public:
    using Base::Base;
    [[nodiscard]] std::unique_ptr<protocol::Decoder> decoder(const isa::CodeReader& code, flow::BatchWriter& out,
                                                             const DecoderOptions& options) const override {
        auto config = this->config_;
        config.max_walk_bytes = options.max_walk_bytes.value_or(config.max_walk_bytes);
        if (options.kind == DecoderKind::reference)
            return std::make_unique<StreamDecoderOf<ReferenceDecoder>>(config, code, out);
        return std::make_unique<StreamDecoderOf<Decoder>>(config, code, out);
    }
    void named_addresses(Bytes stream, const std::function<void(const follow::Place&)>& take) const override {
        Named taken(this->config_, take);
        Parser<Named> parser(this->config_, taken);
        parser.feed(stream);
        parser.finish();
    }
};

/// The result of parsing bytes with one configuration. A protocol's own type derives from it, and has `see(packet, at,
/// stretch)`.
struct Likeness {
    std::uint64_t bytes{}, packets{}, errors{}, lost_bytes{}, unsynchronised_bytes{}, padding_bytes{};
    std::optional<Offset> first_error{};

    void gap(const Gap& gap, const Stretch& stretch);
    /// Number of bytes that should consist of packets.
    [[nodiscard]] std::uint64_t parsed_bytes() const {
        return bytes - lost_bytes - unsynchronised_bytes - padding_bytes;
    }
    /// Text such as `2 stretches (17 bytes) without packets`.
    [[nodiscard]] std::string errors_text() const;
    /// Findings about errors in the bytes of a unit with these words; empty if there are no errors.
    [[nodiscard]] std::vector<CaptureFinding> findings(const Words& words) const;
};
template <class Own>
struct LikenessCounter {
    Own& out;
    const Stretch& stretch;
    void operator()(const auto& packet, Extent at) {
        ++out.packets;
        out.see(packet, at, stretch);
    }
    void operator()(const Gap& gap) { out.gap(gap, stretch); }
};
/// The result for all stretches together, as an `Own`, which derives from Likeness.
template <class Own, template <class> class Parser, class Config>
[[nodiscard]] Own likeness(const std::vector<Stretch>& stretches, const Config& config) {
    Own out;
    for (const Stretch& stretch : stretches) {
        LikenessCounter<Own> counter{out, stretch};
        Parser<LikenessCounter<Own>> parser(config, counter);
        out.bytes += feed(parser, stretch, [&] { return parser.progress().amid_packet(); });
        parser.finish();
    }
    return out;
}

/// The finding about bytes of a buffer outside all entries of a unit, or damaged inside one; nullopt if there are no
/// such bytes. `one`, `many`: the name of its entries.
[[nodiscard]] std::vector<CaptureFinding> lost_bytes_findings(const Identity& identity,
                                                              const std::vector<Stretch>& stretches,
                                                              const std::string& one, const std::string& many,
                                                              std::string expected, std::string remedy);

/// Upper case, for comparing names that may be written in any case.
[[nodiscard]] std::string upper(std::string_view text);

}  // namespace waymark::protocol
