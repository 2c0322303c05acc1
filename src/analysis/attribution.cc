#include "waymark/analysis/attribution.h"

#include <algorithm>

namespace waymark::analysis {

namespace perf = capture::perf;

Attribution::Attribution(const perf::PerfData& data)
    : data_(data),
      tasks_(data_),
      conversion_(data_.time_conversion.value_or(perf::TimeConversion{})),
      clock_(conversion_.valid()) {
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
    until_ = 0;  // an empty range contains no time
}

const Attribution::Answer& Attribution::of(const spe::RecordColumns& c, std::size_t i) {
    const auto has = [&](spe::RecordColumn column) {
        return (c.present[i] >> static_cast<unsigned>(column) & 1U) != 0;
    };
    // Without a clock to compare with, every mapping is assumed to exist during the whole recording.
    time_ = has(spe::RecordColumn::timestamp) && clock_ ? conversion_.to_ns(c.timestamp[i]) : forever;
    if (time_ < from_ || time_ >= until_) enter(time_);

    std::uint64_t context = no_context;
    if (has(spe::RecordColumn::context_el2))
        context = c.context_el2[i];
    else if (has(spe::RecordColumn::context_el1))
        context = c.context_el1[i];
    if (!has(spe::RecordColumn::pc)) return passing_ = ask(context, {});
    const std::uint64_t page = c.pc[i] >> page_bits;
    Remembered& known = remembered_[(page ^ page >> 20 ^ context * 5) % remembered_.size()];
    if (known.epoch == epoch_ && known.page == page && known.context == context) return known.answer;
    const spe::ProgramAddress pc = spe::program_address(c.pc[i]);
    passing_ = ask(context, pc);
    if (!split_pages_.contains(pc.address.value >> page_bits)) known = {page, context, epoch_, passing_};
    return passing_;
}

Attribution::Answer Attribution::ask(std::uint64_t context, std::optional<spe::ProgramAddress> pc) {
    Answer out;
    if (context != no_context) {
        out.tid = static_cast<std::uint32_t>(context);
        out.by_context = true;
        out.pid = known(out.tid).pid;
        out.name = known(out.tid).name;
    } else if (stream_->tid != perf::nobody) {
        out.tid = stream_->tid;
        out.pid = known(out.tid).pid;
        out.name = known(out.tid).name;
    } else {
        if (!running_known_) {
            running_ = tasks_.running(stream_->cpu, time_);
            running_known_ = true;
        }
        out.pid = running_.pid;
        out.tid = running_.tid;
        if (out.tid != perf::nobody) out.name = running_.name;
    }
    if (!pc) return out;
    const std::uint32_t owner = pc->exception_level == 0 ? out.pid : perf::nobody;
    // A thread without a known process gets no process ID: `nobody` would mean the kernel.
    if (pc->exception_level == 0 && out.pid == perf::nobody) return out;
    if (const perf::Mapping* const found = tasks_.mapping(owner, pc->address, time_); found != nullptr)
        out.mapping = static_cast<std::uint32_t>(found - data_.mappings.data()) + 1;
    return out;
}

void Attribution::enter(std::uint64_t time) {
    const auto next = std::upper_bound(changes_.begin(), changes_.end(), time);
    from_ = next == changes_.begin() ? 0 : *(next - 1);
    until_ = next == changes_.end() ? forever : *next;
    if (until_ == forever && time == forever) from_ = forever;
    // After the epoch counter wraps, entries of an old epoch must not look current.
    if (++epoch_ == 0) {
        remembered_.fill({});
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

}  // namespace waymark::analysis
