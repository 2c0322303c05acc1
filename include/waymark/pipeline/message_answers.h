/// Converts messages of units that do not trace program flow (protocol/message.h) to `answers::Answers`: samples of the
/// program counter by function, times of exception handlers, and tables of ports, watched data and event counters.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/pipeline/flow_answers.h"
#include "waymark/pipeline/run.h"

namespace waymark::pipeline {

[[nodiscard]] bool has_messages(const Source& source);
/// Whether answers to `waymark profile` and the like come from messages: a selected source has messages, and no
/// selected source has flow.
[[nodiscard]] bool has_messages_alone(const std::vector<const Source*>& selected);

/// The reason why sources of messages sent none.
[[nodiscard]] std::string why_no_messages(const Session& session, const std::vector<const Source*>& selected,
                                          const Report& report);

/// Takes the arguments of flow_answers, and returns the same errors.
[[nodiscard]] Result<answers::Answers> message_answers(const Session& session,
                                                       const std::vector<const Source*>& selected,
                                                       const FlowAnswersOptions& options, const Progress& progress,
                                                       const std::function<void(const Report&)>& read);

/// What the account of a capture with program flow lacks: the messages that its other sources lost, or that are not
/// decoded. Empty if no selected source has messages. Decodes these sources.
[[nodiscard]] answers::Account messages_lost(const Session& session, const std::vector<const Source*>& selected,
                                             const Progress& progress = {}, const OpenBuffer& open = {});

/// If a selected source has flow: flow_answers, with tables of the messages of the other sources. Else message_answers.
/// Takes the arguments of flow_answers, and returns the same errors.
[[nodiscard]] Result<answers::Answers> trace_answers(const Session& session, const std::vector<const Source*>& selected,
                                                     const FlowAnswersOptions& options, const Progress& progress,
                                                     const std::function<void(const Report&)>& read);

}  // namespace waymark::pipeline
