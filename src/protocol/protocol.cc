#include "waymark/protocol/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/core/result.h"
#include "waymark/flow/summary.h"
#include "waymark/protocol/adapters.h"
#include "waymark/protocol/overflow_finding.h"

namespace waymark::protocol {

namespace {

/// A layer above requested a feature that the protocol does not claim to have.
[[noreturn]] void not_there() {
    WM_CHECK(false);
    std::abort();
}

}  // namespace

std::unique_ptr<Decoder> Configuration::decoder(const isa::CodeReader&, flow::BatchWriter&,
                                                const DecoderOptions&) const {
    not_there();
}
std::unique_ptr<follow::Parallel> Configuration::parallel_decoder(const isa::CodeReader&, flow::BlockTable&,
                                                                  flow::Sink&, const follow::ParallelOptions&) const {
    not_there();
}
bool Configuration::has_sync(Bytes) const { not_there(); }
follow::HeadRecovery Configuration::recover_head(const isa::CodeReader&, std::span<const follow::CodeExtent>,
                                                 Bytes) const {
    not_there();
}
void Configuration::decode_head(const follow::HeadRecovery&, const isa::CodeReader&, Bytes, flow::BatchWriter&) const {
    not_there();
}
std::vector<CaptureFinding> Configuration::differences(const Configuration& described, std::string_view source) const {
    std::vector<CaptureFinding> out;
    const std::vector<Setting> mine = settings(), theirs = described.settings();
    for (std::size_t i = 0; i < mine.size() && i < theirs.size(); ++i) {
        if (mine[i] == theirs[i]) continue;
        CaptureFinding finding;
        finding.kind = mine[i].name;
        std::replace(finding.kind.begin(), finding.kind.end(), '_', '-');
        const std::string what = setting_words(mine[i]);
        finding.found =
            "the description says " + what + ": " + value_words(theirs[i]) + "; decoded so, the image is contradicted";
        finding.expected = what + ": " + value_words(mine[i]);
        finding.cause = "the registers were read before or after another setting was in force, or from another unit";
        finding.advice = "correct " + std::string(protocol().words().settings) + " of " + std::string(source);
        out.push_back(std::move(finding));
    }
    return out;
}
std::string Configuration::core_type() const { return std::string(protocol().words().core_type); }
std::string setting_words(const Setting& setting) {
    std::string out = setting.name;
    std::replace(out.begin(), out.end(), '_', ' ');
    return out;
}
std::string value_words(const Setting& setting) {
    if (const auto* flag = std::get_if<bool>(&setting.value)) return *flag ? "yes" : "no";
    if (const auto* number = std::get_if<std::uint64_t>(&setting.value)) return grouped(*number);
    return std::get<std::string>(setting.value);
}
void Configuration::named_addresses(Bytes, const std::function<void(const follow::Place&)>&) const {}

bool Protocol::is_type(std::string_view source_type) const {
    const std::string name = upper(source_type.substr(0, source_type.find('.')));
    const auto& names = words().type_names;
    return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
}
std::string Protocol::type_of_option(std::string_view) const { return {}; }
void Protocol::visit_register(const RegisterValue&, FieldVisitor&) const {}
Configured Protocol::configure(const Description&) const { not_there(); }
Settled Protocol::settle(const Identity& identity, const Configuration&, const std::vector<Stretch>&,
                         std::string_view) const {
    return {identity.configuration, {}};
}
std::vector<CaptureFinding> Protocol::health(const Identity&, const Configuration*, const std::vector<Stretch>&,
                                             std::string_view) const {
    return {};
}
std::string Protocol::sentence(const flow::Inconsistency& what) const { return std::string(flow::name(what.conflict)); }

void FieldsText::number(std::string_view name, std::uint64_t value) {
    std::string digits;
    wire::append_number(digits, value);
    text(name, digits);
}
void FieldsText::text(std::string_view name, std::string_view value) {
    if (!out_.empty()) out_ += ' ';
    out_ += name;
    out_ += '=';
    out_ += value;
}

void Survey::add(std::string_view name, std::uint64_t bytes) {
    ++packets[std::string(name)];
    bytes_in_packets += bytes;
}

void Likeness::gap(const Gap& gap, const Stretch& stretch) {
    switch (gap.reason) {
        case GapReason::reserved_header:
        case GapReason::malformed_packet:
            ++errors;
            lost_bytes += gap.bytes();
            if (!first_error) first_error = stretch.offsets.capture(gap.first);
            break;
        case GapReason::padding: padding_bytes += gap.bytes(); break;
        case GapReason::unsynchronised:
        case GapReason::framing:
        case GapReason::missing: unsynchronised_bytes += gap.bytes(); break;
        case GapReason::incomplete_packet:
        case GapReason::stopped: break;
    }
}
std::string Likeness::errors_text() const {
    return counted(errors, "stretch", "stretches") + " (" + counted(lost_bytes, "byte") + ") without packets";
}
std::vector<CaptureFinding> Likeness::findings(const Words& words) const {
    if (errors == 0) return {};
    return {
        {Severity::warning,
         "damaged-packets",
         {},
         {},
         first_error,
         errors_text(),
         "packets up to the next " + std::string(words.sync),
         "bytes were damaged or lost on their way" +
             (words.settings.empty() ? ""
                                     : ", or the values of " + std::string(words.settings) + " are of another unit"),
         "trace continues at the " + std::string(words.sync) + " after each; read the buffer again if it matters"}};
}

std::vector<CaptureFinding> lost_bytes_findings(const Identity& identity, const std::vector<Stretch>& stretches,
                                                const std::string& one, const std::string& many, std::string expected,
                                                std::string remedy) {
    if (identity.lost_bytes == 0) return {};
    std::uint64_t bytes = 0;
    for (const Stretch& stretch : stretches) bytes += stretch.bytes.size();
    return {{Severity::warning,
             "damaged-" + many,
             {},
             {},
             {},
             grouped(identity.lost_bytes) + " of " + counted(bytes, "byte") + " " +
                 std::string(are(identity.lost_bytes)) + " in no " + one + ", or damaged inside one",
             std::move(expected),
             "bytes were damaged, or the file begins or ends amid one",
             std::move(remedy)}};
}

std::string upper(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return out;
}

CaptureFinding Overflows::finding(std::string_view what) const {
    return {Severity::warning,
            "overflow",
            {},
            {},
            first,
            fmt::format("{} {}", what, counted(times, "time")),
            "none",
            "the unit made more trace than the trace bus took",
            "trace less, or widen the trace port"};
}

}  // namespace waymark::protocol
