#include "waymark/coresight/sinks.h"

#include <algorithm>

#include "waymark/core/result.h"
#include "waymark/coresight/bypass.h"

namespace waymark::coresight {

TraceRam::TraceRam(std::size_t size_bytes) : ram_(size_bytes) { WM_CHECK(is_size(size_bytes)); }

void TraceRam::write(Bytes bytes) {
    bytes = bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), left_)));
    if (left_ != ~std::uint64_t{0}) left_ -= bytes.size();
    // If more bytes come than fit, only the last ones stay.
    if (bytes.size() > ram_.size()) {
        written_ += bytes.size() - ram_.size();
        bytes = bytes.last(ram_.size());
    }
    while (!bytes.empty()) {
        const std::size_t at = write_pointer();
        const std::size_t count = std::min(bytes.size(), ram_.size() - at);
        std::copy_n(bytes.begin(), count, ram_.begin() + static_cast<std::ptrdiff_t>(at));
        written_ += count;
        bytes = bytes.subspan(count);
    }
}

void TraceRam::stop_after(std::uint64_t bytes) { left_ = std::min(left_, bytes); }

std::vector<std::uint8_t> TraceRam::contents() const {
    const auto pointer = ram_.begin() + static_cast<std::ptrdiff_t>(write_pointer());
    if (!wrapped()) return {ram_.begin(), pointer};
    std::vector<std::uint8_t> out(pointer, ram_.end());
    out.insert(out.end(), ram_.begin(), pointer);
    return out;
}

void FrameSink::give() {
    if (buffer_.empty()) return;
    out_.write(buffer_);
    buffer_.clear();
}
void FrameSink::write(TraceId id, Bytes bytes) {
    // In pieces, so that few frames wait to be passed on.
    constexpr std::size_t piece = 4096;
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(bytes.size(), piece))) {
        formatter_.add(id, bytes.first(std::min(bytes.size(), piece)));
        give();
    }
}
void FrameSink::flush() {
    formatter_.flush();
    give();
}
void FrameSink::idle() {
    formatter_.idle();
    give();
}
void FrameSink::trigger(TraceId source) {
    const std::uint8_t byte = source.value;
    write(trigger_id, Bytes(&byte, 1));
}

void BypassSink::write(TraceId, Bytes bytes) {
    written_ += bytes.size();
    out_.write(bytes);
}
void BypassSink::flush() {
    if (memory_width_bytes_ == 0) return;
    // The place of the mark depends on the number of bytes, not on their values.
    std::vector<std::uint8_t> padded(static_cast<std::size_t>(written_ % memory_width_bytes_));
    const std::size_t before = padded.size();
    append_bypass_padding(padded, memory_width_bytes_);
    out_.write(Bytes(padded).subspan(before));
    written_ += padded.size() - before;
}

Funnel::Funnel(BusSink& out, FunnelOptions options) : out_(out), options_{std::max(options.hold_bytes, 1U)} {}

ByteSink& Funnel::input(Port port) {
    WM_CHECK(is_source(port.id));
    return inputs_.emplace_back(*this, port);
}

void Funnel::Input::write(Bytes bytes) {
    waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
    funnel_.pass(funnel_.options_.hold_bytes);
}

void Funnel::flush() {
    pass(1);
    out_.flush();
}

/// Passes bytes of the inputs in turn, while some input has at least `least_bytes`.
void Funnel::pass(std::size_t least_bytes) {
    std::vector<std::size_t> given(inputs_.size(), 0);
    for (;;) {
        const auto left = [&](std::size_t i) { return inputs_[i].waiting_.size() - given[i]; };
        std::size_t next = inputs_.size();
        for (std::size_t step = 1; step <= inputs_.size(); ++step) {
            const std::size_t i = (last_ + step) % inputs_.size();
            if (left(i) < least_bytes) continue;
            if (next == inputs_.size() || inputs_[i].port_.priority < inputs_[next].port_.priority) next = i;
        }
        if (next == inputs_.size()) break;
        const std::size_t count = std::min<std::size_t>(left(next), options_.hold_bytes);
        out_.write(inputs_[next].port_.id, Bytes(inputs_[next].waiting_).subspan(given[next], count));
        given[next] += count;
        last_ = next;
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i)
        inputs_[i].waiting_.erase(inputs_[i].waiting_.begin(),
                                  inputs_[i].waiting_.begin() + static_cast<std::ptrdiff_t>(given[i]));
}

}  // namespace waymark::coresight
