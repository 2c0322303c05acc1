#include "waymark/capture/sigrok.h"

#include <fmt/format.h>
#include <minizip/unzip.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "logic_lines.h"
#include "packed_stream.h"
#include "waymark/core/numbers.h"

namespace waymark::capture {

namespace fs = std::filesystem;

namespace {

constexpr unsigned most_unit_bytes = 8;  // of a sample

struct CloseArchive {
    void operator()(unzFile zip) const { unzClose(zip); }
};
using Archive = std::unique_ptr<std::remove_pointer_t<unzFile>, CloseArchive>;

/// The description of the samples in `metadata`.
struct Metadata {
    std::string file{};  ///< such as `logic-1`; empty if there are no samples
    unsigned unit_bytes = 1;
    double sample_rate = 0;
    std::map<unsigned, std::string> names{};  ///< names of channels, by bit
};

Error damaged_session(const fs::path& path, std::string_view what) {
    return {Errc::unreadable, fmt::format("{}: {}; copy the session again, or save it again", path.string(), what)};
}

/// Parses a sample rate: `24 MHz`, `500 kHz`, `12500000`. Returns 0 if the text is not a rate.
double rate_of(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || !(value > 0)) return 0;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    const char prefix = text.empty() ? ' ' : text.front();
    return value * (prefix == 'k' ? 1e3 : prefix == 'M' ? 1e6 : prefix == 'G' ? 1e9 : 1);
}

unsigned number_of(std::string_view text) {
    unsigned value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

/// Reads the description of the first device that has logic samples.
Metadata parse_metadata(std::string_view text) {
    Metadata out;
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.starts_with('[')) {
            if (!out.file.empty()) break;
            out = {};
        }
        const std::size_t sign = line.find('=');
        if (sign == line.npos) continue;
        const std::string_view name = line.substr(0, sign), value = line.substr(sign + 1);
        if (name == "capturefile") out.file = value;
        if (name == "unitsize") out.unit_bytes = number_of(value);
        if (name == "samplerate") out.sample_rate = rate_of(value);
        if (const unsigned n = name.starts_with("probe") ? number_of(name.substr(5)) : 0; n != 0 && n <= 64)
            out.names[n - 1] = value;
    }
    return out;
}

/// The contents of a small file in the archive; nullopt if there is no such file.
std::optional<std::string> small_file(const Archive& zip, const char* name) {
    constexpr int with_case = 1;
    if (unzLocateFile(zip.get(), name, with_case) != UNZ_OK || unzOpenCurrentFile(zip.get()) != UNZ_OK)
        return std::nullopt;
    constexpr std::size_t most = std::size_t{1} << 20;
    std::string out(most, '\0');
    const int got = unzReadCurrentFile(zip.get(), out.data(), static_cast<unsigned>(out.size()));
    unzCloseCurrentFile(zip.get());
    if (got < 0) return std::nullopt;
    out.resize(static_cast<std::size_t>(got));
    return out;
}

/// The samples of a session, from the first to the last.
class Samples {
public:
    /// nullopt if the file is not a session.
    static Result<std::optional<Samples>> open(const fs::path& path) {
        Archive zip(unzOpen64(path.c_str()));
        if (zip == nullptr) return std::optional<Samples>();
        const auto version = small_file(zip, "version");
        const auto text = small_file(zip, "metadata");
        if (!version || !text || number_of(*version) == 0) return std::optional<Samples>();
        Metadata metadata = parse_metadata(*text);
        if (metadata.file.empty())
            return Error{Errc::unsupported,
                         fmt::format("{}: a sigrok session without logic samples, so it has no trace", path.string())};
        if (metadata.unit_bytes == 0 || metadata.unit_bytes > most_unit_bytes)
            return Error{
                Errc::unsupported,
                fmt::format("{}: a sigrok session with samples of {}, but at most {} are read: export fewer channels",
                            path.string(), counted(metadata.unit_bytes, "byte"), most_unit_bytes)};
        return std::optional(Samples(path, std::move(zip), std::move(metadata)));
    }

