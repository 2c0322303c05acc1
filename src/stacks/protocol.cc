#include "waymark/stacks/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/flow/blocks.h"
#include "waymark/follow/parallel.h"
#include "waymark/protocol/adapters.h"

namespace waymark::stacks {

namespace {

using protocol::FieldVisitor;

/// Cuts a stream into entries.
template <class Take>
class EntryReader final : public protocol::Reader {
public:
    explicit EntryReader(Take take) : take_(std::move(take)) {}
    void feed(Bytes bytes) override {
        while (!bytes.empty()) {
            const std::size_t some = std::min(bytes.size(), entry_bytes - have_);
            std::copy_n(bytes.begin(), some, part_.begin() + static_cast<std::ptrdiff_t>(have_));
            bytes = bytes.subspan(some);
            have_ += some;
            at_ += some;
            if (have_ < entry_bytes) return;
            have_ = 0;
            take_.entry(capture::perf::parse_branch_entry(part_), Offset{at_ - entry_bytes},
                        std::exchange(newest_, false));
        }
    }
    void reset(GapReason) override { finish(); }
    void finish() override {
        if (have_ != 0) take_.gap({Offset{at_ - have_}, Offset{at_}, GapReason::incomplete_packet});
        have_ = 0;
        newest_ = true;
    }
    [[nodiscard]] std::array<Offset, 2> pending() const override { return {Offset{at_ - have_}, Offset{at_ - have_}}; }
    [[nodiscard]] bool amid_packet() const override { return have_ != 0; }
    [[nodiscard]] const Take& take() const { return take_; }

private:
    Take take_;
    std::array<std::uint8_t, entry_bytes> part_{};
    std::size_t have_ = 0;
    std::uint64_t at_ = 0;
    bool newest_ = true;
};

constexpr std::string_view newest_name = "NEWEST-BRANCH", older_name = "BRANCH";

class EntryView final : public protocol::PacketView {
public:
    EntryView(const StackEntry& entry, bool newest) : entry_(entry), newest_(newest) {
        if (entry.mispredicted) add("mispredicted");
        if (entry.predicted) add("predicted");
        if (entry.in_transaction) add("in a transaction");
        if (entry.aborted) add("aborted");
        if (entry.speculation == Speculation::wrong_path) add("on a wrong path");
        if (entry.speculation == Speculation::right_path) add("speculative, on the right path");
    }
    [[nodiscard]] std::string_view name() const override { return newest_ ? newest_name : older_name; }
    [[nodiscard]] std::string fields_text() const override {
        protocol::FieldsText text;
        visit(text);
        return text.take();
    }
    void visit(FieldVisitor& visitor) const override {
        visitor.text("from", fmt::format("{:#x}", entry_.from));
        visitor.text("to", fmt::format("{:#x}", entry_.to));
        if (entry_.type != BranchEntryType::unknown) visitor.text("type", capture::perf::name(entry_.type));
        if (entry_.type == BranchEntryType::extended) visitor.number("new_type", entry_.new_type);
        if (entry_.cycles != 0) visitor.number("cycles", entry_.cycles);
        if (entry_.privilege != 0) visitor.number("privilege", entry_.privilege);
    }
    [[nodiscard]] const std::string& meaning() const override { return meaning_; }

private:
    void add(std::string_view what) { meaning_ += (meaning_.empty() ? "" : ", ") + std::string(what); }

