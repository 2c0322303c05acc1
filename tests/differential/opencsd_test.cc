// Waymark against OpenCSD's trc_pkt_lister (Debian package libopencsd-bin): generated streams, raw and in CoreSight
// frames, and real captures. Where OpenCSD is known to differ, our elements are changed by one narrow rule per quirk (Q
// numbers of docs/spec/pft.md, 4.10), each counted and printed; then all must be equal.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "differential/comparing.h"
#include "pft/support.h"
#include "support/corpus.h"
#include "support/elements.h"
#include "support/sanitized.h"
#include "support/shell.h"
#include "support/synthetic.h"
#include "support/temporary_folder.h"
#include "support/trace_writer.h"
#include "waymark/capture/snapshot.h"
#include "waymark/coresight/formatter.h"
#include "waymark/flow/blocks.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/parser.h"
#include "waymark/pft/protocol.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark {
namespace {

using synthetic::Element;
using synthetic::Kind;

// ---- elements in OpenCSD's terms

/// One line of the lister, without its index: the part that is compared. `text` is written by `line` for both sides.
struct Line {
    std::uint64_t offset{};
    std::string text;
};

std::string hex(std::uint64_t number) {
    char digits[20];
    std::snprintf(digits, sizeof digits, "0x%llx", static_cast<unsigned long long>(number));
    return digits;
}
std::string cycles(std::uint32_t count) {
    return count == flow::no_cycles ? std::string() : " cc=" + std::to_string(count);
}

std::string range_text(std::uint64_t start, std::uint64_t end, unsigned instructions, unsigned last_bytes,
                       std::string_view isa, std::string_view outcome, std::string_view type, bool link, bool ret,
                       bool conditional) {
    return "range " + hex(start) + ".." + hex(end) + " n=" + std::to_string(instructions) +
           " last=" + std::to_string(last_bytes) + " " + std::string(isa) + " " + std::string(outcome) + " " +
           std::string(type) + (link ? " link" : "") + (ret ? " return" : "") + (conditional ? " cond" : "");
}

/// Text between `before` and `after`; empty if not there.
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
    const std::size_t from = text.find(before);
    if (from == std::string_view::npos) return {};
    text.remove_prefix(from + before.size());
    return text.substr(0, text.find(after));
}
std::uint64_t number(std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    const bool hexadecimal = text.starts_with("0x");
    if (hexadecimal) text.remove_prefix(2);
    std::uint64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
    return value;
}

struct Theirs {
    std::vector<Line> lines;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> context_ids;  ///< from PE_CONTEXT: offset, value
    std::vector<std::string> other;                                    ///< lines this test does not know
    std::string log;                                                   ///< output that was not an element
};

