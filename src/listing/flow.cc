#include "waymark/listing/flow.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>
#include <type_traits>
#include <vector>

#include "line.h"
#include "row.h"
#include "waymark/analysis/flow_levels.h"
#include "waymark/flow/summary.h"
#include "waymark/image/disassembly.h"
#include "waymark/isa/cores.h"

namespace waymark::listing {

namespace {

/// An event in its three forms of output.
struct EventText {
    std::string_view element;  ///< the name of section `element` in the tables
    std::optional<Address> start{};
    std::string detail;    ///< for programs
    std::string sentence;  ///< for people
    std::optional<std::uint32_t> cycles{};
    std::optional<Address> end{};  ///< end of code that was executed without trace of its path
    std::uint64_t instructions = 0;
    const flow::Context* context = nullptr;  ///< context after the change
    std::optional<std::uint8_t> el{};        ///< without a context
    std::optional<Address> target{};         ///< of an exception
};

/// `source`: of the trace.
std::string context_text(const flow::Context& c, const pipeline::Source& source) {
    std::string out(name(c.security()));
    const bool m_profile = isa::core_profile(source.core_type) == isa::CoreProfile::m;
    if (c.el) out += " " + analysis::level_text(*c.el, m_profile);
    if (c.hyp && !c.el) out += " HYP";
    if (c.context_id) out += fmt::format(" CID={:#x}", *c.context_id);
    if (c.vmid) out += fmt::format(" VMID={:#x}", *c.vmid);
    return out;
}

std::optional<std::uint32_t> known_cycles(std::uint32_t cycles) {
    return cycles == flow::no_cycles ? std::nullopt : std::optional(cycles);
}

/// Describes a mark. `lost`: whether flow is unknown after it.
EventText describe_mark(const flow::Mark& mark) {
    using Kind = flow::Mark::Kind;
    const auto transaction = [](const char* detail, const char* sentence) {
        return EventText{"transaction", {}, detail, sentence};
    };
    switch (mark.kind) {
        case Kind::unit_events: {
            std::string events;
            for (unsigned n = 0; n < 4; ++n)
                if ((mark.value >> n & 1U) != 0) events += fmt::format("{}{}", events.empty() ? "" : ", ", n);
            return {"event", {}, fmt::format("{:#x}", mark.value), "event of the trace unit: " + events};
        }
        case Kind::timestamp_marker: return {"marker", {}, "timestamp", "the place that the next timestamp belongs to"};
        case Kind::transaction_inside: return transaction("init", "tracing began inside a transaction");
        case Kind::transaction_started: return transaction("start", "transaction started");
        case Kind::transaction_committed: return transaction("commit", "transaction committed");
        case Kind::transaction_failed:
            return transaction("fail", "transaction failed: what ran since it started had no effect");
        case Kind::instrumentation:
            return {.element = "instrumentation",
                    .detail = fmt::format("{:#x}", mark.value),
                    .sentence = fmt::format("the program sent {:#x} at EL{}", mark.value, mark.level),
                    .el = mark.level};
        case Kind::uncommitted:
            return {"uncommitted",
                    {},
                    fmt::format("{}", mark.value),
                    fmt::format("{} neither committed nor cancelled when the trace ended: left out",
                                counted(mark.value, "P0 element"))};
        case Kind::overflow_at_end:
            return {"overflow", {}, {}, "the unit's FIFO overflowed: what ran after this is not in the trace"};
    }
    return {};
}

EventText describe(const flow::What& what, const pipeline::StreamInfo& stream) {
    return std::visit(
        [&](const auto& e) -> EventText {
            using T = std::decay_t<decltype(e)>;
            if constexpr (std::is_same_v<T, Gap>) {
                const Offset first = stream.offsets.capture(e.first);
                if (e.bytes() == 0)
                    return {"no_sync",
                            {},
                            std::string(name(e.reason)),
                            fmt::format("{} here; what follows does not continue what came before",
                                        e.reason == GapReason::stopped   ? "the unit was stopped and started again"
                                        : e.reason == GapReason::missing ? "trace is missing"
                                                                         : "the frames break")};
                return {
                    "no_sync",
                    {},
                    fmt::format("{}, {} bytes", name(e.reason), e.bytes()),
                    fmt::format("gap: {} from {:#x} on: {}", counted(e.bytes(), "byte"), first.value, name(e.reason))};
            } else if constexpr (std::is_same_v<T, flow::TraceOn>) {
                return {"trace_on",
                        {},
                        std::string(name(e.reason)),
                        fmt::format("trace on: {}", name(e.reason)),
                        known_cycles(e.cycles)};
            } else if constexpr (std::is_same_v<T, flow::Context>) {
                return {.element = "context",
                        .detail = context_text(e, stream.source),
                        .sentence = "context: " + context_text(e, stream.source),
                        .context = &e};
            } else if constexpr (std::is_same_v<T, flow::Timestamp>) {
                if (!e.known && e.value == 0)
                    return {
                        "timestamp", {}, "not known", "timestamp of a time that is not known", known_cycles(e.cycles)};
                if (!e.known)
                    return {"timestamp",
                            {},
                            fmt::format("{:#x} (high bits unknown)", e.value),
                            fmt::format("timestamp …{:x}: its high bits are not yet known", e.value),
                            known_cycles(e.cycles)};
                return {
                    "timestamp",
                    {},
                    fmt::format("{:#014x}", e.value),
                    fmt::format("timestamp {:#x}{}", e.value, e.frequency_changed ? ", clock frequency changed" : ""),
                    known_cycles(e.cycles)};
            } else if constexpr (std::is_same_v<T, flow::Exception>) {
                // Trace without exception numbers has separate types for exceptions that a vector table does not
                // contain. Numbers of other trace have ten bits at most.
                constexpr std::uint32_t last_number = 1023;
                const bool numbered = e.type->number <= last_number;
                std::string sentence = fmt::format(
                    "exception {}: {}", numbered ? std::to_string(e.type->number) : "(number unknown)", e.type->name);
                if (e.vector) sentence += ", to " + hex(*e.vector);
                if (e.preferred_return) sentence += ", return address " + hex(*e.preferred_return);
                return {.element = "exception",
                        .start = e.preferred_return,
                        .detail = numbered ? fmt::format("{:#04x}", e.type->number) : std::string("unknown"),
                        .sentence = std::move(sentence),
                        .cycles = known_cycles(e.cycles),
                        .target = e.vector};
            } else if constexpr (std::is_same_v<T, flow::ExceptionReturn>) {
                return {"exception_return", {}, "", "exception return"};
            } else if constexpr (std::is_same_v<T, flow::NoMemory>) {
                return {"no_memory", e.address, "",
                        fmt::format("no image has an instruction at {}; flow resumes at the next traced address",
                                    hex(e.address))};
            } else if constexpr (std::is_same_v<T, flow::Trigger>) {
                return {"trigger", {}, "", "trigger"};
            } else if constexpr (std::is_same_v<T, flow::Cycles>) {
                const std::string_view of = e.of == flow::Cycles::Of::unknown ? "flow unknown" : "cycle count";
                EventText text{.element = "cycles", .detail = e.cycles ? "" : "not known", .sentence = std::string(of)};
                if (!e.cycles) text.sentence += " that the unit does not know";
                text.cycles = e.cycles;
                return text;
            } else if constexpr (std::is_same_v<T, flow::Atoms>) {
                return {
                    "atoms",
                    {},
                    fmt::format("{} E, {} N", e.taken, e.not_taken),
                    fmt::format("flow unknown: {} without an address, {} taken and {} not",
                                counted(e.taken + e.not_taken, "waypoint"), grouped(e.taken), grouped(e.not_taken))};
            } else if constexpr (std::is_same_v<T, flow::Reached>) {
                return {"reached", e.address, "",
                        fmt::format("flow unknown: the instruction at {} was executed", hex(e.address))};
            } else if constexpr (std::is_same_v<T, flow::Untraced>) {
                return {"range_no_path",
                        e.from_known ? std::optional(e.from) : std::nullopt,
                        "",
                        fmt::format("{} executed without a traced outcome; flow continues at {}",
                                    counted(e.instructions, "instruction"), hex(e.to)),
                        std::nullopt,
                        e.to,
                        e.instructions};
            } else if constexpr (std::is_same_v<T, flow::Mark>) {
                return describe_mark(e);
            } else {
                static_assert(std::is_same_v<T, flow::Inconsistency>);
                return {"inconsistency", e.found, std::string(name(e.conflict)),
                        fmt::format("contradiction: {}; {}", stream.source.protocol->sentence(e),
                                    loses_place(e.conflict) ? "flow resumes at the next traced address"
                                                            : "the trace is believed")};
            }
        },
        what);
}

/// Outcome of the last instruction: E, N, or an empty text if the trace does not show it.
std::string_view atom(const flow::Block& block, const flow::Range& range) {
    if (block.end == flow::End::not_a_waypoint && (block.flags & flow::Block::own_outcome) == 0) return "";
    return range.taken() ? "E" : "N";
}

/// The kind of a block's last instruction, for readers.
std::string_view kind(const flow::Block& b) {
    using flow::Block;
    if (b.end == flow::End::not_a_waypoint) return (b.flags & Block::own_outcome) != 0 ? "" : "(cut short)";
    if (b.end == flow::End::barrier) {
        if ((b.flags & Block::wait) != 0) return "wait";
        return (b.flags & Block::transaction_start) != 0 ? "transaction start" : "barrier";
    }
    if ((b.flags & Block::exception_return) != 0) return "exception return";
    if ((b.flags & Block::function_return) != 0) return "return";
    if ((b.flags & Block::link) != 0) return b.end == flow::End::direct ? "call" : "indirect call";
    if (b.end == flow::End::indirect) return "indirect branch";
    return (b.flags & Block::conditional) != 0 ? "conditional branch" : "branch";
}

/// An element of flow, in the form for programs.
struct FlowLine {
    std::string_view source, buffer, element;
    std::uint64_t offset{};
    std::optional<Address> start{}, end{};
    std::uint64_t instructions{};
    const flow::Block* block = nullptr;  ///< block of a range; null for an event
    std::string_view atom{};             ///< of a range
    std::optional<std::uint32_t> cycles{};
    std::string_view detail{}, context{}, symbol{}, sentence{};
    const flow::Context* changed_to = nullptr;  ///< of a context
    std::optional<std::uint8_t> el{};           ///< for contexts, handlers and data that a program sent
    std::optional<Address> target{};            ///< of an exception
};

/// Writes the state of the core, if the line concerns it.
void write_state(auto& w, const FlowLine& l) {
    static constexpr flow::Context none{};
    const flow::Context& c = l.changed_to != nullptr ? *l.changed_to : none;
    w.number("el", l.el.has_value(), l.el.value_or(0));
    w.word("security", l.changed_to != nullptr, name(c.security()));
    w.hex("vmid", c.vmid.has_value(), c.vmid.value_or(0));
    w.hex("contextid", c.context_id.has_value(), c.context_id.value_or(0));
    w.address("target", l.target.has_value(), l.target.value_or(Address{}).value);
}

/// The columns of a listing of flow. JSON has some of them in another order, and sentences as well.
template <class Row>
WM_INLINE void write_row(Row out, const FlowLine& l) {
    constexpr bool json = Row::json;
    const bool range = l.block != nullptr;
    out.same(0, [&](auto& w) {
        static constexpr flow::Block none{};
        const flow::Block& b = range ? *l.block : none;
        w.always("source", l.source);
        if constexpr (json) w.always("buffer", l.buffer);
        w.word("element", true, l.element);
        if constexpr (json) w.offset("offset", l.offset);
        w.address("start", l.start.has_value(), l.start.value_or(Address{}).value);
        w.address("end", l.end.has_value(), l.end.value_or(Address{}).value);
        w.number("instructions", l.end.has_value(), l.instructions);
        w.word("isa", range, isa::name(b.isa));
        w.nullable("atom", range, l.atom);
        w.word("branch", range, flow::branch_name(b));
        w.flag("link", range, (b.flags & flow::Block::link) != 0);
        w.flag("conditional", range, (b.flags & flow::Block::conditional) != 0);
    });
    out.number("cycles", l.cycles.has_value(), l.cycles.value_or(0));
    out.text("detail", true, l.detail);
    if constexpr (json) {
        out.text("symbol", true, l.symbol);
        if (range)
            out.always("context", l.context);
        else
            out.always("text", l.sentence);
        write_state(out, l);
    } else {
        out.offset("offset", l.offset);
        out.word("context", true, l.context);
        out.same(1, [&](auto& w) {
            w.text("symbol", true, l.symbol);
            w.text("buffer", true, l.buffer);
            write_state(w, l);
        });
    }
    out.end();
}

/// The cells that are equal for every execution of a block with one outcome.
class SameCells {
public:
    [[nodiscard]] WM_INLINE char* put(std::size_t part, char* at) const {
        const std::string& text = parts_[part];
        if (text.empty()) [[unlikely]]
            return nullptr;
        return std::copy(text.begin(), text.end(), at);
    }
    void remember(std::size_t part, std::string_view written) {
        constexpr std::size_t most = 2048;
        if (written.size() <= most) parts_[part] = written;
    }
    [[nodiscard]] WM_INLINE bool whole() const { return !parts_[0].empty() && !parts_[1].empty(); }

private:
    std::array<std::string, 2> parts_;  // by outcome; empty: not yet written
};

class Listing : public flow::Sink {
public:
    Listing(TextSink& out, const pipeline::StreamInfo& stream)
        : out_(out), stream_(stream), source_(stream.source.id_text()) {}

