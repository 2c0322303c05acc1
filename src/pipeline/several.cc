#include "waymark/pipeline/several.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

#include "waymark/analysis/counter_runs.h"
#include "waymark/answers/parts.h"
#include "waymark/pipeline/answers_file.h"
#include "waymark/pipeline/protocols.h"

namespace waymark::pipeline {

namespace {

/// Finding about missing, damaged or contradictory trace; null if there is none. For samples and counters, the account
/// contains all losses. For program flow, some losses are only in a warning, such as records that perf lost.
const answers::Finding* loss(const answers::Answers& answers) {
    const Protocol* const protocol = protocol_of_unit(answers.unit);
    const bool flow = protocol != nullptr && protocol->decodes_flow();
    if (!flow && !answers.account.empty() && !answers::completeness(answers.account).strict) return nullptr;
    for (const answers::Finding& f : answers.health)
        if (f.severity >= answers::Finding::Severity::warning && !f.of_names) return &f;
    return nullptr;
}

/// Finding about a given file that no capture needs; null if there is none.
const answers::Finding* unused_by(const std::vector<const answers::Answers*>& all) {
    for (const answers::Finding& f : all.front()->health)
        if (!f.unused_file.empty() && std::all_of(all.begin(), all.end(), [&](const answers::Answers* answers) {
                return std::any_of(answers->health.begin(), answers->health.end(),
                                   [&](const answers::Finding& x) { return x.unused_file == f.unused_file; });
            }))
            return &f;
    return nullptr;
}

/// Gives a capture the name under which it was read before, if it was given under another path.
class NamesByPlace {
public:
    void name(answers::Answers& answers) {
        std::error_code none;
        std::filesystem::path place = std::filesystem::canonical(answers.capture, none);
        if (place.filename() == "snapshot.ini") place = place.parent_path();
        if (answers.parts.empty() && !none)
            answers.capture = names_.try_emplace(place.native(), answers.capture).first->second;
    }

private:
    std::map<std::string, std::string> names_;
};

}  // namespace

std::optional<Error> not_of_one_unit(const std::string& first, const std::string& first_unit,
                                     const std::string& capture, const std::string& unit) {
    const Protocol* const known = protocol_of_unit(unit);
    if (unit == first_unit || (known != nullptr && known == protocol_of_unit(first_unit))) return std::nullopt;
    return Error{Errc::usage, fmt::format("{} is a capture of unit {}, {} of unit {}: their figures do not add up; "
                                          "give captures of one unit",
                                          first, first_unit, capture, unit)};
}

bool may_be_left_out(const std::string& capture, const Error& error) {
    std::error_code none;
    return error.code == Errc::not_found && (capture == "-" || std::filesystem::exists(capture, none));
}

Result<answers::Answers> answers_of_all(const std::vector<std::string>& captures,
                                        const std::function<Result<answers::Answers>(const std::string& capture)>& read,
                                        std::vector<LeftOut>& left_out) {
    std::optional<answers::Answers> all;
    std::optional<Error> first_error;
    std::string first;
    std::vector<answers::Answers> counters;  // captures of a DPU, which may count different events
    bool single_runs = true;
    NamesByPlace names;
    std::map<std::string, std::size_t> unused;
    for (const std::string& capture : captures) {
        auto given = read(capture);
        if (!given) {
            if (!may_be_left_out(capture, given.error())) return std::move(given.error());
            left_out.push_back({capture, given.error().message});
            if (!first_error) first_error = std::move(given.error());
            continue;
        }
        answers::Answers& one = *given;
        names.name(one);
        single_runs &= answers::captures_in(one) == 1;
        for (const answers::Finding& f : one.health)
            if (!f.unused_file.empty()) ++unused[f.unused_file];
        if (!all) {
            all = std::move(one);
            first = capture;
            if (all->unit == "DPU" && captures.size() > 1) counters.push_back(*all);
            continue;
        }
        if (auto error = not_of_one_unit(first, all->unit, capture, one.unit)) return std::move(*error);
        if (counters.empty())
            answers::merge(*all, one);
        else
            counters.push_back(std::move(one));
    }
    if (!all) {
        left_out.clear();
        return std::move(*first_error);
    }
    const std::size_t read_captures = captures.size() - left_out.size();
    if (!counters.empty() && single_runs) {
        all = analysis::merge_counter_runs(std::move(counters));
    } else {
        // A sum among the captures is no run: its figures cannot be compared with the figures of one.
        for (std::size_t i = 1; i < counters.size(); ++i) answers::merge(*all, counters[i]);
    }
    finish_sum(*all);
    // A file that one capture needs is not unused.
    for (answers::Finding& f : all->health)
        if (!f.unused_file.empty() && unused[f.unused_file] < read_captures) f.unused_file.clear();
    if (read_captures > 1) all->capture = fmt::format("{} and {} more", first, read_captures - 1);
    return std::move(*all);
}

Shortcoming shortcoming_of(const std::vector<const answers::Answers*>& all) {
    for (const answers::Answers* answers : all)
        if (const answers::Finding* lost = loss(*answers)) return {answers, lost->what};
    for (const answers::Answers* answers : all)
        if (answers::completeness(answers->account).strict)
            return {answers, answers::account_sentence(answers->account)};
    if (const answers::Finding* unused = unused_by(all)) return {all.front(), unused->what};
    return {};
}

}  // namespace waymark::pipeline
