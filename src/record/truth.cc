#include "waymark/record/truth.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

#include "waymark/core/file_error.h"

namespace waymark::record {

namespace {
constexpr const char* first_line = "waymark-truth 1";
constexpr std::uint64_t new_range = 0, lost_range = 1, first_number = 2;
constexpr std::size_t flush_bytes = 1 << 16;
}  // namespace

std::string to_text(const Truth& truth) {
    std::string out = fmt::format(
        "{}\n# What executed, as the recorder saw it. h = 1469598103934665603, then for the start and the end of each\n"
        "# range h = (h xor number) * 1099511628211 modulo 2^64.\ncomplete {}\n",
        first_line, truth.complete ? 1 : 0);
    for (const SourceTruth& s : truth.sources)
        out += fmt::format(
            "source {} ranges {} instructions {} hash {:#x} lost_ranges {} lost_instructions {} "
            "unfinished_instructions {}{}{}{} file {}\n",
            s.source, s.ranges, s.instructions, s.hash, s.lost_ranges, s.lost_instructions, s.unfinished_instructions,
            s.filtered_ranges == 0 ? ""
                                   : fmt::format(" filtered_ranges {} filtered_instructions {}", s.filtered_ranges,
                                                 s.filtered_instructions),
            s.wrapped ? " wrapped 1" : "", s.stopped ? " stopped 1" : "", s.file.empty() ? "-" : s.file);
    return out;
}

Result<Truth> truth_from_text(const std::string& text, const std::string& name) {
    Truth truth;
    std::istringstream in(text);
    std::string line;
    unsigned number = 0;
    const auto bad = [&](std::string_view what) {
        return Error{Errc::bad_format, fmt::format("{}:{}: {}", name, number, what)};
    };
    while (std::getline(in, line)) {
        if (++number == 1) {
            if (line != first_line)
                return bad(
                    fmt::format("expected '{}', found '{}'; this is not the truth of a recording", first_line, line));
            continue;
        }
        if (line.empty() || line.front() == '#') continue;
        std::istringstream words(line);
        std::string key, value;
        SourceTruth* source = nullptr;
        while (words >> key) {
            if (!(words >> value)) return bad(fmt::format("'{}' has no value", key));
            if (key == "source") {
                source = &truth.sources.emplace_back();
                source->source = value;
                continue;
            }
            if (key == "file" && source != nullptr) {
                source->file = value == "-" ? "" : value;
                continue;
            }
            std::uint64_t v = 0;
            const bool hex = value.starts_with("0x");
            const char* const begin = value.data() + (hex ? 2 : 0);
            const auto [end, error] = std::from_chars(begin, value.data() + value.size(), v, hex ? 16 : 10);
            if (error != std::errc{} || end != value.data() + value.size())
                return bad(fmt::format("'{}' of '{}' is not a number", value, key));
            if (key == "complete" && source == nullptr)
                truth.complete = v != 0;
            else if (source == nullptr)
                return bad(fmt::format("'{}' comes before any source", key));
            else if (key == "wrapped")
                source->wrapped = v != 0;
            else if (key == "stopped")
                source->stopped = v != 0;
            else if (key == "ranges")
                source->ranges = v;
            else if (key == "instructions")
                source->instructions = v;
            else if (key == "hash")
                source->hash = v;
            else if (key == "filtered_ranges")
                source->filtered_ranges = v;
            else if (key == "filtered_instructions")
                source->filtered_instructions = v;
            else if (key == "lost_ranges")
                source->lost_ranges = v;
            else if (key == "lost_instructions")
                source->lost_instructions = v;
            else if (key == "unfinished_instructions")
                source->unfinished_instructions = v;
        }
    }
    if (number == 0) return bad("the file is empty");
    return truth;
}

Result<Truth> read_truth(const std::filesystem::path& folder) { return read_truth_file(folder / truth_file); }

Result<Truth> read_truth_file(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in)
        return Error{std::filesystem::exists(path) ? Errc::unreadable : Errc::not_found,
                     fmt::format("{}: {}; only 'waymark record' writes this file, next to its captures", path.string(),
                                 std::strerror(errno))};
    std::ostringstream text;
    text << in.rdbuf();
    return truth_from_text(text.str(), path.string());
}

Result<std::unique_ptr<RangeWriter>> RangeWriter::create(const std::filesystem::path& path) {
    auto writer = std::make_unique<RangeWriter>();
    writer->file_.reset(std::fopen(path.c_str(), "wb"));
    if (!writer->file_) return cannot_create(path, errno);
    return writer;
}

void RangeWriter::number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) buffer_.push_back(static_cast<std::uint8_t>(value | 0x80));
    buffer_.push_back(static_cast<std::uint8_t>(value));
}

void RangeWriter::add(const TruthRange& range) {
    if (range.lost) number(lost_range);
    // Most ranges occur again soon.
    Recent& recent = recent_[(range.start * 0x9e3779b97f4a7c15U ^ range.end * 0xc2b2ae3d27d4eb4fU) >> recent_shift];
    if (recent.number != 0 && recent.start == range.start && recent.end == range.end) {
        number(recent.number);
        if (buffer_.size() >= flush_bytes) flush();
        return;
    }
    const auto [found, is_new] = numbers_.try_emplace({range.start, range.end}, numbers_.size() + first_number);
    recent = {range.start, range.end, found->second};
    if (is_new) {
        number(new_range);
        number(range.start);
        number(range.end - range.start);
        number(range.instructions);
    } else {
        number(found->second);
    }
    if (buffer_.size() >= flush_bytes) flush();
}

bool RangeWriter::flush() {
    if (!failed_ && std::fwrite(buffer_.data(), 1, buffer_.size(), file_.get()) != buffer_.size()) failed_ = true;
    if (std::fflush(file_.get()) != 0) failed_ = true;
    buffer_.clear();
    return !failed_;
}

Result<RangeReader> RangeReader::open(const std::filesystem::path& path) {
    RangeReader reader;
    reader.file_.reset(std::fopen(path.c_str(), "rb"));
    if (!reader.file_)
        return Error{errno == ENOENT ? Errc::not_found : Errc::unreadable,
                     fmt::format("cannot open {}: {}", path.string(), std::strerror(errno))};
    return reader;
}

std::optional<std::uint64_t> RangeReader::number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const int c = std::getc(file_.get());
        if (c == EOF) return std::nullopt;
        value |= static_cast<std::uint64_t>(c & 0x7f) << shift;
        if ((c & 0x80) == 0) return value;
    }
    return std::nullopt;
}

std::optional<TruthRange> RangeReader::next() {
    bool lost = false;
    for (;;) {
        const auto first = number();
        if (!first) return std::nullopt;
        if (*first == lost_range) {
            lost = true;
            continue;
        }
        TruthRange range;
        if (*first == new_range) {
            const auto start = number(), bytes = number(), instructions = number();
            if (!instructions) return std::nullopt;
            range = {*start, *start + *bytes, static_cast<std::uint32_t>(*instructions), false};
            known_.push_back(range);
        } else if (*first - first_number < known_.size()) {
            range = known_[*first - first_number];
        } else {
            return std::nullopt;
        }
        range.lost = lost;
        return range;
    }
}

}  // namespace waymark::record
