/// Flow elements as lines: text for people, tab-separated values and JSON lines for programs.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "output.h"
#include "waymark/flow/flow.h"
#include "waymark/pipeline/run.h"

namespace waymark::cli {

enum class Format { text, tsv, json };

/// What listings of all sources share.
struct ListingContext {
    Output& out;
    bool disassemble = false;
    const pipeline::Source* last_source = nullptr;  ///< text: whose heading was printed last
};

/// The first line of a table.
void begin_listing(ListingContext& context, Format format);

/// A sink that prints each element of one source. Everything given is borrowed.
[[nodiscard]] std::unique_ptr<flow::Sink> make_listing(ListingContext& context, const pipeline::StreamInfo& stream,
                                                       Format format);

/// Says which types of packets were asked for and not found among `all` of them.
void say_types_not_found(const std::set<std::string>& asked, const std::set<std::string>& found, std::uint64_t all,
                         std::string_view one, std::string_view many = {});

}  // namespace waymark::cli
