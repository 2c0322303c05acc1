#include "waymark/analysis/image_answers.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "waymark/answers/parts.h"
#include "waymark/image/debug_info.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/program_file.h"
#include "waymark/image/symbols.h"
#include "waymark/isa/decode_instr.h"

namespace waymark::analysis {

namespace {

using answers::Answers;
using answers::Index;
using answers::none;

class ImageFiller {
public:
    ImageFiller(const Answers& all, Index image, image::DebugInfo info)
        : all_(all), image_(image), info_(std::move(info)), sources_(out_.answers), inlined_(out_.answers) {}

    Status open(const std::filesystem::path& file) {
        map_.accept(image::Machines::arm_and_x86_64);
        symbols_.accept(image::Machines::arm_and_x86_64);
        // The list of instructions does not depend on the targets of branches to other files.
        const image::AddressOf anywhere = [](const std::string&) { return std::optional<std::uint64_t>(0); };
        WM_ASSIGN_OR_RETURN([[maybe_unused]] const image::Added added, map_.add_elf(file, 0, {}, {}, anywhere));
        WM_ASSIGN_OR_RETURN([[maybe_unused]] const std::size_t names, image::add_all_symbols(symbols_, file, info_, 0));
        return Nothing{};
    }

    ImageAnswers run() {
        Answers& a = out_.answers;
        a.capture = all_.capture;
        a.unit = all_.unit;
        a.version = all_.version;
        a.cut = all_.cut;
        a.metrics.push_back({"instructions", "instructions"});
        a.images.push_back(all_.images[image_]);
        a.images.back().load_bias = 0;
        lost_ = all_.cut || std::any_of(all_.health.begin(), all_.health.end(), [](const answers::Finding& f) {
                    return f.severity >= answers::Finding::Severity::warning && !f.of_names;
                });
        out_.quality.debug_info = info_.has_lines();
        count();
        add_rest();
        put();
        edges();
        return std::move(out_);
    }

private:
    using Key = std::pair<std::uint64_t, isa::Isa>;
    struct Code {
        isa::Instruction what;
        std::uint64_t times{};
    };