void parse_element(std::string_view name, std::string_view what, std::uint64_t offset, Theirs& out) {
    const std::string_view cc = between(what, "[CC=", "]");
    const std::uint32_t count = cc.empty() ? flow::no_cycles : static_cast<std::uint32_t>(number(cc));
    std::string text;
    if (name == "INSTR_RANGE") {
        const std::string_view tail = what.substr(what.find("(ISA="));
        const std::string_view rest = tail.substr(tail.find(')') + 1);
        const std::string_view type = rest.find(" --- ") != rest.npos      ? "---"
                                      : rest.find(" iBR") != rest.npos     ? "iBR"
                                      : rest.find(" BR") != rest.npos      ? "BR"
                                      : rest.find(" ISB") != rest.npos     ? "barrier"
                                      : rest.find(" DSB.DMB") != rest.npos ? "barrier"
                                                                           : "?";
        text = range_text(number(between(what, "range=", ":")), number(between(what, ":[", "]")),
                          static_cast<unsigned>(number(between(what, "num_i(", ")"))),
                          static_cast<unsigned>(number(between(what, "last_sz(", ")"))), between(what, "(ISA=", ")"),
                          rest.substr(1, 1), type, rest.find("b+link") != rest.npos, rest.find("impl ret") != rest.npos,
                          rest.find("<cond>") != rest.npos);
    } else if (name == "TRACE_ON") {
        text = std::string("trace on ") + std::string(between(what, "[", "]"));
    } else if (name == "EXCEPTION") {
        const std::string_view back = between(what, "pref ret addr:", ";");
        text = "exception " + std::to_string(number(between(what, "excep num (", ")"))) +
               (back.empty() ? "" : " back " + hex(number(back)));
    } else if (name == "EXCEPTION_RET") {
        text = "exception return";
    } else if (name == "ADDR_NACC") {
        text = "no memory " + hex(number(what));
    } else if (name == "TIMESTAMP") {
        text = "timestamp " + hex(number(between(what, "TS=", "]")));
    } else if (name == "EVENT") {
        if (what.find("Trigger") == what.npos) out.other.emplace_back(what);
        text = "trigger";
    } else if (name == "PE_CONTEXT") {
        // Absent where Waymark has one (Q2, Q4): only the values are compared.
        if (const std::string_view id = between(what, "CTXTID=", ";"); !id.empty())
            out.context_ids.emplace_back(offset, static_cast<std::uint32_t>(number(id)));
        return;
    } else if (name == "NO_SYNC" || name == "EO_TRACE") {
        return;  // the ends of the stream: Waymark reports bytes before the first I-sync as gaps
    } else {
        out.other.push_back(std::string(name) + " " + std::string(what));
        return;
    }
    out.lines.push_back({offset, text + cycles(count)});
}

/// Runs the lister; only elements of this trace ID, in hexadecimal as it prints them.
Theirs list(const std::filesystem::path& folder, std::string_view id) {
    Theirs out;
    const std::string command =
        "cd " + shell_word(folder) + " && trc_pkt_lister -ss_dir . -decode_only -logstdout 2>&1";
    std::FILE* pipe = ::popen(command.c_str(), "r");
    if (pipe == nullptr) return out;
    std::array<char, 4096> buffer{};
    while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) {
        std::string_view text(buffer.data());
        while (text.ends_with('\n')) text.remove_suffix(1);
        const std::size_t element = text.find("OCSD_GEN_TRC_ELEM_");
        if (element == std::string_view::npos) {
            out.log += std::string(text) + "\n";
            continue;
        }
        if (between(text, "ID:", ";") != id) continue;
        const std::string_view rest = text.substr(element + 18);
        const std::size_t open = rest.find('(');
        parse_element(rest.substr(0, open), rest.substr(open + 1, rest.rfind(')') - open - 1),
                      number(between(text, "Idx:", ";")), out);
    }
    ::pclose(pipe);
    return out;
}

bool lister_absent() { return std::system("command -v trc_pkt_lister > /dev/null 2>&1") != 0; }

#define WM_NEEDS_LISTER() \
    if (lister_absent()) GTEST_SKIP() << "no trc_pkt_lister: install libopencsd-bin to compare with OpenCSD"

// ---- ours, as OpenCSD would give it

using comparing::Quirks;

/// The bytes of one source's stream, and our decoder's result.
struct Ours {
    std::vector<std::uint8_t> bytes;
    std::vector<Element> elements;
    pft::Config config;
};

struct StateChanges {
    std::vector<std::uint64_t>& out;
    void operator()(const pft::BranchAddress& p, pft::Extent at) const {
        if (p.target.information && p.exception() == 0) out.push_back(at.first.value);
    }
    void operator()(const auto&, pft::Extent) const {}
    void operator()(const Gap&) const {}
};

/// Branch packets with an information byte but exception 0, by offset.
std::vector<std::uint64_t> state_changes(const Ours& ours) {
    std::vector<std::uint64_t> out;
    StateChanges handler{out};
    pft::Parser<StateChanges> parser(ours.config, handler);
    parser.feed(ours.bytes);
    parser.finish();
    return out;
}

