/// Remembers hot paths, eight bytes at a time: the whole effect of the next bytes of a stream at a position.
///
/// A program repeats itself, and so does its trace. Before an inner loop reads a packet, it looks up the path for its
/// position and the next eight bytes. If there is a path, all its ranges are written at once, or counted by one
/// addition, and the loop continues where the path ends. If not, the loop reads packets, and a path that is missed for
/// the second time is recorded. A trial on the stream itself decides whether lookups make decoding faster.
///
/// Why a remembered path stays true:
///
/// - A path consists of known links, and a link never changes.
/// - Its key contains a position and the serial number of the position's BlockCache, which no other cache ever has. New
///   code is in a new space with a new cache, so no old path is found there.
/// - For caches that share their blocks, the key contains the serial number of the shared part, if each address on the
///   way leads to the section of its branch: all spaces with that section take the same way.
/// - It contains all bits of its packets, the bits of the address state on which their meaning depends, and the calls
///   on the return stack to which it returns.
/// - It ends before a packet that is not plain, is not whole within the eight bytes, or leads to unknown code.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "waymark/flow/blocks.h"
#include "waymark/follow/block_cache.h"

namespace waymark::follow {

/// A plain packet, as parsed by a protocol's inner loop.
struct PlainPacket {
    enum class Is : std::uint8_t {
        other,     ///< a path cannot contain it
        outcomes,  ///< `count` outcomes: bit i of `e` is the i-th
        address    ///< it changes the address state, which then gives the place where execution continues
    } is = Is::other;
    std::uint8_t bytes = 0;
    std::uint8_t count = 0;
    std::uint32_t e = 0;
};

/// The requirements on a protocol:
///
///     State               the address state, against which addresses are compressed
///     Change              the bits of that state on which a path depends, and the path's effect on the state:
///                         change.fits(state), change.apply(state)
///     Recorder(state)     read(at): the packet at `at`, where 16 bytes can be read; state(): the state after the
///                         packets read so far; change(): their change
///     most_outcomes       maximum number of outcomes of a path: a multiple of 4
///     address_is_outcome  an address packet also reports the outcome of the indirect branch (PFT); otherwise it comes
///                         after that outcome (ETMv4)
template <class P>
concept PathProtocol = requires(typename P::State& state, const typename P::Change& change,
                                typename P::Recorder& recorder) {
    { change.fits(state) } -> std::same_as<bool>;
    change.apply(state);
    { recorder.read(static_cast<const std::uint8_t*>(nullptr)) } -> std::same_as<PlainPacket>;
    { recorder.state() } -> std::convertible_to<const typename P::State&>;
    { recorder.change() } -> std::same_as<typename P::Change>;
    requires P::most_outcomes % 4 == 0 && P::most_outcomes <= flow::BatchWriter::most_in_path;
};

/// Options for storing paths.
struct PathOptions {
    unsigned log2_size = 11;  ///< 1 to 14: the logarithm of the number of paths
    bool eager = false;       ///< record at the first miss, also short paths, and always look up
    bool none = false;
    bool alternate = false;  ///< repeat trials continually, each a few packets long
};
/// Defaults for decoders made from now on. Only tests change them, to make rare things frequent, and never while a
/// decoder is being made.
inline PathOptions usual_paths{};

/// Decides whether to look up paths: decoding alternates between both ways for a few time steps, and the way that is
/// faster in more of them is used for a while, for longer each time the result is clear. The decision only affects the
/// speed of decoding.
template <class Clock = std::chrono::steady_clock>
class PathTrial {
public:
    explicit PathTrial(bool alternate)
        : step_bytes_(alternate ? 16 : 2048), least_rest_(alternate ? 16 : 64 * 1024), rest_(least_rest_) {}

