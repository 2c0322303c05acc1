/// The compressor: combines runs of one loop into one entry (docs/spec/dpu.md, section 5.4).
#pragma once

#include <cstdint>

#include "waymark/dpu/codec.h"
#include "waymark/dpu/config.h"
#include "waymark/dpu/model.h"
#include "waymark/dpu/packet.h"

namespace waymark::dpu {

class Compressor {
public:
    /// The item that the compressor keeps back: a loop, or the backward jump that may begin a loop.
    struct Loop {
        enum class Kind : std::uint8_t { none, short_loop, long_loop, soft } kind = Kind::none;
        std::uint32_t src{}, dst{}, reps{};
        TaskContext context;
        CoreContext core;  ///< the context it encodes
    };

    [[nodiscard]] bool pending() const { return loop_.kind != Loop::Kind::none; }
    [[nodiscard]] const TaskContext& context() const { return loop_.context; }

    /// Another run of the same loop? `full` if the loop can take no more.
    bool again(Loop::Kind kind, std::uint32_t src, std::uint32_t dst, const TaskContext& context) {
        if (kind == Loop::Kind::none || loop_.kind != kind || loop_.src != src || loop_.dst != dst ||
            loop_.context != context)
            return false;
        ++loop_.reps;
        return true;
    }
    [[nodiscard]] bool full() const { return loop_.reps == counter_mask; }
    /// Precondition: nothing pending.
    void begin(Loop::Kind kind, std::uint32_t src, std::uint32_t dst, const TaskContext& context,
               const CoreContext& core) {
        loop_ = {kind, src, dst, 1, context, core};
    }
    /// Takes the kept item for writing; no item follows it.
    Loop take() {
        const Loop loop = loop_;
        loop_ = {};
        return loop;
    }
    void clear() { loop_ = {}; }

    /// The kind of loop as which an item would be kept back.
    [[nodiscard]] static Loop::Kind kind_of(ItemKind kind, std::uint32_t src, std::uint32_t dst) {
        switch (kind) {
            case ItemKind::loop_short: return Loop::Kind::short_loop;
            case ItemKind::loop_long: return Loop::Kind::long_loop;
            case ItemKind::cof: return dst <= src ? Loop::Kind::soft : Loop::Kind::none;
            default: return Loop::Kind::none;
        }
    }

private:
    Loop loop_;
};

}  // namespace waymark::dpu
