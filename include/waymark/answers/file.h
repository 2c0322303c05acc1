/// The answers file: answers as one file, versioned, checksummed and compressed (docs/answers-file.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "waymark/answers/answers.h"
#include "waymark/core/byte_sink.h"
#include "waymark/core/result.h"

namespace waymark::answers {

inline constexpr std::uint32_t file_version = 1;

/// Whether a file that begins with these bytes (8 suffice) is an answers file.
[[nodiscard]] bool is_answers_file(Bytes head);

/// Equal answers give equal bytes.
void write_answers(const Answers& answers, ByteSink& sink);

/// `name`: name of the file, for messages. Memory is bounded by the size of the file. Errors: `bad_format`: not an
/// answers file, or a damaged or truncated one; `unsupported`: written by a later version, with data that this version
/// does not know.
[[nodiscard]] Result<Answers> read_answers(Bytes file, std::string_view name);

/// docs/answers-file.md.
[[nodiscard]] std::string answers_document();

}  // namespace waymark::answers
