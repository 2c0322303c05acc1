#include "waymark/doctor/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "waymark/core/registers.h"
#include "waymark/doctor/capture_input.h"
#include "waymark/pipeline/protocols.h"
#include "waymark/protocol/adapters.h"

namespace waymark::doctor {

namespace {

/// The field that holds bit `n` of a register, by its name; empty: none does.
std::string_view field_with_bit(const pipeline::Protocol& protocol, const std::string& name, unsigned n) {
    class Set final : public protocol::FieldVisitor {
    public:
        void number(std::string_view field, std::uint64_t value) override {
            if (value != 0) found = field;
        }
        void text(std::string_view, std::string_view) override {}
        std::string_view found;
    } set;
    protocol.visit_register({name, std::uint64_t{1} << n, {}, 64}, set);
    return set.found;
}

/// The fields of a register, from the lowest bit up; none: the unit has no such register.
std::vector<RegisterField> fields_called(const pipeline::Protocol& protocol, const std::string& name) {
    std::vector<RegisterField> out;
    for (unsigned n = 0; n < 64; ++n) {
        const std::string_view field = field_with_bit(protocol, name, n);
        if (field.empty()) continue;
        if (!out.empty() && out.back().name == field && out.back().hi + 1 == n)
            out.back().hi = n;
        else
            out.push_back({field, n, n});
    }
    return out;
}

/// The name that the unit has for a register; none: it has no such register.
std::optional<std::string> name_in(const pipeline::Protocol& protocol, std::string_view written) {
    const std::string name = protocol::upper(written);
    for (const std::string& candidate : {name, name + "R"})
        if (!field_with_bit(protocol, candidate, 0).empty()) return candidate;
    return std::nullopt;
}

const pipeline::Protocol* unit_with_most(const std::vector<flow::RegisterSetting>& settings) {
    const pipeline::Protocol* best = nullptr;
    std::ptrdiff_t most = 0;
    for (const pipeline::Protocol* protocol : pipeline::protocols()) {
        if (!protocol->explain({}, {})) continue;
        const auto known = std::count_if(settings.begin(), settings.end(),
                                         [&](const auto& s) { return name_in(*protocol, s.name).has_value(); });
        if (known > most) best = protocol, most = known;
    }
    return best;
}

std::string explained_units() {
    std::string out;
    for (const pipeline::Protocol* protocol : pipeline::protocols())
        if (protocol->explain({}, {})) out += fmt::format("{}{}", out.empty() ? "" : "; ", protocol->words().types);
    return out;
}

}  // namespace

Result<ExplainedSource> explain_settings(const std::vector<flow::RegisterSetting>& settings, std::string_view core) {
    const pipeline::Protocol* const protocol = unit_with_most(settings);
    if (protocol == nullptr)
        return Error{Errc::usage,
                     settings.empty()
                         ? fmt::format("no registers are given; the units that are explained: {}", explained_units())
                         : fmt::format("{}: {} is no register of a unit that is explained: {}", settings.front().where,
                                       settings.front().name, explained_units())};
    ExplainedSource out;
    for (const flow::RegisterSetting& setting : settings) {
        const auto name = name_in(*protocol, setting.name);
        if (!name) {
            out.ignored.push_back(setting.name);
            continue;
        }
        flow::SettableRegister it{*name, 0, ~std::uint64_t{0}, 4, fields_called(*protocol, *name)};
        if (it.fields.back().hi >= 32)
            it.bytes = 8;
        else
            it.writable = 0xffffffff;
        auto found = std::find_if(out.registers.begin(), out.registers.end(),
                                  [&](const RegisterValue& r) { return r.name == *name; });
        if (found == out.registers.end()) found = out.registers.insert(found, {*name, 0, {}, 8 * it.bytes});
        it.value = found->value;
        flow::RegisterSetting named = setting;
        named.name = *name;
        WM_ASSIGN_OR_RETURN(found->value, flow::value_after(named, it));
    }
    out.explanation = *protocol->explain(out.registers, core);
    return out;
}

Result<std::vector<ExplainedSource>> explain_capture(const std::string& path,
                                                     const std::function<void(const std::string&)>& note) {
    CaptureInput input;
    input.capture = path;
    WM_ASSIGN_OR_RETURN(const pipeline::Session session, open_capture(input, nullptr, note));
    std::vector<ExplainedSource> out;
    for (const capture::Source& source : session.capture.sources) {
        const pipeline::Protocol* const protocol = pipeline::protocol_of(source.type);
        if (protocol == nullptr) continue;
        auto explanation = protocol->explain(source.registers, source.core_type);
        if (!explanation) continue;
        out.push_back({source.name, source.registers, *std::move(explanation), {}});
    }
    if (out.empty())
        return Error{Errc::unsupported, fmt::format("{}: it has no source of a unit that is explained; known are {}",
                                                    path, explained_units())};
    return out;
}

}  // namespace waymark::doctor