    /// Whether paths are looked up in this step.
    [[nodiscard]] WM_INLINE bool asks() const { return step_ == 0 ? keeps_ : step_ == 1 || step_ % 2 == 0; }
    /// Length of this step in bytes.
    [[nodiscard]] std::size_t length() const { return step_ == 0 ? rest_ : step_ == 1 ? rest_ / 128 : step_bytes_; }
    // Only the time between begin() and stop() counts.
    WM_INLINE void begin() {
        if (step_ > 1) [[unlikely]]
            began_ = Clock::now();
    }
    WM_INLINE void stop() {
        if (step_ > 1) [[unlikely]]
            took_ += Clock::now() - began_;
    }
    /// Ends the step, in which the decoder read `bytes` bytes.
    void next(std::size_t bytes) {
        stop();
        if (step_ > 1) {
            const double cost =
                std::chrono::duration<double>(std::exchange(took_, {})).count() / static_cast<double>(bytes);
            if (step_ % 2 != 0) won_ += cost_with_ < cost ? 1 : -1;
            cost_with_ = cost;
        }
        if (++step_ == 2 + 2 * rounds) {
            const bool better = won_ > 0, clear = std::abs(std::exchange(won_, 0)) == int{rounds};
            rest_ = better != keeps_ ? least_rest_ : clear ? std::min(2 * rest_, most_rests * least_rest_) : rest_;
            keeps_ = better;
            step_ = 0;
        }
        // Step 1 records paths anew, since old ones may be useless. It is skipped if paths were looked up until now.
        if (step_ == 1 && (keeps_ || length() == 0)) step_ = 2;
        begin();
    }

private:
    static constexpr unsigned rounds = 5, most_rests = 32;
    const std::size_t step_bytes_, least_rest_;
    std::size_t rest_;
    unsigned step_ = 0;  ///< 0: rest; 1: paths are recorded; from 2 on: with and without paths alternately
    int won_ = 0;        ///< rounds in which paths were faster, minus the others
    bool keeps_ = true;  ///< whether paths are looked up during rests
    double cost_with_ = 0;
    typename Clock::time_point began_{};
    typename Clock::duration took_{};
};

/// At most 2^log2_size paths. Each is in the slot for its place and bytes; a new path evicts the old one from its slot.
template <PathProtocol Protocol, class Out>
class KnownPaths final : public flow::FoldedCounts {
public:
    using State = typename Protocol::State;
    static constexpr unsigned most_bytes = 8;

    // The members for finding and counting a path come first, in one cache line if possible.
    struct alignas(64) Head {
        std::uint64_t place =
            no_place;           ///< the serial number of a cache, or of what several caches share, and the position
        std::uint64_t bytes{};  ///< the next bytes, the first in the lowest bits
        std::uint64_t times{};  ///< number of repetitions that are not in the counts of edges yet; without counting,
                                ///< its number (flow::Repeat)
        typename Protocol::Change change{};
        Position next = nowhere;
        std::uint32_t branches{};     ///< bit i: ranges[i] ends with a taken indirect branch
        std::uint16_t guess{};        ///< slot of the path that came next last time
        std::uint8_t ignored_bits{};  ///< number of the highest bits of `bytes` that belong to no whole packet
        std::uint8_t size{};          ///< total size of its packets
        std::uint8_t packets{};
        std::uint8_t count{};                        ///< number of ranges, at least 1
        std::uint8_t pops{};                         ///< number of entries taken from the return stack
        std::uint8_t pushes{};                       ///< after that
        std::uint8_t rise{};                         ///< highest stack depth inside the path, relative to its start
        std::array<Position, 3> popped{}, pushed{};  ///< blocks of the calls that are popped and pushed

        [[nodiscard]] WM_INLINE bool ends_with_branch() const { return (branches >> (count - 1U) & 1U) != 0; }
    };
    using Ranges = std::array<flow::Range, Protocol::most_outcomes>;
    struct Path : Head {
        Ranges ranges{};  ///< offsets relative to the first packet
    };

    /// `out`: the decoder's output.
    explicit KnownPaths(Out& out, const PathOptions& options = usual_paths)
        : out_(out), options_(options), trial_(options.alternate) {
        assert(options_.log2_size >= 1 && options_.log2_size <= 14);
        if (options_.none) wait_ = ~std::size_t{0};
        if constexpr (counts) out_.keep_folded(this);
    }
    ~KnownPaths() {
        if constexpr (counts) out_.forget_folded(this);
    }
    KnownPaths(const KnownPaths&) = delete;
    KnownPaths& operator=(const KnownPaths&) = delete;

