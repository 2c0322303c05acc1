/// Reading bytes of a wire format.
#pragma once

#include <cstdint>

#include "waymark/core/types.h"

namespace waymark {

/// The result of reading one packet.
enum class Step : std::uint8_t {
    ok,
    need_more,  ///< the bytes end inside the packet
    bad,        ///< the bytes are not a packet of this format
};

/// Reads forward over borrowed bytes. After the first failure, later reads return 0 and change nothing, so a list of
/// fields is read without checks, and checked once at the end.
class Cursor {
public:
    WM_INLINE explicit Cursor(Bytes bytes) : begin_(bytes.data()), at_(begin_), end_(begin_ + bytes.size()) {}

    WM_INLINE std::uint8_t u8() {
        if (at_ == end_) [[unlikely]] {
            if (step_ == Step::ok) step_ = Step::need_more;
            return 0;
        }
        return *at_++;
    }

    /// An unsigned number of `bytes` (0 to 8) bytes, least significant first.
    WM_INLINE std::uint64_t le(unsigned bytes) {
        if (static_cast<std::size_t>(end_ - at_) < bytes) [[unlikely]] {
            if (step_ == Step::ok) step_ = Step::need_more;
            end_ = at_;
            return 0;
        }
        std::uint64_t value = 0;
        for (unsigned i = 0; i < bytes; ++i) value |= static_cast<std::uint64_t>(at_[i]) << (8 * i);
        at_ += bytes;
        return value;
    }

    /// The packet does not match its header.
    WM_INLINE void bad() {
        if (step_ == Step::ok) step_ = Step::bad;
        end_ = at_;
    }

    [[nodiscard]] WM_INLINE Step step() const { return step_; }
    /// Number of bytes consumed.
    [[nodiscard]] WM_INLINE std::size_t consumed() const { return static_cast<std::size_t>(at_ - begin_); }
    [[nodiscard]] WM_INLINE bool at_end() const { return at_ == end_; }

private:
    const std::uint8_t* begin_;
    const std::uint8_t* at_;
    const std::uint8_t* end_;
    Step step_ = Step::ok;
};

}  // namespace waymark
