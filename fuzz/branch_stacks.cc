/// Branch stacks as bytes, and as text of `perf script`: reading ends, counts each entry once, and remembers no more
/// than it may.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "waymark/capture/branch_entry.h"
#include "waymark/capture/branch_stacks.h"
#include "waymark/core/result.h"
#include "waymark/flow/blocks.h"
#include "waymark/stacks/decoder.h"

namespace {

using namespace waymark;

/// The input itself, at address 0.
class Input final : public isa::CodeReader {
public:
    explicit Input(Bytes bytes) : bytes_(bytes) {}
    [[nodiscard]] isa::Code at(Address address, const isa::Space&) const override {
        if (address.value >= bytes_.size()) return {};
        return {bytes_.subspan(address.value), 0};
    }

private:
    Bytes bytes_;
};

class Nowhere final : public flow::Sink {
public:
    void consume(const flow::Batch&) override {}
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const Bytes bytes(data, size);
    (void)capture::perf::is_branch_text({reinterpret_cast<const char*>(data), size});
    const Input code(bytes);
    for (const isa::Isa isa : {isa::Isa::a64, isa::Isa::x86_64}) {
        flow::BlockTable table;
        Nowhere sink;
        flow::BatchWriter out(table, sink);
        stacks::StackDecoder<flow::BatchWriter> decoder({isa}, code, out);
        // In two pieces, of which the first may end amid an entry.
        decoder.feed(bytes.first(size / 3));
        decoder.feed(bytes.subspan(size / 3));
        decoder.finish();
        WM_CHECK(decoder.packets() == size / stacks::entry_bytes);
        WM_CHECK(decoder.remembered() <= decoder.packets());
    }
    return 0;
}