    /// Follows known paths from the packet at `at` and position `now` on; packets at or after `end` are excluded.
    /// Returns the end of the packets that must be parsed before the next call. outcome_at(at): whether the packet
    /// there is an outcome of the block at `now`. find_target(state): the position for the state's newest address.
    /// `further_bytes`: bytes of packets after their first ones.
    template <class Run, class Follower, class OutcomeAt, class FindTarget>
    [[nodiscard]] WM_INLINE const std::uint8_t* follow(const std::uint8_t*& at, const std::uint8_t* end,
                                                       std::ptrdiff_t& now, State& state, std::ptrdiff_t& further_bytes,
                                                       Run& run, Follower& follower, const OutcomeAt& outcome_at,
                                                       const FindTarget& find_target) {
        const std::uint64_t common = std::uint64_t{follower.cache().common_serial()} << 32;
        const std::uint64_t own = std::uint64_t{follower.cache().serial()} << 32;
        if (wait_ == 0 && !trial_.asks()) wait_ = next_step(trial_.length());
        while (at < end && wait_ == 0) {
            const std::uint64_t position = static_cast<std::uint32_t>(now);
            const Places places{common | position, own | position};
            const std::uint64_t bytes = bytes_at(at);
            Path* const path = find(places, bytes, state, follower);
            if (path == nullptr) {
                // Copies: arguments passed by reference do not stay in registers.
                wait_ = missed(places, bytes, State(state), follower, FindTarget(find_target));
                break;
            }
            run.goes_on_at(now);
            run.reserve(at);
            run.path(at, *path);
            path->change.apply(state);
            if ((path->pops | path->pushes) != 0) [[unlikely]]
                follower.replace_returns(path->pops, std::span(path->pushed).first(path->pushes));
            now = path->next;
            at += path->size;
            bytes_ += path->size;
            further_bytes += path->size - path->packets;
            if (path->ends_with_branch()) {
                branched_ = static_cast<Position>(path->ranges[path->count - 1U].edge);
                branched_until_ = at;
                run.branched(branched_);
                if (outcome_at(at)) run.goes_on_at(now);
            }
        }
        const std::size_t read = std::min(wait_, static_cast<std::size_t>(end - at));
        if (!options_.none) wait_ -= read;
        return at + read;
    }
    /// Parsing begins, perhaps in another buffer, until `stopped`.
    WM_INLINE void begin() {
        branched_until_ = nullptr;
        trial_.begin();
    }
    /// The edge of the taken indirect branch with which the last path ended, if it ended here; otherwise negative.
    [[nodiscard]] Position branched(const std::uint8_t* until) const {
        return until == branched_until_ ? branched_ : nowhere;
    }
    /// Parsing ended at `at`, although `follow` had returned `until`.
    WM_INLINE void stopped(const std::uint8_t* at, const std::uint8_t* until) {
        trial_.stop();
        if (at < until && !options_.none) wait_ += static_cast<std::size_t>(until - at);
    }

    void unfold() override {
        for (Path& path : paths_) unfold(path);
    }

private:
    static constexpr bool counts = std::is_same_v<Out, flow::CountWriter>;
    static constexpr std::uint64_t no_place = ~std::uint64_t{0};
    static constexpr unsigned least_log2_size = 6;

    [[nodiscard]] WM_INLINE static std::uint64_t bytes_at(const std::uint8_t* at) {
        std::uint64_t bytes = 0;
        for (unsigned i = 0; i < most_bytes; ++i) bytes |= std::uint64_t{at[i]} << 8 * i;
        return bytes;
    }
    /// A position in the numbering of all caches that share it, and a position in the numbering of this cache alone.
    /// They are equal if nothing is shared.
    struct Places {
        std::uint64_t common, own;
    };
    /// The path for these bytes at that place; null if there is none.
    template <class Follower>
    [[nodiscard]] WM_INLINE Path* find(const Places& places, std::uint64_t bytes, const State& state,
                                       const Follower& follower) {
        // The path that came next last time is known before the bytes are known.
        Path* path = &paths_[last_->guess];
        if (!applies(*path, places, bytes, state, follower)) [[unlikely]] {
            // The slot depends on all eight bytes: a path is in several slots if different bytes follow it.
            std::uint64_t slot = hash(places.common, bytes) >> shift_;
            path = &paths_[slot];
            if (!applies(*path, places, bytes, state, follower)) {
                if (places.own == places.common) return nullptr;
                slot = hash(places.own, bytes) >> shift_;
                path = &paths_[slot];
                if (!applies(*path, places, bytes, state, follower)) return nullptr;
            }
            last_->guess = static_cast<std::uint16_t>(slot);
        }
        last_ = path;
        return path;
    }
    /// Call it after find() found nothing. Records the path if it was missed before. Returns the number of bytes to
    /// parse before the next lookup.
    template <class Follower, class FindTarget>
    [[nodiscard, gnu::noinline]] std::size_t missed(const Places& places, std::uint64_t bytes, const State& state,
                                                    const Follower& follower, const FindTarget& find_target) {
        if (!options_.eager && bytes_ >= trial_.length())
            if (const std::size_t without = next_step(std::exchange(bytes_, 0)); without != 0) return without;
        if (missed_.empty()) make_room();
        const std::uint64_t h = hash(places.common, bytes);
        const auto tag = static_cast<std::uint16_t>(h >> 24 | 1U);
        std::uint16_t& missed = missed_[h >> (shift_ - 2)];
        if (std::exchange(missed, tag) == tag || options_.eager) record(places, bytes, state, follower, find_target);
        if (options_.eager) return 1;
        bytes_ += most_bytes;
        return most_bytes;
    }

