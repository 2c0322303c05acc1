/// The deformatter as docs/spec/pft.md 6.2 and 6.4 describe it: over a whole capture, byte by byte, without a thought
/// for speed or for input in pieces. Shares no code with coresight/deformatter.h beyond its types. Also the recorder
/// that brings either of them to the same form.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include "waymark/core/gap.h"
#include "waymark/core/types.h"
#include "waymark/coresight/deformatter.h"
#include "waymark/coresight/trace_id.h"

namespace waymark::coresight::testing {

/// One call of a deformatter; for data, one byte.
struct Heard {
    enum class Kind : std::uint8_t { data, trigger, gap, reset };
    Kind kind{};
    std::uint64_t at{}, end{};
    unsigned what{};  ///< data and trigger: id << 8 | byte; gap: reason

    friend bool operator==(const Heard&, const Heard&) = default;
    friend std::ostream& operator<<(std::ostream& out, const Heard& heard) {
        constexpr std::array names{"data", "trigger", "gap", "reset"};
        return out << names[static_cast<unsigned>(heard.kind)] << '@' << heard.at << ".." << heard.end << ' '
                   << std::hex << heard.what << std::dec;
    }
};

inline Heard heard_data(unsigned id, std::uint64_t at, unsigned byte) {
    return {Heard::Kind::data, at, 0, id << 8 | byte};
}
inline Heard heard_trigger(unsigned id, std::uint64_t at, unsigned byte) {
    return {Heard::Kind::trigger, at, 0, id << 8 | byte};
}
inline Heard heard_gap(std::uint64_t first, std::uint64_t end, GapReason reason) {
    return {Heard::Kind::gap, first, end, static_cast<unsigned>(reason)};
}
inline Heard heard_reset(std::uint64_t at) { return {Heard::Kind::reset, at, 0, 0}; }

struct Recorder {
    std::vector<Heard> heard;
    std::size_t longest = 0;  ///< bytes in one call of `data`

    void data(TraceId id, Bytes bytes, Offset first) {
        longest = std::max(longest, bytes.size());
        for (std::size_t i = 0; i < bytes.size(); ++i) heard.push_back(heard_data(id.value, first.value + i, bytes[i]));
    }
    void trigger(TraceId id, Offset at, std::uint8_t payload) {
        heard.push_back(heard_trigger(id.value, at.value, payload));
    }
    void gap(const Gap& gap) { heard.push_back(heard_gap(gap.first.value, gap.end.value, gap.reason)); }
    void reset(Offset at) { heard.push_back(heard_reset(at.value)); }
};

struct Reference {
    std::vector<Heard> heard;
    Totals totals;
};

class ReferenceDeformatter {
public:
    static Reference run(Bytes capture, DeformatterOptions options) {
        ReferenceDeformatter reference(capture, options);
        reference.totals_.bytes_read = capture.size();
        if (options.framing == Framing::aligned) {
            reference.aligned();
        } else {
            reference.tpiu();
        }
        return {std::move(reference.heard_), reference.totals_};
    }

private:
    ReferenceDeformatter(Bytes capture, DeformatterOptions options) : in_(capture), options_(options) {}

    static constexpr std::size_t npos = static_cast<std::size_t>(-1);

    bool full_sync_at(std::size_t at) const {
        return at + 4 <= in_.size() && in_[at] == 0xFF && in_[at + 1] == 0xFF && in_[at + 2] == 0xFF &&
               in_[at + 3] == 0x7F;
    }
    std::size_t find_full_sync(std::size_t from) const {
        for (std::size_t at = from; at + 4 <= in_.size(); ++at) {
            if (full_sync_at(at)) return at;
        }
        return npos;
    }
    void gap(std::size_t first, std::size_t end, GapReason reason) {
        if (first == end) return;
        heard_.push_back(heard_gap(first, end, reason));
        totals_.lost[static_cast<unsigned>(reason)] += end - first;
    }
    void full_sync(std::size_t at) {
        if (!totals_.first_fsync) totals_.first_fsync = Offset{at};
        ++totals_.fsyncs;
    }

    void emit(unsigned byte, std::size_t at) {
        if (!current_) {
            ++totals_.unassociated;
            return;
        }
        ++totals_.data[*current_];
        if (*current_ == 0x7B || *current_ == 0x7D) {
            heard_.push_back(heard_trigger(*current_, at, byte));
        } else if (*current_ >= 0x01 && *current_ <= 0x6F) {
            heard_.push_back(heard_data(*current_, at, byte));
        }
    }

    /// 6.2, as written there. `places[i]` is where byte i of the frame stood.
    void frame(const std::array<unsigned, 16>& f, const std::array<std::size_t, 16>& places) {
        ++totals_.frames;
        ++totals_.aux_bytes;
        for (unsigned k = 0; k <= 7; ++k) {
            const unsigned m = f[2 * k], a = f[15] >> k & 1;
            if ((m & 1) != 0) {
                ++totals_.id_bytes;
                if (!totals_.first_id) totals_.first_id = Offset{places[2 * k]};
                if (k == 7) {
                    current_ = m >> 1;
                } else if (a == 0) {
                    current_ = m >> 1;
                    emit(f[2 * k + 1], places[2 * k + 1]);
                } else {
                    emit(f[2 * k + 1], places[2 * k + 1]);
                    current_ = m >> 1;
                }
            } else {
                emit((m & 0xFE) | a, places[2 * k]);
                if (k < 7) emit(f[2 * k + 1], places[2 * k + 1]);
            }
        }
    }

