#include "texts.h"

#include <algorithm>
#include <array>

namespace waymark::cli {

namespace {

constexpr auto texts = std::to_array<std::string_view>({
#include "texts/answers.txt"
#include "texts/branches.txt"
#include "texts/calls.txt"
#include "texts/coverage.txt"
#include "texts/diff.txt"
#include "texts/doctor.txt"
#include "texts/dpu-data.txt"
#include "texts/dpu-functions.txt"
#include "texts/dpu-health.txt"
#include "texts/dpu-interrupts.txt"
#include "texts/dpu-loops.txt"
#include "texts/dpu-paths.txt"
#include "texts/dpu-program.txt"
#include "texts/dpu-ranges.txt"
#include "texts/dpu-ratios.txt"
#include "texts/dpu-report.txt"
#include "texts/dpu-run.txt"
#include "texts/dpu-tasks.txt"
#include "texts/dpu-timeline.txt"
#include "texts/dpu.txt"
#include "texts/exceptions.txt"
#include "texts/explain.txt"
#include "texts/export.txt"
#include "texts/fleet-add.txt"
#include "texts/fleet-cancel.txt"
#include "texts/fleet-local.txt"
#include "texts/fleet-merge.txt"
#include "texts/fleet-plan.txt"
#include "texts/fleet-resume.txt"
#include "texts/fleet-run-shard.txt"
#include "texts/fleet-status.txt"
#include "texts/fleet-submit.txt"
#include "texts/fleet.txt"
#include "texts/flow.txt"
#include "texts/info.txt"
#include "texts/loops.txt"
#include "texts/merge.txt"
#include "texts/messages.txt"
#include "texts/packets.txt"
#include "texts/pgo.txt"
#include "texts/profile.txt"
#include "texts/program.txt"
#include "texts/query.txt"
#include "texts/record.txt"
#include "texts/report.txt"
#include "texts/serve.txt"
#include "texts/shared-capture.txt"
#include "texts/shared-counters.txt"
#include "texts/shared-fleet.txt"
#include "texts/shared-record-cortex-m.txt"
#include "texts/shared-record-dpu.txt"
#include "texts/shared-record-perf.txt"
#include "texts/shared-record-spe.txt"
#include "texts/shared-samples.txt"
#include "texts/shared-unit-program.txt"
#include "texts/shared-views.txt"
#include "texts/spe-branches.txt"
#include "texts/spe-explain.txt"
#include "texts/spe-quality.txt"
#include "texts/spe-records.txt"
#include "texts/spe-report.txt"
#include "texts/spe-sharing.txt"
#include "texts/spe.txt"
#include "texts/verify.txt"
});

std::string_view next_line(std::string_view& text) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
}

/// A text: its first line, and the rest.
struct Headed {
    std::string_view head, rest;
};
constexpr auto headed = [] {
    std::array<Headed, texts.size()> out;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const std::size_t end = texts[i].find('\n');
        out[i] = {texts[i].substr(0, end), texts[i].substr(end + 1)};
    }
    return out;
}();

/// The texts whose first line is `kind` and `of`, without that line.
std::vector<std::string_view> texts_of(std::string_view kind, std::string_view of) {
    std::vector<std::string_view> out;
    for (const auto& [head, rest] : headed)
        if (head.size() == kind.size() + of.size() && head.ends_with(of) && head.starts_with(kind)) out.push_back(rest);
    return out;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
    std::vector<std::string_view> out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(separator), text.size());
        out.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + separator.size(), text.size()));
    }
    return out;
}

/// Whether a list such as `-o,--output` contains the name.
bool has_name(std::string_view names, std::string_view name) {
    for (std::size_t at = names.find(name); at != names.npos; at = names.find(name, at + 1)) {
        const std::size_t end = at + name.size();
        if ((at == 0 || names[at - 1] == ',') && (end == names.size() || names[end] == ',')) return true;
    }
    return false;
}

constexpr std::string_view footer_mark = "===";

std::optional<OptionText> find(std::string_view text, std::string_view option) {
    std::string_view group;
    while (!text.empty()) {
        std::string_view line = next_line(text);
        if (line == footer_mark) return std::nullopt;
        if (line.empty() || line.front() == ' ') continue;
        if (line.starts_with("# ")) {
            group = line.substr(2);
            continue;
        }
        const std::size_t end = std::min(line.find(' '), line.size());
        const std::string_view names = line.substr(0, end);
        if (!has_name(names.substr(0, names.find('{')), option)) continue;
        OptionText out;
        out.names = names;
        out.group = group;
        line.remove_prefix(end);
        if (const std::size_t open = line.find("  ("); open != line.npos) {
            out.properties = split(line.substr(open + 3, line.size() - open - 4), ", ");
            line = line.substr(0, open);
        }
        if (const std::size_t open = line.find(" {"); open != line.npos) {
            for (const std::string_view word : split(line.substr(open + 2, line.size() - open - 3), ","))
                out.words.emplace_back(word);
            line = line.substr(0, open);
        }
        if (!line.empty()) out.type = line.substr(1);
        while (text.starts_with(' ')) {
            line = next_line(text);
            out.help += (out.help.empty() ? "" : " ") + std::string(line.substr(line.find_first_not_of(' ')));
        }
        return out;
    }
    return std::nullopt;
}

}  // namespace

std::optional<CommandText> text_of_command(std::string_view command) {
    const auto found = texts_of({}, command);
    if (found.empty()) return std::nullopt;
    std::string_view text = found.front();
    CommandText out{.title = std::string(next_line(text)), .footer = {}};
    while (!text.empty())
        if (next_line(text) == footer_mark) {
            out.footer = text;
            break;
        }
    return out;
}

std::optional<OptionText> text_of_option(std::string_view command, std::string_view option) {
    for (const std::string_view text : texts_of({}, command))
        if (auto own = find(text, option)) return own;
    for (std::string_view of = command;; of = of.substr(0, of.rfind(' '))) {
        for (const std::string_view text : texts_of("options of ", of))
            if (auto shared = find(text, option)) return shared;
        if (of.find(' ') == of.npos) return std::nullopt;
    }
}

}  // namespace waymark::cli
