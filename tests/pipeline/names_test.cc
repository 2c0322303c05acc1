/// Names of sources: names of generated code are stored once.
#include <gtest/gtest.h>

#include <string>

#include "support/jitdump.h"
#include "support/temporary_folder.h"
#include "waymark/capture/capture.h"
#include "waymark/pipeline/session.h"

namespace waymark::pipeline {
namespace {

constexpr std::uint64_t changing = 0x9000, first_other = 0x10000;
constexpr unsigned versions = 20, others = 50;

std::string code_of(unsigned version) { return {'v', static_cast<char>('a' + version), 'x', 'y'}; }

/// A source and a core for each version of a piece of code, beside files that do not change.
capture::Capture capture_in(const TemporaryFolder& folder) {
    JitDump dump;
    std::uint64_t index = 0;
    for (unsigned i = 0; i < others; ++i)
        dump.load(++index, first_other + i * 0x100, "other" + std::to_string(i), "abcd");
    for (unsigned v = 0; v < versions; ++v) dump.load(++index, changing, "version" + std::to_string(v), code_of(v));
    folder.write("jit-1.dump", dump.bytes);
    capture::Capture out;
    out.path = folder.path() / "snapshot.ini";
    out.modules.names = {{capture::GeneratedNames::Format::jitdump, "jit-1.dump"}};
    for (unsigned v = 0; v < versions; ++v) {
        const std::string number = std::to_string(v);
        capture::Source source;
        source.name = "source" + number;
        source.type = "PTM1.1";
        source.core = "core" + number;
        out.sources.push_back(source);
        capture::MemoryDump memory;
        memory.core = source.core;
        memory.file = folder.write("code" + number, code_of(v));
        memory.address = Address{changing};
        out.dumps.push_back(memory);
    }
    return out;
}

TEST(Names, GeneratedCodeIsNamedOnceForAllSources) {
    const TemporaryFolder folder;
    const auto session = make_session(capture_in(folder), {});
    ASSERT_TRUE(session.has_value()) << session.error().message;
    ASSERT_EQ(session->sources.size(), versions);
    const auto name = [&](unsigned source, std::uint64_t address) {
        const auto found = session->sources[source].names->symbols.find({address});
        return found ? found->symbol.linkage_name : std::string_view("none");
    };
    for (unsigned v = 0; v < versions; ++v) {
        EXPECT_EQ(name(v, changing + 2), "version" + std::to_string(v));
        EXPECT_EQ(name(v, changing + 4), "none");
        for (unsigned i = 0; i < others; ++i) {
            const std::uint64_t address = first_other + i * 0x100 + 1;
            ASSERT_EQ(name(v, address), "other" + std::to_string(i));
            // The same text in memory, not only an equal text.
            ASSERT_EQ(name(v, address).data(), name(0, address).data());
        }
    }
}

}  // namespace
}  // namespace waymark::pipeline