    [[nodiscard]] std::optional<isa::Instruction> decode(const Key& key) const {
        return isa::decode_at(map_, {}, {key.first}, key.second, {});
    }
    void count() {
        for (const answers::ImageRange& r : all_.ranges) {
            if (r.image != image_) continue;
            out_.quality.executed += r.times * r.instructions;
            std::uint64_t known = 0;
            // Damaged answers may claim more than the file has.
            for (std::uint64_t at = r.first; at <= r.last && known < r.instructions; ++known) {
                const auto what = decode({at, r.isa});
                if (!what || what->bytes == 0) break;
                Code& code = code_.try_emplace({at, r.isa}, Code{*what}).first->second;
                code.times += r.times;
                if (at + what->bytes < at) break;
                at += what->bytes;
            }
            out_.quality.unknown += r.times * (r.instructions - known);
        }
    }
    /// Adds code that did not run, of functions that ran.
    void add_rest() {
        std::map<std::uint64_t, image::Symbol> functions;
        for (const auto& [key, code] : code_)
            if (const auto found = symbols_.find({key.first}); found && found->symbol.bytes != 0)
                functions.try_emplace(found->symbol.address.value, found->symbol);
        for (const auto& [address, symbol] : functions) {
            std::uint64_t end = address + symbol.bytes;
            for (std::uint64_t at = address; at < end;) {
                const auto contents = symbols_.contents({at});
                const auto isa = contents ? image::instruction_set(*contents) : std::optional(symbol.isa);
                const auto what = isa ? decode({at, *isa}) : std::nullopt;
                if (isa && !what) break;  // the file has no more code
                if (what && what->bytes == 0) break;
                if (what) code_.try_emplace({at, *isa}, Code{*what});
                at += what ? what->bytes : 2;
            }
        }
    }
    Index function_of(std::uint64_t address) {
        const auto found = symbols_.find({address});
        const std::uint64_t begin = found ? found->symbol.address.value : 0;
        const auto [at, fresh] = functions_.try_emplace(begin, static_cast<Index>(out_.answers.functions.size()));
        if (!fresh) return at->second;
        answers::Function f;
        f.image = 0;
        f.address = begin;
        f.name = found ? std::string(found->symbol.name) : "(no symbol) in " + out_.answers.images[0].name;
        if (found) {
            f.linkage_name = found->symbol.linkage_name;
            f.bytes = found->symbol.bytes;
            const auto declared = info_.function({begin});
            if (const auto line = declared ? std::optional(declared->at) : info_.line({begin})) {
                f.source = sources_.of(line->file);
                f.line = line->line;
            }
            if (declared) {
                f.declared_name = declared->linkage_name;
                f.declared_source = sources_.of(declared->at.file);
                f.declared_line = declared->at.line;
                f.by_llvm = declared->by_llvm;
            }
        }
        out_.answers.functions.push_back(std::move(f));
        return at->second;
    }
    Index inlined_at(std::uint64_t address, Index function) {
        if (place_function_ == function && place_.holds({address})) return innermost_;
        place_ = info_.inlined({address});
        place_function_ = function;
        innermost_ = none;
        for (image::InlinedCall& call : place_.calls) {
            answers::InlinedCall made{innermost_, function, std::move(call.function), std::move(call.linkage_name),
                                      none,       0};
            if (call.at) {
                made.source = sources_.of(call.at->file);
                made.line = call.at->line;
                made.discriminator = call.at->discriminator;
            }
            made.declared_line = call.declared_line;
            innermost_ = inlined_.of(std::move(made));
        }
        return innermost_;
    }
    void put() {
        for (const auto& [key, code] : code_) {
            answers::Instruction i;
            i.address = key.first;
            i.bytes = code.what.bytes;
            i.isa = key.second;
            i.times = code.times;
            i.seen = code.times != 0 ? answers::Seen::executed
                     : lost_         ? answers::Seen::not_observed
                                     : answers::Seen::not_executed;
            i.function = function_of(key.first);
            i.inlined = inlined_at(key.first, i.function);
            if (const auto line = info_.line({key.first})) {
                i.source = sources_.of(line->file);
                i.line = line->line;
                i.discriminator = line->discriminator;
                out_.quality.with_lines += line->line != 0 ? code.times : 0;
            }
            out_.answers.instructions.push_back(std::move(i));
        }
    }
    void edges() {
        for (const answers::ImageBranch& b : all_.jumps) {
            if (b.image != image_ || b.to_image != image_) continue;
            out_.answers.edges.push_back({b.from, b.to, function_of(b.from), function_of(b.to), b.kind, b.times, {}});
        }
        std::stable_sort(out_.answers.edges.begin(), out_.answers.edges.end(),
                         [](const answers::Edge& x, const answers::Edge& y) {
                             return std::pair(x.from, x.to) < std::pair(y.from, y.to);
                         });
    }

    const Answers& all_;
    Index image_;
    image::DebugInfo info_;
    image::MemoryMap map_;
    image::Symbols symbols_;
    ImageAnswers out_;
    answers::SourceTable sources_;
    answers::InlinedTable inlined_;
    std::map<Key, Code> code_;
    std::map<std::uint64_t, Index> functions_;
    image::InlinedPlace place_{};
    Index place_function_ = none, innermost_ = none;
    bool lost_ = false;
};

}  // namespace

Result<ImageAnswers> image_answers(const Answers& answers, Index image, const std::filesystem::path& file,
                                   const std::vector<std::filesystem::path>& debug_folders) {
    WM_CHECK(image < answers.images.size());
    WM_ASSIGN_OR_RETURN(image::DebugInfo info, image::DebugInfo::open(file, debug_folders));
    ImageFiller filler(answers, image, std::move(info));
    WM_RETURN_IF_ERROR(filler.open(file));
    return filler.run();
}

}  // namespace waymark::analysis