std::vector<Line> as_opencsd(const Ours& ours, Quirks& quirks) {
    const std::vector<std::uint64_t> changes = state_changes(ours);
    const auto is_change = [&](std::uint64_t offset) {
        return std::binary_search(changes.begin(), changes.end(), offset);
    };
    std::vector<Line> out;
    const std::vector<Element>& all = ours.elements;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Element& e = all[i];
        const auto next_is = [&](Kind kind) {
            return i + 1 < all.size() && all[i + 1].kind == kind && all[i + 1].offset == e.offset;
        };
        std::string text;
        if (is_change(e.offset) && (e.kind == Kind::range || e.kind == Kind::no_memory || e.kind == Kind::cycles)) {
            // One line for the whole result of the packet: the block walked to, or the obstacle.
            std::uint32_t count = flow::no_cycles;
            const std::uint64_t back = e.kind == Kind::range       ? e.block.start
                                       : e.kind == Kind::no_memory ? e.a
                                                                   : Element::absent;
            for (; i < all.size() && all[i].offset == e.offset &&
                   (all[i].kind == Kind::range || all[i].kind == Kind::no_memory || all[i].kind == Kind::cycles);
                 ++i)
                if (all[i].cycles != flow::no_cycles) count = all[i].cycles;
            --i;
            ++quirks["Q5 state-change branch taken for exception 0, its block left out"];
            out.push_back(
                {e.offset, "exception 0" + (back == Element::absent ? "" : " back " + hex(back)) + cycles(count)});
            continue;
        }
        switch (e.kind) {
            case Kind::range: {
                const flow::Block& b = e.block;
                std::string_view outcome = e.taken ? "E" : "N";
                if (b.end == flow::End::not_a_waypoint) {
                    ++quirks[next_is(Kind::no_memory) ? "Q9 range cut by missing memory flagged E"
                                                      : "Q7 range of a waypoint update flagged E"];
                    outcome = "E";
                }
                constexpr std::string_view types[] = {"---", "BR", "iBR", "barrier"};
                text = range_text(b.start, b.start + b.bytes, b.instructions, b.last_bytes, isa::name(b.isa), outcome,
                                  types[static_cast<unsigned>(b.end)], (b.flags & flow::Block::link) != 0,
                                  (b.flags & flow::Block::function_return) != 0,
                                  (b.flags & flow::Block::conditional) != 0);
                break;
            }
            case Kind::trace_on: {
                constexpr std::string_view reasons[] = {"begin or filter", "begin or filter", "overflow",
                                                        "debug restart"};
                text = std::string("trace on ") + std::string(reasons[e.a]);
                break;
            }
            case Kind::exception:
                // A state-change branch is an exception to OpenCSD, not to us; the reverse never occurs.
                text = "exception " + std::to_string(e.a) + (e.b == Element::absent ? "" : " back " + hex(e.b));
                break;
            case Kind::exception_return: text = "exception return"; break;
            case Kind::no_memory: text = "no memory " + hex(e.a); break;
            case Kind::timestamp: {
                std::uint64_t value = e.a;
                if (ours.config.gray_timestamps) {
                    value = pft::to_gray(value);
                    ++quirks["Gray coded timestamp printed as sent (fact 7)"];
                }
                text = "timestamp " + hex(value);
                break;
            }
            case Kind::trigger: text = "trigger"; break;
            case Kind::gap:
            case Kind::context: continue;
            case Kind::atoms:
            case Kind::reached: ++quirks["Q9, Q10 atoms and updates whose flow is unknown left out"]; continue;
            case Kind::cycles:
                if (ours.config.cycle_accurate) ++quirks["Q9, Q10 cycles of packets whose flow is unknown left out"];
                continue;
            case Kind::untraced:  // ETMv4 only
            case Kind::mark:
            case Kind::inconsistency: text = to_text(e); break;
        }
        out.push_back({e.offset, text + cycles(e.cycles)});
    }
    // For a state change while the address is unknown and no cycles are counted, we give no element.
    for (const std::uint64_t offset : changes) {
        const auto after = std::upper_bound(out.begin(), out.end(), offset,
                                            [](std::uint64_t at, const Line& line) { return at < line.offset; });
        if (after == out.begin()) continue;  // before the first I-sync
        const auto first = std::lower_bound(out.begin(), after, offset,
                                            [](const Line& line, std::uint64_t at) { return line.offset < at; });
        if (std::any_of(first, after, [](const Line& line) { return line.text.starts_with("exception 0"); })) continue;
        out.insert(after, {offset, "exception 0"});
        ++quirks["Q5 state-change branch taken for exception 0, its block left out"];
    }
    return out;
}

