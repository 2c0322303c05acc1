// The flow of ETMv4 and ETE captures compared with OpenCSD's packet lister (1.8.0), element by element. Where OpenCSD
// is known to differ (docs/spec/etm4.md, 16), our elements are turned into what it gives by one narrow rule per quirk,
// each counted and printed; then all must be equal. Both decoders, any chunks, several threads and counts must agree on
// each capture.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "differential/comparing.h"
#include "differential/etm4_captures.h"
#include "differential/etm4_wrong_targets.h"
#include "etm4/decoding.h"
#include "etm4/execution.h"
#include "etm4/simulation.h"
#include "etm4/support.h"
#include "support/corpus.h"
#include "support/elements.h"
#include "support/sanitized.h"
#include "waymark/etm4/parser.h"
#include "waymark/flow/summary.h"
#include "waymark/image/memory_map.h"

#ifdef WAYMARK_OPENCSD
#include <opencsd/c_api/opencsd_c_api.h>
#endif

/// The library keeps some of its own elements; a sanitizer must not count them as leaks of this test.
extern "C" const char* __lsan_default_suppressions();  // NOLINT(bugprone-reserved-identifier): the sanitizer's own name
extern "C" const char* __lsan_default_suppressions() { return "leak:libopencsd"; }

namespace waymark::etm4 {
namespace {

using comparing::Quirks;
using synthetic::Element;
using synthetic::Kind;

/// An element as it is compared.
struct Line {
    std::string kind, text;
    std::uint64_t offset{};     ///< in the stream (ours) or as OpenCSD counts it (golden)
    std::string outcome{};      ///< of a range
    bool from_unknown = false;  ///< an exception of ours while the place of execution was unknown
};

/// A range that an exception or unreadable memory cut short has no outcome of its own.
void drop_outcomes(std::vector<Line>& lines) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const bool cut = i + 1 < lines.size() && (lines[i + 1].kind == "exception" || lines[i + 1].kind == "no_memory");
        if (!cut) lines[i].text += lines[i].outcome;
        lines[i].outcome.clear();
    }
}

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string range_text(const std::string& start, const std::string& end, const std::string& instructions,
                       std::string_view isa) {
    return start + ".." + end + " n=" + instructions + " " + std::string(isa);
}
/// The outcome of a range that was not cut short.
std::string outcome_text(std::string_view atom, std::string_view branch, bool link) {
    return " " + std::string(atom) + " " + std::string(branch) + (link ? " link" : "");
}

constexpr const char* compared_kinds[] = {"range",         "exception",   "exception_return", "no_memory",
                                          "range_no_path", "transaction", "instrumentation",  "event",
                                          "marker",        "timestamp",   "cycles",           "trace_on"};

/// The context of the following elements.
struct CoreState {
    std::string el, security, width, vmid, context_id;
    void take(const Row& row) {
        const auto get = [&](const char* column, std::string& value) {
            if (const auto found = row.find(column); found != row.end()) value = found->second;
        };
        get("el", el);
        get("security", security);
        get("width", width);
        get("vmid", vmid);
        get("contextid", context_id);
    }
    void take(const Element& e) {
        constexpr const char* names[] = {"S", "NS", "Root", "Realm"};
        el = number((e.b >> 8) - 1);
        security = names[e.a & 3U];
        width = (e.a & 4U) != 0 ? "64" : "32";
        vmid = e.d == Element::absent ? "" : number(e.d);
        context_id = e.c == Element::absent ? "" : number(e.c);
    }
    [[nodiscard]] std::string text() const {
        return " [EL" + el + " " + security + " " + width + " vmid=" + vmid + " context=" + context_id + "]";
    }
};

std::vector<Line> from_golden(const std::vector<Row>& rows) {
    std::vector<Line> out;
    const auto get = [](const Row& row, const char* column) {
        const auto found = row.find(column);
        return found == row.end() ? std::string() : found->second;
    };
    CoreState core;
    for (const Row& row : rows) {
        if (get(row, "element") == "context") core.take(row);
        if (std::find(std::begin(compared_kinds), std::end(compared_kinds), get(row, "element")) ==
            std::end(compared_kinds))
            continue;
        Line line{get(row, "element"), {}, std::stoull(get(row, "offset"))};
        if (line.kind == "range") {
            line.text = range_text(get(row, "start"), get(row, "end"), get(row, "instructions"), get(row, "isa"));
            line.outcome = outcome_text(get(row, "atom"), get(row, "branch"), get(row, "link") == "1");
        } else if (line.kind == "range_no_path") {
            line.text = get(row, "start") + ".." + get(row, "end") + " n=" + get(row, "instructions");
        } else if (line.kind == "exception") {
            line.text = get(row, "detail") + " back " + get(row, "start");
        } else if (line.kind == "no_memory") {
            line.text = get(row, "start");
        } else if (line.kind == "cycles") {
            line.text = get(row, "cycles");
        } else if (line.kind == "instrumentation") {
            line.text = get(row, "el") + " " + get(row, "detail");
        } else if (line.kind == "trace_on" || line.kind == "timestamp" || line.kind == "event" ||
                   line.kind == "transaction") {
            line.text = get(row, "detail");
        }
        if (line.kind == "range" || line.kind == "exception") line.text += core.text();
        out.push_back(std::move(line));
    }
    return out;
}

