#include "waymark/analysis/attribution.h"

#include <algorithm>

#include "waymark/analysis/key_index.h"

namespace waymark::analysis {

namespace perf = capture::perf;

Attribution::Attribution(const perf::PerfData& data)
    : data_(data), tasks_(data_), conversion_(data_.time_conversion.value_or(perf::TimeConversion{})) {
    for (const perf::Mapping& m : data_.mappings) {
        changes_.push_back(m.time);
        for (const std::uint64_t edge : {m.address.value, m.address.value + m.bytes})
            if (edge % (1U << page_bits) != 0) split_pages_.insert(edge >> page_bits);
    }
    for (const perf::TaskEvent& e : data_.tasks) changes_.push_back(e.time);
    for (const perf::Switch& s : data_.switches) changes_.push_back(s.time);
    std::sort(changes_.begin(), changes_.end());
    changes_.erase(std::unique(changes_.begin(), changes_.end()), changes_.end());
}

void Attribution::start(const perf::Stream& stream) {
    stream_ = &stream;
    from_ = 1;
    until_ = 0;  // no time lies between
}

Attribution::Answer Attribution::of(const spe::Columns& c, std::size_t i) {
    const auto has = [&](spe::Column column) { return (c.present[i] >> static_cast<unsigned>(column) & 1U) != 0; };
    // Without a clock to compare with, everything is taken to have been there all the time.
    time_ = has(spe::Column::timestamp) && conversion_.valid() ? conversion_.to_ns(c.timestamp[i]) : forever;
    if (time_ < from_ || time_ >= until_) enter(time_);

    Answer out;
    const bool el2 = has(spe::Column::context_el2), el1 = has(spe::Column::context_el1);
    if (el1 || el2) {
        out.tid = el2 ? c.context_el2[i] : c.context_el1[i];
        out.by_context = true;
        out.pid = known(out.tid).pid;
    } else if (stream_->tid != perf::nobody) {
        out.tid = stream_->tid;
        out.pid = known(out.tid).pid;
    } else {
        if (!running_known_) {
            running_ = tasks_.running(stream_->cpu, time_);
            running_known_ = true;
        }
        out.pid = running_.pid;
        out.tid = running_.tid;
    }
    if (!has(spe::Column::pc)) return out;
    const spe::ProgramAddress pc = spe::program_address(c.pc[i]);
    const std::uint32_t owner = pc.exception_level == 0 ? out.pid : perf::nobody;
    // A thread nobody knows runs in no known process; `nobody` would mean the kernel.
    if (pc.exception_level != 0 || out.pid != perf::nobody) out.mapping = mapping(owner, pc.address);
    return out;
}

std::string_view Attribution::name_of(const Answer& answer) {
    if (answer.tid == perf::nobody) return {};
    return answer.by_context || stream_->tid != perf::nobody ? known(answer.tid).name : running_.name;
}

void Attribution::enter(std::uint64_t time) {
    const auto next = std::upper_bound(changes_.begin(), changes_.end(), time);
    from_ = next == changes_.begin() ? 0 : *(next - 1);
    until_ = next == changes_.end() ? forever : *next;
    if (until_ == forever && time == forever) from_ = forever;
    // An epoch that comes round again must not be taken for an older one.
    if (++epoch_ == 0) {
        pages_.fill({});
        threads_.fill({});
        epoch_ = 1;
    }
    running_known_ = false;
}

const Attribution::Known& Attribution::known(std::uint32_t tid) {
    Known& known = threads_[tid % threads_.size()];
    if (known.epoch != epoch_ || known.tid != tid) {
        const perf::Tasks::Thread thread = tasks_.thread(tid, time_);
        known = {tid, epoch_, thread.pid, thread.name};
    }
    return known;
}

std::uint32_t Attribution::mapping(std::uint32_t pid, Address address) {
    const std::uint64_t number = address.value >> page_bits;
    Page& page = pages_[mix(number, pid) % pages_.size()];
    if (page.epoch == epoch_ && page.number == number && page.pid == pid) return page.mapping;
    const perf::Mapping* const found = tasks_.mapping(pid, address, time_);
    const std::uint32_t index = found == nullptr ? 0 : static_cast<std::uint32_t>(found - data_.mappings.data()) + 1;
    if (!split_pages_.contains(number)) page = {number, pid, epoch_, index};
    return index;
}

}  // namespace waymark::analysis
