#include "waymark/dpu/nexus_decoder.h"

#include <utility>

#include "element_builder.h"
#include "waymark/dpu/nexus.h"

namespace waymark::dpu::nexus {

/// Converts messages to the original entries, and these to elements.
class Decoder::Machine {
public:
    Machine(std::optional<TraceMode> mode, bool shows_did, ElementSink& out, const StartState& start)
        : mode_(mode), shows_did_(shows_did), builder_(out, start), parser_(*this) {
        if (start.counters) values_ = *start.counters;
        if (start.context) context_ = *start.context;
    }

    void feed(Bytes bytes) { parser_.feed(bytes); }
    void finish() {
        parser_.finish();
        settle();
        builder_.flush();
    }
    const Totals& totals() {
        builder_.totals().bytes = parser_.offset().value;
        return builder_.totals();
    }

    void operator()(const Message& message, const wire::Extent& at) {
        const EntryExtent place{at.first, at.bytes};
        const auto meaning = reader_.read(message);
        // A message with only the place of flow belongs to the pair after it.
        if (!meaning) return;
        if (meaning->kind != Meaning::Kind::owner && meaning->kind != Meaning::Kind::branch &&
            meaning->kind != Meaning::Kind::repeat)
            settle();
        if (std::exchange(stopped_, false)) builder_(Pad{}, place);  // tracing continues: it was held, or enabled again
        switch (meaning->kind) {
            case Meaning::Kind::owner: return owner(Process::of(meaning->value), place);
            case Meaning::Kind::branch: return branch(*meaning, place);
            case Meaning::Kind::pc:
                if (mode_ == TraceMode::eonce_comp) return builder_(CompressedPc{meaning->to, context_}, place);
                return builder_(RawPc{meaning->to, {}}, place);
            case Meaning::Kind::counters: return counters(*meaning, place);
            case Meaning::Kind::loop: return builder_(LongLoop{context_.id, meaning->from, meaning->value}, place);
            case Meaning::Kind::repeat:
                if (pending_ && pending_->loop)
                    pending_->reps += meaning->value;
                else
                    settle();
                return;
            case Meaning::Kind::user_data:
                if (meaning->tag == Tag::user_raw) return builder_(UserRaw{meaning->value}, place);
                return builder_(UserData{context_, meaning->value}, place);
            case Meaning::Kind::watchpoint: return;
            case Meaning::Kind::lost:
                // No entry contains watchpoints.
                if (meaning->value == ErrorMessage::watchpoint) return;
                return builder_(GapEntry{1}, place);
            case Meaning::Kind::disabled: stopped_ = true; return;
            case Meaning::Kind::unknown: return;
        }
    }
    void operator()(const Gap& gap) {
        settle();
        builder_(gap);
        values_.reset();
    }

private:
    /// A change of flow or a sample, until it is known whether more messages belong to it.
    struct Pending {
        EntryExtent at;
        bool read = false, change = false, loop = false;
        Counters values{};
        std::uint32_t from{}, to{}, reps{};
    };

    [[nodiscard]] bool changes() const { return mode_ == TraceMode::task || mode_ == TraceMode::flow; }

    void owner(const Process& process, const EntryExtent& at) {
        const TaskContext context{process.supervisor, shows_did_ ? process.did : process.pid};
        const bool of_pair = pending_ && pending_->change && !pending_->loop;
        if (!of_pair) settle();
        context_ = context;
        // In these modes, the pairs themselves show their destination context.
        if (of_pair && (changes() || mode_ == TraceMode::eonce_comp)) return settle();
        settle();
        builder_(ContextEntry{context}, at);
    }

    void branch(const Meaning& meaning, const EntryExtent& at) {
        if (pending_ && pending_->read && !pending_->change && changes()) {
            pending_->change = true;
            pending_->from = meaning.from;
            pending_->to = meaning.to;
            pending_->at.bytes = at.end() - pending_->at.first;
            return;
        }
        settle();
        Pending next{at};
        next.change = true;
        next.from = meaning.from;
        next.to = meaning.to;
        next.loop = mode_ == TraceMode::eonce_comp && meaning.type == BranchType::hardware_loop;
        next.reps = 1;
        pending_ = next;
    }

    void counters(const Meaning& meaning, const EntryExtent& at) {
        Pending next{at};
        next.read = true;
        next.values = meaning.data;
        if (meaning.tag != Tag::first_counters)
            for (unsigned i = 0; i < counter_count; ++i)
                next.values[i] = ((values_ ? (*values_)[i] : 0) - meaning.data[i]) & counter_mask;
        values_ = next.values;
        pending_ = next;
        // Other modes read counters only at samples, so a pair after a sample is complete.
        if (!changes() || meaning.tag == Tag::sample_counters) settle();
    }

    void settle() {
        if (!pending_) return;
        const Pending p = *pending_;
        pending_.reset();
        if (p.read && !p.change) return builder_(Sample{context_, p.values}, p.at);
        if (p.read && mode_ == TraceMode::task) return builder_(TaskSwitch{p.from, p.to, p.values, context_}, p.at);
        if (p.read) return builder_(Flow{p.from, p.to, p.values, context_}, p.at);
        if (p.loop) return builder_(LongLoop{context_.id, p.from, p.reps}, p.at);
        if (mode_ == TraceMode::eonce_comp) return builder_(CompressedFlow{p.from, p.to, context_}, p.at);
        builder_(RawPair{p.from, p.to, {}}, p.at);
    }

    std::optional<TraceMode> mode_;
    bool shows_did_;
    ElementBuilder builder_;
    Parser<Machine> parser_;
    Reader reader_;
    std::optional<Counters> values_;
    std::optional<Pending> pending_;
    TaskContext context_;
    bool stopped_ = false;
};

Decoder::Decoder(std::optional<TraceMode> mode, bool shows_did, ElementSink& out, const StartState& start)
    : machine_(std::make_unique<Machine>(mode, shows_did, out, start)) {}
Decoder::~Decoder() = default;
void Decoder::feed(Bytes bytes) { machine_->feed(bytes); }
void Decoder::finish() { machine_->finish(); }
const Totals& Decoder::totals() { return machine_->totals(); }

}  // namespace waymark::dpu::nexus