/// Offsets of packets that a quirk depends on.
struct QuirkPackets {
    std::vector<std::uint64_t> source_addresses, addresses, qs;
    template <class P>
    void operator()(const P&, Extent extent) {
        const std::uint64_t at = extent.first.value;
        if constexpr (std::is_same_v<P, ShortSourceAddress> || std::is_same_v<P, LongSourceAddress> ||
                      std::is_same_v<P, ExactMatchSourceAddress>)
            source_addresses.push_back(at);
        if constexpr (std::is_same_v<P, ShortAddress> || std::is_same_v<P, LongAddress> ||
                      std::is_same_v<P, ExactMatchAddress> || std::is_same_v<P, AddressWithContext>)
            addresses.push_back(at);
        if constexpr (std::is_same_v<P, Q>) qs.push_back(at);
    }
    void operator()(const Gap&) {}
};
QuirkPackets quirk_packets(const Source& source) {
    QuirkPackets out;
    Parser<QuirkPackets> parser(*source.config, out);
    parser.feed(source.stream.bytes);
    return out;
}

std::vector<Line> from_ours(const std::vector<Element>& elements, const Source& source, Quirks& quirks) {
    const QuirkPackets packets = quirk_packets(source);
    const auto by_source_address = [&](std::uint64_t at) {
        return std::binary_search(packets.source_addresses.begin(), packets.source_addresses.end(), at);
    };
    std::string last_end;  // of a range
    CoreState core;
    std::vector<Line> out;
    bool marker_seen = false, known = false;
    for (std::size_t i = 0; i < elements.size(); ++i) {
        const Element& e = elements[i];
        Line line{"", "", e.offset};
        switch (e.kind) {
            case Kind::range: {
                const flow::Block& b = e.block;
                line.kind = "range";
                line.text =
                    range_text(number(b.start), number(b.start + b.bytes), number(b.instructions), isa::name(b.isa));
                const bool cut = b.end == flow::End::not_a_waypoint;
                line.outcome =
                    outcome_text(cut || e.taken ? "E" : "N", flow::branch_name(b), (b.flags & flow::Block::link) != 0);
                known = !(b.end == flow::End::indirect && e.taken);
                last_end = number(b.start + b.bytes);
                break;
            }
            case Kind::trace_on: {
                const auto reason = static_cast<flow::TraceOnReason>(e.a);
                if (reason == flow::TraceOnReason::begin) {
                    ++quirks["begin without a Trace On packet: no element"];
                    continue;
                }
                line = {"trace_on", reason == flow::TraceOnReason::overflow ? "overflow" : "begin or filter", e.offset};
                break;
            }
            case Kind::exception: {
                line = {"exception", number(e.a) + " back " + (e.b == Element::absent ? "" : number(e.b)), e.offset};
                line.from_unknown = !known;
                known = false;
                break;
            }
            case Kind::exception_return:
                if (by_source_address(e.offset)) {
                    ++quirks["no exception_return for an ERET that a Source Address reports"];
                    continue;
                }
                line.kind = "exception_return";
                break;
            case Kind::no_memory:
                line = {"no_memory", number(e.a), e.offset};
                known = false;
                break;
            case Kind::timestamp:
                if (source.config->timestamp_markers && source.config->version >= 0x51 && !marker_seen) {
                    ++quirks["timestamps before the first marker are ignored"];
                    continue;
                }
                line = {"timestamp", number(e.a), e.offset};
                break;
            case Kind::cycles:
                if (e.a == Element::absent) ++quirks["a cycle count that is not known is 0"];
                line = {"cycles", number(e.a == Element::absent ? 0 : e.a), e.offset};
                break;
            case Kind::untraced:
                if (e.d == 0)
                    ++quirks["start of a range without path: where the last range ended, though it is not known"];
                line = {"range_no_path", (e.d == 0 ? last_end : number(e.a)) + ".." + number(e.b) + " n=" + number(e.c),
                        e.offset};
                known = true;
                break;
            case Kind::mark:
                switch (static_cast<flow::Mark::Kind>(e.a)) {
                    case flow::Mark::Kind::unit_events: line = {"event", number(e.b), e.offset}; break;
                    case flow::Mark::Kind::timestamp_marker:
                        line.kind = "marker";
                        marker_seen = true;
                        break;
                    case flow::Mark::Kind::transaction_inside: line = {"transaction", "init", e.offset}; break;
                    case flow::Mark::Kind::transaction_started: line = {"transaction", "start", e.offset}; break;
                    case flow::Mark::Kind::transaction_committed: line = {"transaction", "commit", e.offset}; break;
                    case flow::Mark::Kind::transaction_failed: line = {"transaction", "fail", e.offset}; break;
                    case flow::Mark::Kind::instrumentation:
                        line = {"instrumentation", number(e.c) + " " + number(e.b), e.offset};
                        break;
                    case flow::Mark::Kind::uncommitted:
                        ++quirks["elements that never were committed: not reported"];
                        continue;
                    case flow::Mark::Kind::overflow_at_end:
                        ++quirks["an overflow with which the trace ends: not reported"];
                        continue;
                }
                break;
            case Kind::inconsistency: ++quirks["contradictions between trace and image: not reported"]; continue;
            case Kind::atoms: ++quirks["atoms that cannot be placed: not reported"]; continue;
            case Kind::context: core.take(e); continue;
            case Kind::gap:
            case Kind::trigger:
            case Kind::reached: continue;
        }
        if (line.kind == "range" || line.kind == "exception") line.text += core.text();
        out.push_back(std::move(line));
    }
    return out;
}

/// OpenCSD walks up to an exception's return address even if the place of execution is unknown, from the last known
/// address (quirk): these elements of OpenCSD are removed.
void drop_stale_walks(const std::vector<Line>& ours, std::vector<Line>& theirs, Quirks& quirks) {
    std::size_t k = 0;  // in ours
    for (std::size_t i = 0; i < theirs.size() && k < ours.size(); ++i, ++k) {
        if (ours[k].kind != "exception" || !ours[k].from_unknown) continue;
        std::size_t last = i;
        while (last < theirs.size() && theirs[last].kind != "exception" && last < i + 2) ++last;
        if (last == i || last >= theirs.size() || theirs[last].kind != "exception") continue;
        if (theirs[last].text != ours[k].text || theirs[i].offset != theirs[last].offset) continue;
        theirs.erase(theirs.begin() + static_cast<std::ptrdiff_t>(i),
                     theirs.begin() + static_cast<std::ptrdiff_t>(last));
        ++quirks["walks to an exception from a place that is not known any more"];
    }
}

