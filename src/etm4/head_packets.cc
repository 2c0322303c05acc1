#include "head_packets.h"

#include <algorithm>

namespace waymark::etm4 {

namespace seen = follow::seen;

// ---- speculation

/// A packet changes the depth d to min(d + added - commit, most) - cancel (section 8: elements are added, those that
/// exceed the maximum are committed, then the packet's effects apply).
bool SpeculationDepth::solve(std::uint64_t least, std::uint64_t most) {
    const auto maximum = static_cast<std::int64_t>(std::min<std::uint64_t>(most_, std::uint64_t{1} << 40));
    auto low = static_cast<std::int64_t>(least), high = std::min(static_cast<std::int64_t>(most), maximum);
    for (auto p = packets_.rbegin(); p != packets_.rend(); ++p) {
        const auto added = static_cast<std::int64_t>(p->added), commit = static_cast<std::int64_t>(p->commit),
                   cancel = static_cast<std::int64_t>(p->cancel);
        low += cancel;
        high += cancel;
        if (low > maximum) return false;
        // All depths that exceed the maximum become the maximum.
        high = high >= maximum ? maximum : std::min(maximum, high - added + commit);
        low = std::max(low - added + commit, std::max<std::int64_t>(0, commit - added));
        if (low > high) return false;
        p->depth = static_cast<std::uint64_t>(high);
    }
    return true;
}

std::uint64_t SpeculationDepth::before(Offset at) const {
    const auto found = std::lower_bound(packets_.begin(), packets_.end(), at,
                                        [](const One& p, Offset offset) { return p.at < offset; });
    return found == packets_.end() ? 0 : found->depth;
}

// ---- elements → observations

std::vector<HeadPackets::Entry> HeadPackets::committed() {
    std::vector<Entry> out;
    const auto take = [&]<class What>(Offset at, What&& what) {
        // Assembler adds no packed elements.
        if constexpr (std::is_constructible_v<decltype(Entry::what), What>)
            out.push_back({at, std::forward<What>(what)});
    };
    // The number of the newest elements that the loss discarded is unknown: it is at most the number of elements that
    // can wait.
    if (lost_) (void)queue_.waiting.cancel(config_.max_speculation);
    (void)queue_.waiting.commit(queue_.waiting.depth());
    queue_.waiting.settle(take);
    return out;
}

std::optional<bool> HeadPackets::width_from(const std::vector<Entry>& entries, std::size_t i) {
    for (++i; i < entries.size(); ++i) {
        const auto* item = std::get_if<Item>(&entries[i].what);
        if (item == nullptr) return {};
        const auto* element = std::get_if<Element>(&item->what);
        if (element == nullptr) continue;
        if (const auto* context = std::get_if<element::Context>(element)) return context->fields.sf;
        const bool passes = std::holds_alternative<element::Timestamp>(*element) ||
                            std::holds_alternative<element::CycleCount>(*element);
        if (!passes) return {};
    }
    return {};
}

std::vector<follow::Observation> HeadPackets::observations() {
    const std::vector<Entry> entries = committed();
    std::vector<char> owned(sent_.size() + 1);
    for (const Entry& e : entries)
        if (const auto* item = std::get_if<Item>(&e.what);
            item != nullptr && std::holds_alternative<Element>(item->what))
            owned[item->owner] = 1;

    std::vector<follow::Observation> out;
    std::optional<bool> a64;
    // An address before any executed code may belong to an exception that the head no longer contains.
    bool began = false;
    const auto observe = [&](Offset at, follow::Observed what) { out.push_back({at, std::move(what)}); };
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const Offset at = entries[i].at;
        if (const auto* atoms = std::get_if<follow::Outcomes>(&entries[i].what)) {
            began = true;
            observe(at, seen::Outcomes{atoms->e, atoms->count});
            continue;
        }
        const Item& item = std::get<Item>(entries[i].what);
        if (const auto* name = std::get_if<Name>(&item.what)) {
            if (owned[item.owner] == 0) observe(at, seen::Named{name->sent});
            continue;
        }
        const Element& element = std::get<Element>(item.what);
        const auto sent = [&]() {
            follow::SentPlace place = sent_[item.owner - 1];
            place.a64 = a64;
            return place;
        };
        if (const auto* context = std::get_if<element::Context>(&element)) {
            a64 = context->fields.sf;
            observe(at, seen::Width{*a64});
        } else if (std::holds_alternative<element::Address>(element)) {
            if (const auto next = width_from(entries, i)) a64 = next;
            began ? observe(at, seen::Arrival{sent()}) : observe(at, seen::Named{sent()});
        } else if (std::holds_alternative<element::TraceOn>(element)) {
            began = true;
            a64 || width_from(entries, i) ? observe(at, seen::Restart{}) : observe(at, seen::Departed{});
        } else if (const auto* exception = std::get_if<element::Exception>(&element)) {
            began = true;
            if (exception->context) a64 = exception->context->sf;
            if (!exception->address) {
                observe(at, seen::Departed{});
            } else if (config_.profile == CoreProfile::m && exception->address->address.value == no_return_address) {
                observe(at, seen::Named{sent()});
                observe(at, seen::Departed{});
            } else {
                observe(at, seen::Interrupted{sent(), exception->at_branch_target});
            }
        } else if (std::holds_alternative<element::Q>(element)) {
            began = true;
            observe(at, seen::Untraced{});
        } else if (std::holds_alternative<element::SourceAddress>(element)) {
            began = true;
            observe(at, seen::Source{sent()});
        } else if (const auto* mark = std::get_if<element::Mark>(&element);
                   mark != nullptr && mark->mark.kind == flow::Mark::Kind::transaction_failed) {
            observe(at, seen::Departed{});
        } else {
            observe(at, seen::Nothing{});
        }
    }
    return out;
}

}  // namespace waymark::etm4
