#include "options.h"

#include <charconv>
#include <string_view>
#include <system_error>

namespace waymark::record::plugin {

Options options;

bool read_options(int argc, char** argv) {
    options.watched = new std::vector<Watched>;
    for (int i = 0; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument.starts_with("ring=")) options.ring = argv[i] + 5;
        if (argument == "exact=off") options.exact = false;
        if (argument == "memory=on" || argument == "memory=sized") options.memory_mode = true;
        if (argument == "memory=sized") options.sized = true;
        if (argument == "threads=on") options.report_threads = true;
        if (argument == "children=on") options.children = true;
        if (argument == "memory=on" || argument == "aarch64=on") options.a64 = true;
        if (argument.starts_with("log=")) options.log = argv[i] + 4;
        if (argument.starts_with("signals=")) options.signal_folder = new std::string(argument.substr(8));
        if (argument.starts_with("watch=")) {
            Watched w{};
            const char* const end = argv[i] + argument.size();
            const auto first = std::from_chars(argv[i] + 6, end, w.first, 16);
            if (first.ec != std::errc{} || first.ptr == end ||
                std::from_chars(first.ptr + 1, end, w.end, 16).ec != std::errc{})
                return false;
            options.watched->push_back(w);
        }
    }
    options.system_mode = *options.log != 0;
    if (options.memory_mode && !options.sized) options.exact = false;
    options.report_threads |= options.memory_mode;
    return true;
}

}  // namespace waymark::record::plugin
