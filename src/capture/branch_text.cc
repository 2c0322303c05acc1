// What `perf script` prints of samples with branch stacks (docs/branch-stacks.md, "Text of perf script").
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "waymark/capture/branch_entry.h"
#include "waymark/capture/branch_stacks.h"
#include "waymark/capture/byte_stream.h"

namespace waymark::capture::perf {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::vector<std::string_view> tokens_of(std::string_view line) {
    std::vector<std::string_view> out;
    for (std::size_t at = 0; at < line.size();) {
        while (at < line.size() && is_blank(line[at])) ++at;
        std::size_t end = at;
        while (end < line.size() && !is_blank(line[end])) ++end;
        if (end > at) out.push_back(line.substr(at, end - at));
        at = end;
    }
    return out;
}

/// Splits text into fields from the front.
class TextFields {
public:
    explicit TextFields(std::string_view text) : text_(text) {}
    bool skip(std::string_view what) {
        if (!text_.starts_with(what)) return false;
        text_.remove_prefix(what.size());
        return true;
    }
    template <class T>
    bool number(T& out, int base = 10) {
        if (base == 16) skip("0x");
        const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), out, base);
        if (error != std::errc{}) return false;
        text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
        return true;
    }
    /// Text up to a character, or all of the text.
    std::string_view until(char c) {
        const std::string_view out = text_.substr(0, text_.find(c));
        text_.remove_prefix(std::min(text_.size(), out.size() + 1));
        return out;
    }
    [[nodiscard]] std::string_view rest() const { return text_; }

private:
    std::string_view text_;
};

/// Entries with the file of an address, whose name may contain a blank, may be split.
bool begins_as_entry(std::string_view token) {
    return token.starts_with("0x") && (token.find("/0x") != token.npos || token.find('(') != token.npos);
}

constexpr std::array<std::string_view, 8> new_types{"FAULT_ALGN",       "FAULT_DATA",       "FAULT_INST",
                                                    "ARM64_FIQ",        "ARM64_DEBUG_HALT", "ARM64_DEBUG_EXIT",
                                                    "ARM64_DEBUG_INST", "ARM64_DEBUG_DATA"};
constexpr std::array<std::string_view, 4> speculations{"NA", "SPEC_WRONG_PATH", "NON_SPEC_CORRECT_PATH",
                                                       "SPEC_CORRECT_PATH"};

/// `0xFROM/0xTO/P/-/-/12/COND/-`: mispredicted, in a transaction, aborted, cycles, type, speculation. Files of
/// addresses are in brackets behind them.
std::optional<BranchEntry> entry_of(std::string_view token) {
    TextFields f(token);
    BranchEntry out;
    const auto address = [&](std::uint64_t& value) {
        if (!f.number(value, 16)) return false;
        if (f.rest().starts_with('(')) f.until(')');
        return f.rest().empty() || f.skip("/");
    };
    if (!address(out.from) || !address(out.to)) return std::nullopt;
    const std::string_view prediction = f.until('/');
    out.mispredicted = prediction.starts_with('M');
    out.predicted = prediction.starts_with('P');
    out.in_transaction = f.until('/') == "X";
    out.aborted = f.until('/') == "A";
    if (const std::string_view cycles = f.until('/'); !cycles.empty() && cycles != "-") {
        std::uint64_t value = 0;
        if (!TextFields(cycles).number(value)) return std::nullopt;
        out.cycles = static_cast<std::uint16_t>(std::min<std::uint64_t>(value, 0xffff));
    }
    const std::string_view type = f.until('/');
    for (unsigned i = 1; i < 15; ++i)
        if (type == name(static_cast<BranchEntryType>(i))) out.type = static_cast<BranchEntryType>(i);
    if (const auto found = std::find(new_types.begin(), new_types.end(), type); found != new_types.end()) {
        out.type = BranchEntryType::extended;
        out.new_type = static_cast<std::uint8_t>(found - new_types.begin());
    }
    const std::string_view speculation = f.until('/');
    if (const auto found = std::find(speculations.begin(), speculations.end(), speculation);
        found != speculations.end())
        out.speculation = static_cast<Speculation>(found - speculations.begin());
    return out;
}

/// The part of a line before a sample's addresses or a record's name.
struct Prefix {
    std::string command{};
    std::uint32_t pid = nobody, tid = nobody, cpu = nobody;
    std::optional<std::uint64_t> time{};
};