/// Where our decoder stops, because a permanently undefined instruction cannot have been passed or because no address
/// came after an exception, OpenCSD goes on: its elements up to the next address packet, or for that packet, are
/// removed.
void drop_flow_beyond(const std::vector<Element>& elements, const Source& source, std::vector<Line>& ours,
                      std::vector<Line>& theirs, Quirks& quirks) {
    const QuirkPackets packets = quirk_packets(source);
    const auto drop = [](std::vector<Line>& lines, std::uint64_t first, std::uint64_t end) {
        std::erase_if(lines, [&](const Line& line) {
            return line.offset >= first && line.offset < end &&
                   (line.kind == "range" || line.kind == "no_memory" || line.kind == "exception_return");
        });
    };
    const auto capture_offset = [&](std::uint64_t at) {
        return at < source.stream.offsets.size() ? source.stream.offsets[at] : ~std::uint64_t{0};
    };
    const Element* before = nullptr;
    for (const Element& e : elements) {
        const bool undefined =
            e.kind == Kind::inconsistency && static_cast<flow::Conflict>(e.a) == flow::Conflict::undefined_reached;
        const bool no_handler = e.kind == Kind::atoms && before != nullptr && before->kind == Kind::exception;
        if (undefined || no_handler) {
            const auto next = std::upper_bound(packets.addresses.begin(), packets.addresses.end(), e.offset);
            const std::uint64_t end = next == packets.addresses.end() ? source.stream.bytes.size() : *next;
            drop(ours, e.offset, end);
            drop(theirs, capture_offset(e.offset), capture_offset(end));
            ++quirks[undefined ? "walks through a permanently undefined instruction"
                               : "atoms after an exception without an address: goes on at the return address"];
        }
        before = &e;
    }
}

std::string first_difference(const std::vector<Line>& ours, const std::vector<Line>& theirs) {
    return comparing::first_difference(
        ours, theirs, [](const Line& a, const Line& b) { return a.kind == b.kind && a.text == b.text; },
        [](const Line& line) { return number(line.offset) + " " + line.kind + " " + line.text; });
}

class Etm4Flow : public CaptureTest {
protected:
    void SetUp() override { find({".src-addr-n.tsv", ".tsv", ".tsv.zst"}); }
    /// The memory that the core of a source sees.
    [[nodiscard]] image::MemoryMap memory_of(const std::string& core) const {
        image::MemoryMap map;
        const auto capture = capture::read_snapshot(folder_);
        EXPECT_TRUE(capture.has_value());
        for (const capture::MemoryDump& dump : capture->dumps) {
            if (!core.empty() && !dump.core.empty() && dump.core != core) continue;
            const auto space = image::SpaceFilter::parse(dump.space);
            // Files that the capture lacks are missing in OpenCSD's run too.
            (void)map.add_file(dump.file, dump.address, dump.offset, dump.length, space.value_or(image::SpaceFilter{}));
        }
        return map;
    }
};

TEST_P(Etm4Flow, ElementsAreEqual) {
    const std::string name = GetParam();
    const Golden golden = read_golden(golden_);
    ASSERT_FALSE(golden.empty());
    Quirks quirks;
    std::size_t count = 0;
    for (const auto& [key, rows] : golden) {
        const auto& [id, buffer_name] = key;
        SCOPED_TRACE(name + " " + buffer_name + " " + std::to_string(id));
        const Source source = read_source(folder_, id, buffer_name);
        ASSERT_TRUE(source.config.has_value());
        const image::MemoryMap memory = memory_of(source.core);
        const std::vector<Element> elements =
            test::decode<ReferenceDecoder>(source.stream.bytes, *source.config, memory);
        std::vector<Line> theirs = from_golden(rows), ours = from_ours(elements, source, quirks);
        drop_flow_beyond(elements, source, ours, theirs, quirks);
        drop_stale_walks(ours, theirs, quirks);
        drop_outcomes(ours);
        drop_outcomes(theirs);
        // The memory of this capture is not the code that ran: our decoder reports unconditional branches that were not
        // taken, and addresses to which nothing leads, and stops there; OpenCSD continues. tests/golden/conformance.tsv
        // states how far both agree.
        if (name == "etmv4-juno_r1_1")
            quirks["places where flow contradicts the image: OpenCSD goes on"] += theirs.size();
        else
            EXPECT_TRUE(first_difference(ours, theirs).empty()) << first_difference(ours, theirs);
        count += theirs.size();
        ASSERT_NO_FATAL_FAILURE(test::expect_all_agree(elements, source.stream.bytes, *source.config, memory));
    }
    comparing::print(name, count, "elements", quirks);
}

INSTANTIATE_TEST_SUITE_P(captures, Etm4Flow, captures(), capture_test_name);

// ---- damage

/// A packet or gap of the parser: where it is, and its kind.
struct Item {
    std::uint64_t first, end;
    std::string_view kind;  ///< empty: a gap
};
struct ItemCollector {
    std::vector<Item> items;
    template <class P>
    void operator()(const P&, Extent at) {
        items.push_back({at.first.value, at.end().value, P::info.name});
    }
    void operator()(const Gap& gap) { items.push_back({gap.first.value, gap.end.value, {}}); }
};
std::vector<Item> items_of(Bytes bytes, const Config& config) {
    ItemCollector collector;
    Parser<ItemCollector> parser(config, collector);
    parser.feed(bytes);
    parser.finish();
    return std::move(collector.items);
}
using Extents = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
void add_extent(Extents& all, std::uint64_t first, std::uint64_t end) {
    if (first == end) return;
    if (!all.empty() && all.back().second == first)
        all.back().second = end;
    else
        all.emplace_back(first, end);
}

