/// Messages of software: any bytes as a message of each layout, as a format with arguments, and as a collateral file.
/// The first byte says which.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "waymark/core/result.h"
#include "waymark/syst/describe.h"
#include "waymark/syst/printf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace waymark;
    if (size < 1) return 0;
    const Bytes bytes(data + 1, size - 1);
    const unsigned what = data[0] % (syst::layouts + 3);
    constexpr std::size_t most_text = std::size_t{3} << 20;
    if (what < syst::layouts) {
        syst::Describer describe(static_cast<syst::Layout>(what), nullptr, nullptr);
        const protocol::Record record = describe(bytes, data[0], 1);
        WM_CHECK(record.bytes == bytes.size() && record.text.size() <= most_text);
    } else if (what < syst::layouts + 2) {
        const auto end = std::find(bytes.begin(), bytes.end(), std::uint8_t{0});
        const std::string format(bytes.begin(), end);
        const auto rest = static_cast<std::size_t>(end - bytes.begin());
        const syst::Formatted out =
            syst::format_packed(format, bytes.subspan(std::min(bytes.size(), rest + 1)), what == syst::layouts ? 4 : 8);
        WM_CHECK(out.text.size() <= most_text);
    } else {
        syst::Collateral collateral;
        const std::string xml(bytes.begin(), bytes.end());
        const auto error = collateral.add(xml, "input");
        WM_CHECK(!error || !error->message.empty());
        for (const syst::Client& client : collateral.clients()) WM_CHECK(collateral.named(client.name) != nullptr);
    }
    return 0;
}