    [[nodiscard]] const Metadata& metadata() const { return metadata_; }
    [[nodiscard]] const fs::path& path() const { return path_; }
    /// Number of bytes of the archive that were read.
    [[nodiscard]] std::uint64_t taken() const { return taken_; }
    /// Number of samples that were delivered.
    [[nodiscard]] std::uint64_t given() const { return run_.end; }

    /// Gets the next run; false if there is none. Errors: `unreadable`.
    Result<bool> next(SampleRun& run) {
        while (true) {
            if (at_ == have_) {
                WM_ASSIGN_OR_RETURN(const bool more, refill());
                if (!more) break;
            }
            if (run_.first == run_.end) run_ = {load(at_), run_.end, run_.end};
            const std::size_t same = same_samples();
            at_ += same * metadata_.unit_bytes;
            run_.end += same;
            if (at_ == have_) continue;  // the run may continue
            run = run_;
            run_ = {0, run_.end, run_.end};
            return true;
        }
        run = run_;
        run_ = {0, run_.end, run_.end};
        return run.first != run.end;
    }

private:
    Samples(fs::path path, Archive zip, Metadata metadata)
        : path_(std::move(path)),
          zip_(std::move(zip)),
          metadata_(std::move(metadata)),
          buffer_((std::size_t{1} << 16) / metadata_.unit_bytes * metadata_.unit_bytes) {}

    [[nodiscard]] std::uint64_t load(std::size_t at) const {
        std::uint64_t out = 0;
        for (unsigned n = 0; n < metadata_.unit_bytes; ++n) out |= std::uint64_t{buffer_[at + n]} << 8 * n;
        return out;
    }
    /// Number of samples from `at_` on that equal the first sample of the run.
    [[nodiscard]] std::size_t same_samples() const {
        const std::uint8_t* const first = buffer_.data() + at_;
        const std::uint8_t* const end = buffer_.data() + have_;
        if (metadata_.unit_bytes == 1) {
            const auto value = static_cast<std::uint8_t>(run_.value);
            return static_cast<std::size_t>(std::find_if(first, end, [&](std::uint8_t b) { return b != value; }) -
                                            first);
        }
        std::size_t n = 0;
        while (at_ + n * metadata_.unit_bytes < have_ && load(at_ + n * metadata_.unit_bytes) == run_.value) ++n;
        return n;
    }
    /// Reads more samples, from the next part when one ends. False if there are no more.
    Result<bool> refill() {
        at_ = have_ = 0;
        while (have_ < buffer_.size()) {
            if (!open_) {
                if (!open_part()) break;
                open_ = true;
            }
            const int got =
                unzReadCurrentFile(zip_.get(), buffer_.data() + have_, static_cast<unsigned>(buffer_.size() - have_));
            if (got < 0) return damaged_session(path_, fmt::format("the samples in {} are damaged", part_name_));
            if (got == 0) {
                open_ = false;
                taken_ += part_bytes_;
                // If samples end too early, their checksum is not checked.
                const bool whole = unztell64(zip_.get()) == part_samples_bytes_;
                if (unzCloseCurrentFile(zip_.get()) == UNZ_CRCERROR || !whole)
                    return damaged_session(path_, fmt::format("the samples in {} are damaged", part_name_));
                if (part_ == 0) break;  // a session whose samples are not split into parts
            }
            have_ += static_cast<std::size_t>(got);
        }
        have_ -= have_ % metadata_.unit_bytes;
        return have_ != 0;
    }
    bool open_part() {
        constexpr int with_case = 1;
        const auto there = [&] { return unzLocateFile(zip_.get(), part_name_.c_str(), with_case) == UNZ_OK; };
        part_name_ = metadata_.file;
        if (part_ != 0 || taken_ != 0 || !there()) part_name_ = fmt::format("{}-{}", metadata_.file, ++part_);
        if (!there() || unzOpenCurrentFile(zip_.get()) != UNZ_OK) return false;
        unz_file_info64 info{};
        if (unzGetCurrentFileInfo64(zip_.get(), &info, nullptr, 0, nullptr, 0, nullptr, 0) != UNZ_OK) info = {};
        part_bytes_ = info.compressed_size;
        part_samples_bytes_ = info.uncompressed_size;
        return true;
    }

