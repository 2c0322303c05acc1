/// `waymark packets` of a statistical profile: what the unit wrote into its buffer.
#include "packets.h"

#include <algorithm>
#include <memory>
#include <set>

#include "../json_fields.h"
#include "../listing.h"
#include "../unit_answers.h"
#include "answers.h"
#include "waymark/analysis/samples.h"
#include "waymark/core/utf8.h"
#include "waymark/spe/parser.h"
#include "waymark/spe/text.h"

namespace waymark::cli {

namespace {

namespace perf = capture::perf;

class SpePacketPrinter {
public:
    SpePacketPrinter(Output& out, std::string format, const std::vector<std::string>& types)
        : out_(out), format_(std::move(format)), types_(types.begin(), types.end()) {
        if (format_ == "tsv") out_.write("source\toffset\tlength\tpacket\tfields\tmeaning\tbytes\n");
    }

    /// The next bytes are of this unit.
    void begin(std::string source, std::uint32_t midr) {
        source_ = std::move(source);
        midr_ = midr;
        headed_ = false;
    }
    /// These bytes of the stream lie there in the file; borrowed until the next.
    void piece(std::uint64_t stream, std::uint64_t file, Bytes bytes) {
        // What a packet that is cut by the pieces began with.
        constexpr std::size_t most_kept = 64;
        const std::size_t drop = recent_.size() > most_kept ? recent_.size() - most_kept : 0;
        recent_.erase(recent_.begin(), recent_.begin() + static_cast<std::ptrdiff_t>(drop));
        recent_first_ = stream - recent_.size();
        recent_.insert(recent_.end(), bytes.begin(), bytes.end());
        // Pieces that follow each other in the file are one.
        if (places_.empty() || file - places_.back().file != stream - places_.back().stream)
            places_.push_back({stream, file});
    }
    /// A stretch that does not go on where the one before ended.
    void restart() {
        recent_.clear();
        places_.clear();
    }

    template <class P>
    void operator()(const P& packet, spe::Extent at) {
        ++packets_;
        if (!types_.empty() && !types_.contains(std::string(P::info.name))) return;
        found_.emplace(P::info.name);
        const std::string meaning = spe::explain(spe::Packet(packet), midr_), fields = spe::fields_text(packet);
        if (format_ == "json") {
            out_.print(
                "{{\"source\":{},\"offset\":{},\"bytes\":\"{}\",\"packet\":\"{}\",\"fields\":{{{}}},\"meaning\":{}}}\n",
                json_string(source_), place(at.first), bytes_text(at), P::info.name, json_fields(packet),
                json_string(meaning));
            return;
        }
        print(at, P::info.name, fields, meaning);
    }
    void operator()(const Gap& gap) {
        if (!types_.empty()) return;
        if (format_ == "json") {
            out_.print("{{\"source\":{},\"offset\":{},\"gap\":\"{}\",\"length\":{}}}\n", json_string(source_),
                       place(gap.first), name(gap.reason), gap.bytes());
            return;
        }
        print({gap.first, gap.bytes()}, format_ == "tsv" ? "GAP" : "(gap)", {}, std::string(name(gap.reason)));
    }