/// Which bytes cannot be decoded, from packets and gaps alone (docs/spec/etm4.md, 14, steps 1 to 3), and, where a
/// packet cannot be where it is, from the one place that the decoder has to say: `contradicted`, offsets of such
/// packets.
Extents lost_bytes(const std::vector<Item>& items, const Config& config,
                   const std::vector<std::uint64_t>& contradicted) {
    Extents out;
    enum { searching, waiting, synchronised } state = searching;
    for (const Item& item : items) {
        const bool is_sync = item.kind == ASync::info.name, is_info = item.kind == TraceInfo::info.name;
        if (item.kind.empty() ||
            (state == synchronised && std::binary_search(contradicted.begin(), contradicted.end(), item.first))) {
            state = searching;
            add_extent(out, item.first, item.end);
        } else if (state == searching && is_sync) {
            state = waiting;
        } else if (state == waiting && is_info) {
            state = synchronised;
        } else if (state == synchronised) {
            if (item.kind == Discard::info.name || item.kind == Overflow::info.name) state = searching;
        } else if (state != waiting || item.kind != Event::info.name || !config.ete()) {
            add_extent(out, item.first, item.end);
        }
    }
    return out;
}

/// An element that was left over when decoding ended: its place does not show the place of the end.
bool is_of_the_end(const Element& e) {
    return e.kind == Kind::gap || e.kind == Kind::atoms ||
           (e.kind == Kind::mark && static_cast<flow::Mark::Kind>(e.a) == flow::Mark::Kind::uncommitted);
}

/// Elements at or after `from`, with offsets counted from there. Contexts that are reported because they changed, and a
/// beginning where no context was known, depend on earlier trace; so does a time that goes back.
std::vector<Element> elements_from(const std::vector<Element>& elements, std::uint64_t from) {
    std::vector<Element> out;
    for (Element e : elements) {
        const bool begins =
            e.kind == Kind::trace_on && static_cast<flow::TraceOnReason>(e.a) == flow::TraceOnReason::begin;
        const bool time =
            e.kind == Kind::inconsistency && static_cast<flow::Conflict>(e.a) == flow::Conflict::time_goes_back;
        if (e.offset < from || e.kind == Kind::context || begins || time) continue;
        e.offset -= from;
        if (e.kind == Kind::gap) e.a -= from, e.b -= from;
        out.push_back(e);
    }
    return out;
}

/// Where a packet begins.
bool begins(const std::vector<Item>& items, std::uint64_t at, std::string_view kind) {
    const auto item = std::lower_bound(items.begin(), items.end(), at,
                                       [](const Item& i, std::uint64_t offset) { return i.first < offset; });
    return item != items.end() && item->first == at && item->kind == kind;
}

class Damaged : public Etm4Flow {
protected:
    /// A complete decode by the reference decoder: the fast decoder agrees, and lost bytes are exact. `items`: packets
    /// and gaps of the same bytes.
    [[nodiscard]] std::vector<Element> decode(Bytes bytes, const std::vector<Item>& items) {
        std::vector<Element> elements = test::decode<ReferenceDecoder>(bytes, config_, *memory_);
        const auto fast = test::decode<Decoder>(bytes, config_, *memory_, 1 + random_() % 64);
        EXPECT_EQ(synthetic::difference(fast, elements, "fast", "reference"), "");
        std::vector<std::uint64_t> contradicted;
        Extents reported;
        for (const Element& e : elements) {
            if (e.kind != Kind::gap) continue;
            EXPECT_LE(e.a, e.b);
            EXPECT_TRUE(reported.empty() || reported.back().second <= e.a) << e.a;
            add_extent(reported, e.a, e.b);
            if (static_cast<GapReason>(e.c) == GapReason::malformed_packet) contradicted.push_back(e.a);
        }
        EXPECT_EQ(reported, lost_bytes(items, config_, contradicted));
        return elements;
    }
    /// The place at which the state of a decoder that lost the trace is complete again: an address and a context after
    /// the Trace Info at or after `from`, where a packet begins.
    [[nodiscard]] static std::optional<std::uint64_t> complete_at(const std::vector<Item>& items, std::uint64_t from) {
        bool info = false, context = false, address = false;
        for (const Item& item : items) {
            if (item.first < from) continue;
            if (item.kind == TraceInfo::info.name) info = true, context = address = false;
            const bool both = item.kind == AddressWithContext::info.name;
            context = context || both || item.kind == Context::info.name;
            address = address || both || item.kind == ShortAddress::info.name || item.kind == LongAddress::info.name ||
                      item.kind == ExactMatchAddress::info.name;
            if (info && context && address) return item.first;
        }
        return {};
    }

    Config config_;
    const image::MemoryMap* memory_ = nullptr;
    wire::Random random_{1};
};

