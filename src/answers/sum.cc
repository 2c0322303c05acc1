// Addition of answers is commutative and associative, so nothing here may depend on the order of the inputs: rows are
// matched and sorted by keys, numbers are added, and everything else is chosen by value.
#include "waymark/answers/sum.h"

#include <map>
#include <string_view>
#include <utility>

#include "merge_code.h"
#include "merge_names.h"
#include "merge_timeline.h"
#include "merge_words.h"
#include "waymark/answers/parts.h"

namespace waymark::answers {

class AnswersSum::State {
public:
    void add(Answers& a) {
        take_text(out_.unit, a.unit);
        const std::size_t first = names_.first_metric();
        // Words and timelines use the functions of `a` as they are.
        words_.add(a);
        add_parts(a);
        const RowMover::Maps maps = names_.add(a);
        if (names_.first_metric() != first) code_.another_metric_is_first(first);
        timelines_.add(a, maps);
        code_.add(a, maps);
        add_rest(a, maps);
    }
    Answers take() {
        code_.finish_seen();
        const RowMover::Maps maps = names_.finish(out_);
        code_.finish(out_, maps);
        timelines_.finish(out_, maps);
        for (auto& [key, part] : parts_) out_.parts.push_back(part);
        out_.capture = out_.parts.size() == 1 ? out_.parts.front().capture : std::to_string(captures_) + " captures";
        out_.exceptions = exceptions_.take();
        out_.levels = levels_.take();
        account_for_functions();
        RowMover mover(maps);
        for (LevelRow& level : out_.levels) schema::fields(mover, level);
        words_.finish(out_, code_.changed_images());
        return std::move(out_);
    }

private:
    void add_parts(const Answers& a) {
        const auto add_part = [&](const MergedPart& part) {
            const auto [at, fresh] = parts_.try_emplace({part.capture, part.trace_bytes}, part);
            if (!fresh) take_sum(at->second.times, part.times);
            take_sum(captures_, part.times);
        };
        if (a.parts.empty()) add_part({a.capture, 1, a.trace_bytes});
        for (const MergedPart& part : a.parts) add_part(part);
        take_sum(out_.trace_bytes, a.trace_bytes);
        out_.cut |= a.cut;
        waymark::answers::add(out_.account, a.account);
        take_most(out_.version, a.version);
        note_functions(a);
    }
    void add_rest(Answers& a, const RowMover::Maps& maps) {
        for (ExceptionRow& e : a.exceptions) {
            // Without a handler that returned there is no minimum.
            if (!e.has_times()) e.least = e.most = e.sum = 0;
            exceptions_.add({e.number, e.name, e.unit}, e, [](ExceptionRow& to, const ExceptionRow& x) {
                take_sum(to.times, x.times);
                take_sum(to.nested, x.nested);
                // Times count only exceptions with known times; if there are any, `returned` counts them too.
                if (to.has_times() && !x.has_times()) return;
                if (!to.has_times() && x.has_times()) {
                    to.returned = 0;
                    to.least = x.least;
                }
                to.least = std::min(to.least, x.least);
                to.most = std::max(to.most, x.most);
                take_sum(to.sum, x.sum);
                take_sum(to.returned, x.returned);
            });
        }
        RowMover mover(maps);
        for (LevelRow& l : a.levels) {
            schema::fields(mover, l);
            levels_.add({security_rank(l.security), l.security, l.level, l.state}, l,
                        [](LevelRow& to, const LevelRow& x) {
                            take_sum(to.entered, x.entered);
                            waymark::answers::add(to.costs, x.costs);
                        });
        }
    }
    /// If this input has no functions, but others have, records the functions that the sum lacks. Inputs that lack
    /// functions by themselves are complete.
    void note_functions(const Answers& a) {
        const bool was_noted = has_reason(a.account, AccountReason::no_functions);
        some_functions_ |= was_noted || !a.calls.empty() || !a.instructions.empty();
        if (was_noted || !has_only_ranges(a)) return;
        // The size is of the ranges: a sum may also have captures with neither functions nor ranges.
        std::uint64_t instructions = 0;
        for (const ImageRange& range : a.ranges)
            take_sum(instructions, saturating_product(range.instructions, range.times));
        waymark::answers::add(without_functions_,
                              {.reason = AccountReason::no_functions, .instructions = instructions});
    }
    /// Code that no input shows as executed may have run in the inputs without functions.
    void account_for_functions() {
        if (some_functions_) waymark::answers::add(out_.account, without_functions_);
        if (!has_reason(out_.account, AccountReason::no_functions)) return;
        for (AccountRow& row : out_.account)
            if (row.reason == AccountReason::no_functions)
                row.times = 1;  // a sum could not state the number of captures
        const auto doubt = [](Seen& seen) {
            if (seen == Seen::not_executed) seen = Seen::not_observed;
        };
        for (Instruction& i : out_.instructions) doubt(i.seen);
        for (Line& l : out_.lines) doubt(l.seen);
        for (Branch& b : out_.branches) {
            doubt(b.seen_taken);
            doubt(b.seen_not_taken);
        }
    }
    /// Secure states come first.
    static std::size_t security_rank(std::string_view security) {
        constexpr std::array<std::string_view, 4> order{"Secure", "Non-secure", "Root", "Realm"};
        return static_cast<std::size_t>(std::find(order.begin(), order.end(), security) - order.begin());
    }

    Answers out_;
    MergedNames names_;
    MergedCode code_{names_};
    MergedTimelines timelines_;
    MergedWords words_;
    Account without_functions_;
    bool some_functions_ = false;
    std::map<std::pair<std::string, std::uint64_t>, MergedPart> parts_;
    std::uint64_t captures_ = 0;
    RowsByKey<std::tuple<std::uint32_t, std::string, std::string>, ExceptionRow> exceptions_;
    RowsByKey<std::tuple<std::size_t, std::string, std::string, std::string>, LevelRow> levels_;
};

AnswersSum::AnswersSum() = default;
AnswersSum::AnswersSum(AnswersSum&&) noexcept = default;
AnswersSum& AnswersSum::operator=(AnswersSum&&) noexcept = default;
AnswersSum::~AnswersSum() = default;

void AnswersSum::add(Answers next) {
    if (!state_) state_ = std::make_unique<State>();
    state_->add(next);
}
bool AnswersSum::empty() const { return !state_; }
Answers AnswersSum::take() { return std::exchange(state_, nullptr)->take(); }

Answers merged(std::span<const Answers* const> all) {
    AnswersSum sum;
    for (const Answers* a : all) sum.add(*a);
    return sum.empty() ? Answers{} : sum.take();
}

void merge(Answers& into, const Answers& other) {
    AnswersSum sum;
    sum.add(std::move(into));
    sum.add(other);
    into = sum.take();
}

}  // namespace waymark::answers
