#include "waymark/record_dpu/dpu_truth.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "waymark/core/wire.h"
#include "waymark/dpu/events.h"

namespace waymark::record {

namespace {

/// Splits a line into words.
class Words {
public:
    explicit Words(const std::string& line) : in_(line) {}
    std::optional<std::string> text() {
        std::string word;
        return in_ >> word ? std::optional(word) : std::nullopt;
    }
    std::optional<std::uint64_t> number(std::uint64_t most = ~std::uint64_t{0}) {
        std::uint64_t value = 0;
        const auto word = text();
        if (!word || !wire::scan_number(*word, value) || value > most) return std::nullopt;
        return value;
    }
    std::optional<std::uint32_t> address() {
        const auto value = number(0xffffffff);
        return value ? std::optional(static_cast<std::uint32_t>(*value)) : std::nullopt;
    }
    /// `user:2`
    std::optional<DpuTruth::Context> context() {
        const auto word = text().value_or("");
        const auto colon = word.find(':');
        std::uint64_t id = 0;
        if (colon == word.npos || !wire::scan_number(word.substr(colon + 1), id) || id > 0xff) return std::nullopt;
        const bool supervisor = word.substr(0, colon) == "supervisor";
        if (!supervisor && word.substr(0, colon) != "user") return std::nullopt;
        return DpuTruth::Context{supervisor, static_cast<std::uint8_t>(id)};
    }
    std::string rest() {
        std::string out;
        std::getline(in_ >> std::ws, out);
        return out;
    }

private:
    std::istringstream in_;
};

std::optional<std::size_t> place_of(std::string_view wire) {
    for (std::size_t i = 0; i < truth_wires.size(); ++i)
        if (dpu::name(truth_wires[i]) == wire) return i;
    return std::nullopt;
}

class Reader {
public:
    /// Returns false if the line does not belong to a truth.
    bool line(const std::string& line) {
        Words words(line);
        const std::string key = words.text().value_or("");
        if (key == "complete" || key == "traced" || key == "counted") {
            const std::string value = words.text().value_or("");
            const bool yes = value == "yes" || value == "whole";
            (key == "complete" ? truth.complete : key == "traced" ? truth.traced : truth.counted) = yes;
            return value == "yes" || value == "no" || value == "whole" || value == "part";
        }
        if (key == "ended") {
            truth.ended = words.rest();
            return true;
        }
        if (key == "counters") {
            for (auto& counter : truth.counters) {
                const auto name = words.text();
                if (!name) return false;
                counter = place_of(*name);
            }
            return true;
        }
        if (key == "wires") {
            for (auto name = words.text(); name; name = words.text()) columns_.push_back(place_of(*name));
            return !columns_.empty();
        }
        if (key == "total") return counts(words, truth.total);
        if (key == "context") {
            const auto context = words.context();
            const auto stays = words.number();
            if (!context || !stays) return false;
            auto& to = truth.contexts[*context];
            to.times = *stays;
            return counts(words, to.happened);
        }
        if (key == "first" || key == "interval") {
            const auto context = words.context();
            const auto start = words.address();
            if (!context || !start) return false;
            if (key == "first") {
                truth.first = {*context, *start};
                return true;
            }
            const auto times = words.number();
            if (!times) return false;
            auto& to = truth.intervals[{*context, *start}];
            to.times = *times;
            return counts(words, to.happened);
        }
        if (key == "change") {
            const auto kind = words.text();
            const auto source = words.address();
            const auto times = words.number(), destinations = words.number();
            if (!kind || !source || !times || !destinations) return false;
            truth.changes[{*kind, *source}] = {*times, *destinations};
            return true;
        }
        if (key == "user-data") {
            const auto id = words.number(0xff);
            const auto datum = words.address();
            if (!id || !datum) return false;
            truth.user_data.emplace_back(static_cast<std::uint8_t>(*id), *datum);
            return true;
        }
        return key == "code";  // only for readers, not compared
    }
    DpuTruth truth;
    [[nodiscard]] bool whole() const { return !columns_.empty(); }

private:
    bool counts(Words& words, Happened& to) {
        for (const auto& column : columns_) {
            const auto value = words.number();
            if (!value) return false;
            if (column) to.count[*column] = *value;
        }
        return !columns_.empty();
    }

    std::vector<std::optional<std::size_t>> columns_;
};

}  // namespace

Result<DpuTruth> dpu_truth_from_text(const std::string& text, const std::string& name) {
    Reader reader;
    std::istringstream in(text);
    std::string line;
    for (unsigned number = 1; std::getline(in, line); ++number) {
        if (line.empty() || line.front() == '#') continue;
        if (!reader.line(line))
            return Error{Errc::bad_format,
                         fmt::format("{}:{}: '{}' is not a line of the truth of a DPU recording; record again", name,
                                     number, line.substr(0, 60))};
    }
    if (!reader.whole())
        return Error{Errc::bad_format, fmt::format("{}: is not the truth of a DPU recording; record again", name)};
    return std::move(reader.truth);
}

Result<DpuTruth> read_dpu_truth(const std::filesystem::path& folder) {
    const std::filesystem::path path = folder / dpu_truth_file;
    std::ifstream in(path, std::ios::binary);
    if (!in)
        return Error{Errc::not_found, fmt::format("{} does not exist: the recorder did not come to its end, or the "
                                                  "capture is of hardware; there is nothing to compare with",
                                                  path.string())};
    return dpu_truth_from_text(std::string{std::istreambuf_iterator<char>(in), {}}, path.string());
}

}  // namespace waymark::record