    void consume(const flow::Batch& batch) override {
        begin();
        flow::in_order(
            batch,
            [&](const flow::Block& block, const flow::Range& range) {
                show(block, range, stream_.offsets.capture(batch.base + range.offset).value);
            },
            [&](const flow::Event& event) {
                if (const auto* now = std::get_if<flow::Context>(&event.what)) enter(*now);
                show(describe(event.what, stream_), stream_.offsets.capture(event.offset).value);
            });
    }

protected:
    virtual void begin() {}
    virtual void enter(const flow::Context& context) { now_ = context; }
    virtual void show(const flow::Block& block, const flow::Range& range, std::uint64_t offset) = 0;
    virtual void show(const EventText& event, std::uint64_t offset) = 0;

    /// The symbol of an address in code of the same file as this block.
    [[nodiscard]] std::string symbol(std::uint64_t address, const flow::Block& of) const {
        return stream_.source.names->symbols.text({address - shift(of)});
    }
    /// Distance from the block's address to the address of its names and code in the file.
    [[nodiscard]] std::uint64_t shift(const flow::Block& block) const {
        return stream_.source.code ? stream_.source.code->placed(block.section).shift : 0;
    }

    [[nodiscard]] FlowLine line_of(const flow::Block& b, const flow::Range& range, std::uint64_t offset) const {
        return {.source = source_,
                .buffer = stream_.buffer.name,
                .element = "range",
                .offset = offset,
                .start = Address{b.start},
                .end = Address{b.start + b.bytes},
                .instructions = b.instructions,
                .block = &b,
                .atom = atom(b, range),
                .cycles = known_cycles(range.cycles)};
    }
    [[nodiscard]] FlowLine line_of(const EventText& e, std::uint64_t offset) const {
        return {.source = source_,
                .buffer = stream_.buffer.name,
                .element = e.element,
                .offset = offset,
                .start = e.start,
                .end = e.end,
                .instructions = e.instructions,
                .cycles = e.cycles,
                .detail = e.detail,
                .sentence = e.sentence,
                .changed_to = e.context,
                .el = e.context != nullptr ? e.context->el : e.el,
                .target = e.target};
    }
    [[nodiscard]] std::string context_now() const { return now_ ? context_text(*now_, stream_.source) : std::string(); }

