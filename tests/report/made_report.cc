/// made_report KIND FILE: writes a report of handmade answers. KIND: flow, samples, hostile or large; the last has the
/// size of a capture of a hundred million instructions.
#include <cstdio>
#include <fstream>
#include <string_view>

#include "report/made_answers.h"
#include "waymark/report/report.h"

namespace {

/// Two inlined calls in each function, one inside the other, with the function's own name.
waymark::answers::Answers with_inlined(waymark::answers::Answers a) {
    using namespace waymark::answers;
    for (Index f = 0; f < a.functions.size(); ++f) {
        const auto outer = static_cast<Index>(a.inlined.size());
        a.inlined.push_back({none, f, a.functions[f].name, "", 0, a.functions[f].line});
        a.inlined.push_back({outer, f, "inner", "", none, 0});
    }
    std::uint32_t k = 0;
    for (std::size_t i = 0; i < a.instructions.size(); ++i, ++k) {
        Instruction& at = a.instructions[i];
        if (i == 0 || a.instructions[i - 1].function != at.function) k = 0;
        if (k >= 4 && k < 10 && at.function < a.functions.size()) at.inlined = 2 * at.function + (k == 6 ? 1 : 0);
    }
    return a;
}

struct FileSink final : waymark::ByteSink {
    explicit FileSink(const char* path) : file(path, std::ios::binary) {}
    void write(waymark::Bytes bytes) override {
        file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    std::ofstream file;
};
}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const std::string_view kind = argv[1];
    using namespace waymark::test;
    const auto answers = with_inlined(kind == "samples"   ? made_samples()
                                      : kind == "hostile" ? made_hostile()
                                      : kind == "large"   ? made_flow(8000, 150'000, 240'000)
                                                          : made_flow());
    FileSink sink(argv[2]);
    const auto size = waymark::report::write_report(answers, {}, sink);
    if (!size) {
        std::fprintf(stderr, "%s\n", size.error().message.c_str());
        return 77;
    }
    return sink.file ? 0 : 1;
}
