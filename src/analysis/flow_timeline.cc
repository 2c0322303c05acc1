#include "waymark/analysis/flow_timeline.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace waymark::analysis {

using namespace answers;

namespace {
constexpr std::uint64_t not_yet = std::numeric_limits<std::uint64_t>::max();  // the end of a piece that is still open
}  // namespace

/// Updates whether the window has begun or ended.
void FlowTimeline::look(const Work& now) {
    if (phase_ == Phase::before && now.instructions >= window_.begin) {
        phase_ = Phase::within;
        // Between two places where calls change, cycles are not known.
        begin_ = cycles_ && window_.begin != 0 ? at(now) : window_.begin;
    }
    if (phase_ == Phase::within && now.instructions >= window_.end) {
        phase_ = Phase::behind;
        end_ = cycles_ ? at(now) : window_.end;
    }
}

void FlowTimeline::begin_from(const Before& before) {
    for (const auto& context : before.tracks) {
        track_of_.try_emplace(context, static_cast<std::uint32_t>(tracks_.size()));
        tracks_.push_back(context);
    }
    anchors_ = before.anchors;
    if (!anchors_.empty()) last_ticks_ = anchors_.back().ticks;
}

void FlowTimeline::enter(const Work& now, std::uint32_t depth, FunctionId function) {
    regained(now);
    if (depth >= most_depth) return;
    leave(now, depth);
    if (phase_ == Phase::behind) return;
    if (pieces_.size() > most_slices_ + std::max<std::size_t>(most_slices_ / 4, 1)) coarsen();
    // The frames below were never reported.
    open_.resize(depth, nothing);
    open_.push_back(pieces_.size());
    pieces_.push_back({at(now), not_yet, function, track(), depth, 0});
}

void FlowTimeline::leave(const Work& now, std::uint32_t depth) {
    look(now);
    const std::uint64_t end = at(now);
    while (open_.size() > depth) {
        const std::size_t open = open_.back();
        open_.pop_back();
        if (open == nothing) continue;
        Piece& piece = pieces_[open];
        piece.end = end;
        piece.merged = piece.begin == end || phase_ == Phase::before || end == begin_ ? 0 : 1;
        // A piece that took no time, or ended before the window, had no callee inside the window. The next piece in the
        // list may belong to another track.
        if (piece.merged == 0 && open + 1 == pieces_.size()) pieces_.pop_back();
    }
}

void FlowTimeline::switch_to(const Work& now, std::optional<std::uint32_t> context_id) {
    leave(now, 0);
    context_ = context_id;
    track_.reset();
    note(at(now), TimelineMark::Kind::context, context_id.value_or(0));
}

void FlowTimeline::happened(const Work& now, const flow::Event& event) {
    look(now);
    if (const auto* gap = std::get_if<Gap>(&event.what)) {
        if (is_loss(gap->reason)) note(at(now), TimelineMark::Kind::gap, static_cast<std::uint32_t>(gap->reason));
    } else if (std::holds_alternative<flow::NoMemory>(event.what)) {
        // If the gap is still open, no new one begins.
        if (!gap_ || notes_[*gap_].number != no_image) note(at(now), TimelineMark::Kind::gap, no_image);
    } else if (const auto* on = std::get_if<flow::TraceOn>(&event.what)) {
        if (on->reason == flow::TraceOnReason::overflow && note(at(now), TimelineMark::Kind::overflow, 0)) {
            overflow_.reset();
            if (last_ticks_) {
                overflow_ = notes_.size() - 1;
                notes_.back().ticks_before = *last_ticks_;
            }
        }
    } else if (const auto* exception = std::get_if<flow::Exception>(&event.what)) {
        if (note(at(now), TimelineMark::Kind::exception, 0)) notes_.back().exception = exception->type;
    } else if (const auto* mark = std::get_if<flow::Mark>(&event.what)) {
        // Event 0 of an ETMv4 or ETE is the one that can be a trigger of the trace bus.
        if (mark->kind == flow::Mark::Kind::unit_events && (mark->value & 1U) != 0)
            note(at(now), TimelineMark::Kind::trigger, 0);
    } else if (std::holds_alternative<flow::Trigger>(event.what)) {
        note(at(now), TimelineMark::Kind::trigger, 0);
    } else if (const auto* t = std::get_if<flow::Timestamp>(&event.what); t != nullptr && t->known) {
        if (overflow_) {
            Note& overflow = notes_[*std::exchange(overflow_, std::nullopt)];
            overflow.ticks_after = t->value;
            overflow.bounded = t->value >= overflow.ticks_before;
        }
        last_ticks_ = t->value;
        // Only every n-th anchor is kept, but always the last one, so that the end is known.
        if (++skipped_ < every_ && anchors_.size() > 1) {
            anchors_.back() = {at(now), t->value};
            return;
        }
        skipped_ = 0;
        anchors_.push_back({at(now), t->value});
        if (anchors_.size() < most_anchors) return;
        every_ *= 2;
        for (std::size_t i = 0; i < anchors_.size() / 2; ++i) anchors_[i] = anchors_[2 * i];
        anchors_.resize(anchors_.size() / 2);
    }
}

