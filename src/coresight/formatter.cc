#include "waymark/coresight/formatter.h"

#include "waymark/core/result.h"

namespace waymark::coresight {

void Formatter::add(TraceId id, Bytes bytes) {
    WM_CHECK(id < forbidden_id);
    while (!bytes.empty()) {
        if (index_ == 0 && options_.full_sync_frames == 0) bytes = bytes.subspan(whole_frames(id, bytes));
        if (bytes.empty()) break;
        put(id, bytes.front());
        bytes = bytes.subspan(1);
    }
}

/// Same effect as put() for each byte, for bytes that fill frames in which this source is alone. Returns the number of
/// bytes taken. Call it between frames only.
std::size_t Formatter::whole_frames(TraceId id, Bytes bytes) {
    constexpr unsigned most_data = frame_bytes - 1;
    std::array<std::uint8_t, 64 * frame_bytes> frames;
    std::size_t taken = 0, made = 0;
    while (bytes.size() - taken >= most_data) {
        if (made == frames.size()) {
            append({frames.data(), made});
            made = 0;
        }
        std::uint8_t* const frame = frames.data() + made;
        const bool announce = repeat_due_ || current_ != id ||
                              (options_.repeat_frames > 0 && frames_without_id_ + 1 >= options_.repeat_frames);
        const unsigned first = announce ? 1 : 0;
        const auto data = [&](unsigned at) { return bytes[taken + at - first]; };
        unsigned aux = 0;
        for (unsigned at = 2; at < frame_bytes; at += 2) {
            frame[at - 1] = data(at - 1);
            frame[at] = data(at) & 0xFE;
            aux |= (data(at) & 1U) << (at / 2);
        }
        if (announce) {
            frame[0] = static_cast<std::uint8_t>(id.value << 1 | 1);
        } else {
            frame[0] = data(0) & 0xFE;
            aux |= data(0) & 1U;
        }
        frame[frame_bytes - 1] = static_cast<std::uint8_t>(aux);
        frames_without_id_ = announce ? 0 : frames_without_id_ + 1;
        current_ = id;
        repeat_due_ = false;
        taken += most_data - first;
        made += frame_bytes;
        frame_bytes_written_ += frame_bytes;
    }
    append({frames.data(), made});
    return taken;
}

void Formatter::idle() {
    if (index_ == 0) {
        full_sync_if_due();
        append(half_sync);
    } else {
        // The even byte of a pair may still have to move to the odd place, so the pair is completed first. Byte 14 has
        // no partner to wait for, so the pair after `index_` belongs to this frame.
        ++half_syncs_[(index_ + 1) / 2];
    }
}

void Formatter::flush() {
    const auto short_of_width = [&] {
        return options_.memory_width_bytes > 0 && frame_bytes_written_ % options_.memory_width_bytes != 0;
    };
    while (index_ != 0 || short_of_width()) {
        if (index_ == 14 && current_ != null_id) {
            put_id(null_id, 14, false);  // the frame ends with the ID; its data would begin another one
            complete();
        } else {
            put(null_id, 0);
        }
    }
}

void Formatter::barrier() {
    flush();
    append(barrier_frame);
    frame_bytes_written_ += frame_bytes;
    current_.reset();
    frames_without_id_ = 0;
}

void Formatter::put(TraceId id, std::uint8_t byte) {
    if (index_ == 0 && options_.repeat_frames > 0 && frames_without_id_ + 1 >= options_.repeat_frames)
        repeat_due_ = true;
    const bool announce = repeat_due_ || current_ != id;
    if (announce && index_ % 2 != 0) {
        // Delayed: the data in the even byte moves here with all its bits, and the ID takes its place. It must be data,
        // because an ID is only written when a byte of its source follows at once.
        const auto aux = frame_[frame_bytes - 1] >> (index_ / 2) & 1;
        frame_[index_] = static_cast<std::uint8_t>(frame_[index_ - 1] | aux);
        put_id(id, index_ - 1, true);
        ++index_;
    } else if (announce) {
        put_id(id, index_, false);
        if (index_ == 14) {
            complete();
        } else {
            ++index_;
        }
    }

    if (index_ % 2 != 0) {
        frame_[index_++] = byte;
        return;
    }
    frame_[index_] = byte & 0xFE;
    if ((byte & 1) != 0) frame_[frame_bytes - 1] |= static_cast<std::uint8_t>(1U << (index_ / 2));
    if (index_ == 14) {
        complete();
    } else {
        ++index_;
    }
}

/// Writes the ID to the even byte `at`; `delayed`: it applies from the next pair on.
void Formatter::put_id(TraceId id, unsigned at, bool delayed) {
    const auto aux = static_cast<std::uint8_t>(1U << (at / 2));
    frame_[at] = static_cast<std::uint8_t>(id.value << 1 | 1);
    if (delayed) {
        frame_[frame_bytes - 1] |= aux;
    } else {
        frame_[frame_bytes - 1] &= static_cast<std::uint8_t>(~aux);
    }
    current_ = id;
    repeat_due_ = false;
    id_in_frame_ = true;
}

void Formatter::full_sync_if_due() {
    if (options_.full_sync_frames == 0 || frames_to_full_sync_ > 0) return;
    append(full_sync);
    frames_to_full_sync_ = options_.full_sync_frames;
}

void Formatter::complete() {
    full_sync_if_due();
    for (unsigned k = 0; k < frame_pairs; ++k) {
        for (; half_syncs_[k] > 0; --half_syncs_[k]) append(half_sync);
        append({frame_.data() + 2 * k, 2});
    }
    if (options_.full_sync_frames > 0) --frames_to_full_sync_;
    frame_bytes_written_ += frame_bytes;
    frames_without_id_ = id_in_frame_ ? 0 : frames_without_id_ + 1;
    id_in_frame_ = false;
    frame_ = {};
    index_ = 0;
}

}  // namespace waymark::coresight