/// `<cond>` on a range that ends in no waypoint says that the last instruction was conditional; Waymark has flags for
/// waypoint instructions only.
void drop_conditions(const std::vector<Line>& ours, std::vector<Line>& theirs, Quirks& quirks) {
    for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i)
        if (theirs[i].text.ends_with(" --- cond") && theirs[i].text == ours[i].text + " cond") {
            theirs[i].text = ours[i].text;
            ++quirks["Q21 condition of the last instruction of a cut range"];
        }
}

/// `offsets`: whether offsets are compared too.
std::string first_difference(const std::vector<Line>& ours, const std::vector<Line>& theirs, bool offsets) {
    return comparing::first_difference(
        ours, theirs,
        [&](const Line& a, const Line& b) { return a.text == b.text && (!offsets || a.offset == b.offset); },
        [](const Line& line) { return std::to_string(line.offset) + " " + line.text; });
}

// ---- our side: a capture folder through the pipeline

class Tee final : public pipeline::Consumer {
public:
    Tee(std::unique_ptr<pipeline::Consumer> decoder, std::vector<std::uint8_t>& bytes)
        : decoder_(std::move(decoder)), bytes_(bytes) {}
    void feed(Bytes bytes) override {
        bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
        decoder_->feed(bytes);
    }
    void reset(GapReason why) override { decoder_->reset(why); }
    void finish() override { decoder_->finish(); }
    void flush() override { decoder_->flush(); }
    [[nodiscard]] std::array<Offset, 2> pending() const override { return decoder_->pending(); }

private:
    std::unique_ptr<pipeline::Consumer> decoder_;
    std::vector<std::uint8_t>& bytes_;
};

Ours decode(const std::filesystem::path& folder, const std::string& selector) {
    Ours out;
    auto capture = capture::read_snapshot(folder);
    EXPECT_TRUE(capture.has_value());
    if (!capture.has_value()) return out;
    auto session = pipeline::make_session(std::move(*capture), {});
    EXPECT_TRUE(session.has_value());
    if (!session.has_value()) return out;
    const auto sources = session->select({selector});
    EXPECT_TRUE(sources.has_value());
    if (!sources.has_value()) return out;
    out.config = pft::config_of(*sources->front()->configuration);
    synthetic::ElementSink sink;
    static_cast<void>(pipeline::run(*session, *sources, [&](const pipeline::StreamInfo& stream) {
        return std::make_unique<Tee>(pipeline::flow_consumer(stream, sink, pipeline::DecoderKind::fast), out.bytes);
    }));
    out.elements = sink.take();
    return out;
}

// ---- generated streams

struct Generated {
    pft::Config config;
    synthetic::Memory memory;
    std::vector<std::uint8_t> bytes;
    std::vector<Element> truth;
    bool holes{};
};