    fs::path path_;
    Archive zip_;
    Metadata metadata_;
    std::vector<std::uint8_t> buffer_;
    std::size_t at_ = 0, have_ = 0;
    SampleRun run_{};
    unsigned part_ = 0;  // number of the open part; 0: samples are not split, or no part is open
    std::string part_name_{};
    std::uint64_t part_bytes_ = 0, part_samples_bytes_ = 0, taken_ = 0;
    bool open_ = false;
};

// ---- channels that carry trace

std::string channel_name(const Metadata& metadata, unsigned channel) {
    const auto found = metadata.names.find(channel);
    return found != metadata.names.end() && !found->second.empty() ? found->second
                                                                   : fmt::format("channel {}", channel + 1);
}
std::string lower(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
}

/// The channels that are named as the clock and the data lines of a trace port; data lines from the lowest on. Without
/// data lines there is no port.
std::pair<unsigned, std::vector<unsigned>> named_port(const Metadata& metadata) {
    std::optional<unsigned> clock;
    std::map<unsigned, unsigned> data;  // by number
    for (const auto& [channel, text] : metadata.names) {
        const std::string name = lower(text);
        if (name.find("clk") != name.npos || name.find("clock") != name.npos) {
            if (!clock || name.find("trace") != name.npos) clock = channel;
            continue;
        }
        const std::size_t digits = name.find_last_not_of("0123456789") + 1;
        const bool is_data = name.find("trace") != name.npos || name.find("data") != name.npos || digits == 1;
        if (digits != 0 && digits != name.size() && is_data && name.find('d') < digits)
            data.emplace(number_of(std::string_view(name).substr(digits)), channel);
    }
    std::vector<unsigned> lines;
    for (const auto& [number, channel] : data)
        if (number == lines.size()) lines.push_back(channel);
    if (!clock) lines.clear();
    return {clock.value_or(0), lines};
}

/// The examined beginning of a session.
struct Beginning {
    std::vector<SampleRun> runs{};  ///< runs at edges of the port's clock
    std::vector<std::vector<std::uint64_t>>
        changes{};  ///< by channel: the samples at which it changes, from the first falling edge on
};

constexpr std::size_t most_changes = 50'000;  // changes of a channel that are examined
constexpr std::size_t most_clock_edges = 1 << 18;

/// Counts full syncs of a formatter (docs/spec/pft.md, 6.3) among the bytes.
std::uint64_t full_syncs(Bytes bytes) {
    constexpr std::array<std::uint8_t, 4> sync{0xff, 0xff, 0xff, 0x7f};
    std::uint64_t out = 0;
    for (auto at = bytes.begin(); (at = std::search(at, bytes.end(), sync.begin(), sync.end())) != bytes.end(); at += 4)
        ++out;
    return out;
}

/// Finds the trace port: the width and first bit that give the most syncs. nullopt if there are no syncs.
std::optional<LogicWiring> port_in(const Beginning& beginning, unsigned clock, const std::vector<unsigned>& lines) {
    constexpr std::uint64_t least_syncs = 2;
    std::optional<LogicWiring> best;
    std::uint64_t most = least_syncs - 1;
    for (const unsigned width : {16U, 8U, 4U, 2U, 1U}) {
        if (width > lines.size()) continue;
        for (unsigned skipped = 0; skipped < 8; skipped += width) {
            const std::vector<unsigned> data(lines.begin(), lines.begin() + width);
            TracePort port(clock, data, skipped);
            std::vector<std::uint8_t> bytes;
            for (const SampleRun& run : beginning.runs) port.take(run, [&](std::uint8_t b) { bytes.push_back(b); });
            const std::uint64_t syncs = full_syncs(bytes);
            if (syncs <= most) continue;
            most = syncs;
            best = LogicWiring{LogicWiring::Kind::trace_port, data, clock, skipped};
        }
    }
    return best;
}