    [[nodiscard]] std::uint64_t packets() const { return packets_; }
    void say_what_was_not_found() const { say_types_not_found(types_, found_, packets_, "packet"); }

private:
    void print(spe::Extent at, std::string_view packet, const std::string& fields, const std::string& meaning) {
        if (format_ == "tsv") {
            out_.print("{}\t{:#x}\t{}\t{}\t{}\t{}\t{}\n", source_, place(at.first), at.bytes, packet, fields, meaning,
                       bytes_text(at));
            return;
        }
        if (!headed_) {
            if (any_) out_.write("\n");
            out_.print("# source {}\n# {:>8}  {:<32} {:<16} meaning; fields\n", source_, "offset", "bytes", "packet");
            headed_ = any_ = true;
        }
        std::string line = fmt::format("{:>#10x}  {:<32} {:<16} {}{}{}", place(at.first), bytes_text(at), packet,
                                       meaning, meaning.empty() || fields.empty() ? "" : "; ", fields);
        line.erase(line.find_last_not_of(' ') + 1);
        out_.print("{}\n", line);
    }
    /// Its offset in the file.
    [[nodiscard]] std::uint64_t place(Offset at) const {
        for (std::size_t i = places_.size(); i-- > 0;)
            if (places_[i].stream <= at.value) return places_[i].file + (at.value - places_[i].stream);
        return at.value;
    }
    /// At most 16 of the bytes there.
    [[nodiscard]] std::string bytes_text(spe::Extent at) const {
        if (at.first.value < recent_first_) return "…";
        constexpr std::uint64_t most = 16;
        std::string out;
        for (std::uint64_t i = 0; i < std::min(at.bytes, most); ++i) {
            const std::uint64_t from = at.first.value - recent_first_ + i;
            if (from < recent_.size())
                out += fmt::format("{}{:02x}", out.empty() ? "" : " ", recent_[static_cast<std::size_t>(from)]);
        }
        return at.bytes > most ? out + " …" : out;
    }

    struct PlaceInFile {
        std::uint64_t stream, file;
    };
    Output& out_;
    std::string format_;
    std::set<std::string> types_, found_;  // empty: all
    std::string source_;
    std::uint32_t midr_ = 0;
    bool headed_ = false, any_ = false;
    std::uint64_t packets_ = 0;
    std::vector<std::uint8_t> recent_;
    std::uint64_t recent_first_ = 0;
    std::vector<PlaceInFile> places_;
};

}  // namespace

Status run_spe_packets(const InputOptions& input, const std::string& format, const std::vector<std::string>& types) {
    const auto capture = analysis::open_samples(input.capture);
    if (!capture) return fail(not_opened(capture.error()));
    auto out = Output::open(input.output, input.files());
    if (!out) return fail(out.error());
    SpePacketPrinter printer(*out, format, types);
    std::vector<std::uint8_t> buffer(std::size_t{1} << 16);
    std::optional<Error> wrong;
    for (const perf::Stream& stream : capture->streams) {
        printer.begin(
            stream.cpu != perf::nobody ? fmt::format("CPU {}", stream.cpu) : fmt::format("thread {}", stream.tid),
            capture->midr_of(stream.cpu));
        std::uint64_t at = 0;
        std::optional<spe::Parser<SpePacketPrinter>> parser;
        for (const perf::Stretch& part : stream.stretches) {
            if (!parser || !part.follows) {
                if (parser) parser->finish();
                printer.restart();
                parser.emplace(printer);
                at = 0;
            }
            for (std::uint64_t read = 0; read < part.bytes && !wrong;) {
                const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(part.bytes - read, buffer.size()));
                const auto got = capture->file->read_at(part.payload + read, std::span(buffer).first(want));
                if (!got || *got == 0) {
                    wrong = got ? Error{Errc::unreadable, fmt::format("{}: offset {:#x}: the file became shorter while "
                                                                      "it was read",
                                                                      input.capture, part.payload + read)}
                                : got.error();
                    break;
                }
                printer.piece(at, part.payload + read, Bytes(buffer).first(*got));
                parser->feed(Bytes(buffer).first(*got));
                at += *got;
                read += *got;
            }
            if (wrong) break;
        }
        if (parser) parser->finish();
        if (wrong) break;
    }
    if (out->close() != decoded) return unreadable;
    if (wrong) return fail(*wrong);
    if (printer.packets() == 0)
        say("error", "nothing decoded: the file holds no trace of a Statistical Profiling unit");
    else
        printer.say_what_was_not_found();
    if (say_file_damage(*capture)) return unreadable;
    return printer.packets() == 0 ? nothing : decoded;
}

}  // namespace waymark::cli