// Any bytes of a period from one A-sync to the next are changed, lost or added; two sound periods follow. Decoding
// ends, lost bytes are counted exactly, and after the first A-sync that the damage left whole the elements are those of
// a decoder that begins there. Of a long period only the beginning follows, but for one damage of sixteen, where all of
// it must be right. Cut anywhere, the elements are the first ones of the whole. WAYMARK_DAMAGES in the environment: so
// many of each capture, and every cut.
TEST_P(Damaged, IsRightAgainAfterTheNextSync) {
    const char* const wanted = std::getenv("WAYMARK_DAMAGES");
    const std::size_t damages = wanted != nullptr ? static_cast<std::size_t>(std::atoll(wanted)) : sized(25U, 10U);
    constexpr std::size_t beginning_bytes = 600;
    const Golden golden = read_golden(golden_);
    ASSERT_FALSE(golden.empty());
    std::size_t tried = 0, resynchronised = 0, compared = 0, cuts = 0, whole_periods = 0;
    const auto has_sync = [](const std::vector<Item>& items) {
        return std::any_of(items.begin(), items.end(), [](const Item& i) { return i.kind == ASync::info.name; });
    };
    std::vector<std::tuple<std::string, Source, std::vector<Item>>> sources;
    for (const auto& [key, rows] : golden) {
        const auto& [id, buffer_name] = key;
        Source source = read_source(folder_, id, buffer_name);
        ASSERT_TRUE(source.config.has_value()) << buffer_name << ' ' << id;
        std::vector<Item> items = items_of(source.stream.bytes, *source.config);
        sources.emplace_back(buffer_name + " " + std::to_string(id), std::move(source), std::move(items));
    }
    const auto with_sync = static_cast<std::size_t>(
        std::count_if(sources.begin(), sources.end(), [&](const auto& s) { return has_sync(std::get<2>(s)); }));
    for (const auto& [name, source, whole_items] : sources) {
        SCOPED_TRACE(name);
        config_ = *source.config;
        const image::MemoryMap memory = memory_of(source.core);
        memory_ = &memory;
        const Bytes whole(source.stream.bytes);
        std::vector<std::uint64_t> syncs, beginnings;  // of each period, and how long its beginning is
        for (const Item& item : whole_items) {
            if (item.kind == ASync::info.name) {
                syncs.push_back(item.first);
                beginnings.push_back(0);
            } else if (!syncs.empty() && beginnings.back() == 0 && item.first >= syncs.back() + beginning_bytes &&
                       item.kind == Atom::info.name) {  // nothing waits for an address
                beginnings.back() = item.first - syncs.back();
            }
        }
        if (syncs.empty()) {  // a source of a few bytes: all are lost, and counted
            (void)decode(whole, whole_items);
            continue;
        }
        syncs.push_back(whole.size());
        const std::size_t periods = syncs.size() - 1;
        const auto period = [&](std::size_t n) {
            return whole.subspan(syncs[n % periods], syncs[n % periods + 1] - syncs[n % periods]);
        };
        // Elements of sound periods for a decoder that begins there: number of the first period, number of periods, all
        // elements.
        std::map<std::tuple<std::size_t, std::size_t, bool>, std::vector<Element>> alone;
        const std::size_t here = (damages + with_sync - 1) / with_sync;
        for (std::size_t n = 0; n < here; ++n) {
            const std::size_t first = random_() % periods;
            std::vector<std::uint8_t> bytes(period(first).begin(), period(first).end());
            for (auto times = 1 + random_() % 4; times != 0; --times) {
                const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(random_() % bytes.size());
                switch (random_() % 5) {
                    case 0: *at = static_cast<std::uint8_t>(*at ^ 1U << random_() % 8); break;
                    case 1: *at = static_cast<std::uint8_t>(random_()); break;
                    case 2: bytes.insert(at, static_cast<std::uint8_t>(random_())); break;
                    case 3:
                        if (bytes.size() > 1) bytes.erase(at);
                        break;
                    default:
                        if (bytes.size() > 60) bytes.erase(at, at + std::min<std::ptrdiff_t>(40, bytes.end() - at));
                        break;
                }
            }
            const bool all = n % 16 == 0;
            std::array<std::size_t, 2> sound{};
            for (const std::size_t k : {1U, 2U}) {
                sound[k - 1] = bytes.size();
                const std::uint64_t beginning = beginnings[(first + k) % periods];
                const Bytes next = all || beginning == 0 ? period(first + k) : period(first + k).first(beginning);
                bytes.insert(bytes.end(), next.begin(), next.end());
            }
            const std::vector<Item> items = items_of(bytes, config_);
            const std::vector<Element> elements = decode(bytes, items);
            if (HasFailure()) FAIL() << "damage " << n << " of period " << first;
            ++tried;
            // Damage may reach into the first sound period, but not beyond it.
            const std::size_t reached = begins(items, sound[0], ASync::info.name) ? 0 : 1;
            const std::size_t good = sound[reached];
            ASSERT_TRUE(begins(items, good, ASync::info.name)) << "damage " << n << " of period " << first;
            const auto complete = complete_at(items, good);
            if (!complete) continue;
            // Elements that wait for their commit may belong to the damaged period, if nothing showed the damage.
            const bool begun_anew = std::any_of(elements.begin(), elements.end(),
                                                [&](const Element& e) { return e.kind == Kind::gap && e.b == good; });
            if (config_.max_speculation != 0 && !begun_anew) continue;
            ++resynchronised;
            const auto [expected, is_new] = alone.try_emplace({(first + 1 + reached) % periods, 2 - reached, all});
            if (is_new)
                expected->second = elements_from(
                    test::decode<ReferenceDecoder>(Bytes(bytes).subspan(good), config_, memory), *complete - good);
            ASSERT_EQ(
                synthetic::difference(elements_from(elements, *complete), expected->second, "after damage", "alone"),
                "")
                << "damage " << n << " of period " << first << ", complete at " << *complete;
            compared += expected->second.size();
            whole_periods += all ? 1 : 0;
        }
        // Cuts: of each period, and in CI of the beginning of the first one.
        for (std::size_t k = 0; k < (wanted != nullptr ? periods : 1); ++k) {
            const Bytes piece = period(k);
            const std::vector<Element> all = test::decode<ReferenceDecoder>(piece, config_, memory);
            const std::size_t last = wanted != nullptr ? piece.size() : std::min<std::size_t>(piece.size(), 150);
            for (std::size_t cut = 0; cut < last; ++cut) {
                std::vector<Element> found = decode(piece.first(cut), items_of(piece.first(cut), config_));
                if (HasFailure()) FAIL() << "period " << k << ", cut at " << cut;
                while (!found.empty() && is_of_the_end(found.back())) found.pop_back();
                ASSERT_LE(found.size(), all.size());
                ASSERT_TRUE(std::equal(found.begin(), found.end(), all.begin()))
                    << "period " << k << ", cut at " << cut;
                ++cuts;
            }
        }
    }
    std::printf("%s: %zu damages, right again after %zu (%zu with whole periods) with %zu elements; %zu cuts\n",
                GetParam(), tried, resynchronised, whole_periods, compared, cuts);
}