/// Finds the line with characters: one that is called SWO or TDO, or else the line with the most characters.
std::optional<LogicWiring> uart_in(const Beginning& beginning, const Metadata& metadata) {
    std::optional<LogicWiring> best;
    std::vector<std::string> all;
    bool named = false;
    for (unsigned channel = 0; channel < beginning.changes.size(); ++channel) {
        const auto speed = uart_speed(beginning.changes[channel]);
        if (!speed) continue;
        const std::string name = channel_name(metadata, channel), plain = lower(name);
        const bool is_named = plain.find("swo") != plain.npos || plain.find("tdo") != plain.npos;
        all.push_back(name);
        if (best && (named && !is_named)) continue;
        if (best && named == is_named && speed->characters <= best->characters) continue;
        named = is_named;
        best = LogicWiring{LogicWiring::Kind::uart, {channel}};
        best->lines = name;
        best->samples_per_bit = speed->samples_per_bit;
        best->characters = speed->characters;
        best->bad_characters = speed->bad_characters;
    }
    if (best) {
        std::erase(all, best->lines);
        best->others = std::move(all);
    }
    return best;
}

std::optional<LogicWiring> wiring_in(const Beginning& beginning, const Metadata& metadata) {
    const auto [clock, lines] = named_port(metadata);
    std::optional<LogicWiring> out;
    if (!lines.empty()) out = port_in(beginning, clock, lines);
    if (out)
        out->lines = fmt::format(
            "{} and {}{}", channel_name(metadata, clock), channel_name(metadata, out->channels.front()),
            out->channels.size() == 1 ? "" : fmt::format(" to {}", channel_name(metadata, out->channels.back())));
    else
        out = uart_in(beginning, metadata);
    if (out) out->sample_rate = metadata.sample_rate;
    return out;
}

Error no_wiring(const Samples& samples, const Beginning& beginning) {
    std::vector<std::string> still, moving;
    for (unsigned channel = 0; channel < beginning.changes.size(); ++channel)
        if (samples.metadata().names.contains(channel))
            (beginning.changes[channel].empty() ? still : moving).push_back(channel_name(samples.metadata(), channel));
    return {
        Errc::unsupported,
        fmt::format("{}: a sigrok session in which no channel carries characters of a UART, as SWO does, and no "
                    "clock with data lines is a trace port (names such as TRACECLK, TRACED0){}{}; name the "
                    "channels and sample at least three times a bit",
                    samples.path().string(),
                    moving.empty() ? "; no channel changes"
                                   : fmt::format("; channels that change: {}", fmt::join(moving, ", ")),
                    still.empty() || moving.empty() ? "" : fmt::format("; that do not: {}", fmt::join(still, ", ")))};
}