    /// A step of the trial ended. Returns the number of bytes to parse before the next lookup.
    [[nodiscard, gnu::noinline]] std::size_t next_step(std::size_t bytes) {
        trial_.next(bytes);
        return trial_.asks() ? 0 : trial_.length();
    }

    template <class Follower>
    [[nodiscard]] WM_INLINE static bool applies(const Path& path, const Places& places, std::uint64_t bytes,
                                                const State& state, const Follower& follower) {
        return (path.place == places.common || path.place == places.own) &&
               (path.bytes ^ bytes) << path.ignored_bits == 0 && path.change.fits(state) &&
               ((path.pops | path.rise) == 0 ||
                follower.returns_to(std::span(path.popped).first(path.pops), path.rise));
    }
    [[nodiscard]] WM_INLINE static std::uint64_t hash(std::uint64_t place, std::uint64_t bytes) {
        return (bytes ^ place * 0xd6e8feb86659fd93U) * 0x9e3779b97f4a7c15U;
    }

    /// Allocates the table. Each source has its own, and a capture may have thousands of sources, so the table starts
    /// small, at the first lookup that fails.
    void make_room() { make_room(std::min(options_.log2_size, least_log2_size)); }
    void make_room(unsigned log2_size) {
        paths_.assign(std::size_t{1} << log2_size, Path{});
        last_ = paths_.data();
        missed_.assign(std::size_t{4} << log2_size, 0);
        shift_ = 64 - log2_size;
        recorded_ = 0;
    }
    void grow() {
        const std::vector<Path> before = std::move(paths_);
        make_room(std::min(options_.log2_size, 64 - shift_ + 2));
        for (const Path& path : before) {
            if (path.place == no_place) continue;
            paths_[hash(path.place, path.bytes) >> shift_] = path;
            ++recorded_;
        }
    }

    /// Follows packets, and stores the last place where a path can end.
    template <class Follower, class FindTarget>
    class Recording {
    public:
        Recording(const Places& places, const State& state, const Follower& follower, const FindTarget& find_target)
            : places_(places),
              follower_(follower),
              find_target_(find_target),
              recorder_(state),
              now_(static_cast<Position>(static_cast<std::uint32_t>(places.own))) {
            path_.place = places.common;
        }

        Head record(std::uint64_t bytes) {
            // The eight bytes, followed by zeros: the path has no packets after them.
            std::array<std::uint8_t, 32> wire{};
            for (unsigned i = 0; i < most_bytes; ++i) wire[i] = static_cast<std::uint8_t>(bytes >> 8 * i);
            Head whole;
            while (path_.size < most_bytes) {
                const PlainPacket packet = recorder_.read(wire.data() + path_.size);
                if (path_.size + packet.bytes > most_bytes || !follow(packet)) break;
                path_.size = static_cast<std::uint8_t>(path_.size + packet.bytes);
                ++path_.packets;
                if (now_ < 0) continue;  // a path cannot end between an indirect branch and its address
                path_.next = now_;
                whole = path_;
                whole.change = recorder_.change();
            }
            whole.bytes = bytes;
            whole.ignored_bits = static_cast<std::uint8_t>(8 * (most_bytes - whole.size));
            return whole;
        }
        [[nodiscard]] const Ranges& ranges() const { return ranges_; }