/// Without features that OpenCSD does not know at all: ThumbEE and ENTERX (1.3.5, Q15), the A32 ERET (Q15).
Generated generate(std::uint64_t seed) {
    synthetic::Random random(seed);
    Generated g;
    pft::Config& c = g.config;
    c.cycle_accurate = random.half();
    c.return_stack = random.half();
    c.branch_broadcast = !c.return_stack && random.chance(4000);
    c.timestamps = random.chance(6000);
    c.barrier_waypoints = random.chance(3000);
    c.minor_version = random.chance(2500) ? 0 : 1;
    c.vmid_trace = c.minor_version == 1 && random.chance(3000);
    constexpr std::uint8_t sizes[] = {0, 0, 1, 2, 4};
    c.context_id_bytes = sizes[random.below(5)];
    c.timestamp_bytes = c.minor_version == 1 && random.half() ? 9 : 7;
    c.gray_timestamps = c.minor_version == 0 || random.half();

    synthetic::ProgramOptions options;
    options.seed = random();
    options.blocks = random.half() ? 60 : 400;
    options.sections = 1 + random.below(6);
    options.barrier_waypoints = c.barrier_waypoints;
    options.a32_eret = false;
    options.blx_may_fail = false;  // Q19, which has a test of its own
    const synthetic::Program program = make_program(options);

    synthetic::WalkOptions walk;
    walk.seed = random();
    // OpenCSD pushes nothing at a state-change branch (Q5), so with a return stack it would lose its way.
    walk.trustzone = !c.return_stack && random.half();
    walk.virtualization = walk.trustzone && c.minor_version == 1 && random.half();
    walk.prohibited = random.chance(2000) ? 10 : 0;
    synthetic::TraceWriterOptions writer;
    writer.seed = random();
    writer.sync_bytes = 100 + random.below(1000);
    writer.return_stack_depth = 1 + random.below(15);
    writer.trigger_chance = 20;
    writer.ignore_chance = 20;
    writer.timestamp_chance = 100;
    writer.barrier_packet_chance = 3000;
    synthetic::TraceWriter out(c, writer);
    synthetic::Walk(program, walk).run(out, 2500);
    out.finish();
    g.bytes = out.bytes();
    // Raw captures may end in a mark, 0x01 and zeros (6.5); this one shall not look like it.
    encode(g.bytes, pft::Ignore{}, c);
    g.truth = out.truth();
    g.memory = program.memory;

    g.holes = !c.return_stack && random.chance(3000);
    for (unsigned i = g.holes ? 1 + random.below(3) : 0; i != 0; --i) {
        const auto& b = program.blocks[random.below(static_cast<std::uint32_t>(program.blocks.size()))];
        std::uint64_t first = b.block.start;
        for (std::uint32_t k = random.below(b.block.instructions); k != 0; --k)
            first += program.sizes[b.first_size + k - 1];
        g.memory.holes.emplace_back(first, first + 8 + random.below(100) * 2);
    }
    return g;
}

void write(const std::filesystem::path& path, Bytes bytes) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

template <class R>
capture::Register reg(const R& r, unsigned id) {
    return {std::string(R::name), to_value(r), id};
}

