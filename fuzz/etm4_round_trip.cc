/// Packets of ETMv4 and ETE made of random values, and the state against which they are compressed: the encoded bytes
/// parse to the same packets, however they are cut; text gives them again; an address or timestamp in its shortest form
/// decodes to itself.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <variant>
#include <vector>

#include "etm4_input.h"
#include "waymark/core/wire.h"
#include "waymark/etm4/encoder.h"
#include "waymark/etm4/parser.h"
#include "waymark/etm4/state.h"
#include "waymark/etm4/text.h"

namespace {

using namespace waymark;

/// Packets with their offsets; a gap has no place here.
class Collector {
public:
    std::vector<etm4::Packet> packets;
    Offset end{};
    template <class P>
    void operator()(const P& packet, etm4::Extent at) {
        if (at.first != end) std::abort();
        end = at.end();
        packets.emplace_back(packet);
    }
    void operator()(const Gap&) { std::abort(); }
};

/// Adds a random legal packet of the kind with this number; false: the configuration has none.
bool add_packet(std::size_t kind, wire::Random& random, const etm4::Config& config,
                std::vector<etm4::Packet>& packets) {
    bool added = false;
    etm4::Packets::for_each([&]<class P>() {
        if (kind-- != 0 || !etm4::is_allowed<P>(config)) return;
        P packet{};
        wire::Generator generator(random);
        P::fields(generator, packet, config);
        if (!generator.possible()) return;
        packets.emplace_back(packet);
        added = true;
    });
    return added;
}

void check_address(fuzz::Input& input, wire::Random& random, etm4::AddressHistory& history) {
    const unsigned how = input.byte();
    etm4::KnownAddress to;
    to.is1 = (how & 1U) != 0;
    // Near one of the last addresses, so that short forms occur.
    to.address.value = (how & 2U) != 0 ? random() : history.entry(how >> 2U).address.value;
    to.address.value ^= wire::random_number(random, how >> 4U << 2U);
    to.address.value &= to.is1 ? ~std::uint64_t{1} : ~std::uint64_t{3};
    const etm4::CompressedAddress sent = etm4::compress(to, history);
    const etm4::KnownAddress found = sent.entry ? history.match(*sent.entry) : history.take(sent.sent);
    if (found != to || history.entry(0) != to) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input({data, size});
    const etm4::Config config = fuzz::etm4_config(input);
    const std::size_t piece = 1 + input.byte() % 40;
    const std::uint64_t seed = input.byte();
    wire::Random random(seed << 8U | input.byte());
    std::vector<etm4::Packet> packets{etm4::ASync{}};
    std::vector<std::uint8_t> bytes;
    etm4::encode(bytes, packets.front(), config);
    etm4::AddressHistory history;
    history.reset();
    std::uint64_t last_timestamp = 0;
    etm4::TimestampState timestamps;
    timestamps.reset();
    while (!input.rest().empty() && packets.size() < 500) {
        const unsigned kind = input.byte();
        if (kind >= 0xf0) {
            check_address(input, random, history);
            continue;
        }
        if (kind >= 0xe0) {
            const std::uint64_t to = last_timestamp + wire::random_number(random, input.byte() % 65U);
            if (timestamps.take(etm4::compress_timestamp(to, last_timestamp)) != to) std::abort();
            last_timestamp = to;
            continue;
        }
        if (!add_packet(kind % etm4::Packets::size, random, config, packets)) continue;
        etm4::encode(bytes, packets.back(), config);
        const std::string text = std::visit([&](const auto& p) { return etm4::to_text(p, config); }, packets.back());
        const auto scanned = etm4::from_text(text, config);
        if (!scanned || *scanned != packets.back()) std::abort();
    }
    for (const std::size_t step : {bytes.size(), piece}) {
        Collector collector;
        etm4::Parser<Collector> parser(config, collector);
        for (std::size_t at = 0; at < bytes.size(); at += step)
            parser.feed(Bytes(bytes).subspan(at, std::min(step, bytes.size() - at)));
        parser.finish();
        if (collector.packets != packets || collector.end.value != bytes.size()) std::abort();
    }
    return 0;
}
