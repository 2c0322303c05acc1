#include "waymark/record/modules.h"

#include <algorithm>
#include <map>
#include <utility>

#include "waymark/record/mapped_file.h"

namespace waymark::record {

namespace {

/// Two pieces with the same distance in memory and in the file: parts of one mapping.
bool same_mapping(const capture::Module& a, const capture::Module& b) {
    return a.file == b.file && a.build_id == b.build_id &&
           (a.file.empty() ? a.address == b.address : a.address.value - a.offset == b.address.value - b.offset);
}

bool touch(const capture::Module& a, const capture::Module& b) {
    return a.address.value <= b.address.value + b.bytes && b.address.value <= a.address.value + a.bytes;
}

/// Extends `a` to include `b`.
void extend(capture::Module& a, const capture::Module& b) {
    const std::uint64_t end = std::max(a.address.value + a.bytes, b.address.value + b.bytes);
    if (b.address < a.address) {
        a.address = b.address;
        a.offset = b.offset;
    }
    a.bytes = end - a.address.value;
}

}  // namespace

/// A file name may refer to another file later; the inode distinguishes them.
struct Modules::Files {
    const MappedFile& of(const MapPart& part, std::string_view name) {
        const auto [at, fresh] = known.try_emplace({std::string(name), part.inode});
        if (fresh && !name.empty()) at->second = read_mapped_file(at->first.first);
        return at->second;
    }
    std::map<std::pair<std::string, std::uint64_t>, MappedFile> known;
};

void Modules::mapped(const MapPart& part, std::string_view name, std::uint64_t time) {
    if (!files_) files_ = std::make_shared<Files>();
    const MappedFile& file = files_->of(part, name);
    for (const MappedPiece& piece : executable_pieces(file, part)) {
        capture::Module fresh;
        fresh.address = Address{piece.address};
        fresh.bytes = piece.bytes;
        // Memory without a file has no offset.
        fresh.offset = name.empty() ? 0 : piece.file_offset;
        fresh.file = name;
        fresh.build_id = file.build_id;
        if (fresh.bytes == 0) continue;
        const auto known = std::find_if(held_.rbegin(), held_.rend(), [&](const Held& h) {
            return h.there && same_mapping(h.module, fresh) && touch(h.module, fresh);
        });
        for (Held& h : held_)
            if (h.there && h.module.overlaps(fresh) && !same_mapping(h.module, fresh)) h.there = false;
        if (known != held_.rend())
            extend(known->module, fresh);
        else
            held_.push_back({std::move(fresh), {{time, std::nullopt}}});
    }
}

void Modules::unmapped(const UnmapPart& part, std::uint64_t time) {
    for (Held& h : held_) {
        capture::Module& m = h.module;
        if (!h.there || m.address.value < part.address ||
            m.address.value + m.bytes > part.address + ((part.bytes + page_bytes - 1) & ~std::uint64_t{page_bytes - 1}))
            continue;
        h.there = false;
        h.unmapped_by = part.number;
        h.ended_by_it = !h.times.back().to;
        if (h.ended_by_it) h.times.back().to = time;
    }
}

void Modules::still_mapped(const StillMappedPart& part) {
    for (Held& h : held_) {
        if (h.there || part.number == 0 || h.unmapped_by != part.number) continue;
        // This applies unless another file was mapped there meanwhile.
        const bool replaced = std::any_of(held_.begin(), held_.end(), [&](const Held& other) {
            return other.there && other.module.overlaps(h.module) && !same_mapping(other.module, h.module);
        });
        if (replaced) continue;
        h.there = true;
        if (h.ended_by_it) h.times.back().to.reset();
    }
}

std::uint32_t Modules::at(Address address) const {
    for (std::size_t i = held_.size(); i-- > 0;)
        if (held_[i].there && held_[i].module.holds(address)) return static_cast<std::uint32_t>(i);
    return none;
}

bool Modules::conflicts(std::uint32_t module) const {
    if (module >= held_.size() || held_[module].ran_in_epoch) return false;
    return std::any_of(held_.begin(), held_.end(), [&](const Held& h) {
        return &h != &held_[module] && h.ran_in_epoch && h.module.overlaps(held_[module].module) &&
               !same_mapping(h.module, held_[module].module);
    });
}

void Modules::run(std::uint32_t module, std::uint64_t time) {
    if (module >= held_.size()) return;
    Held& mine = held_[module];
    if (mine.ran_in_epoch) {
        // An unmapping is reported before the code that ran until then.
        if (auto& to = mine.times.back().to; to && *to <= time) to = time + 1;
        return;
    }
    // A mapping of another file at this place was replaced before this code could run.
    bool replaced = false;
    for (Held& h : held_) {
        if (&h == &mine || !h.ran || !h.module.overlaps(mine.module) || same_mapping(h.module, mine.module)) continue;
        replaced = true;
        if (!h.times.back().to || *h.times.back().to > time) h.times.back().to = std::max(time, h.times.back().from);
    }
    Time& last = mine.times.back();
    if (replaced && mine.ran && last.to)
        mine.times.push_back({time, std::nullopt});
    else if (replaced && !mine.ran)
        last = {time, std::nullopt};
    else if (mine.there)
        last.to.reset();
    else if (last.to && *last.to <= time)
        last.to = time + 1;  // an unmapping is reported before the code that ran until then
    mine.ran = mine.ran_in_epoch = true;
}

void Modules::new_epoch() {
    for (Held& h : held_) h.ran_in_epoch = false;
}

void Modules::ran_unrecorded(std::uint32_t module) {
    if (module < held_.size()) held_[module].ran_unrecorded = true;
}

bool Modules::unrecorded_moved() const {
    return std::any_of(held_.begin(), held_.end(), [&](const Held& ran) {
        if (!ran.ran_unrecorded) return false;
        return !ran.there || std::any_of(held_.begin(), held_.end(), [&](const Held& other) {
            return !ran.module.file.empty() && other.module.file == ran.module.file &&
                   !same_mapping(other.module, ran.module);
        });
    });
}

void Modules::source_began(const std::string& source, std::uint32_t thread, std::uint64_t time) {
    sources_.push_back({source, time, std::nullopt});
    threads_.push_back({thread, source});
}

void Modules::source_ended(const std::string& source, std::uint64_t time) {
    const auto found = std::find_if(sources_.rbegin(), sources_.rend(),
                                    [&](const capture::TracedTime& t) { return t.source == source; });
    if (found != sources_.rend()) found->to = time;
}

capture::ModuleMap Modules::map() const {
    capture::ModuleMap out;
    out.clock = capture::instructions_clock;
    out.sources = sources_;
    out.threads = threads_;
    for (const Held& h : held_) {
        if (!h.ran) continue;
        for (const Time& time : h.times) {
            capture::Module& m = out.modules.emplace_back(h.module);
            m.from = time.from;
            m.to = time.to;
        }
    }
    std::stable_sort(out.modules.begin(), out.modules.end(),
                     [](const capture::Module& a, const capture::Module& b) { return a.from < b.from; });
    return out;
}

}  // namespace waymark::record