INSTANTIATE_TEST_SUITE_P(captures, Damaged, captures(), capture_test_name);

// ---- generated streams, through OpenCSD's library

#ifdef WAYMARK_OPENCSD

/// OpenCSD's elements, as the lines of a Simulation.
struct Theirs {
    std::vector<std::string> lines;
    std::vector<std::string> other;

    static ocsd_datapath_resp_t take(const void* context, const ocsd_trc_index_t, const std::uint8_t,
                                     const ocsd_generic_trace_elem* element) {
        static_cast<Theirs*>(const_cast<void*>(context))->take(*element);
        return OCSD_RESP_CONT;
    }

private:
    static std::string mark(flow::Mark::Kind kind, std::uint64_t value) {
        return "mark " + number(static_cast<unsigned>(kind)) + " " + number(value);
    }
    void take(const ocsd_generic_trace_elem& e) {
        switch (e.elem_type) {
            case OCSD_GEN_TRC_ELEM_INSTR_RANGE: {
                const char* outcome = e.last_i_type == OCSD_INSTR_OTHER ? "cut" : e.last_instr_exec != 0 ? "E" : "N";
                lines.push_back(test::range_line(e.st_addr, e.en_addr, e.num_instr_range, outcome));
                break;
            }
            case OCSD_GEN_TRC_ELEM_I_RANGE_NOPATH: lines.push_back("q of " + number(e.num_instr_range)); break;
            case OCSD_GEN_TRC_ELEM_EXCEPTION:
                lines.push_back("exception " + number(e.exception_number) + " back " + number(e.en_addr));
                break;
            case OCSD_GEN_TRC_ELEM_EXCEPTION_RET: lines.emplace_back("exception return"); break;
            case OCSD_GEN_TRC_ELEM_TIMESTAMP: lines.push_back("timestamp " + number(e.timestamp)); break;
            case OCSD_GEN_TRC_ELEM_CYCLE_COUNT: lines.push_back("cycles " + number(e.cycle_count)); break;
            case OCSD_GEN_TRC_ELEM_EVENT:
                lines.push_back(mark(flow::Mark::Kind::unit_events, e.trace_event.ev_number));
                break;
            case OCSD_GEN_TRC_ELEM_ADDR_NACC: lines.push_back("no memory " + number(e.st_addr)); break;
            case OCSD_GEN_TRC_ELEM_SYNC_MARKER: lines.push_back(mark(flow::Mark::Kind::timestamp_marker, 0)); break;
            case OCSD_GEN_TRC_ELEM_TRACE_ON:
                lines.emplace_back(e.trace_on_reason == TRACE_ON_OVERFLOW ? "trace on 2" : "trace on 1");
                break;
            case OCSD_GEN_TRC_ELEM_NO_SYNC:
            case OCSD_GEN_TRC_ELEM_EO_TRACE:
            case OCSD_GEN_TRC_ELEM_PE_CONTEXT: break;
            default: other.push_back("element type " + number(e.elem_type)); break;
        }
    }
};

Theirs opencsd_elements(const Config& c, Bytes bytes, const synthetic::Memory& memory) {
    const RegisterValues r = to_registers(c);
    const dcd_tree_handle_t tree = ocsd_create_dcd_tree(OCSD_TRC_SRC_SINGLE, 0);
    unsigned char id = 0;
    ocsd_err_t error = OCSD_OK;
    if (c.ete()) {
        ocsd_ete_cfg config{*r.idr0,    *r.idr1,     *r.idr2,   *r.idr8,        *r.devarch,
                            *r.configr, *r.traceidr, ARCH_AA64, profile_CortexA};
        error = ocsd_dt_create_decoder(tree, OCSD_BUILTIN_DCD_ETE,
                                       OCSD_CREATE_FLG_FULL_DECODER | ETE_OPFLG_PKTDEC_SRCADDR_N_ATOMS, &config, &id);
    } else {
        ocsd_etmv4_cfg config{};
        config.reg_idr0 = *r.idr0;
        config.reg_idr1 = *r.idr1;
        config.reg_idr2 = *r.idr2;
        config.reg_idr8 = *r.idr8;
        config.reg_configr = *r.configr;
        config.reg_traceidr = *r.traceidr;
        config.arch_ver = ARCH_AA64;
        config.core_prof = profile_CortexA;
        error = ocsd_dt_create_decoder(tree, OCSD_BUILTIN_DCD_ETMV4I, OCSD_CREATE_FLG_FULL_DECODER, &config, &id);
    }
    EXPECT_EQ(error, OCSD_OK);
    for (const auto& section : memory.sections)
        EXPECT_EQ(ocsd_dt_add_buffer_mem_acc(tree, section.address, OCSD_MEM_SPACE_ANY, section.bytes.data(),
                                             static_cast<std::uint32_t>(section.bytes.size())),
                  OCSD_OK);
    Theirs theirs;
    EXPECT_EQ(ocsd_dt_set_gen_elem_outfn(tree, &Theirs::take, &theirs), OCSD_OK);
    std::uint32_t used = 0;
    const auto size = static_cast<std::uint32_t>(bytes.size());
    EXPECT_FALSE(OCSD_DATA_RESP_IS_FATAL(ocsd_dt_process_data(tree, OCSD_OP_DATA, 0, size, bytes.data(), &used)));
    EXPECT_EQ(used, size);
    (void)ocsd_dt_process_data(tree, OCSD_OP_EOT, 0, 0, nullptr, &used);
    ocsd_destroy_dcd_tree(tree);
    return theirs;
}