    const StackEntry& entry_;
    const bool newest_;
    std::string meaning_;
};

struct List {
    protocol::PacketListener* listener;
    void entry(const StackEntry& entry, Offset at, bool newest) {
        listener->packet(EntryView(entry, newest), {at, entry_bytes});
    }
    void gap(const Gap& gap) { listener->gap(gap); }
};

struct Count {
    const OffsetMap* offsets;
    protocol::Survey survey{};
    std::uint64_t mispredicted = 0;
    void entry(const StackEntry& entry, Offset at, bool newest) {
        if (!survey.first_sync) survey.first_sync = offsets->capture(at);
        survey.add(newest ? newest_name : older_name, entry_bytes);
        mispredicted += entry.mispredicted ? 1 : 0;
    }
    void gap(const Gap& gap) {
        protocol::Survey::Gaps& gaps = survey.gaps[static_cast<unsigned>(gap.reason)];
        if (gaps.times++ == 0) gaps.first = offsets->capture(gap.first);
        gaps.bytes += gap.bytes();
    }
};

class Surveyor final : public protocol::Surveyor {
public:
    explicit Surveyor(const OffsetMap& offsets) : reader_(Count{&offsets}) {}
    void feed(Bytes bytes) override { reader_.feed(bytes); }
    void reset(GapReason why) override { reader_.reset(why); }
    void finish() override { reader_.finish(); }
    [[nodiscard]] std::array<Offset, 2> pending() const override { return reader_.pending(); }
    [[nodiscard]] bool amid_packet() const override { return reader_.amid_packet(); }
    [[nodiscard]] protocol::Survey survey() const override { return reader_.take().survey; }

private:
    EntryReader<Count> reader_;
};

/// Stacks are short, and each is decoded with knowledge from earlier ones, so one thread is enough.
template <class Out>
class OneThread final : public follow::Parallel {
public:
    OneThread(const Config& config, const isa::CodeReader& code, flow::BlockTable& table, flow::Sink& sink, bool ways)
        : out_(table, sink), decoder_(config, code, out_) {
        if constexpr (counts_edges)
            if (ways) out_.count_ways();
    }
    void feed(Bytes bytes) override { decoder_.feed(bytes); }
    void reset(GapReason why) override {
        decoder_.reset(why);
        out_.flush();
    }
    void finish() override {
        decoder_.finish();
        out_.flush();
    }
    void flush() override { out_.flush(); }
    [[nodiscard]] std::uint64_t packets() const override { return decoder_.packets(); }
    [[nodiscard]] std::array<Offset, 2> pending() const override { return decoder_.pending(); }
    [[nodiscard]] bool amid_packet() const override { return decoder_.amid_packet(); }
    [[nodiscard]] std::vector<std::uint64_t> counts() const override {
        if constexpr (counts_edges) {
            const auto all = out_.counts();
            return {all.begin(), all.end()};
        }
        return {};
    }
    [[nodiscard]] std::uint64_t cycles() const override { return 0; }
    [[nodiscard]] Ways ways() const override {
        Ways out;
        if constexpr (counts_edges) {
            for (const flow::EdgeWay& w : out_.ways().all())
                if (w.times != 0) out.ways.push_back(w);
            out.left_out = out_.ways().left_out();
        }
        return out;
    }
    [[nodiscard]] std::uint64_t repeated() const override { return 0; }

private:
    static constexpr bool counts_edges = std::is_same_v<Out, flow::CountWriter>;
    mutable Out out_;
    StackDecoder<Out> decoder_;
};

class Configured final : public protocol::Configuration {
public:
    Configured(const Config& config, std::string_view type) : config_(config), type_(type) {}
    [[nodiscard]] const Config& config() const { return config_; }
    [[nodiscard]] const protocol::Protocol& protocol() const override { return row(); }
    [[nodiscard]] bool equals(const Configuration& other) const override {
        const auto& that = static_cast<const Configured&>(other);
        return config_ == that.config_ && type_ == that.type_;
    }
    [[nodiscard]] std::string source_type() const override { return type_; }
    [[nodiscard]] std::vector<RegisterValue> registers() const override { return {}; }
    [[nodiscard]] std::vector<protocol::Setting> settings() const override {
        return {{"instruction_set", std::string(isa::name(config_.isa)) + (type_ == assumed_type ? " (assumed)" : "")}};
    }
    [[nodiscard]] std::string core_type() const override {
        if (type_ == assumed_type) return {};
        return config_.isa == isa::Isa::x86_64 ? "x86-64" : "ARM-AA64";
    }
    [[nodiscard]] std::unique_ptr<protocol::Reader> list(protocol::PacketListener& listener) const override {
        return std::make_unique<EntryReader<List>>(List{&listener});
    }
    [[nodiscard]] std::unique_ptr<protocol::Surveyor> survey(const OffsetMap& offsets) const override {
        return std::make_unique<Surveyor>(offsets);
    }
    [[nodiscard]] std::unique_ptr<protocol::Decoder> decoder(const isa::CodeReader& code, flow::BatchWriter& out,
                                                             const protocol::DecoderOptions& options) const override {
        Config config = config_;
        config.max_walk_bytes = options.max_walk_bytes.value_or(config.max_walk_bytes);
        return std::make_unique<StreamDecoderOf<StackDecoder<flow::BatchWriter>>>(config, code, out);
    }
    [[nodiscard]] std::unique_ptr<follow::Parallel> parallel_decoder(
        const isa::CodeReader& code, flow::BlockTable& table, flow::Sink& sink,
        const follow::ParallelOptions& options) const override {
        if (options.ranges == follow::Ranges::counted)
            return std::make_unique<OneThread<flow::CountWriter>>(config_, code, table, sink, options.ways);
        return std::make_unique<OneThread<flow::BatchWriter>>(config_, code, table, sink, false);
    }

private:
    const Config config_;
    const std::string type_;
};

class ProtocolRow final : public protocol::Protocol {
public:
    [[nodiscard]] const protocol::Words& words() const override {
        static constexpr protocol::Words words{.unit = "stacks",
                                               .unit_title = "Branch recording",
                                               .trace = "branch stacks",
                                               .title = "branch stacks (LBR, BRBE)",
                                               .types = {},
                                               .sync = "stack",
                                               .syncs = "stacks",
                                               .one_sync = "stack",
                                               .type_names = {"LBR", "BRBE", "STACKS"}};
        return words;
    }
    [[nodiscard]] std::string_view unit_of(std::string_view type) const override {
        if (type == lbr_type) return lbr_type;
        return type == brbe_type ? brbe_type : words().unit;
    }
    [[nodiscard]] protocol::Configured configure(const protocol::Description& source) const override {
        Config config;
        const bool x86 = source.type == lbr_type || source.type == made_x86_64_type;
        config.isa = x86 ? isa::Isa::x86_64 : isa::Isa::a64;
        return {configuration(config, source.type), {}};
    }
    [[nodiscard]] bool decodes_flow() const override { return true; }
    [[nodiscard]] std::vector<std::string> packet_names() const override {
        return {std::string(newest_name), std::string(older_name)};
    }
    [[nodiscard]] bool identify(const std::vector<protocol::Stretch>& stretches,
                                protocol::Identity& out) const override {
        // Addresses are signed numbers of 48 bits, and half of the flags are reserved.
        const auto is_address = [](std::uint64_t a) { return a >> 47 == 0 || a >> 47 == 0x1ffff; };
        std::uint64_t entries = 0, sound = 0;
        for (const protocol::Stretch& stretch : stretches) {
            const Bytes bytes = stretch.bytes;
            for (std::size_t at = 0; at + entry_bytes <= bytes.size(); at += entry_bytes) {
                const auto one = bytes.subspan(at).first<entry_bytes>();
                const StackEntry e = capture::perf::parse_branch_entry(one);
                const bool nothing_reserved = std::ranges::equal(capture::perf::encode_branch_entry(e), one);
                ++entries;
                sound += is_address(e.from) && is_address(e.to) && (e.from | e.to) != 0 && e.privilege < 4 &&
                                 !(e.mispredicted && e.predicted) && nothing_reserved
                             ? 1
                             : 0;
            }
        }
        out.tried.push_back({"branch stacks", fmt::format("{}, {} of them with two addresses and sound flags",
                                                          counted(entries, "entry", "entries"), sound)});
        if (entries < 2 || sound != entries) return false;
        out.protocol = this;
        out.configuration = configuration({}, made_a64_type);
        out.entries = out.waypoints = entries;
        out.first_sync = Offset{0};
        return true;
    }
    /// The bytes do not show the instruction set.
    [[nodiscard]] protocol::Settled settle(const protocol::Identity&, const protocol::Configuration& described,
                                           const std::vector<protocol::Stretch>&, std::string_view) const override {
        return {configuration(static_cast<const Configured&>(described).config(), described.source_type()), {}};
    }
    [[nodiscard]] std::string sentence(const flow::Inconsistency& what) const override {
        switch (what.conflict) {
            case flow::Conflict::address_disagrees:
                return fmt::format("no code leads straight from one branch of a stack ({:#x}) to the next one ({:#x})",
                                   what.found.value, what.expected.value);
            case flow::Conflict::always_taken:
                return fmt::format(
                    "between two branches of a stack, up to {:#x}, the program has one that is always "
                    "taken ({:#x})",
                    what.expected.value, what.found.value);
            case flow::Conflict::branch_disagrees:
                return fmt::format("a stack has a branch to {:#x}, and the program has none there, or one to {:#x}",
                                   what.expected.value, what.found.value);
            default: return Protocol::sentence(what);
        }
    }
    [[nodiscard]] std::string how_to_read(std::string_view) const override { return {}; }
    [[nodiscard]] std::string next_step(std::string_view file) const override {
        return fmt::format("waymark profile {} shows what ran in the stretches that branch stacks cover", file);
    }
};

}  // namespace

std::shared_ptr<const protocol::Configuration> configuration(const Config& config, std::string_view source_type) {
    return std::make_shared<Configured>(config, source_type);
}

const protocol::Protocol& row() {
    static const ProtocolRow row;
    return row;
}

}  // namespace waymark::stacks
