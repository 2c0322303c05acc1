/// `waymark spe quality`: how far samples can be trusted.
#include <filesystem>
#include <memory>

#include "../dpu/listing.h"
#include "../info_others.h"
#include "../options.h"
#include "answers.h"
#include "commands.h"
#include "waymark/core/quote.h"

namespace waymark::cli {

namespace {

class NoSink final : public analysis::SampleSink {
public:
    void consume(const analysis::SampleBatch&) override {}
    [[nodiscard]] std::unique_ptr<SampleSink> fork() const override { return std::make_unique<NoSink>(); }
    void join(SampleSink&) override {}
};

ExitStatus quality(const AnswerOptions& options) {
    auto answer = Answer::open(options);
    if (!answer) return fail(answer.error());
    NoSink sink;
    answer->run(sink);
    auto out = Output::open(options.output, {options.capture});
    if (!out) return fail(out.error());
    if (options.format == "json")
        out->write(json_text(answer->quality_json()) + "\n");
    else if (options.format == "tsv")
        print_tsv(*out, answer->streams_table());
    else
        answer->print_quality(*out, true);
    return answer->finish(options, *out, false);
}

}  // namespace

ExitStatus run_profile_info(const InputOptions& input, const std::string& format) {
    if (const std::string given = not_for_dpu(input); !given.empty())
        return fail(
            {Errc::usage, fmt::format("{} is a perf.data file, which describes how it was recorded; leave out {}",
                                      input.capture, given)});
    AnswerOptions options;
    options.capture = input.capture;
    options.names.lookup = input.lookup;
    options.format = format;
    options.output = input.output;
    auto answer = Answer::open(options);
    if (!answer) return fail(answer.error());
    NoSink sink;
    answer->run(sink);
    auto out = Output::open(options.output, {options.capture});
    if (!out) return fail(out.error());
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(input.capture, error);
    nlohmann::ordered_json info{{"capture", input.capture},
                                {"kind", "perf.data, samples of the Statistical Profiling Extension (SPE)"},
                                {"bytes", error ? nlohmann::ordered_json() : nlohmann::ordered_json(bytes)},
                                {"run", answers::account_sentence(answer->account())}};
    if (format == "text") {
        out->print("capture {}\n  {}, {}\n\n", input.capture, info["kind"].get<std::string>(),
                   error ? "of unknown size" : counted(bytes, "byte"));
        answer->print_quality(*out, true);
        out->print("\nnext: waymark spe report {} explains what the samples mean\n", shell_file(input.capture));
    } else {
        info["samples"] = answer->quality_json();
        listing::print_document(*out, json_text(info), listing::format_of(format));
    }
    return answer->finish(options, *out, false);
}

Run add_spe_quality(const Command& spe) {
    auto options = std::make_shared<AnswerOptions>();
    const Command command = spe.add("quality");
    options->add_to(command);
    return [options] { return quality(*options); };
}

}  // namespace waymark::cli