    TextSink& out_;
    const pipeline::StreamInfo stream_;
    const std::string source_;
    std::optional<flow::Context> now_;  // nullopt: not yet known
};

class TextListing final : public Listing {
public:
    TextListing(TextSink& out, const pipeline::StreamInfo& stream, bool disassemble, const pipeline::Source*& last)
        : Listing(out, stream), disassemble_(disassemble), last_source_(last) {}

private:
    void begin() override {
        if (last_source_ == &stream_.source) return;
        if (last_source_ != nullptr) out_.write("\n");
        put_line(out_, "# {}", source_title(stream_));
        put_line(out_, "# {:>8}  {:<19} {:>6}  {:<4} {:<1}  {:<18} {:>7}  symbol -> branch target", "offset", "from-to",
                 "instrs", "isa", "", "ends in", "cycles");
        last_source_ = &stream_.source;
    }
    void show(const flow::Block& b, const flow::Range& range, std::uint64_t offset) override {
        std::string to;
        if (b.end == flow::End::direct && range.taken()) {
            const std::string name = symbol(b.target, b);
            to = name.empty() ? fmt::format("-> {:#010x}", b.target) : fmt::format("-> {}", name);
        }
        const std::string name = symbol(b.start, b);
        put_line(out_, "{}",
                 trimmed(fmt::format("{:>#10x}  {:#010x}-{:08x} {:>6}  {:<4} {:<1}  {:<18} {:>7}  {}{}{}", offset,
                                     b.start, static_cast<std::uint32_t>(b.start + b.bytes), b.instructions,
                                     isa::name(b.isa), atom(b, range), kind(b),
                                     range.cycles == flow::no_cycles ? "" : std::to_string(range.cycles), name,
                                     name.empty() || to.empty() ? "" : " ", to)));
        if (disassemble_) disassemble(b);
    }
    void show(const EventText& event, std::uint64_t offset) override {
        put_line(out_, "{:>#10x}  {}{}", offset, event.sentence,
                 event.cycles ? fmt::format(" ({})", counted(*event.cycles, "cycle")) : std::string());
    }
    void disassemble(const flow::Block& block) {
        const isa::Space space = now_.value_or(flow::Context{}).space();
        for (const std::string& line :
             disassembler_.lines(*stream_.source.memory, space, block.start - shift(block), block.bytes, block.isa))
            put_line(out_, "{:12}{}", "", line);
    }