void FlowTimeline::regained(const Work& now) {
    look(now);
    if (!gap_) return;
    notes_[*gap_].end = at(now);
    // A gap that ended before the window is removed.
    if (phase_ == Phase::before && *gap_ + 1 == notes_.size()) notes_.pop_back();
    gap_.reset();
}

void FlowTimeline::finish(const Work& now) {
    leave(now, 0);
    if (phase_ != Phase::behind) end_ = at(now);
    regained(now);
    if (!window_.is_all()) cut_pieces();
    if (pieces_.size() > most_slices_) coarsen();
    sort_pieces();
}

void FlowTimeline::cut_pieces() {
    std::erase_if(pieces_, [](const Piece& p) { return p.merged == 0; });
    for (Piece& p : pieces_) {
        p.begin = std::max(p.begin, begin_);
        p.end = std::min(p.end, end_);
    }
    for (Note& n : notes_) {
        n.at = std::max(n.at, begin_);
        n.end = std::min(n.end, end_);
    }
    if (phase_ != Phase::before) return;
    // The stream ended before the window.
    begin_ = end_;
    pieces_.clear();
    notes_.clear();
}

bool FlowTimeline::note(std::uint64_t at, TimelineMark::Kind kind, std::uint32_t number) {
    if (phase_ == Phase::behind) return false;
    if (phase_ == Phase::before) {
        // A gap may last until the window begins.
        if (kind != TimelineMark::Kind::gap) return false;
        if (gap_ && number != no_image) return false;
        notes_.clear();
        gap_.reset();
    }
    if (notes_.size() >= most_marks) {
        ++notes_left_out_;
        return false;
    }
    if (kind == TimelineMark::Kind::gap && (!gap_ || number == no_image)) {
        if (gap_) notes_[*gap_].end = at;
        gap_ = notes_.size();
    }
    notes_.push_back({.at = at, .end = at, .track = track(), .kind = kind, .number = number});
    return true;
}

std::uint32_t FlowTimeline::track() {
    if (track_) return *track_;
    const auto [found, fresh] = track_of_.try_emplace(context_, static_cast<std::uint32_t>(tracks_.size()));
    if (fresh) tracks_.push_back(context_);
    track_ = found->second;
    return *track_;
}

/// Pieces are made in order; only the pieces of several tracks have to be sorted. Pieces that took no time are left
/// out.
void FlowTimeline::sort_pieces() {
    if (tracks_.size() < 2) return;
    std::erase_if(pieces_, [](const Piece& p) { return p.merged == 0 && p.end != not_yet; });
    const auto before = [](const Piece& a, const Piece& b) {
        return std::tuple(a.track, a.begin, a.depth, b.end) < std::tuple(b.track, b.begin, b.depth, a.end);
    };
    if (!std::is_sorted(pieces_.begin(), pieces_.end(), before)) std::sort(pieces_.begin(), pieces_.end(), before);
}

/// Merges pieces until no more than the limit are left, or one for each track and depth. Pieces are not merged across
/// the beginning of a frame that is still open.
void FlowTimeline::coarsen() {
    sort_pieces();
    // Merge new pieces at the previous resolution first.
    if (resolution_ != 0) merge_pieces(pieces_, resolution_);
    std::uint64_t latest = 0;
    for (const Piece& p : pieces_)
        if (p.end != not_yet) latest = std::max(latest, p.end);
    while (pieces_.size() > most_slices_ + open_.size() && resolution_ <= latest) {
        resolution_ = std::max<std::uint64_t>(2 * resolution_, 2);
        merge_pieces(pieces_, resolution_);
    }
    for (std::size_t i = 0; i < pieces_.size(); ++i)
        if (pieces_[i].end == not_yet) open_[pieces_[i].depth] = i;
}

