/// What became of a recording, in sentences for whoever asked for it: the same for every unit.
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
        nothing,       ///< nothing is recorded, or not what was asked for
        program_died,  ///< by a signal
        interrupted,   ///< a signal asked us to end
        cut_off,       ///< something could not be written, code changed too often, or execution lost its way
    };
    enum class Level : std::uint8_t {
        summary,  ///< what went as it should
        note,
        repeated,  ///< a warning, of which there may be many that differ in numbers alone
        warning,
        error
    };
    struct Remark {
        Level level;
        std::string text;
    };

    Kind kind = Kind::recorded;
    std::vector<Remark> remarks{};

    void summary(std::string text) { remarks.push_back({Level::summary, std::move(text)}); }
    void note(std::string text) { remarks.push_back({Level::note, std::move(text)}); }
    void warning(std::string text) { remarks.push_back({Level::warning, std::move(text)}); }
    /// Ends it with an error.
    RecordOutcome failed(Kind as, std::string text) {
        remarks.push_back({Level::error, std::move(text)});
        kind = as;
        return std::move(*this);
    }
    /// The same where `finished` is an error; `ending`: of the program.
    RecordOutcome not_finished(const Error& error, const Ending& ending) {
        return failed(Kind::cut_off, error.message + (ending.killed ? "; the program was ended" : ""));
    }
    /// Whether a signal ended the recording or the program; says which, and is of that kind then.
    [[nodiscard]] bool ended_by_signal(const Ending& ending);
    /// Says what the program itself gave back, if that is not 0.
    void say_status(const Ending& ending);
};

/// `SIGINT`, `signal 70`.
[[nodiscard]] std::string signal_name(int number);

/// Takes how far a recording is, in a line; called about five times a second.
using ShowRecording = std::function<void(const std::string&)>;

}  // namespace waymark::record