    image::Disassembler disassembler_;
    const bool disassemble_;
    const pipeline::Source*& last_source_;  // source of the last heading
};

class TsvListing final : public Listing {
public:
    TsvListing(TextSink& out, const pipeline::StreamInfo& stream)
        : Listing(out, stream), shared_(std::make_shared<Shared>()) {}

    void consume(const flow::Batch& batch) override {
        if (rows_.empty()) rows_ = shared_->borrow();
        Listing::consume(batch);
        if (fork_) return;
        out_.write(text_.view());
        text_.clear();
    }

    [[nodiscard]] flow::Split split() const override { return flow::Split::per_chunk; }
    [[nodiscard]] std::unique_ptr<flow::Sink> fork() const override {
        auto fork = std::make_unique<TsvListing>(out_, stream_);
        fork->shared_ = shared_;
        fork->fork_ = true;
        return fork;
    }
    void begin_at(const flow::Context& context) override { enter(context); }
    void join(flow::Sink& sink) override {
        auto& fork = static_cast<TsvListing&>(sink);
        out_.write(fork.text_.view());
        if (fork.now_) enter(*fork.now_);
        if (!fork.rows_.empty()) shared_->give_back(std::move(fork.rows_));
    }

private:
    using Rows = std::vector<SameCells>;  // by edge
    /// State that forks pass on to one another.
    class Shared {
    public:
        Rows borrow() {
            const std::scoped_lock lock(mutex_);
            if (rows_.empty()) return Rows(2);
            Rows rows = std::move(rows_.back());
            rows_.pop_back();
            return rows;
        }
        void give_back(Rows rows) {
            const std::scoped_lock lock(mutex_);
            rows_.push_back(std::move(rows));
        }

