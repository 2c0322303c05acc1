#include "listing.h"

#include <fmt/compile.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <mutex>
#include <optional>
#include <type_traits>

#include "disassembly.h"
#include "trouble.h"
#include "waymark/core/utf8.h"
#include "waymark/flow/summary.h"

namespace waymark::cli {

namespace {

/// An event in the three ways it is shown.
struct EventText {
    std::string_view element;  ///< the name of section `element` in the tables
    std::string start;         ///< an address, where it has one
    std::string detail;        ///< for programs
    std::string sentence;      ///< for people
    std::uint32_t cycles = flow::no_cycles;
    std::string end{}, instructions{};  ///< of code whose way is not traced
};

std::string context_text(const flow::Context& c) {
    std::string out(name(c.security()));
    if (c.el) out += fmt::format(" EL{}", *c.el);
    if (c.hyp && !c.el) out += " HYP";
    if (c.context_id) out += fmt::format(" CID={:#x}", *c.context_id);
    if (c.vmid) out += fmt::format(" VMID={:#x}", *c.vmid);
    return out;
}

/// Whether flow is unknown after it.
bool resumes(flow::Conflict conflict) {
    using flow::Conflict;
    return conflict == Conflict::no_return_address || conflict == Conflict::undefined_reached ||
           conflict == Conflict::runaway_walk;
}

EventText describe_mark(const flow::Mark& mark) {
    using Kind = flow::Mark::Kind;
    const auto transaction = [](const char* detail, const char* sentence) {
        return EventText{"transaction", "", detail, sentence};
    };
    switch (mark.kind) {
        case Kind::unit_events: {
            std::string events;
            for (unsigned n = 0; n < 4; ++n)
                if ((mark.value >> n & 1U) != 0) events += fmt::format("{}{}", events.empty() ? "" : ", ", n);
            return {"event", "", fmt::format("{:#x}", mark.value), "event of the trace unit: " + events};
        }
        case Kind::timestamp_marker: return {"marker", "", "timestamp", "the place that the next timestamp belongs to"};
        case Kind::transaction_inside: return transaction("init", "tracing began inside a transaction");
        case Kind::transaction_started: return transaction("start", "transaction started");
        case Kind::transaction_committed: return transaction("commit", "transaction committed");
        case Kind::transaction_failed:
            return transaction("fail", "transaction failed: what ran since it started had no effect");
        case Kind::instrumentation:
            return {"instrumentation", "", fmt::format("{:#x}", mark.value),
                    fmt::format("the program sent {:#x} at EL{}", mark.value, mark.level)};
        case Kind::uncommitted:
            return {"uncommitted", "", fmt::format("{}", mark.value),
                    fmt::format("{} neither committed nor cancelled when the trace ended: left out",
                                counted(mark.value, "P0 element"))};
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
                    return {"no_sync", "", std::string(name(e.reason)),
                            "the frames break here; what follows does not continue what came before"};
                return {
                    "no_sync", "", fmt::format("{}, {} bytes", name(e.reason), e.bytes()),
                    fmt::format("gap: {} from {:#x} on: {}", counted(e.bytes(), "byte"), first.value, name(e.reason))};
            } else if constexpr (std::is_same_v<T, flow::TraceOn>) {
                return {"trace_on", "", std::string(name(e.reason)), fmt::format("trace on: {}", name(e.reason)),
                        e.cycles};
            } else if constexpr (std::is_same_v<T, flow::Context>) {
                return {"context", "", context_text(e), "context: " + context_text(e)};
            } else if constexpr (std::is_same_v<T, flow::Timestamp>) {
                if (!e.known)
                    return {"timestamp", "", fmt::format("{:#x} (high bits unknown)", e.value),
                            fmt::format("timestamp …{:x}: its high bits are not yet known", e.value), e.cycles};
                return {
                    "timestamp", "", fmt::format("{:#014x}", e.value),
                    fmt::format("timestamp {:#x}{}", e.value, e.frequency_changed ? ", clock frequency changed" : ""),
                    e.cycles};
            } else if constexpr (std::is_same_v<T, flow::Exception>) {
                std::string sentence = fmt::format("exception {}: {}", e.type->number, e.type->name);
                if (e.vector) sentence += ", to " + hex(*e.vector);
                if (e.preferred_return) sentence += ", return address " + hex(*e.preferred_return);
                return {"exception", e.preferred_return ? hex(*e.preferred_return) : "",
                        fmt::format("{:#04x}", e.type->number), std::move(sentence), e.cycles};
            } else if constexpr (std::is_same_v<T, flow::ExceptionReturn>) {
                return {"exception_return", "", "", "exception return"};
            } else if constexpr (std::is_same_v<T, flow::NoMemory>) {
                return {"no_memory", hex(e.address), "",
                        fmt::format("no image has an instruction at {}; flow resumes at the next traced address",
                                    hex(e.address))};
            } else if constexpr (std::is_same_v<T, flow::Trigger>) {
                return {"trigger", "", "", "trigger"};
            } else if constexpr (std::is_same_v<T, flow::Cycles>) {
                return {"cycles", "", "", e.of_flow ? "cycle count" : "flow unknown", e.cycles};
            } else if constexpr (std::is_same_v<T, flow::Atoms>) {
                return {
                    "atoms", "", fmt::format("{} E, {} N", e.taken, e.not_taken),
                    fmt::format("flow unknown: {} without an address, {} taken and {} not",
                                counted(e.taken + e.not_taken, "waypoint"), grouped(e.taken), grouped(e.not_taken))};
            } else if constexpr (std::is_same_v<T, flow::Reached>) {
                return {"reached", hex(e.address), "",
                        fmt::format("flow unknown: the instruction at {} was executed", hex(e.address))};
            } else if constexpr (std::is_same_v<T, flow::Untraced>) {
                return {"range_no_path",
                        e.from_known ? hex(e.from) : "",
                        "",
                        fmt::format("{} executed whose way is not traced; flow goes on at {}",
                                    counted(e.instructions, "instruction"), hex(e.to)),
                        flow::no_cycles,
                        hex(e.to),
                        std::to_string(e.instructions)};
            } else if constexpr (std::is_same_v<T, flow::Mark>) {
                return describe_mark(e);
            } else {
                static_assert(std::is_same_v<T, flow::Inconsistency>);
                return {"inconsistency", hex(e.found), std::string(name(e.conflict)),
                        fmt::format(
                            "contradiction: {}; {}", stream.source.protocol->sentence(e),
                            resumes(e.conflict) ? "flow resumes at the next traced address" : "the trace is believed")};
            }
        },
        what);
}

