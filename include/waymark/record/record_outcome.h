/// The outcome of a recording, in sentences for its user: the same for every unit.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/record/qemu.h"

namespace waymark::record {

struct RecordOutcome {
    enum class Kind : std::uint8_t {
        recorded,
        nothing,       ///< nothing was recorded, or something else than the user wanted
        program_died,  ///< by a signal
        interrupted,   ///< a signal ended Waymark
        cut_off,       ///< writing failed, code changed too often, or execution was lost
    };
    enum class Level : std::uint8_t {
        summary,  ///< results as expected
        note,
        repeated,  ///< a warning, which may come many times with other numbers
        warning,
        error
    };
    struct Remark {
        Level level;
        std::string text;
    };

    Kind kind = Kind::recorded;
    bool decodable = true;        ///< false: writing failed before anything could be decoded
    bool trigger_missed = false;  ///< the trigger that was to stop the trace buffer never came
    std::vector<Remark> remarks{};

    void summary(std::string text) { remarks.push_back({Level::summary, std::move(text)}); }
    void note(std::string text) { remarks.push_back({Level::note, std::move(text)}); }
    void warning(std::string text) { remarks.push_back({Level::warning, std::move(text)}); }
    /// Ends the recording with an error.
    RecordOutcome failed(Kind as, std::string text) {
        remarks.push_back({Level::error, std::move(text)});
        kind = as;
        return std::move(*this);
    }
    /// Ends the recording if `finished` is an error; `ending`: how the program ended.
    RecordOutcome not_finished(const Error& error, const Ending& ending) {
        return failed(Kind::cut_off, error.message + (ending.killed ? "; the program was ended" : ""));
    }
    /// Whether a signal ended the recording or the program; if so, the outcome states which, and has that kind.
    [[nodiscard]] bool ended_by_signal(const Ending& ending);
    /// Adds the program's exit status, if it is not 0.
    void say_status(const Ending& ending);
};

/// A name such as `SIGINT`, `signal 70`.
[[nodiscard]] std::string signal_name(int number);

/// Receives a line with the progress of a recording; called about five times a second.
using ShowRecording = std::function<void(const std::string&)>;

}  // namespace waymark::record