/// Writes the stream as a capture folder. OpenCSD requests four bytes at every instruction (Q8) from one dump: adjacent
/// sections become one, and each piece is followed by two bytes that are not part of the known code.
void write_capture(const std::filesystem::path& folder, const Generated& g, bool framed, bool padded) {
    const pft::Config& c = g.config;
    pft::Etmcr cr;
    cr.cycle_accurate = c.cycle_accurate;
    cr.return_stack = c.return_stack;
    cr.branch_broadcast = c.branch_broadcast;
    cr.timestamps = c.timestamps;
    cr.vmid_trace = c.vmid_trace;
    cr.context_id_size = c.context_id_bytes == 4 ? 3 : c.context_id_bytes;
    pft::Etmccer ccer;
    ccer.timestamps = ccer.return_stack = true;
    ccer.virtualization = c.minor_version == 1;
    ccer.barrier_waypoints = c.barrier_waypoints;
    ccer.timestamp_64 = c.timestamp_bytes == 9;
    ccer.timestamp_binary = !c.gray_timestamps;
    pft::Etmidr idr;
    idr.implementer = 0x41;
    idr.family = 0xf;
    idr.major = 3;
    idr.one_20 = idr.security = idr.thumb_32_as_one = 1;
    idr.minor = c.minor_version;
    pft::Etmtraceidr id;
    id.trace_id = 0x10;

    std::filesystem::create_directories(folder);
    const bool v0 = c.minor_version == 0;
    capture::Capture capture;
    capture.cores.push_back({.name = "cpu0", .type = v0 ? "Cortex-A9" : "Cortex-A15", .registers = {{"PC", 0}}});
    capture.sources.push_back({.name = "PTM_0",
                               .type = v0 ? "PTM1.0" : "PTM1.1",
                               .core = "cpu0",
                               .core_type = capture.cores[0].type,
                               .registers = {reg(cr, 0x00), reg(idr, 0x79), reg(ccer, 0x7a), reg(id, 0x80)}});
    capture.buffers.push_back(
        {.name = "ETB_0",
         .format = framed ? capture::Buffer::Format::coresight : capture::Buffer::Format::source_data,
         .format_name = framed ? "coresight" : "source_data",
         .files = {folder / "trace.bin"},
         .sources = {"PTM_0"}});
    if (framed) {
        std::vector<std::uint8_t> frames;
        coresight::Formatter formatter(frames);
        formatter.add({0x10}, g.bytes);
        formatter.flush();
        write(folder / "trace.bin", frames);
    } else {
        write(folder / "trace.bin", g.bytes);
    }
    // Pieces between the holes.
    struct Piece {
        std::uint64_t address;
        std::vector<std::uint8_t> bytes;
    };
    std::vector<Piece> pieces;
    for (const auto& s : g.memory.sections)
        for (std::uint64_t at = s.address; at < s.address + s.bytes.size();) {
            const Bytes piece = g.memory.at({at}, {}).bytes;
            if (piece.empty()) {
                at += 2;
                continue;
            }
            if (pieces.empty() || pieces.back().address + pieces.back().bytes.size() != at) pieces.push_back({at, {}});
            pieces.back().bytes.insert(pieces.back().bytes.end(), piece.begin(), piece.end());
            at += piece.size();
        }
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (padded) pieces[i].bytes.insert(pieces[i].bytes.end(), {0, 0});
        const std::filesystem::path file = folder / ("memory" + std::to_string(i) + ".bin");
        write(file, pieces[i].bytes);
        capture.dumps.push_back({.core = "cpu0", .file = file, .address = {pieces[i].address}});
    }
    const Status written = capture::write_snapshot(capture, folder);
    ASSERT_TRUE(written.has_value()) << written.error().message;
}

std::string describe(std::uint64_t seed, const Generated& g) {
    const pft::Config& c = g.config;
    return "seed " + std::to_string(seed) + (c.cycle_accurate ? " CA" : "") + (c.return_stack ? " return-stack" : "") +
           (c.branch_broadcast ? " broadcast" : "") + (c.timestamps ? " timestamps" : "") +
           (c.vmid_trace ? " VMID" : "") + (c.barrier_waypoints ? " barriers" : "") + (g.holes ? " holes" : "") +
           " context-id " + std::to_string(c.context_id_bytes) + " v1." + std::to_string(c.minor_version);
}

/// Each Context ID that OpenCSD names must be ours at that place.
void compare_context_ids(const Ours& ours, const Theirs& theirs, Quirks& quirks) {
    for (const auto& [offset, id] : theirs.context_ids) {
        std::uint64_t current = Element::absent;
        for (const Element& e : ours.elements) {
            if (e.offset > offset) break;
            if (e.kind == Kind::context) current = e.c;
        }
        ASSERT_EQ(id, current) << "Context ID at offset " << offset;
    }
    quirks["Context IDs compared"] += theirs.context_ids.size();
}