/// Our elements, compared with OpenCSD's library except for its quirks; adds their number to `compared`.
void expect_opencsd_agrees(const Config& config, Bytes bytes, const synthetic::Memory& memory,
                           const std::vector<Element>& elements, Quirks& quirks, std::size_t& compared) {
    std::vector<std::string> ours;
    const QuirkPackets packets = quirk_packets({config, {{bytes.begin(), bytes.end()}, {}}, {}});
    for (const Element& e : elements) {
        const auto lines = test::lines_of({e});
        if (lines.empty()) continue;
        std::string line = lines.front();
        if (e.kind == Kind::timestamp) line = "timestamp " + number(e.a);
        if (e.kind == Kind::cycles && e.a == Element::absent) {
            ++quirks["a cycle count that is not known is 0"];
            line = "cycles 0";
        }
        if (e.kind == Kind::mark && static_cast<flow::Mark::Kind>(e.a) == flow::Mark::Kind::uncommitted) {
            ++quirks["elements that never were committed: not reported"];
            continue;
        }
        if (e.kind == Kind::exception_return && config.ete() &&
            std::binary_search(packets.source_addresses.begin(), packets.source_addresses.end(), e.offset)) {
            ++quirks["no exception_return for an ERET that a Source Address reports"];
            continue;
        }
        if (e.kind == Kind::range && !e.taken && line.ends_with(" N") &&
            std::binary_search(packets.qs.begin(), packets.qs.end(), e.offset)) {
            ++quirks["the last branch of a Q element that can be followed: E, though it was passed"];
            line.back() = 'E';
        }
        ours.push_back(std::move(line));
    }
    std::size_t removed = 0;
    const std::vector<std::uint8_t> without = WrongTargets::without(bytes, config, removed);
    if (removed != 0) {
        quirks
            ["addresses that a mispredict deletes behind what survives it: it inverts an older outcome, or crashes"] +=
            removed;
        ASSERT_EQ(test::lines_of(test::decode<Decoder>(without, config, memory)), test::lines_of(elements));
        bytes = without;
    }
    Theirs theirs = opencsd_elements(config, bytes, memory);
    ASSERT_TRUE(theirs.other.empty()) << theirs.other.front();
    // A count that commits a part of the waiting elements follows this part (docs/spec/etm4.md); OpenCSD places it
    // after all waiting elements. So counts are compared separately, each kind in its order.
    if (config.max_speculation != 0) {
        const auto take_counts = [](std::vector<std::string>& lines) {
            const auto counts = std::stable_partition(lines.begin(), lines.end(),
                                                      [](const auto& line) { return !line.starts_with("cycles "); });
            std::vector<std::string> out(counts, lines.end());
            lines.erase(counts, lines.end());
            return out;
        };
        std::vector<std::string> our_counts = take_counts(ours);
        const std::vector<std::string> their_counts = take_counts(theirs.lines);
        // Counts at the end are lost together with the elements that OpenCSD loses there.
        ASSERT_LE(their_counts.size(), our_counts.size());
        our_counts.resize(their_counts.size());
        ASSERT_EQ(our_counts, their_counts);
        if (!our_counts.empty())
            quirks["a count lies behind all that waits, though it commits a part"] += our_counts.size();
    }
    for (std::size_t i = 0; i < std::min(ours.size(), theirs.lines.size()); ++i)
        while (i < ours.size() && ours[i] != theirs.lines[i] && theirs.lines[i] == "trace on 2" &&
               (ours[i] == "exception return" || ours[i] == "trace on 1")) {
            ours.erase(ours.begin() + static_cast<std::ptrdiff_t>(i));
            ++quirks["exception returns and trace on right before an overflow: lost"];
        }
    // Elements that OpenCSD holds back until the next element, and all that come with them.
    const auto held_back = [](const std::string& line) { return line == "exception return" || line == "trace on 1"; };
    if (const std::size_t same = theirs.lines.size();
        same < ours.size() && held_back(ours[same]) &&
        std::all_of(ours.begin() + static_cast<std::ptrdiff_t>(same), ours.end(), [&](const std::string& line) {
            return held_back(line) || line.starts_with("cycles") || line.starts_with("timestamp");
        })) {
        quirks["exception returns and trace on at the very end: lost, with counts and times after them"] +=
            ours.size() - same;
        ours.resize(same);
    }
    if (config.max_speculation != 0 && theirs.lines.size() < ours.size()) {
        const std::size_t missing = ours.size() - theirs.lines.size();
        quirks["elements committed late, and lost at the end"] += missing;
        ASSERT_LT(missing, ours.size() / 4);
        ours.resize(theirs.lines.size());
    }
    const auto [a, b] = std::mismatch(ours.begin(), ours.end(), theirs.lines.begin(), theirs.lines.end());
    if (a != ours.end() || b != theirs.lines.end()) {
        std::string text;
        for (auto k = a - std::min<std::ptrdiff_t>(4, a - ours.begin()); k < a; ++k) text += "   both " + *k + "\n";
        for (auto k = a; k < std::min(a + 4, ours.end()); ++k) text += "   ours " + *k + "\n";
        for (auto k = b; k < std::min(b + 4, theirs.lines.end()); ++k) text += " theirs " + *k + "\n";
        FAIL() << "line " << a - ours.begin() << " of " << ours.size() << " and " << theirs.lines.size() << "\n"
               << text;
    }
    compared += ours.size();
}

#endif