bool all_digits(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// `12.345678:` in nanoseconds.
std::optional<std::uint64_t> time_of(std::string_view token) {
    if (!token.ends_with(':')) return std::nullopt;
    token.remove_suffix(1);
    const std::size_t point = token.find('.');
    if (point == token.npos) return std::nullopt;
    std::string_view whole = token.substr(0, point), part = token.substr(point + 1);
    if (!all_digits(whole) || !all_digits(part) || part.size() > 9 || whole.size() > 10) return std::nullopt;
    std::uint64_t seconds = 0, fraction = 0;
    TextFields(whole).number(seconds);
    TextFields(part).number(fraction);
    for (std::size_t i = part.size(); i < 9; ++i) fraction *= 10;
    return seconds * 1'000'000'000 + fraction;
}

Prefix prefix_of(const std::vector<std::string_view>& tokens, std::size_t end) {
    Prefix out;
    // A number is a thread only if a CPU or a time follows; otherwise it is an address.
    std::size_t last = 0;
    for (std::size_t i = 0; i < end; ++i) {
        const std::string_view t = tokens[i];
        if (const auto time = time_of(t)) {
            out.time = time;
            last = i;
            break;
        }
        if (t.size() > 2 && t.front() == '[' && t.back() == ']' && all_digits(t.substr(1, t.size() - 2))) {
            TextFields(t.substr(1)).number(out.cpu);
            last = i;
        }
    }
    for (std::size_t i = end; i-- != 0;) {
        const std::string_view t = tokens[i];
        const std::size_t slash = t.find('/');
        const bool both = slash != t.npos && all_digits(t.substr(0, slash)) && all_digits(t.substr(slash + 1));
        if (!both && (i >= last || !all_digits(t))) continue;
        TextFields f(t);
        f.number(out.pid);
        out.tid = out.pid;
        if (both) {
            f.skip("/");
            f.number(out.tid);
        } else if (last == 0) {
            out.pid = out.tid = nobody;
        }
        for (std::size_t k = 0; k < i; ++k) out.command += (k == 0 ? "" : " ") + std::string(tokens[k]);
        break;
    }
    return out;
}

class TextReader {
public:
    Result<PerfData> read(const std::filesystem::path& path) {
        WM_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stream, open_bytes(path));
        std::string text;
        std::vector<std::uint8_t> piece(std::size_t{1} << 18);
        for (;;) {
            WM_ASSIGN_OR_RETURN(const std::size_t count, stream->read(piece));
            if (count == 0) break;
            text.append(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
            std::size_t begin = 0;
            for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n', begin)) {
                take(std::string_view(text).substr(begin, end - begin));
                begin = end + 1;
            }
            text.erase(0, begin);
            constexpr std::size_t longest_line = std::size_t{1} << 22;
            if (text.size() > longest_line) {
                lose(fmt::format("line {} has more than {} bytes", line_ + 1, longest_line));
                text.clear();
            }
        }
        if (!text.empty()) take(text);
        find_processes();
        return std::move(data_);
    }

private:
    void lose(std::string message) {
        ++data_.loss_count;
        if (data_.losses.size() < PerfData::max_losses)
            data_.losses.push_back({{offset_}, {offset_}, std::move(message)});
    }
    void take(std::string_view line) {
        ++line_;
        if (const auto first = line.find_first_not_of(" \t"); first != line.npos && line[first] != '#') take_line(line);
        offset_ += line.size() + 1;
    }
    void take_line(std::string_view line) {
        const std::size_t record = line.find("PERF_RECORD_");
        if (record != line.npos) return take_record(line.substr(record), tokens_of(line.substr(0, record)));
        const std::vector<std::string_view> tokens = tokens_of(line);
        const auto first = std::find_if(tokens.begin(), tokens.end(), begins_as_entry);
        if (first == tokens.end()) return;
        const Prefix prefix = prefix_of(tokens, static_cast<std::size_t>(first - tokens.begin()));
        BranchSample sample;
        sample.pid = prefix.pid;
        sample.tid = prefix.tid;
        sample.cpu = prefix.cpu;
        sample.time = prefix.time;
        sample.unpacked = true;
        sample.offset = data_.unpacked_branches.size();
        for (auto at = first; at != tokens.end(); ++at) {
            if (!begins_as_entry(*at)) continue;
            const auto entry = entry_of(*at);
            if (!entry) {
                lose(fmt::format(
                    "line {}: '{}' is not an entry of a branch stack (0xFROM/0xTO/…); the rest of the stack is omitted",
                    line_, at->substr(0, 80)));
                break;
            }
            const auto bytes = encode_branch_entry(*entry);
            data_.unpacked_branches.insert(data_.unpacked_branches.end(), bytes.begin(), bytes.end());
            ++sample.entries;
        }
        if (sample.entries == 0) return;
        if (!prefix.command.empty() && sample.tid != nobody && named_.insert(sample.tid).second)
            data_.tasks.push_back({TaskEvent::Kind::comm, sample.pid, sample.tid, nobody, nobody, 0, prefix.command});
        data_.branch_samples.push_back(sample);
    }
    /// `PERF_RECORD_MMAP2 1234/1234: [0x400000(0x1000) @ 0x1000 08:01 123 0]: r-xp /usr/bin/program`; in the place of
    /// the device there can be a build ID in angle brackets.
    void take_record(std::string_view text, const std::vector<std::string_view>& before) {
        const Prefix prefix = prefix_of(before, before.size());
        TextFields f(text);
        if (f.skip("PERF_RECORD_COMM")) {
            f.until(':');
            const std::string_view rest = f.rest();
            const std::size_t colon = rest.rfind(':');
            TaskEvent task{TaskEvent::Kind::comm, nobody, nobody, nobody, nobody, prefix.time.value_or(0), {}};
            if (text.starts_with("PERF_RECORD_COMM exec")) task.kind = TaskEvent::Kind::exec;
            if (colon == rest.npos) return;
            task.name = rest.substr(rest.find_first_not_of(' '), colon - rest.find_first_not_of(' '));
            TextFields ids(rest.substr(colon + 1));
            if (!ids.number(task.pid) || !ids.skip("/") || !ids.number(task.tid)) return;
            named_.insert(task.tid);
            data_.tasks.push_back(std::move(task));
            return;
        }
        if (f.skip("PERF_RECORD_FORK(")) {
            TaskEvent task{TaskEvent::Kind::fork, nobody, nobody, nobody, nobody, prefix.time.value_or(0), {}};
            if (f.number(task.pid) && f.skip(":") && f.number(task.tid) && f.skip("):(") && f.number(task.parent_pid) &&
                f.skip(":") && f.number(task.parent_tid))
                data_.tasks.push_back(std::move(task));
            return;
        }
        const bool two = f.skip("PERF_RECORD_MMAP2 ");
        if (!two && !f.skip("PERF_RECORD_MMAP ")) return;
        Mapping m;
        m.time = prefix.time.value_or(0);
        const auto id = [&](std::uint32_t& out) {
            std::int64_t value = 0;
            if (!f.number(value)) return false;
            out = static_cast<std::uint32_t>(value);
            return true;
        };
        bool good = id(m.pid) && f.skip("/") && id(m.tid) && f.skip(": [") && f.number(m.address.value, 16) &&
                    f.skip("(") && f.number(m.bytes, 16) && f.skip(") @ ") && f.number(m.file_offset, 16);
        if (good) {
            const std::string_view more = f.until(']');
            if (const std::size_t open = more.find('<'); open != more.npos)
                for (std::size_t at = open + 1; at + 1 < more.size(); at += 2) {
                    std::uint8_t byte = 0;
                    if (std::from_chars(more.data() + at, more.data() + at + 2, byte, 16).ec != std::errc{}) break;
                    m.build_id.push_back(byte);
                }
            good = f.skip(": ");
        }
        const std::string_view protection = f.until(' ');
        m.protection = protection.find('x') != protection.npos ? 4 : 0;
        m.data = m.protection == 0;
        m.file = f.rest();
        while (!m.file.empty() && is_blank(m.file.back())) m.file.pop_back();
        if (!good || m.file.empty())
            return lose(fmt::format("line {}: a map in another form: {}", line_, text.substr(0, 100)));
        data_.mappings.push_back(std::move(m));
    }
    /// If lines name no process, the maps may contain only one.
    void find_processes() {
        std::map<std::uint32_t, std::vector<const Mapping*>> by_process;
        for (const Mapping& m : data_.mappings)
            if (m.pid != nobody && !m.data) by_process[m.pid].push_back(&m);
        for (BranchSample& s : data_.branch_samples) {
            if (s.pid != nobody || by_process.empty()) continue;
            std::set<std::uint32_t> possible;
            for (const auto& [pid, maps] : by_process) {
                const bool holds = std::any_of(maps.begin(), maps.end(), [&](const Mapping* m) {
                    const BranchEntry newest = parse_branch_entry(std::span<const std::uint8_t, branch_entry_bytes>(
                        data_.unpacked_branches.data() + s.offset, branch_entry_bytes));
                    return newest.from - m->address.value < m->bytes || newest.to - m->address.value < m->bytes;
                });
                if (holds || by_process.size() == 1) possible.insert(pid);
            }
            if (possible.size() == 1) s.pid = s.tid = *possible.begin();
        }
    }

    PerfData data_;
    std::set<std::uint32_t> named_;
    std::uint64_t line_ = 0, offset_ = 0;
};

}  // namespace

bool is_branch_text(std::string_view text) {
    // Maps and comments can come first.
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        const std::string_view line = text.substr(at, end - at);
        if (line.find("PERF_RECORD_MMAP") != line.npos) return true;
        const auto tokens = tokens_of(line);
        for (const std::string_view t : tokens)
            if (begins_as_entry(t) && entry_of(t)) return true;
        at = end + 1;
    }
    return false;
}

Result<PerfData> read_branch_text(const std::filesystem::path& path) { return TextReader().read(path); }

}  // namespace waymark::capture::perf
