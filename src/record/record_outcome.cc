#include "waymark/record/record_outcome.h"

#include <fmt/format.h>

#include <csignal>
#include <cstring>
#include <string_view>

namespace waymark::record {

bool RecordOutcome::ended_by_signal(const Ending& ending) {
    constexpr std::string_view recorded = "everything up to there is recorded";
    if (ending.interrupt) {
        note(fmt::format("interrupted by {}; {}", signal_name(*ending.interrupt), recorded));
        kind = Kind::interrupted;
        return true;
    }
    if (ending.kind != Ending::Kind::signalled) return false;
    note(fmt::format("the program was ended by {}; {}", signal_name(ending.code), recorded));
    kind = Kind::program_died;
    return true;
}

void RecordOutcome::say_status(const Ending& ending) {
    if (ending.code != 0) summary(fmt::format("the program exited with {}", ending.code));
}

std::string signal_name(int number) {
    const char* const name = sigabbrev_np(number);
    return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

}  // namespace waymark::record