    private:
        /// Returns false if the path ends before this packet.
        bool follow(const PlainPacket& packet) {
            if (packet.is == PlainPacket::Is::outcomes) {
                for (unsigned i = 0; i < packet.count; ++i)
                    if (!outcome((packet.e >> i & 1U) != 0)) return false;
                return true;
            }
            if (packet.is == PlainPacket::Is::other) return false;
            if (Protocol::address_is_outcome && !add(true)) return false;
            if (now_ != indirect && (now_ != indirect_call || !push())) return false;
            path_.branches |= 1U << (path_.count - 1);
            now_ = find_target_(recorder_.state());
            if (now_ < 0) return false;
            if (places_.own != places_.common && !follower_.cache().come_together(before_, now_))
                path_.place = places_.own;
            return true;
        }
        bool outcome(bool e) {
            // An outcome follows a return without an address: the return stack had the address.
            if (now_ == indirect && !Protocol::address_is_outcome && !pop()) return false;
            if (!add(e)) return false;
            if (now_ == call) {
                now_ = follower_.cache().call_target(before_);
                return now_ >= 0 && push();
            }
            if (now_ == indirect) return !Protocol::address_is_outcome || pop();
            return now_ >= 0 || (now_ == indirect_call && !Protocol::address_is_outcome);
        }
        bool add(bool e) {
            if (now_ < 0 || path_.count == Protocol::most_outcomes) return false;
            const std::uint32_t edge = static_cast<std::uint32_t>(now_) | (e ? 1U : 0U);
            ranges_[path_.count++] = {.edge = edge, .offset = path_.size};
            before_ = std::exchange(now_, follower_.cache().links()[edge]);
            return true;
        }
        /// Pushes the call that was followed last.
        bool push() {
            if (path_.pushes == path_.pushed.size()) return false;
            path_.pushed[path_.pushes++] = before_;
            path_.rise = static_cast<std::uint8_t>(std::max(int{path_.rise}, path_.pushes - path_.pops));
            return true;
        }
        bool pop() {
            Position caller = nowhere;
            if (path_.pushes != 0) {
                caller = path_.pushed[--path_.pushes];
            } else if (path_.pops != path_.popped.size()) {
                caller = follower_.caller(path_.pops);
                path_.popped[path_.pops++] = caller;
            }
            if (caller < 0) return false;
            path_.branches |= 1U << (path_.count - 1);
            now_ = follower_.cache().return_target(caller);
            return now_ >= 0;
        }

        const Places places_;
        const Follower& follower_;
        const FindTarget& find_target_;
        typename Protocol::Recorder recorder_;
        Position now_, before_ = nowhere;
        Head path_{};
        Ranges ranges_;
    };

    template <class Follower, class FindTarget>
    void record(const Places& places, std::uint64_t bytes, const State& state, const Follower& follower,
                FindTarget& find_target) {
        Recording<Follower, FindTarget> recording(places, state, follower, find_target);
        Head path = recording.record(bytes);
        if (path.count < (options_.eager ? 1U : least_outcomes)) return;
        assert(path.next >= 0 && path.change.fits(state));
        Path& slot = paths_[hash(path.place, bytes) >> shift_];
        unfold(slot);
        path.guess = slot.guess;
        if constexpr (!counts) path.times = next_number();
        static_cast<Head&>(slot) = path;
        std::copy_n(recording.ranges().begin(), path.count, slot.ranges.begin());
        if (++recorded_ > paths_.size() / 2 && paths_.size() < std::size_t{1} << options_.log2_size) grow();
    }
    /// Shorter paths bring no gain.
    static constexpr unsigned least_outcomes = 3;

    /// A number that is unique among all paths.
    std::uint64_t next_number() {
        static std::atomic<std::uint64_t> serial = 0;
        if ((number_ & most_of_a_serial) == 0)
            number_ = (serial.fetch_add(1, std::memory_order_relaxed) + 1) * (most_of_a_serial + 1);
        return ++number_;
    }
    static constexpr std::uint64_t most_of_a_serial = (std::uint64_t{1} << 40) - 1;

    void unfold(Path& path) {
        if constexpr (counts)
            if (const std::uint64_t times = std::exchange(path.times, 0); times != 0)
                out_.add_path(std::span(path.ranges).first(path.count), path.branches, times);
    }

    Out& out_;
    const PathOptions options_;
    std::vector<Path> paths_ = std::vector<Path>(2);
    std::vector<std::uint16_t> missed_;  // tags of recent misses, four for each slot
    unsigned shift_ = 63;                // shift that turns a hash into a slot
    Path* last_ = paths_.data();         // taken last
    const std::uint8_t* branched_until_ = nullptr;
    Position branched_ = nowhere;
    PathTrial<> trial_;
    std::size_t bytes_ = 0;  // parsed in this step of the trial
    std::size_t wait_ = 0;   // bytes to parse before the next lookup
    std::size_t recorded_ = 0;
    std::uint64_t number_ = 0;
};

}  // namespace waymark::follow