/// Examines a session until it is known how it carries bytes.
Result<LogicWiring> find_wiring(Samples& samples) {
    constexpr std::uint64_t most_samples = std::uint64_t{1} << 28;
    constexpr std::uint64_t step = std::uint64_t{1} << 24;  // number of samples after which detection is tried again
    const auto [clock, lines] = named_port(samples.metadata());
    Beginning beginning;
    beginning.changes.resize(std::size_t{8} * samples.metadata().unit_bytes);
    SampleRun run;
    std::optional<std::uint64_t> before;
    std::uint64_t tried = step;
    std::optional<Error> damage;
    while (samples.given() < most_samples) {
        auto more = samples.next(run);
        if (!more) damage = std::move(more.error());
        if (damage || !*more) break;
        const std::uint64_t changed = before.value_or(run.value) ^ run.value;
        if (!lines.empty() && (!before || (changed >> clock & 1U) != 0) && beginning.runs.size() < most_clock_edges)
            beginning.runs.push_back(run);
        for (std::uint64_t left = changed; left != 0; left &= left - 1) {
            const auto channel = static_cast<unsigned>(__builtin_ctzll(left));
            std::vector<std::uint64_t>& all = beginning.changes[channel];
            const bool falls = (run.value >> channel & 1U) == 0;
            if (all.size() < most_changes && (!all.empty() || falls)) all.push_back(run.first);
        }
        before = run.value;
        if (samples.given() < tried) continue;
        tried += step;
        if (auto found = wiring_in(beginning, samples.metadata())) return std::move(*found);
    }
    if (auto found = wiring_in(beginning, samples.metadata())) return std::move(*found);
    if (damage) return std::move(*damage);
    return no_wiring(samples, beginning);
}

/// The bytes that the lines of a session carry.
class LogicStream final : public ByteStream, public PackedStream {
public:
    LogicStream(Samples samples, const LogicWiring& wiring)
        : samples_(std::move(samples)),
          is_uart_(wiring.kind == LogicWiring::Kind::uart),
          uart_(wiring.channels.front(), wiring.samples_per_bit),
          port_(wiring.clock, wiring.channels, wiring.skipped_bits) {}

    Result<std::size_t> read(std::span<std::uint8_t> into) override {
        constexpr std::size_t at_once = std::size_t{1} << 16;
        while (next_ == bytes_.size() && !ended_ && !failure_) {
            bytes_.clear();
            next_ = 0;
            while (bytes_.size() < at_once && !ended_) {
                SampleRun run;
                auto more = samples_.next(run);
                if (!more) failure_ = std::move(more.error());
                ended_ = failure_ || !*more;
                if (ended_) break;
                const auto take = [&](std::uint8_t byte) { bytes_.push_back(byte); };
                is_uart_ ? uart_.take(run, take) : port_.take(run, take);
            }
        }
        if (next_ == bytes_.size() && failure_) return *failure_;
        const std::size_t count = std::min(into.size(), bytes_.size() - next_);
        std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(next_), count, into.begin());
        next_ += count;
        return count;
    }
    [[nodiscard]] std::uint64_t taken() const override { return samples_.taken(); }

private:
    Samples samples_;
    const bool is_uart_;
    UartLine uart_;
    TracePort port_;
    std::vector<std::uint8_t> bytes_{};
    std::size_t next_ = 0;
    bool ended_ = false;
    std::optional<Error> failure_{};
};

}  // namespace

bool may_be_sigrok(Bytes head) {
    constexpr std::array<std::uint8_t, 4> zip{'P', 'K', 3, 4};
    return head.size() >= zip.size() && std::equal(zip.begin(), zip.end(), head.begin());
}

Result<std::optional<LogicWiring>> logic_wiring(const fs::path& path) {
    WM_ASSIGN_OR_RETURN(std::optional<Samples> samples, Samples::open(path));
    if (!samples) return std::optional<LogicWiring>();
    WM_ASSIGN_OR_RETURN(LogicWiring wiring, find_wiring(*samples));
    return std::optional(std::move(wiring));
}

Result<std::unique_ptr<ByteStream>> open_sigrok(const fs::path& path) {
    WM_ASSIGN_OR_RETURN(const std::optional<LogicWiring> wiring, logic_wiring(path));
    if (!wiring) return std::unique_ptr<ByteStream>();
    WM_ASSIGN_OR_RETURN(std::optional<Samples> samples, Samples::open(path));
    if (!samples) return std::unique_ptr<ByteStream>();
    return std::unique_ptr<ByteStream>(std::make_unique<LogicStream>(std::move(*samples), *wiring));
}

}  // namespace waymark::capture