void compare_generated(bool framed, std::uint64_t first_seed, unsigned count) {
    Quirks quirks;
    std::size_t elements = 0;
    for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) {
        const Generated g = generate(seed);
        SCOPED_TRACE(describe(seed, g));
        const TemporaryFolder temporary;
        ASSERT_NO_FATAL_FAILURE(write_capture(temporary.path(), g, framed, true));
        Ours ours = decode(temporary.path(), "0x10");
        ASSERT_EQ(ours.bytes, g.bytes);
        ASSERT_EQ(ours.config, g.config);
        if (g.holes) {
            // Two bytes of each hole are in the dumps, for OpenCSD's sake; ours reads only known bytes.
            flow::BlockTable table;
            synthetic::ElementSink sink;
            flow::BatchWriter out(table, sink);
            pft::Decoder decoder(g.config, g.memory, out);
            decoder.feed(g.bytes);
            decoder.finish();
            ours.elements = sink.take();
        }
        Theirs theirs = list(temporary.path(), "10");
        ASSERT_TRUE(theirs.other.empty()) << theirs.other.front();
        const std::vector<Line> expected = as_opencsd(ours, quirks);
        drop_conditions(expected, theirs.lines, quirks);
        ASSERT_EQ(first_difference(expected, theirs.lines, !framed), "") << theirs.log;
        if (!framed) compare_context_ids(ours, theirs, quirks);
        ASSERT_FALSE(::testing::Test::HasFailure());
        elements += expected.size();
    }
    comparing::print(framed ? "in frames" : "raw", elements, "elements", quirks);
}

/// One I-sync at 0x8000 and two atoms, through both: the texts of the ranges.
std::array<std::vector<std::string>, 2> ranges_of(std::vector<std::uint8_t> code, bool thumb, pft::Atoms atoms,
                                                  bool padded = true) {
    Generated g;
    g.memory.sections = {{0x8000, std::move(code)}};
    encode(g.bytes, pft::ASync{}, g.config);
    encode(g.bytes, pft::ISync{.address_31_1 = 0x8000 >> 1, .reason = pft::ISyncReason::trace_enabled, .thumb = thumb},
           g.config);
    encode(g.bytes, pft::Atom{.outcome = {.atoms = atoms, .cycles = 0}}, g.config);
    encode(g.bytes, pft::Ignore{}, g.config);
    const TemporaryFolder temporary;
    write_capture(temporary.path(), g, false, padded);
    Quirks quirks;
    std::array<std::vector<std::string>, 2> out;
    for (const Line& line : as_opencsd(decode(temporary.path(), "0x10"), quirks))
        if (line.text.starts_with("range")) out[0].push_back(line.text);
    for (const Line& line : list(temporary.path(), "10").lines)
        if (line.text.starts_with("range")) out[1].push_back(line.text);
    return out;
}

// Quirks that generated streams keep away from. Should one of these fail, OpenCSD was mended.
TEST(OpenCsd, Q8AsksForFourBytesAtEveryInstruction) {
    WM_NEEDS_LISTER();
    const auto [ours, theirs] = ranges_of({0x70, 0x47}, true, {1, 0}, false);  // bx lr, and memory ends
    ASSERT_EQ(ours.size(), 1U);
    EXPECT_EQ(ours[0], "range 0x8000..0x8002 n=1 last=2 T32 E iBR return");
    EXPECT_TRUE(theirs.empty());
}

TEST(OpenCsd, Q15WalksThroughTheA32Eret) {
    WM_NEEDS_LISTER();
    // 8000: eret; 8004: b .
    const auto [ours, theirs] = ranges_of({0x6e, 0x00, 0x60, 0xe1, 0xfe, 0xff, 0xff, 0xea}, false, {1, 0});
    ASSERT_EQ(ours.size(), 1U);
    ASSERT_EQ(theirs.size(), 1U);
    EXPECT_EQ(ours[0], "range 0x8000..0x8004 n=1 last=4 A32 E iBR");
    EXPECT_EQ(theirs[0], "range 0x8000..0x8008 n=2 last=4 A32 E BR");
}