void merge_pieces(std::vector<FlowTimeline::Piece>& pieces, std::uint64_t resolution) {
    using Piece = FlowTimeline::Piece;
    std::size_t kept = 0;  // the first pieces, merged
    // By depth: the last piece kept, and the function that took most of its time.
    struct Last {
        std::size_t index = ~std::size_t{0};
        std::uint64_t most{};  // time of the function that gives the piece its name
    };
    std::vector<Last> last;
    std::uint32_t track = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const Piece p = pieces[i];
        if (p.track != track) last.clear();
        track = p.track;
        if (last.size() <= p.depth) last.resize(p.depth + 1);
        Last& at = last[p.depth];
        const std::uint64_t time = p.end - p.begin;
        // A deeper piece with another caller is not a neighbour.
        const bool neighbour = at.index != ~std::size_t{0} && time < resolution &&
                               pieces[at.index].end - pieces[at.index].begin < resolution &&
                               p.end > pieces[at.index].begin && p.end - pieces[at.index].begin <= resolution;
        if (neighbour) {
            Piece& into = pieces[at.index];
            into.end = std::max(into.end, p.end);
            into.merged += p.merged;
            if (time > at.most) {
                at.most = time;
                into.function = p.function;
            }
            continue;
        }
        at = {kept, time};
        pieces[kept++] = p;
        // Deeper pieces that follow belong to this one.
        last.resize(p.depth + 1);
    }
    pieces.resize(kept);
}

std::uint64_t TickMap::ticks(std::uint64_t at) const {
    if (anchors_.empty()) return at;
    // Outside of all timestamps, extrapolate from the two nearest.
    std::size_t i = static_cast<std::size_t>(
        std::upper_bound(anchors_.begin(), anchors_.end(), at,
                         [](std::uint64_t a, const FlowTimeline::Anchor& b) { return a < b.at; }) -
        anchors_.begin());
    if (anchors_.size() == 1) return anchors_.front().ticks;
    i = std::clamp<std::size_t>(i, 1, anchors_.size() - 1);
    // Several timestamps at one place give no rate.
    std::size_t low = i - 1, high = i;
    while (low > 0 && anchors_[low].at == anchors_[high].at) --low;
    while (high + 1 < anchors_.size() && anchors_[low].at == anchors_[high].at) ++high;
    const auto &a = anchors_[low], &b = anchors_[high];
    if (a.at == b.at || b.ticks < a.ticks) return a.ticks;
    const double pace = static_cast<double>(b.ticks - a.ticks) / static_cast<double>(b.at - a.at);
    if (at < a.at) {
        const auto back = static_cast<std::uint64_t>(static_cast<double>(a.at - at) * pace);
        return a.ticks - std::min(back, a.ticks);
    }
    if (at > b.at) {
        const double room = static_cast<double>(std::numeric_limits<std::uint64_t>::max() - b.ticks);
        const double on = static_cast<double>(at - b.at) * pace;
        return on < room ? b.ticks + static_cast<std::uint64_t>(on) : std::numeric_limits<std::uint64_t>::max();
    }
    return a.ticks + static_cast<std::uint64_t>(static_cast<double>(at - a.at) * pace);
}

void TickMap::add_intervals(std::vector<Interval>& out) const {
    for (std::size_t i = 1; i < anchors_.size(); ++i)
        if (anchors_[i].ticks > anchors_[i - 1].ticks)
            out.push_back({anchors_[i].ticks - anchors_[i - 1].ticks, anchors_[i].at - anchors_[i - 1].at});
}

TickMap::Uncertainty TickMap::uncertainty(std::vector<Interval> intervals) {
    std::sort(intervals.begin(), intervals.end(),
              [](const Interval& a, const Interval& b) { return a.ticks < b.ticks; });
    double all = 0;
    for (const Interval& i : intervals) all += static_cast<double>(i.passed);
    Uncertainty out;
    double so_far = 0;
    for (const Interval& i : intervals) {
        if (so_far < 0.95 * all) out.usual = i.ticks;
        so_far += static_cast<double>(i.passed);
        out.most = i.ticks;
    }
    return out;
}

}  // namespace waymark::analysis