TEST(Etm4FlowOpenCsd, AgreesOnGeneratedStreams) {
#ifndef WAYMARK_OPENCSD
    GTEST_SKIP() << "built without OpenCSD's library: install libopencsd-dev to compare with it";
#else
    const char* const wanted = std::getenv("WAYMARK_PROPERTY_PROGRAMS");
    const unsigned programs = wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : sized(60U, 5U);
    Quirks quirks;
    std::size_t compared = 0;
    for (const bool ete : {false, true})
        for (const std::uint32_t speculation : {0U, 8U, 60U})
            for (const bool return_stack : {false, true})
                for (std::uint64_t seed = 1; seed <= programs; ++seed) {
                    // With elements that it commits late, 1.3.3 finds its return stack empty and gives up.
                    if (speculation != 0 && return_stack) continue;
                    SCOPED_TRACE(std::string(ete ? "ETE" : "ETMv4") + " speculation " + number(speculation) +
                                 (return_stack ? " return stack" : "") + " seed " + number(seed));
                    Config config = ete ? test::ete(1) : test::etmv4();
                    config.q_elements = false;
                    config.max_speculation = speculation;
                    config.return_stack = return_stack;
                    config.branch_broadcast = seed % 3 == 0;
                    config.wfx_p0 = seed % 2 == 0;
                    test::Simulation::Options options;
                    // OpenCSD does not count Source Address elements in cancels, and does not pop the return stack for
                    // one: it then reports the one instruction.
                    options.source_addresses = ete && speculation == 0 && !return_stack;
                    options.newest_instructions = false;
                    // It pops the return stack before an exception whose address is the branch's target.
                    options.exceptions_at_targets = !return_stack;
                    // 1.3.3 loses part of some commits (around contexts that change, Exception Return packets and
                    // more): its result is the beginning of the run, so nothing may be thrown away in between.
                    options.overflows = speculation == 0;
                    // It keeps bits 63:32 of a 32-bit address only if the last Context packet, cancelled or not, said
                    // AArch64.
                    options.aarch32 = speculation == 0;
                    test::Simulation simulation(config, seed, options);
                    simulation.run(400);
                    const std::vector<Element> elements =
                        test::decode<Decoder>(simulation.bytes, config, simulation.memory);
                    ASSERT_EQ(test::lines_of(elements), simulation.truth);
                    ASSERT_NO_FATAL_FAILURE(
                        expect_opencsd_agrees(config, simulation.bytes, simulation.memory, elements, quirks, compared));
                }
    std::printf("generated streams: %zu elements compared\n", compared);
    for (const auto& [what, times] : quirks)
        std::printf("    %8llu  %s\n", static_cast<unsigned long long>(times), what.c_str());
#endif
}

// Random executions of the unit as a model: OpenCSD decodes its trace to the same elements. WAYMARK_OPENCSD_ELEMENTS in
// the environment requests this number of elements of each kind.
TEST(Etm4FlowOpenCsd, AgreesOnExecutionsOfTheModel) {
#ifndef WAYMARK_OPENCSD
    GTEST_SKIP() << "built without OpenCSD's library: install libopencsd-dev to compare with it";
#else
    struct Case {
        const char* name;
        bool ete;  ///< an ETMv4 does not have it
        void (*change)(Config&, ModelChoices&);
    };
    const Case cases[] = {
        {"plain", false, [](Config&, ModelChoices&) {}},
        {"return stack", false, [](Config& c, ModelChoices&) { c.return_stack = true; }},
        {"cycle accurate", false, [](Config& c, ModelChoices&) { c.cycle_counting = c.timestamps = true; }},
        {"speculative", false,
         [](Config& c, ModelChoices& m) {
             c.max_speculation = 8;
             m.mispredict_one_in = 4;
         }},
        {"Q", false,
         [](Config& c, ModelChoices& m) {
             c.q_elements = true;
             m.q_one_in = 3;
         }},
        {"source address", true, [](Config&, ModelChoices& m) { m.source_address_after = 0; }},
    };
    const char* const wanted = std::getenv("WAYMARK_OPENCSD_ELEMENTS");
    const std::size_t least = wanted != nullptr ? static_cast<std::size_t>(std::atoll(wanted)) : sized(20000U, 2000U);
    for (const Case& kind : cases) {
        Quirks quirks;
        std::size_t compared = 0;
        for (std::uint64_t seed = 1; compared < least; ++seed) {
            const bool ete = kind.ete || seed % 2 == 0;
            SCOPED_TRACE(std::string(kind.name) + (ete ? " ETE" : " ETMv4") + " seed " + number(seed));
            Config config = ete ? test::ete(1) : test::etmv4();
            config.q_elements = config.cycle_counting = config.timestamps = config.timestamp_markers = false;
            config.commit_mode_1 = true;
            ModelChoices choices;
            choices.seed = seed;
            choices.cycle_count_format_2 = false;  // 1.3.3 misreads it
            kind.change(config, choices);
            // 1.3.3 pops the return stack before an exception whose address is the branch's target, and crashes.
            choices.folds_exception_address = !config.return_stack;
            ModelConfig model{tracing_registers(config), CoreProfile::a, choices};
            model.registers.syncpr.period = 8;
            test::Execution::Options options;
            options.contents.newest_instructions = false;
            options.contents.aarch32 = config.max_speculation == 0 && !config.q_elements;
            test::Execution execution(model, seed, options);
            execution.run(400);
            const Config sent = packets_of(model.registers, model.profile);
            const std::vector<Element> elements = test::decode<Decoder>(execution.bytes(), sent, execution.memory);
            ASSERT_EQ(test::difference_from(elements, execution.truth, sent, execution.bytes()), "");
            expect_opencsd_agrees(sent, execution.bytes(), execution.memory, elements, quirks, compared);
            if (HasFatalFailure()) break;
        }
        comparing::print(kind.name, compared, "elements", quirks);
    }
#endif
}

}  // namespace
}  // namespace waymark::etm4
