#include "waymark/sink/bus.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "waymark/core/result.h"

namespace waymark::sink {

namespace {

constexpr std::uint32_t hold_bits = 0xf00;
constexpr std::uint32_t filter_bits = 0xff;

std::string no_such_register(std::uint32_t offset, std::string_view of) {
    return fmt::format("offset {:#x} is not a register of a {}", offset, of);
}

}  // namespace

std::string_view BusFunnel::register_name(std::uint32_t offset) {
    return offset == functl ? "FUNCTL" : offset == prictl ? "PRICTL" : std::string_view();
}

BusFunnel::BusFunnel(unsigned inputs, coresight::BusSink& out) : out_(out), waiting_(inputs) {
    WM_CHECK(inputs > 0 && inputs <= most_inputs);
}

std::string BusFunnel::write_register(std::uint32_t offset, std::uint32_t value) {
    const std::uint32_t ports = (1U << inputs()) - 1;
    switch (offset) {
        case functl: {
            if ((value & hold_bits) == hold_bits)
                return "FUNCTL: the hold time 0xf is reserved; write 0 to 0xe to bits 11:8";
            const std::uint32_t closed = functl_ & ~value & ports;
            for (unsigned i = 0; i < inputs(); ++i)
                if ((closed >> i & 1U) != 0)
                    while (!is_empty(waiting_[i])) transfer(waiting_[i]);
            functl_ = value & (hold_bits | ports);
            held_ = 0;
            return {};
        }
        case prictl: {
            const std::uint32_t changed = prictl_ ^ value;
            for (unsigned i = 0; i < inputs(); ++i)
                if ((changed >> 3 * i & 7U) != 0 && is_open(i))
                    return fmt::format(
                        "PRICTL: the priority of input {} changes only while the input is closed; write "
                        "0 to bit {} of FUNCTL first",
                        i, i);
            const std::uint32_t fields = (1U << 3 * inputs()) - 1;
            prictl_ = value & fields;
            return {};
        }
        default: return no_such_register(offset, "funnel");
    }
}

std::uint32_t BusFunnel::read_register(std::uint32_t offset) const {
    return offset == functl ? functl_ : offset == prictl ? prictl_ : 0;
}

std::vector<RegisterValue> BusFunnel::registers() const {
    return {{std::string(register_name(functl)), functl_, {}, 32},
            {std::string(register_name(prictl)), prictl_, {}, 32}};
}

void BusFunnel::offer(unsigned input, coresight::TraceId id, Bytes bytes) {
    if (!is_open(input)) {
        refused_ += bytes.size();
        return;
    }
    if (!bytes.empty()) waiting_[input].pieces.push_back({id, {bytes.begin(), bytes.end()}});
}

unsigned BusFunnel::next_input() const {
    if (holder_ < inputs() && held_ != 0 && !is_empty(waiting_[holder_])) return holder_;
    unsigned next = inputs();
    for (unsigned i = 0; i < inputs(); ++i)
        if (!is_empty(waiting_[i]) && (next == inputs() || priority(i) < priority(next))) next = i;
    return next;
}

void BusFunnel::transfer(Queue& queue) {
    const Piece& piece = queue.pieces[queue.piece];
    const std::size_t count = std::min<std::size_t>(piece.bytes.size() - queue.at, transfer_bytes);
    out_.write(piece.id, Bytes(piece.bytes).subspan(queue.at, count));
    queue.at += count;
    if (queue.at != piece.bytes.size()) return;
    queue.at = 0;
    if (++queue.piece != queue.pieces.size()) return;
    queue.pieces.clear();
    queue.piece = 0;
}

std::uint64_t BusFunnel::pass(std::uint64_t transfers) {
    for (std::uint64_t made = 0; made < transfers; ++made) {
        const unsigned next = next_input();
        if (next == inputs()) return made;
        if (next != holder_) {
            holder_ = next;
            held_ = (functl_ & hold_bits) >> 8;  // transfers after this one
        } else if (held_ != 0) {
            --held_;
        }
        transfer(waiting_[next]);
    }
    return transfers;
}

void BusFunnel::write(unsigned input, coresight::TraceId id, Bytes bytes) {
    if (waiting_bytes() == 0 && is_open(input)) {
        out_.write(id, bytes);  // as the transfers of one input would give it
        return;
    }
    offer(input, id, bytes);
    pass(std::numeric_limits<std::uint64_t>::max());
}

void BusFunnel::flush() {
    pass(std::numeric_limits<std::uint64_t>::max());
    out_.flush();
}

std::uint64_t BusFunnel::waiting_bytes() const {
    std::uint64_t out = 0;
    for (const Queue& queue : waiting_) {
        for (std::size_t i = queue.piece; i < queue.pieces.size(); ++i) out += queue.pieces[i].bytes.size();
        out -= queue.at;
    }
    return out;
}

std::string_view BusReplicator::register_name(std::uint32_t offset) {
    return offset == idfilter0 ? "IDFILTER0" : offset == idfilter1 ? "IDFILTER1" : std::string_view();
}

std::string BusReplicator::write_register(std::uint32_t offset, std::uint32_t value) {
    if (register_name(offset).empty()) return no_such_register(offset, "replicator");
    filter_[offset == idfilter0 ? 0 : 1] = value & filter_bits;
    return {};
}

std::uint32_t BusReplicator::read_register(std::uint32_t offset) const {
    return offset == idfilter0 ? filter_[0] : offset == idfilter1 ? filter_[1] : 0;
}

std::vector<RegisterValue> BusReplicator::registers() const {
    return {{std::string(register_name(idfilter0)), filter_[0], {}, 32},
            {std::string(register_name(idfilter1)), filter_[1], {}, 32}};
}

void BusReplicator::write(coresight::TraceId id, Bytes bytes) {
    for (unsigned i = 0; i < outputs; ++i)
        if (passes(i, id)) out_[i]->write(id, bytes);
}

void BusReplicator::flush() {
    for (coresight::BusSink* const out : out_) out->flush();
}

}  // namespace waymark::sink