    void aligned() {
        std::size_t at = 0;
        std::size_t damaged = npos;  // where the run of damaged frames before `at` began
        const auto end_damage = [&] {
            if (damaged == npos) return;
            gap(damaged, at, GapReason::framing);
            heard_.push_back(heard_reset(at));
            damaged = npos;
        };
        for (; at + 16 <= in_.size(); at += 16) {
            std::array<unsigned, 16> f{};
            std::array<std::size_t, 16> places{};
            std::size_t forbidden = npos;
            for (unsigned i = 0; i < 16; ++i) {
                f[i] = in_[at + i];
                places[i] = at + i;
                if (i % 2 == 0 && f[i] == 0xFF && forbidden == npos) forbidden = at + i;
            }
            const bool barrier = options_.reset_on_4_fsync && full_sync_at(at) && full_sync_at(at + 4) &&
                                 full_sync_at(at + 8) && full_sync_at(at + 12);
            if (barrier) {
                end_damage();
                for (unsigned i = 0; i < 4; ++i) full_sync(at + 4 * i);
                ++totals_.barriers;
                current_.reset();
                heard_.push_back(heard_reset(at + 16));
            } else if (forbidden != npos) {
                if (damaged == npos) damaged = at;
                ++totals_.damaged_frames;
                if (!totals_.first_forbidden) totals_.first_forbidden = Offset{forbidden};
                current_.reset();
            } else {
                end_damage();
                frame(f, places);
            }
        }
        end_damage();
        gap(at, in_.size(), GapReason::incomplete_packet);
    }

    enum class Found : std::uint8_t { frame, error, end };

    void tpiu() {
        std::size_t at = find_full_sync(0);
        if (at == npos) return gap(0, in_.size(), GapReason::unsynchronised);
        gap(0, at, GapReason::unsynchronised);
        while (at < in_.size()) {
            if (full_sync_at(at)) {
                full_sync(at);
                at += 4;
                continue;
            }
            if (at + 1 < in_.size() && in_[at] == 0xFF && in_[at + 1] == 0x7F) {
                ++totals_.hsyncs;
                at += 2;
                continue;
            }
            std::size_t offence = at;
            const std::size_t start = at;
            switch (tpiu_frame(at, offence)) {
                case Found::frame: break;
                case Found::end: return gap(start, in_.size(), GapReason::incomplete_packet);
                case Found::error: {
                    if (!totals_.first_forbidden) totals_.first_forbidden = Offset{offence};
                    ++totals_.sync_losses;
                    current_.reset();
                    // The auxiliary byte before may have been the first of a full sync.
                    const std::size_t sync = find_full_sync(start - 1);
                    if (sync == npos) {
                        at = in_.size();
                    } else if (sync < start) {
                        at = sync + 4;
                    } else {
                        at = sync;
                    }
                    gap(start, at, GapReason::framing);
                    heard_.push_back(heard_reset(at));
                }
            }
        }
    }

    /// A frame from `at` on, which is moved behind it; no sync packet stands at its start.
    Found tpiu_frame(std::size_t& at, std::size_t& offence) {
        std::array<unsigned, 16> f{};
        std::array<std::size_t, 16> places{};
        std::size_t next = at;
        unsigned hsyncs = 0;
        for (unsigned i = 0; i < 16;) {
            if (next + 1 >= in_.size()) return Found::end;
            offence = next;
            if (in_[next] == 0xFF) {
                if (in_[next + 1] == 0x7F) {
                    ++hsyncs;
                    next += 2;
                    continue;
                }
                // A full sync cut short by the end of the capture is the end, not an error.
                const std::size_t left = in_.size() - next;
                const bool cut = i == 0 && hsyncs == 0 && in_[next + 1] == 0xFF &&
                                 (left == 2 || (left == 3 && in_[next + 2] == 0xFF));
                return cut ? Found::end : Found::error;
            }
            for (const auto last = i + 2; i < last; ++i, ++next) {
                f[i] = in_[next];
                places[i] = next;
            }
        }
        at = next;
        totals_.hsyncs += hsyncs;
        frame(f, places);
        return Found::frame;
    }

    Bytes in_;
    DeformatterOptions options_;
    Totals totals_;
    std::vector<Heard> heard_;
    std::optional<unsigned> current_;
};

/// The fast one, fed in pieces of the lengths `next_length()` gives.
template <class NextLength>
Reference deformat(Bytes capture, DeformatterOptions options, NextLength next_length) {
    Recorder recorder;
    Deformatter deformatter(options);
    while (!capture.empty()) {
        const auto length = std::min<std::size_t>(next_length(), capture.size());
        deformatter.feed(capture.first(length), recorder);
        capture = capture.subspan(length);
    }
    deformatter.finish(recorder);
    return {std::move(recorder.heard), deformatter.totals()};
}

inline Reference deformat(Bytes capture, DeformatterOptions options = {}) {
    return deformat(capture, options, [&] { return capture.size(); });
}

}  // namespace waymark::coresight::testing