TEST(OpenCsd, Q19ChangesTheInstructionSetAtABlxThatFails) {
    WM_NEEDS_LISTER();
    // 8000: blx 0x8010; 8004: b . (T32), or b somewhere (A32)
    const auto [ours, theirs] = ranges_of({0x00, 0xf0, 0x06, 0xe8, 0xfe, 0xe7, 0xfe, 0xea}, true, {2, 0b10});  // N, E
    ASSERT_EQ(ours.size(), 2U);
    ASSERT_EQ(theirs.size(), 2U);
    EXPECT_EQ(ours[0], theirs[0]);
    EXPECT_EQ(ours[1], "range 0x8004..0x8006 n=1 last=2 T32 E BR");
    EXPECT_EQ(theirs[1], "range 0x8004..0x8008 n=1 last=4 A32 E BR");
}

TEST(OpenCsd, Q20TakesACompareWithPcAsResultForABranch) {
    WM_NEEDS_LISTER();
    // 8000: tst r0, r0 with bits 15:12 set; 8004: b .
    const auto [ours, theirs] = ranges_of({0x00, 0xf0, 0x10, 0xe1, 0xfe, 0xff, 0xff, 0xea}, false, {1, 0});
    ASSERT_EQ(ours.size(), 1U);
    ASSERT_EQ(theirs.size(), 1U);
    EXPECT_EQ(ours[0], "range 0x8000..0x8008 n=2 last=4 A32 E BR");
    EXPECT_EQ(theirs[0], "range 0x8000..0x8004 n=1 last=4 A32 E iBR");
}

TEST(OpenCsd, AgreesOnGeneratedStreams) {
    WM_NEEDS_LISTER();
    compare_generated(false, 1, sized(80U, 20U));
}

TEST(OpenCsd, AgreesOnGeneratedStreamsInFrames) {
    WM_NEEDS_LISTER();
    compare_generated(true, 1001, sized(40U, 10U));
}

void compare_capture(const std::string& name, const std::string& id) {
    const std::filesystem::path folder = support::corpus_path(name);
    const Ours ours = decode(folder, "0x" + id);
    Theirs theirs = list(folder, id);
    ASSERT_FALSE(theirs.lines.empty()) << theirs.log;
    ASSERT_TRUE(theirs.other.empty()) << theirs.other.front();
    Quirks quirks;
    const std::vector<Line> expected = as_opencsd(ours, quirks);
    drop_conditions(expected, theirs.lines, quirks);
    ASSERT_EQ(first_difference(expected, theirs.lines, false), "");
    comparing::print(name + " 0x" + id, expected.size(), "elements", quirks);
}

TEST(OpenCsd, AgreesOnTc2) {
    WM_NEEDS_LISTER();
    WM_NEEDS_CORPUS("ptm/tc2");
    compare_capture("ptm/tc2", "13");
}

TEST(OpenCsd, AgreesOnSnowball) {
    WM_NEEDS_LISTER();
    WM_NEEDS_CORPUS("ptm/snowball");
    compare_capture("ptm/snowball", "10");
    compare_capture("ptm/snowball", "11");
}

TEST(OpenCsd, AgreesOnTheExample) {
    WM_NEEDS_LISTER();
    const std::filesystem::path folder = std::filesystem::path(WAYMARK_SOURCE_DIR) / "examples/sort/capture";
    const Ours ours = decode(folder, "0x10");
    Quirks quirks;
    const std::vector<Line> expected = as_opencsd(ours, quirks);
    ASSERT_EQ(first_difference(expected, list(folder, "10").lines, false), "");
    comparing::print("example", expected.size(), "elements", quirks);
}

}  // namespace
}  // namespace waymark