    private:
        std::mutex mutex_;
        std::vector<Rows> rows_;
    };

    void enter(const flow::Context& context) override {
        now_ = context;
        context_text_ = context_text(context, stream_.source);
    }
    void show(const flow::Block& b, const flow::Range& range, std::uint64_t offset) override {
        if (range.edge >= rows_.size()) rows_.resize(std::max<std::size_t>(range.edge + 1, 2 * rows_.size()));
        FlowLine line = line_of(b, range, offset);
        line.context = context_text_;
        SameCells& same = rows_[range.edge];
        std::string name;
        if (!same.whole()) line.symbol = name = symbol(b.start, b);
        write_row(TsvRow(text_, nullptr, same), line);
    }
    void show(const EventText& e, std::uint64_t offset) override {
        FlowLine line = line_of(e, offset);
        line.context = context_text_;
        NoSame none;
        write_row(TsvRow(text_, nullptr, none), line);
    }

    std::shared_ptr<Shared> shared_;
    bool fork_ = false;
    Rows rows_;
    std::string context_text_;
    RowText text_;
};

class JsonListing final : public Listing {
public:
    JsonListing(TextSink& out, const pipeline::StreamInfo& stream) : Listing(out, stream) {}

private:
    void show(const flow::Block& b, const flow::Range& range, std::uint64_t offset) override {
        const std::string name = symbol(b.start, b), context = context_now();
        FlowLine line = line_of(b, range, offset);
        line.symbol = name;
        line.context = context;
        write(line);
    }
    void show(const EventText& e, std::uint64_t offset) override { write(line_of(e, offset)); }
    void write(const FlowLine& line) {
        NoSame none;
        text_.clear();
        write_row(JsonRow(text_, none), line);
        out_.write(text_.view());
    }

    RowText text_;
};

}  // namespace

FlowListing::FlowListing(TextSink& out, LineFormat format, bool disassemble)
    : out_(out), format_(format), disassemble_(disassemble) {
    if (format == LineFormat::tsv) put_header(out, [](HeaderRow row) { write_row(row, FlowLine{}); });
}

std::unique_ptr<flow::Sink> FlowListing::of(const pipeline::StreamInfo& stream) {
    switch (format_) {
        case LineFormat::tsv: return std::make_unique<TsvListing>(out_, stream);
        case LineFormat::json: return std::make_unique<JsonListing>(out_, stream);
        case LineFormat::text: break;
    }
    return std::make_unique<TextListing>(out_, stream, disassemble_, last_source_);
}

}  // namespace waymark::listing
