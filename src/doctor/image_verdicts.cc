// Compares the trace with images of the program.
#include <fmt/format.h>

#include <algorithm>

#include "examination.h"
#include "waymark/core/quote.h"
#include "waymark/image/program_file.h"
#include "waymark/image/program_kind.h"
#include "waymark/protocol/adapters.h"
#include "waymark/protocol/ring.h"

namespace waymark::doctor {

namespace {

using SharedConfiguration = std::shared_ptr<const Configuration>;

bool better(const Trial& a, const Trial& b) {
    if (a.contradictions + b.contradictions == 0)
        return a.totals.unplaced < b.totals.unplaced && a.totals.ranges >= b.totals.ranges;
    if (a.proven() != b.proven()) return a.proven();
    if (a.agrees() != b.agrees()) return a.agrees();
    return a.contradictions * std::max<std::uint64_t>(b.totals.ranges, 1) <
           b.contradictions * std::max<std::uint64_t>(a.totals.ranges, 1);
}

/// The variant of the configuration that the image needs. `free`: the settings that the bytes alone do not show, in
/// which variants differ.
Trial best_trial(const std::vector<Stretch>& stretches, SharedConfiguration& configuration, const isa::CodeReader& code,
                 bool free) {
    Trial best = try_image(stretches, *configuration, code);
    // Beside a Q element a missing address is no contradiction; with a return stack it may be known.
    const bool misses_addresses = best.totals.untraced != 0 && best.totals.unplaced != 0;
    if (!free || (best.contradictions == 0 && !misses_addresses)) return best;
    for (SharedConfiguration& variant : configuration->variants()) {
        Trial trial = try_image(stretches, *variant, code);
        if (!better(trial, best)) continue;
        best = std::move(trial);
        configuration = std::move(variant);
    }
    return best;
}

/// The name of a setting and its value, as facts from the bytes express it: `Context ID`, `2 bytes`.
std::string fact_name(const protocol::Setting& setting) {
    constexpr std::string_view size = " bytes";
    std::string name = protocol::setting_words(setting);
    if (name.ends_with(size)) name.resize(name.size() - size.size());
    return name;
}
std::string fact_value(const protocol::Setting& setting) {
    const auto* const number = std::get_if<std::uint64_t>(&setting.value);
    if (number == nullptr || !setting.name.ends_with("_bytes")) return protocol::value_words(setting);
    return *number == 0 ? "not traced" : counted(*number, "byte");
}

std::optional<Offset> first_contradiction(const std::vector<Stretch>& stretches, const Configuration& configuration,
                                          const isa::CodeReader& code) {
    const Trial trial = try_image(stretches, configuration, code);
    return trial.first ? std::optional(trial.first->offset) : std::nullopt;
}
/// The configuration of the unit in the core for which this program was built; null if the program shows nothing that
/// changes the configuration.
SharedConfiguration beside_core_of(const std::string& argument, const Configuration& configuration) {
    const auto image = image::parse_image_argument(argument);
    if (!image) return nullptr;
    const auto kind = image::program_kind(image->path);
    if (!kind || kind->architecture.empty()) return nullptr;
    return configuration.beside(kind->architecture);
}
/// The trace has a synchronisation, and no outcome of a branch.
bool ran_nothing(const ExaminedSource& source) {
    return source.identity.waypoints == 0 && source.identity.first_sync.has_value();
}
/// Number of atoms and branch packets in the trace.
std::uint64_t waypoints_of(const ExaminedSource& source) { return source.identity.waypoints; }
void classify(ImageVerdict& verdict, std::uint64_t waypoints) {
    using Kind = ImageVerdict::Kind;
    Trial& trial = verdict.trial;
    trial.waypoints = waypoints;
    const bool most = trial.contradictions == 0 && trial.totals.ranges != 0 &&
                      trial.percent_explained() >= percent_to_agree && trial.strayed <= 1 + trial.totals.ranges / 10;
    verdict.kind = trial.proven() || most                                                             ? Kind::matches
                   : trial.agrees() && trial.contradictions != 0 && trial.confirmed >= paths_to_prove ? Kind::in_part
                   : trial.contradictions != 0 ? Kind::contradicts
                                               : Kind::not_reached;
}
bool fits(const ImageVerdict& verdict) {
    using Kind = ImageVerdict::Kind;
    return verdict.kind == Kind::matches || verdict.kind == Kind::in_part || verdict.kind == Kind::shifted;
}

/// The bytes of a ring buffer in the order of writing, if only the bytes themselves describe the unit. Empty if they
/// already are in that order.
std::vector<Stretch> in_written_order(const ExaminedSource& source, const std::vector<Stretch>& dump) {
    const auto* const ring = dynamic_cast<const protocol::RingSource*>(source.configuration.get());
    if (source.configured || ring == nullptr || dump.size() != 1) return {};
    const Stretch& whole = dump.front();
    std::vector<Stretch> out;
    for (const protocol::Arrangement::Piece& piece : ring->arrange(whole.bytes).pieces) {
        if (out.empty() || piece.lost) out.emplace_back();
        std::vector<std::uint8_t>& bytes = out.back().bytes;
        out.back().offsets.add(Offset{bytes.size()}, whole.offsets.capture(Offset{piece.offset}));
        const auto first = whole.bytes.begin() + static_cast<std::ptrdiff_t>(piece.offset);
        bytes.insert(bytes.end(), first, first + static_cast<std::ptrdiff_t>(piece.bytes));
    }
    if (!out.empty()) out.front().head = true;
    return out;
}

}  // namespace

void ImageTrials::judge(ExaminedSource& source, const std::vector<Stretch>& dump, const pipeline::Source* known) {
    const std::vector<Stretch> ordered = in_written_order(source, dump);
    const std::vector<Stretch>& stretches = ordered.empty() ? dump : ordered;
    Trial& own = own_memory_[index_of(source)];
    if (known != nullptr && session_.capture.spaces != nullptr) {
        // Each process may have another file at one address.
        ImageVerdict verdict{"the capture's memory", source.name, {}, {}, {}};
        judge_processes(source, verdict);
        own = verdict.trial;
        report_.images.push_back(std::move(verdict));
    } else if (known != nullptr && !known->memory->empty()) {
        ImageVerdict verdict{"the capture's memory", source.name, {}, {}, {}};
        judge_memory(source, stretches, *known, verdict);
        own = verdict.trial;
        report_.images.push_back(std::move(verdict));
    } else if (known != nullptr && !session_.capture.dumps.empty()) {
        own = try_image(stretches, *source.configuration, *known->memory);
    }
    for (const std::string& argument : options_.images) {
        ImageVerdict verdict{argument, source.name, {}, {}, {}};
        judge_image(source, stretches, argument, verdict);
        // With several processes, the image is part of the memory that was already judged.
        using Kind = ImageVerdict::Kind;
        if (session_.capture.spaces != nullptr && verdict.kind != Kind::other_build && verdict.kind != Kind::unreadable)
            continue;
        report_.images.push_back(std::move(verdict));
    }
    if (options_.images.size() > 1 && session_.capture.spaces == nullptr) judge_together(source, stretches);
    for (ImageVerdict& v : report_.images) {
        if (v.source != source.name) continue;
        v.trial.waypoints = waypoints_of(source);
        if (v.shift) v.shift->trial.waypoints = waypoints_of(source);
    }
    for (std::size_t i = 0; i < report_.images.size(); ++i) {
        const ImageVerdict& v = report_.images[i];
        if (v.source != source.name || !fits(v)) continue;
        const auto rank = [&](std::size_t k) {
            const ImageVerdict& w = report_.images[k];
            const Trial& trial = w.shift ? w.shift->trial : w.trial;
            return std::pair(w.kind != ImageVerdict::Kind::in_part, trial.totals.ranges);
        };
        if (!source.image || rank(i) > rank(*source.image)) source.image = i;
    }
    if (source.image) find_unseen_code(source, report_.images[*source.image]);
    if (!source.configured) find_program_facts(source, stretches);
}

/// A program may consist of several files, such as a boot loader and firmware, none of which explains the trace alone.
void ImageTrials::judge_together(ExaminedSource& source, const std::vector<Stretch>& stretches) {
    ImageVerdict all{fmt::format("all {} images together", options_.images.size()), source.name, {}, {}, {}};
    std::uint64_t most_ranges = 0;
    for (const ImageVerdict& v : report_.images) {
        if (v.source != source.name || v.image == all.image) continue;
        if (v.kind == ImageVerdict::Kind::unreadable || v.kind == ImageVerdict::Kind::other_build) return;
        if (std::find(options_.images.begin(), options_.images.end(), v.image) == options_.images.end()) continue;
        all.together.push_back(v.argument.empty() ? v.image : v.argument);
        if (fits(v)) most_ranges = std::max(most_ranges, (v.shift ? v.shift->trial : v.trial).totals.ranges);
    }
    const auto map = load_arguments(all.together)(0);
    if (!map) return;
    SharedConfiguration configuration = source.configuration;
    if (!source.configured)
        for (const std::string& argument : all.together)
            if (SharedConfiguration beside = beside_core_of(argument, *configuration))
                configuration = std::move(beside);
    all.trial = best_trial(stretches, configuration, **map, !source.configured);
    classify(all, waypoints_of(source));
    if (!fits(all) || all.trial.totals.ranges <= most_ranges) return;
    for (const std::string& argument : all.together)
        all.argument += (all.argument.empty() ? "" : " --image ") + shell_word(argument);
    if (!source.configured) source.configuration = configuration;
    report_.images.push_back(std::move(all));
}

/// Infers settings that the bytes alone do not show: a setting is proven if the image contradicts all other values.
void ImageTrials::find_program_facts(ExaminedSource& source, const std::vector<Stretch>& stretches) const {
    using protocol::Certainty;
    const std::vector<SharedConfiguration> variants = source.configuration->variants();
    std::shared_ptr<const image::MemoryMap> map;
    const ImageVerdict* const v = source.image ? &report_.images[*source.image] : nullptr;
    if (v != nullptr && !v->argument.empty())
        if (auto loaded = load_arguments(v->arguments())(0)) map = std::move(*loaded);
    constexpr std::uint64_t enough_bytes = std::uint64_t{1} << 18, many = 8;
    const Trial mine = map ? try_image(stretches, *source.configuration, *map, enough_bytes, many) : Trial{};
    std::vector<Trial> trials;
    for (const SharedConfiguration& variant : variants)
        trials.push_back(map ? try_image(stretches, *variant, *map, enough_bytes, many) : Trial{});
    const std::vector<protocol::Setting> settings = source.configuration->settings();
    for (std::size_t i = 0; i < settings.size(); ++i) {
        const Trial* other = nullptr;  // the best trial with another value
        std::string value;
        for (std::size_t k = 0; k < variants.size(); ++k) {
            const std::vector<protocol::Setting> theirs = variants[k]->settings();
            if (theirs[i] == settings[i]) continue;
            if (other != nullptr && other->contradictions <= trials[k].contradictions) continue;
            other = &trials[k];
            value = fact_value(theirs[i]);
        }
        if (other == nullptr) continue;
        InferredField fact{fact_name(settings[i]), fact_value(settings[i]), Certainty::assumed, {}};
        // The program decides what the bytes alone do not show.
        std::vector<InferredField>& by_bytes = source.identity.facts;
        const auto open = std::find_if(by_bytes.begin(), by_bytes.end(), [&](const InferredField& f) {
            return f.certainty == Certainty::assumed && protocol::upper(f.what) == protocol::upper(fact.what);
        });
        if (open != by_bytes.end()) {
            if (map == nullptr) continue;
            fact.what = open->what;
            by_bytes.erase(open);
        }
        if (map == nullptr) {
            fact.proof = "only a program shows it (--image)";
        } else if (other->contradictions > mine.contradictions && mine.totals.ranges != 0) {
            fact.certainty = v->trial.proven() || (v->shift && v->shift->trial.proven()) || other->contradictions >= 2
                                 ? Certainty::proven
                                 : Certainty::likely;
            fact.proof = fmt::format("with '{}' the image is contradicted: {}{}", value, other->ended ? "over " : "",
                                     counted(other->contradictions, "contradiction"));
        } else if (other->contradictions == 0 && other->totals.unplaced > mine.totals.unplaced) {
            fact.certainty = Certainty::likely;
            fact.proof =
                fmt::format("with '{}' {} no address, here {}", value,
                            counted(other->totals.unplaced, "waypoint has", "waypoints have"), mine.totals.unplaced);
        } else {
            fact.proof = fmt::format("with '{}' the image agrees as well", value);
        }
        source.program_facts.push_back(std::move(fact));
    }
    const Configuration& configuration = *source.configuration;
    if (!configuration.equals(*source.identity.configuration) && v != nullptr)
        if (SharedConfiguration beside = beside_core_of(v->argument, *source.identity.configuration)) {
            // The core determines the profile; if the bytes show a core or profile, beside() has only made it more
            // specific.
            std::erase_if(source.identity.facts,
                          [](const InferredField& f) { return f.what == "core" || f.what == "profile"; });
            source.program_facts.push_back(
                {"core", beside->core_type(),
                 v->trial.proven() || (v->shift && v->shift->trial.proven()) ? Certainty::proven : Certainty::likely,
                 fmt::format("the attributes of {}", v->image)});
        }
}

/// Reports code that ran although the trace does not show it, and although image and trace agree.
void ImageTrials::find_unseen_code(ExaminedSource& source, const ImageVerdict& verdict) {
    const flow::Totals& totals = (verdict.shift ? verdict.shift->trial : verdict.trial).totals;
    const std::uint64_t unplaced = totals.no_memory == 0 ? totals.unplaced : 0;
    if (totals.untraced == 0 && unplaced == 0) return;
    CaptureFinding finding;
    finding.severity = Severity::warning;
    finding.kind = "unseen-code";
    finding.found = totals.untraced != 0 ? fmt::format("{} whose path the trace omits, with {}",
                                                       counted(totals.untraced, "stretch", "stretches"),
                                                       counted(totals.unseen_instructions, "instruction"))
                                         : fmt::format("{} without an address", counted(unplaced, "waypoint"));
    finding.expected = "all that ran";
    finding.cause = "the unit sent Q elements, or leaves addresses out";
    finding.advice = "turn Q elements off (TRCCONFIGR.QE): coverage and counts lack what ran unseen";
    add_findings(source, {std::move(finding)});
}

void ImageTrials::judge_processes(const ExaminedSource& source, ImageVerdict& verdict) const {
    using Kind = ImageVerdict::Kind;
    if (const auto found = examination_.processes.find(source.name); found != examination_.processes.end())
        verdict.trial = found->second;
    const Trial& trial = verdict.trial;
    verdict.kind = trial.totals.ranges == 0                          ? Kind::not_reached
                   : trial.contradictions == 0                       ? Kind::matches
                   : trial.contradictions * 50 < trial.totals.ranges ? Kind::in_part
                                                                     : Kind::contradicts;
}

void ImageTrials::judge_memory(ExaminedSource& source, const std::vector<Stretch>& stretches,
                               const pipeline::Source& known, ImageVerdict& verdict) {
    const SharedConfiguration before = source.configuration;
    verdict.trial = best_trial(stretches, source.configuration, *known.memory, true);
    if (!source.configuration->equals(*before)) {
        // Damage contradicts the image under every setting. A setting is wrong only if another one removes most
        // contradictions, and decodes no less.
        Trial as_described = try_image(stretches, *before, *known.memory);
        const bool removes_them = verdict.trial.contradictions * 4 <= as_described.contradictions &&
                                  verdict.trial.totals.ranges * 10 >= as_described.totals.ranges * 9;
        if (!removes_them && !as_described.ended) {
            source.configuration = before;
            verdict.trial = std::move(as_described);
        }
    }
    if (verdict.trial.agrees() && !source.configuration->equals(*before)) {
        std::vector<CaptureFinding> wrong = source.configuration->differences(*before, source.name);
        const auto at = first_contradiction(stretches, *before, *known.memory);
        for (CaptureFinding& finding : wrong) finding.offset = at;
        add_findings(source, std::move(wrong));
    }
    classify(verdict, waypoints_of(source));
    if (fits(verdict) || ran_nothing(source)) return;
    const auto& dumps = session_.capture.dumps;
    if (try_without_thumb_bits(source, stretches, known, verdict)) return;
    const bool one = std::count_if(dumps.begin(), dumps.end(), [&](const capture::MemoryDump& d) {
                         return d.core.empty() || d.core == known.core;
                     }) == 1;
    if (one) {
        const auto dump = std::find_if(dumps.begin(), dumps.end(), [&](const capture::MemoryDump& d) {
            return d.core.empty() || d.core == known.core;
        });
        image::MemoryMap map;
        if (!map.add_file(dump->file, dump->address, dump->offset, dump->length)) return;
        verdict.shift = find_shift(stretches, {source.configuration}, map, {});
        if (verdict.shift) {
            verdict.kind = ImageVerdict::Kind::shifted;
            verdict.argument =
                fmt::format("{}@{:#x}", dump->file.string(), verdict.shift->applied_to(dump->address).value);
        }
    }
}
/// The address of a Thumb function has bit 0 set, and so has the load address of a dump that was taken from such an
/// address.
bool ImageTrials::try_without_thumb_bits(const ExaminedSource& source, const std::vector<Stretch>& stretches,
                                         const pipeline::Source& known, ImageVerdict& verdict) const {
    constexpr std::uint64_t thumb = 1;
    image::MemoryMap map;
    const capture::MemoryDump* odd = nullptr;
    for (const capture::MemoryDump& dump : session_.capture.dumps) {
        if (!dump.core.empty() && dump.core != known.core) continue;
        if (odd == nullptr && (dump.address.value & thumb) != 0) odd = &dump;
        (void)map.add_file(dump.file, {dump.address.value & ~thumb}, dump.offset, dump.length);
    }
    if (odd == nullptr) return false;
    ImageVerdict even = verdict;
    even.trial = try_image(stretches, *source.configuration, map);
    classify(even, waypoints_of(source));
    if (!fits(even)) return false;
    verdict.kind = ImageVerdict::Kind::shifted;
    verdict.shift = Shift{.bytes = ~std::uint64_t{0}, .mask = ~std::uint64_t{0}, .trial = std::move(even.trial)};
    verdict.argument = fmt::format("{}@{:#x}", odd->file.string(), odd->address.value & ~thumb);
    return true;
}

void ImageTrials::judge_image(ExaminedSource& source, const std::vector<Stretch>& stretches,
                              const std::string& argument, ImageVerdict& verdict) {
    const LoadImage load = load_argument(argument);
    const MappedImage mapping = mapping_of(argument, session_.capture.modules);
    if (!mapping.build_id.empty()) {
        verdict.kind = ImageVerdict::Kind::other_build;
        verdict.why = fmt::format("its build ID is {}; {}", mapping.build_id,
                                  mapping.build_id_there.empty()
                                      ? "no file with this build ID was mapped while the trace was taken"
                                      : "that of the file of this name that ran is " + mapping.build_id_there);
        return;
    }
    const auto map = load(mapping.load_bias.value_or(0));
    if (!map) {
        verdict.kind = ImageVerdict::Kind::unreadable;
        verdict.why = map.error().message;
        return;
    }
    if (session_.capture.spaces != nullptr) return;
    SharedConfiguration configuration = source.configuration;
    if (!source.configured)
        if (SharedConfiguration beside = beside_core_of(argument, *configuration)) configuration = std::move(beside);
    const SharedConfiguration unvaried = configuration;
    verdict.trial = best_trial(stretches, configuration, **map, !source.configured);
    const Grid grid = grid_of(argument);
    if (grid.granule == page_bytes) count_beside(verdict.trial, extents_of(**map, true), 0, ~std::uint64_t{0});
    classify(verdict, waypoints_of(source));
    if (fits(verdict)) {
        verdict.argument = mapping.load_bias ? fmt::format("{}@{:#x}", argument, *mapping.load_bias) : argument;
        if (!source.configured) source.configuration = configuration;
        return;
    }
    if (mapping.load_bias || ran_nothing(source)) return;  // no other address is possible
    if (const auto given = image::parse_image_argument(argument);
        given && given->address && (given->address->value & 1U) != 0 && grid.granule == word_bytes) {
        const std::string even = fmt::format("{}@{:#x}", given->path.string(), given->address->value - 1);
        if (const auto even_map = load_argument(even)(0)) {
            ImageVerdict other = verdict;
            other.trial = try_image(stretches, *unvaried, **even_map);
            classify(other, waypoints_of(source));
            if (fits(other)) {
                verdict.kind = ImageVerdict::Kind::shifted;
                verdict.shift =
                    Shift{.bytes = ~std::uint64_t{0}, .mask = ~std::uint64_t{0}, .trial = std::move(other.trial)};
                verdict.argument = even;
                return;
            }
        }
    }
    std::vector<SharedConfiguration> configurations{unvaried};
    if (!source.configured)
        for (SharedConfiguration& variant : unvaried->variants()) configurations.push_back(std::move(variant));
    verdict.shift = find_shift(stretches, configurations, **map, grid);
    if (verdict.shift) source.configuration = configurations[verdict.shift->configuration];
    if (!verdict.shift) return;
    verdict.kind = ImageVerdict::Kind::shifted;
    const auto parsed = image::parse_image_argument(argument);
    verdict.argument = fmt::format("{}@{:#x}", parsed->path.string(),
                                   verdict.shift->applied_to(parsed->address.value_or(Address{})).value);
}

void ImageTrials::report() const {
    for (const ExaminedSource& source : report_.sources) {
        if (!source.has_flow()) continue;
        if (ran_nothing(source)) {
            add_finding(
                source, Severity::note, std::string(idle_source), source.identity.first_sync,
                fmt::format("{} without a branch: synchronisation, and packets that show no code, such as events",
                            bytes_text(source.bytes)),
                "trace of what ran",
                "the core ran nothing while it was traced, or only code that is excluded from the trace",
                "nothing, if the core was idle");
            continue;
        }
        std::string right;
        if (source.image) {
            const ImageVerdict& v = report_.images[*source.image];
            right = v.argument.empty() ? v.image : v.argument;
        }
        bool any = false;
        const bool as_one = source.image && !report_.images[*source.image].together.empty();
        for (const ImageVerdict& v : report_.images) {
            if (v.source != source.name) continue;
            any = true;
            // Code that one image lacks may be in another.
            using Kind = ImageVerdict::Kind;
            if (!as_one || (v.kind != Kind::not_reached && v.kind != Kind::contradicts)) report_image(source, v, right);
        }
        if (!any && session_.capture.dumps.empty() && !session_.capture.spaces)
            add_finding(
                source, Severity::note, "no-image", source.identity.first_sync, "no program image was given",
                "the program that ran", "the capture has no memory of its own, and there is no --image",
                "give it with --image FILE[@ADDRESS]: flow needs it, and it proves what the bytes alone do not");
    }
}
void ImageTrials::report_image(const ExaminedSource& source, const ImageVerdict& v, const std::string& right) const {
    using Kind = ImageVerdict::Kind;
    const std::string other = right.empty() || v.image == right
                                  ? std::string("give the program that ran with --image FILE[@ADDRESS]")
                                  : fmt::format("use {}, which agrees with the trace", right);
    const std::uint64_t ranges = v.trial.totals.ranges;
    if (v.kind == Kind::contradicts)
        add_finding(source, Severity::error, "image", v.trial.first->offset,
                    fmt::format("{} does not fit: {} ({})", v.image,
                                source.identity.protocol->sentence(v.trial.first->what), evidence(v.trial)),
                    "no contradiction: trace and code of one program agree everywhere; " + proof_needs(),
                    "damaged trace, another program or version, another load address, or code that was modified in "
                    "memory",
                    other);
    if (v.kind == Kind::shifted && v.shift->distance() == -1) {
        add_finding(
            source, Severity::error, "thumb-bit", v.trial.first_no_memory.value_or(Offset{}),
            fmt::format("{} begins at an odd address, and does not fit there", v.image),
            fmt::format("{}: there {}", v.argument, evidence(v.shift->trial)),
            "bit 0 of a Thumb function's address is not part of the address: it names the code's instruction set",
            v.argument == v.image || !report_.labelled ? fmt::format("--image {}", shell_word(v.argument))
                                                       : "correct 'address' of each dump that has an odd one");
        return;
    }
    if (v.kind == Kind::shifted) {
        const std::int64_t distance = v.shift->distance();
        const bool raw = v.trial.first == std::nullopt && ranges == 0;
        add_finding(
            source, Severity::error, "image-shift",
            v.trial.first ? v.trial.first->offset : v.trial.first_no_memory.value_or(Offset{}),
            v.trial.first ? fmt::format("{}: {}", v.image, source.identity.protocol->sentence(v.trial.first->what))
            : raw ? fmt::format("{} has nothing at {:#010x}, where execution goes", v.image, v.trial.no_memory.value)
                  : fmt::format("{} contains too little of the code that ran", v.image),
            fmt::format("the same image loaded {:#x} bytes {}: there {}", distance < 0 ? -distance : distance,
                        distance < 0 ? "lower" : "higher", evidence(v.shift->trial)),
            fmt::format("wrong load address; shift found by {}, and proven by decoding ({})",
                        counted(v.shift->votes, "agreeing address", "agreeing addresses"), proof_needs()),
            fmt::format("--image {}", shell_word(v.argument)));
    }
    if (v.kind == Kind::not_reached)
        add_finding(
            source, right.empty() ? Severity::warning : Severity::note, "image-not-reached",
            v.trial.first_no_memory.value_or(Offset{}),
            ranges == 0
                ? fmt::format("{} does not fit: it contains no address of the trace{}", v.image,
                              v.trial.first_no_memory ? fmt::format(" (first {:#010x})", v.trial.no_memory.value)
                                                      : std::string())
                : fmt::format("{} does not fit: {}", v.image, evidence(v.trial)),
            fmt::format("the program that ran: {}% of the branches in the trace explained, or a proof, also at another "
                        "address; {}",
                        percent_to_agree, proof_needs()),
            "another program, or too little of the trace ran in it", other);
    if (v.kind == Kind::other_build)
        add_finding(source, Severity::error, "image-other-build", {}, fmt::format("{}: {}", v.image, v.why),
                    "a file that was mapped", "the file was built anew, or is another program", other);
    if (v.kind == Kind::unreadable)
        add_finding(source, Severity::error, "image-unreadable", {}, v.why, "an ELF file or a raw dump",
                    "the file cannot be used", "name another file");
    if (v.kind == Kind::in_part)
        add_finding(
            source, Severity::warning, "image-in-part", v.trial.first->offset,
            fmt::format("{}: {} in {}, first: {}", v.image, counted(v.trial.contradictions, "contradiction"),
                        counted(ranges, "range"), source.identity.protocol->sentence(v.trial.first->what)),
            "none", "code that was modified in memory, damaged trace, or another version of the program",
            "read the buffer again if the trace is damaged; otherwise give the unmodified code with a further --image");
    if ((v.kind == Kind::matches || v.kind == Kind::in_part) && v.trial.totals.no_memory != 0)
        add_finding(source, Severity::note, "image-partial", v.trial.first_no_memory,
                    fmt::format("{}: execution went {} to addresses that it does not contain, first to {:#010x}",
                                v.image, counted(v.trial.totals.no_memory, "time"), v.trial.no_memory.value),
                    "all code that ran", "the image is a part of memory", "give the rest with a further --image");
}

}  // namespace waymark::doctor
