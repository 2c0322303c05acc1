/// Makes a large perf.data file of a small one (tests/support/perf_clones.h), for bench/perf.sh.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "support/perf_clones.h"
#include "waymark/capture/perf_file.h"

namespace {

using namespace waymark;

class File final : public ByteSink {
public:
    explicit File(const char* path) : file_(path, std::ios::binary | std::ios::trunc) {}
    void write(Bytes bytes) override { put(bytes); }
    void put(Bytes bytes) {
        file_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    bool replace_front(Bytes bytes) {
        file_.seekp(0);
        put(bytes);
        file_.close();
        return !file_.fail();
    }

private:
    std::ofstream file_;
};

int fail(const std::string& why) {
    std::fprintf(stderr, "clone_perf: %s\n", why.c_str());
    return 1;
}

}  // namespace

int main(int argc, char** argv) {
    support::PerfClones clones;
    bool good = argc >= 3 && argc % 2 == 1;
    for (int i = 3; good && i + 1 < argc; i += 2) {
        char* end = nullptr;
        const unsigned long value = std::strtoul(argv[i + 1], &end, 10);
        good = *end == '\0' && value <= 1'000'000;
        const auto number = static_cast<unsigned>(value);
        if (std::strcmp(argv[i], "--processes") == 0)
            clones.processes = number;
        else if (std::strcmp(argv[i], "--more-maps") == 0)
            clones.more_maps = number;
        else if (std::strcmp(argv[i], "--times") == 0)
            clones.times = number;
        else
            good = false;
    }
    if (!good) {
        std::fprintf(
            stderr,
            "usage: clone_perf FROM TO [--processes N] [--more-maps N] [--times N]\n\n"
            "Writes perf.data TO as if N processes had run what those of FROM ran, each with so many more maps,\n"
            "and all of it so many times.\n");
        return 2;
    }
    const auto from = capture::perf::open_perf_file(argv[1]);
    if (!from) return fail(from.error().message);
    const auto data = capture::perf::read_perf_data(*from);
    if (!data) return fail(data.error().message);
    File to(argv[2]);
    const auto head = support::write_clones(*data, *from->file, clones, to);
    if (!head) return fail(head.error().message);
    return to.replace_front(*head) ? 0 : fail(std::string("cannot write ") + argv[2]);
}
