/// The options that select a part of the program flow of a perf.data file: which processes, threads, images and CPUs,
/// the kernel or user code, and when.
#pragma once

#include <string>
#include <vector>
#include "waymark/command_line/command.h"

#include "waymark/core/result.h"
#include "waymark/pipeline/flow_filter.h"

namespace waymark::cli {

struct SelectionOptions {
    std::vector<std::string> processes, excluded, threads, images, cpus;
    bool without_recorder = false;
    bool kernel = false, user = false;
    std::string time;

    void add_to(const Command& command);
    /// The first option that was given; null if none was.
    [[nodiscard]] const char* given() const;
    /// Errors: `usage`: an invalid value.
    [[nodiscard]] Result<pipeline::FlowSelection> read() const;
};

}  // namespace waymark::cli
