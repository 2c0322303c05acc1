/// What users say about a recording, read: settings of models, buffers and bursts. Messages name the options of the
/// command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/flow/unit.h"
#include "waymark/sink/path.h"

namespace waymark::record {

/// Parses `NAME=NUMBER`. `usage`: the text has another form; the message contains `example`.
[[nodiscard]] Result<std::pair<std::string, std::uint64_t>> read_setting(const std::string& text,
                                                                         std::string_view option,
                                                                         std::string_view example);
/// Sets numbers of a model, each given as `NAME=NUMBER`. Errors: the errors of read_setting and of `set`.
template <class Model>
[[nodiscard]] Status set_numbers(Model& model, const std::vector<std::string>& texts, std::string_view option,
                                 std::string_view example) {
    for (const std::string& text : texts) {
        WM_ASSIGN_OR_RETURN(const auto setting, read_setting(text, option, example));
        if (const Status status = set(model, setting.first, setting.second); !status)
            return Error{status.error().code, std::string(option) + " " + text + ": " + status.error().message};
    }
    return Nothing{};
}

/// The sink of `KIND[:BYTES]` (--sink), for a recording other than perf.data; nullopt for an empty text. `after`: bytes
/// after the trigger. Errors: `usage`.
[[nodiscard]] Result<std::optional<sink::PathSetup>> read_sink(const std::string& text,
                                                               std::optional<std::uint64_t> after, bool scatter_list);

/// The registers with which Linux's configuration `autofdo` traces in bursts, from `WINDOW/PERIOD` (--strobe): counter
/// 0 counts the cycles of a window, counter 1 counts windows, and the unit traces while counter 1 is zero. Errors:
/// `usage`.
[[nodiscard]] Result<std::vector<flow::RegisterSetting>> strobing(const std::string& text);

}  // namespace waymark::record