std::string_view branch_name(const flow::Block& b) {
    switch (b.end) {
        case flow::End::direct: return "direct";
        case flow::End::indirect: return "indirect";
        case flow::End::barrier:
            if ((b.flags & flow::Block::wait) != 0) return "wait";
            return (b.flags & flow::Block::transaction_start) != 0 ? "tstart" : "barrier";
        case flow::End::not_a_waypoint: break;
    }
    return "none";
}

/// Of the last instruction: E, N, or nothing where the trace does not show it.
std::string_view atom(const flow::Block& block, const flow::Range& range) {
    if (block.end == flow::End::not_a_waypoint) return "";
    return range.taken() ? "E" : "N";
}

/// What the last instruction of a block was, for people.
std::string_view kind(const flow::Block& b) {
    using flow::Block;
    if (b.end == flow::End::not_a_waypoint) return "(cut short)";
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

class Listing : public flow::Sink {
public:
    Listing(ListingContext& context, const pipeline::StreamInfo& stream) : context_(context), stream_(stream) {}

    void consume(const flow::Batch& batch) override {
        begin();
        flow::in_order(
            batch,
            [&](const flow::Block& block, const flow::Range& range) {
                show(block, range, stream_.offsets.capture(batch.base + range.offset).value);
            },
            [&](const flow::Event& event) {
                if (const auto* now = std::get_if<flow::Context>(&event.what)) now_ = *now;
                show(describe(event.what, stream_), stream_.offsets.capture(event.offset).value);
            });
    }

protected:
    virtual void begin() {}
    virtual void show(const flow::Block& block, const flow::Range& range, std::uint64_t offset) = 0;
    virtual void show(const EventText& event, std::uint64_t offset) = 0;

    [[nodiscard]] std::string symbol(std::uint64_t address) const {
        return stream_.source.names->symbols.text({address});
    }

    [[nodiscard]] std::string context_now() const { return now_ ? context_text(*now_) : std::string(); }

    ListingContext& context_;
    const pipeline::StreamInfo stream_;
    std::optional<flow::Context> now_;  // absent: not yet known
};

class TextListing final : public Listing {
public:
    TextListing(ListingContext& context, const pipeline::StreamInfo& stream) : Listing(context, stream) {}

private:
    void begin() override {
        if (context_.last_source == &stream_.source) return;
        if (context_.last_source != nullptr) context_.out.write("\n");
        context_.out.print("# source {} ({}{}{}), buffer {}\n", stream_.source.label(), stream_.source.type,
                           stream_.source.core_type.empty() ? "" : ", ", stream_.source.core_type, stream_.buffer.name);
        context_.out.print("# {:>8}  {:<19} {:>6}  {:<4} {:<1}  {:<18} {:>7}  symbol -> branch target\n", "offset",
                           "from-to", "instrs", "isa", "", "ends in", "cycles");
        context_.last_source = &stream_.source;
    }
    void show(const flow::Block& b, const flow::Range& range, std::uint64_t offset) override {
        std::string to;
        if (b.end == flow::End::direct && range.taken()) {
            const std::string name = symbol(b.target);
            to = name.empty() ? fmt::format("-> {:#010x}", b.target) : fmt::format("-> {}", name);
        }
        const std::string name = symbol(b.start);
        std::string line =
            fmt::format("{:>#10x}  {:#010x}-{:08x} {:>6}  {:<4} {:<1}  {:<18} {:>7}  {}{}{}", offset, b.start,
                        static_cast<std::uint32_t>(b.start + b.bytes), b.instructions, isa::name(b.isa), atom(b, range),
                        kind(b), range.cycles == flow::no_cycles ? "" : std::to_string(range.cycles), name,
                        name.empty() || to.empty() ? "" : " ", to);
        line.erase(line.find_last_not_of(' ') + 1);
        context_.out.print("{}\n", line);
        if (context_.disassemble) disassemble(b);
    }
    void show(const EventText& event, std::uint64_t offset) override {
        context_.out.print("{:>#10x}  {}{}\n", offset, event.sentence,
                           event.cycles == flow::no_cycles ? "" : fmt::format(" ({})", counted(event.cycles, "cycle")));
    }
    void disassemble(const flow::Block& block) {
        const isa::Space space = now_.value_or(flow::Context{}).space();
        for (const std::string& line : disassembler_.lines(*stream_.source.memory, space, block))
            context_.out.print("{:12}{}\n", "", line);
    }

    Disassembler disassembler_;
};

/// Rows of a block, all but what differs from one execution to the next; made once per block and outcome.
struct FlowRow {
    std::string head, tail;  // empty head: not yet made
};

class TsvListing final : public Listing {
public:
    TsvListing(ListingContext& context, const pipeline::StreamInfo& stream)
        : Listing(context, stream), source_(one_line(stream.source.id_text())), shared_(std::make_shared<Shared>()) {}

    void consume(const flow::Batch& batch) override {
        if (rows_.empty()) rows_ = shared_->borrow();
        flow::in_order(
            batch,
            [&](const flow::Block& block, const flow::Range& range) {
                show(row(block, range), range, stream_.offsets.capture(batch.base + range.offset).value);
            },
            [&](const flow::Event& event) {
                if (const auto* now = std::get_if<flow::Context>(&event.what)) enter(*now);
                show(describe(event.what, stream_), stream_.offsets.capture(event.offset).value);
            });
        if (fork_) return;
        context_.out.write({text_.data(), text_.size()});
        text_.clear();
    }

    [[nodiscard]] flow::Split split() const override { return flow::Split::per_chunk; }
    [[nodiscard]] std::unique_ptr<flow::Sink> fork() const override {
        auto fork = std::make_unique<TsvListing>(context_, stream_);
        fork->shared_ = shared_;
        fork->fork_ = true;
        return fork;
    }
    void begin_at(const flow::Context& context) override { enter(context); }
    void join(flow::Sink& sink) override {
        auto& fork = static_cast<TsvListing&>(sink);
        context_.out.write({fork.text_.data(), fork.text_.size()});
        if (fork.now_) enter(*fork.now_);
        if (!fork.rows_.empty()) shared_->give_back(std::move(fork.rows_));
    }

private:
    using Rows = std::vector<FlowRow>;  // by edge
    /// What forks hand on to one another.
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

    void enter(const flow::Context& context) {
        now_ = context;
        context_column_ = '\t' + context_text(context);
    }

    const FlowRow& row(const flow::Block& b, const flow::Range& range) {
        if (range.edge >= rows_.size()) rows_.resize(std::max<std::size_t>(range.edge + 1, 2 * rows_.size()));
        FlowRow& row = rows_[range.edge];
        if (row.head.empty()) [[unlikely]] {
            row.head = fmt::format("{}\trange\t{:#010x}\t{:#010x}\t{}\t{}\t{}\t{}\t{}\t{}\t", source_, b.start,
                                   b.start + b.bytes, b.instructions, isa::name(b.isa), atom(b, range), branch_name(b),
                                   (b.flags & flow::Block::link) != 0 ? 1 : 0,
                                   (b.flags & flow::Block::conditional) != 0 ? 1 : 0);
            row.tail = fmt::format("\t{}\t{}\n", one_line(symbol(b.start)), one_line(stream_.buffer.name));
        }
        return row;
    }
    void show(const FlowRow& row, const flow::Range& range, std::uint64_t offset) {
        append(row.head);
        if (range.cycles != flow::no_cycles) fmt::format_to(std::back_inserter(text_), FMT_COMPILE("{}"), range.cycles);
        append("\t\t");
        append_hex(offset);
        append(context_column_);
        append(row.tail);
    }
    void append_hex(std::uint64_t value) {
        std::array<char, 18> digits{'0', 'x'};
        const auto end = std::to_chars(digits.data() + 2, digits.data() + digits.size(), value, 16).ptr;
        append({digits.data(), static_cast<std::size_t>(end - digits.data())});
    }
    void append(std::string_view text) { text_.append(text.data(), text.data() + text.size()); }

    void show(const flow::Block&, const flow::Range&, std::uint64_t) override {}
    void show(const EventText& e, std::uint64_t offset) override {
        fmt::format_to(std::back_inserter(text_), "{}\t{}\t{}\t{}\t{}\t\t\t\t\t\t{}\t{}\t{:#x}{}\t\t{}\n", source_,
                       e.element, e.start, e.end, e.instructions,
                       e.cycles == flow::no_cycles ? "" : std::to_string(e.cycles), e.detail, offset, context_column_,
                       one_line(stream_.buffer.name));
    }

    const std::string source_;
    std::shared_ptr<Shared> shared_;
    bool fork_ = false;
    Rows rows_;
    std::string context_column_ = "\t";
    fmt::memory_buffer text_;
};

class JsonListing final : public Listing {
public:
    JsonListing(ListingContext& context, const pipeline::StreamInfo& stream)
        : Listing(context, stream),
          head_(fmt::format("{{\"source\":{},\"buffer\":{},\"element\":", json_string(stream.source.id_text()),
                            json_string(stream.buffer.name))) {}

private:
    void show(const flow::Block& b, const flow::Range& range, std::uint64_t offset) override {
        const std::string_view outcome = atom(b, range);
        context_.out.print(
            "{}\"range\",\"offset\":{},\"start\":\"{:#010x}\",\"end\":\"{:#010x}\",\"instructions\":{},\"isa\":\"{}\","
            "\"atom\":{},"
            "\"branch\":\"{}\",\"link\":{},\"conditional\":{}",
            head_, offset, b.start, b.start + b.bytes, b.instructions, isa::name(b.isa),
            outcome.empty() ? "null" : fmt::format("\"{}\"", outcome), branch_name(b),
            (b.flags & flow::Block::link) != 0, (b.flags & flow::Block::conditional) != 0);
        if (range.cycles != flow::no_cycles) context_.out.print(",\"cycles\":{}", range.cycles);
        if (const std::string name = symbol(b.start); !name.empty())
            context_.out.print(",\"symbol\":{}", json_string(name));
        context_.out.print(",\"context\":\"{}\"}}\n", context_now());
    }
    void show(const EventText& e, std::uint64_t offset) override {
        context_.out.print("{}\"{}\",\"offset\":{}", head_, e.element, offset);
        if (!e.start.empty()) context_.out.print(",\"start\":\"{}\"", e.start);
        if (!e.end.empty()) context_.out.print(",\"end\":\"{}\",\"instructions\":{}", e.end, e.instructions);
        if (e.cycles != flow::no_cycles) context_.out.print(",\"cycles\":{}", e.cycles);
        if (!e.detail.empty()) context_.out.print(",\"detail\":{}", json_string(e.detail));
        context_.out.print(",\"text\":{}}}\n", json_string(e.sentence));
    }
    const std::string head_;
};

}  // namespace

void begin_listing(ListingContext& context, Format format) {
    if (format == Format::tsv)
        context.out.write(
            "source\telement\tstart\tend\tinstructions\tisa\tatom\tbranch\tlink\tconditional\tcycles\tdetail\toffset\tc"
            "ontext\t"
            "symbol\tbuffer\n");
}

void say_types_not_found(const std::set<std::string>& asked, const std::set<std::string>& found, std::uint64_t all,
                         std::string_view one, std::string_view many) {
    std::vector<std::string> missing;
    std::set_difference(asked.begin(), asked.end(), found.begin(), found.end(), std::back_inserter(missing));
    if (!missing.empty())
        say("note", fmt::format("of {} none is of type {}", counted(all, one, many), fmt::join(missing, " or ")));
}

std::unique_ptr<flow::Sink> make_listing(ListingContext& context, const pipeline::StreamInfo& stream, Format format) {
    switch (format) {
        case Format::tsv: return std::make_unique<TsvListing>(context, stream);
        case Format::json: return std::make_unique<JsonListing>(context, stream);
        case Format::text: break;
    }
    return std::make_unique<TextListing>(context, stream);
}

}  // namespace waymark::cli
