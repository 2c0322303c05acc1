#include "waymark/dpu/nexus.h"

#include "waymark/core/packet_text.h"

namespace waymark::dpu::nexus {

namespace {

/// Packs fields into bytes: six bits at a time, least significant first; a variable field ends with its byte (11.1).
class Writer {
public:
    explicit Writer(std::vector<std::uint8_t>& out) : out_(out) {}

    template <class T>
    void fixed(std::string_view, T value, unsigned width) {
        put(static_cast<std::uint32_t>(value) & wire::mask_of<32> >> (32 - width), width);
    }
    void variable(std::string_view, std::uint32_t value) {
        put(value, std::max(1U, static_cast<unsigned>(std::bit_width(value))));
        if (bits_ != 0) byte();
        out_.back() = static_cast<std::uint8_t>(out_.back() | static_cast<unsigned>(Mseo::end_of_field));
    }
    void list(std::string_view name, std::uint8_t count, const auto& values) {
        for (unsigned i = 0; i < count; ++i) variable(name, values[i]);
    }
    void end() { out_.back() = static_cast<std::uint8_t>(out_.back() | static_cast<unsigned>(Mseo::end_of_message)); }

private:
    void put(std::uint32_t value, unsigned width) {
        pending_ |= std::uint64_t{value} << bits_;
        bits_ += width;
        while (bits_ >= 6) byte();
    }
    void byte() {
        out_.push_back(static_cast<std::uint8_t>((pending_ & 0x3fU) << 2));
        pending_ >>= 6;
        bits_ = bits_ > 6 ? bits_ - 6 : 0;
    }

    std::vector<std::uint8_t>& out_;
    std::uint64_t pending_ = 0;
    unsigned bits_ = 0;
};

/// Unpacks fields from bytes. After a field that does not fit, the reader stays in error, and later reads return 0.
class FieldReader {
public:
    explicit FieldReader(Bytes bytes) : bytes_(bytes) {}

    template <class T>
    void fixed(std::string_view, T& value, unsigned width) {
        std::uint32_t read = 0;
        for (unsigned i = 0; i < width; ++i) {
            // A fixed field continues over bytes, but not beyond the end of a variable field.
            if (bit_ == 6) {
                if (at_ >= bytes_.size() || mseo() != Mseo::more) return fail();
                next();
            }
            if (at_ >= bytes_.size()) return fail();
            read |= take() << i;
        }
        value = static_cast<T>(read);
    }
    void variable(std::string_view, std::uint32_t& value) {
        std::uint64_t read = 0;
        unsigned width = 0;
        if (bit_ == 6 && at_ < bytes_.size() && mseo() == Mseo::more) next();  // it begins with the next byte
        if (at_ >= bytes_.size() || bit_ == 6) return fail();
        while (true) {
            while (bit_ < 6) {
                const std::uint32_t bit = take();
                if (bit != 0 && width >= 32) return fail();
                if (bit != 0) read |= std::uint64_t{1} << width;
                ++width;
            }
            if (mseo() != Mseo::more) break;
            next();
            if (at_ >= bytes_.size()) return fail();
        }
        if (mseo() == Mseo::end_of_field) next();
        value = static_cast<std::uint32_t>(read);
    }
    void list(std::string_view name, std::uint8_t& count, auto& values) {
        count = 0;
        do {
            if (count == values.size()) return fail();
            variable(name, values[count]);
            ++count;
        } while (!failed_ && !whole());
    }
    /// All bytes were read, and the message ends with the last one.
    [[nodiscard]] bool whole() const { return !failed_ && at_ + 1 == bytes_.size() && bit_ == 6; }

private:
    [[nodiscard]] Mseo mseo() const { return static_cast<Mseo>(bytes_[at_] & 3U); }
    std::uint32_t take() { return bytes_[at_] >> (2 + bit_++) & 1U; }
    void next() {
        ++at_;
        bit_ = 0;
    }
    void fail() {
        failed_ = true;
        at_ = bytes_.size();
        bit_ = 6;
    }

    Bytes bytes_;
    std::size_t at_ = 0;
    unsigned bit_ = 0;  // next bit of bytes_[at_]; 6: none left
    bool failed_ = false;
};

class Printer {
public:
    explicit Printer(std::string& out) : out_(out) {}

    template <class T>
    void fixed(std::string_view name, const T& value, unsigned) {
        variable(name, static_cast<std::uint32_t>(value));
    }
    void variable(std::string_view name, std::uint32_t value) {
        out_ += ' ';
        out_ += name;
        out_ += '=';
        wire::append_number(out_, value);
    }
    void list(std::string_view name, std::uint8_t count, const auto& values) {
        out_ += ' ';
        out_ += name;
        for (unsigned i = 0; i < count; ++i) {
            out_ += i == 0 ? '=' : ',';
            wire::append_number(out_, values[i]);
        }
    }

private:
    std::string& out_;
};

class Scanner {
public:
    explicit Scanner(std::string_view text) : rest_(text) {}

    template <class T>
    void fixed(std::string_view name, T& value, unsigned width) {
        const std::uint32_t read = number(name, value_of(name), wire::mask_of<32> >> (32 - width));
        value = static_cast<T>(read);
    }
    void variable(std::string_view name, std::uint32_t& value) { value = number(name, value_of(name), 0xffffffff); }
    void list(std::string_view name, std::uint8_t& count, auto& values) {
        std::string_view text = value_of(name);
        count = 0;
        while (wrong_.empty()) {
            if (count == values.size()) return fail(name);
            const std::string_view one = text.substr(0, text.find(','));
            values[count++] = number(name, one, 0xffffffff);
            if (one.size() == text.size()) return;
            text.remove_prefix(one.size() + 1);
        }
    }
    [[nodiscard]] std::string_view wrong() {
        if (rest_.starts_with(' ')) rest_.remove_prefix(1);
        if (wrong_.empty() && !rest_.empty()) fail(rest_);
        return wrong_;
    }

private:
    void fail(std::string_view what) {
        if (wrong_.empty()) wrong_ = what;
    }
    std::string_view value_of(std::string_view name) {
        if (rest_.starts_with(' ')) rest_.remove_prefix(1);
        if (!rest_.starts_with(name) || rest_.size() <= name.size() || rest_[name.size()] != '=') {
            fail(name);
            return {};
        }
        rest_.remove_prefix(name.size() + 1);
        const std::string_view text = rest_.substr(0, rest_.find(' '));
        rest_.remove_prefix(text.size());
        return text;
    }
    std::uint32_t number(std::string_view name, std::string_view text, std::uint32_t most) {
        std::uint64_t value = 0;
        if (wrong_.empty() && (!wire::scan_number(text, value) || value > most)) fail(name);
        return static_cast<std::uint32_t>(value);
    }
    std::string_view rest_, wrong_;
};

class Generator {
public:
    explicit Generator(wire::Random& random) : random_(random) {}

    template <class T>
    void fixed(std::string_view, T& value, unsigned width) {
        value = static_cast<T>(wire::random_number(random_, width));
    }
    void variable(std::string_view, std::uint32_t& value) {
        value = static_cast<std::uint32_t>(wire::random_number(random_, 32));
    }
    void list(std::string_view name, std::uint8_t& count, auto& values) {
        count = static_cast<std::uint8_t>(1 + random_() % values.size());
        for (unsigned i = 0; i < count; ++i) variable(name, values[i]);
    }

private:
    wire::Random& random_;
};

}  // namespace

void encode(std::vector<std::uint8_t>& out, const Message& message) {
    std::visit(
        [&](const auto& m) {
            Writer writer(out);
            writer.fixed("TCODE", m.info.tcode, 6);
            m.fields(writer, m);
            writer.end();
        },
        message);
}

std::optional<Message> parse_message(Bytes bytes) {
    std::optional<Message> out;
    if (bytes.empty()) return out;
    Messages::for_each([&]<class M>() {
        if (M::info.tcode != bytes[0] >> 2) return;
        M message{};
        FieldReader reader(bytes);
        std::uint8_t tcode = 0;
        reader.fixed("TCODE", tcode, 6);
        M::fields(reader, message);
        if (reader.whole()) out = message;
    });
    return out;
}

std::string to_text(const Message& message) {
    return std::visit(
        [](const auto& m) {
            std::string out(m.info.name);
            Printer printer(out);
            m.fields(printer, m);
            return out;
        },
        message);
}

Result<Message> from_text(std::string_view text) {
    return wire::packet_from_text<Messages, Message, Scanner>(text, "Nexus message");
}

Message random_message(wire::Random& random) {
    Message out;
    std::size_t pick = random() % std::variant_size_v<Message>;
    Messages::for_each([&]<class M>() {
        if (pick-- != 0) return;
        M message{};
        Generator generator(random);
        M::fields(generator, message);
        out = message;
    });
    return out;
}

std::uint32_t lost_classes(TraceMode mode) {
    constexpr std::uint32_t flow = ErrorMessage::program_trace, owner = ErrorMessage::ownership,
                            data = ErrorMessage::data_acquisition;
    switch (mode) {
        case TraceMode::eonce_raw:
        case TraceMode::eonce_comp: return flow | owner;
        case TraceMode::task:
        case TraceMode::flow: return flow | owner | data;
        case TraceMode::sw_sample:
        case TraceMode::edca5:
        case TraceMode::user: return owner | data;
        case TraceMode::user_raw: return data;
    }
    return flow | owner | data;
}

void Mapper::enabled(const Process& process) {
    owner_.reset();
    owner(process);
    previous_.reset();
}

void Mapper::disabled() {
    send(ProgramCorrelation{source_, ProgramCorrelation::trace_disabled, 0, 0, {}});
    previous_.reset();
}

void Mapper::owner(const Process& process) {
    if (owner_ == process) return;
    owner_ = process;
    send(OwnershipTrace{source_, process.value()});
}

void Mapper::sync(Sync why, std::uint32_t i_cnt, std::uint32_t pc) {
    send(ProgramTraceSync{source_, why, i_cnt, pc >> 1});
    last_address_ = pc;
    since_sync_ = 0;
    after_loss_ = false;
}

void Mapper::pair(std::uint32_t source, std::uint32_t destination, BranchType type) {
    std::uint32_t i_cnt = 0;
    if (!follows(source))
        sync(after_loss_ ? Sync::overrun : Sync::trace_enabled, 0, source);
    else if (const std::uint32_t straight = (source - *previous_) / 2; since_sync_ >= sync_period)
        sync(Sync::periodic, straight, source);
    else
        i_cnt = straight;
    send(IndirectBranch{source_, type, i_cnt, (destination ^ last_address_) >> 1});
    ++since_sync_;
    last_address_ = destination;
    previous_ = destination;
}

void Mapper::lost(std::uint32_t classes) {
    send(ErrorMessage{source_, 0, classes});
    forget();
    after_loss_ = true;
}

void Mapper::forget() {
    previous_.reset();
    owner_.reset();
    counters_.reset();
}

void Mapper::loop(std::uint32_t last_address, std::uint32_t reps) {
    const auto start = loops_.find(last_address);
    if (!start) {
        data(Tag::loop, {last_address, reps});
        previous_.reset();
        return;
    }
    pair(last_address, *start, BranchType::hardware_loop);
    if (reps > 1) {
        send(RepeatBranch{source_, reps - 1});
        ++since_sync_;
    }
}

void Mapper::data(Tag tag, std::initializer_list<std::uint32_t> values) {
    DataAcquisition message{source_, static_cast<std::uint8_t>(tag), static_cast<std::uint8_t>(values.size()), {}};
    std::copy(values.begin(), values.end(), message.data.begin());
    send(message);
}

void Mapper::counters(const Counters& values, Tag tag) {
    DataAcquisition message{source_,
                            static_cast<std::uint8_t>(counters_ ? tag : Tag::first_counters),
                            static_cast<std::uint8_t>(counter_count),
                            {}};
    for (unsigned i = 0; i < counter_count; ++i)
        message.data[i] = counters_ ? ((*counters_)[i] - values[i]) & counter_mask : values[i] & counter_mask;
    counters_ = values;
    send(message);
}

void Mapper::entry(const Entry& entry, const Process& process, std::optional<BranchType> type) {
    const auto map = [&]<class E>(const E& e) {
        if constexpr (std::same_as<E, TaskSwitch> || std::same_as<E, Flow>) {
            constexpr BranchType usual = std::same_as<E, TaskSwitch> ? BranchType::exception : BranchType::indirect;
            counters(e.counters, Tag::change_counters);
            pair(e.last_pc, e.first_pc, type.value_or(usual));
            owner(process);
        } else if constexpr (std::same_as<E, Sample>) {
            owner(process);
            counters(e.counters, Tag::sample_counters);
        } else if constexpr (std::same_as<E, RawPair>) {
            pair(e.source, e.destination, type.value_or(BranchType::indirect));
        } else if constexpr (std::same_as<E, CompressedFlow>) {
            loops_.saw(e.source, e.destination);
            pair(e.source, e.destination, type.value_or(BranchType::indirect));
            owner(process);
        } else if constexpr (std::same_as<E, RawPc> || std::same_as<E, CompressedPc>) {
            if constexpr (std::same_as<E, CompressedPc>) owner(process);
            sync(Sync::watchpoint, follows(e.pc) ? (e.pc - *previous_) / 2 : 0, e.pc);
            previous_ = e.pc;
        } else if constexpr (std::same_as<E, ShortLoop> || std::same_as<E, LongLoop>) {
            owner(process);
            loop(e.last_address, e.reps);
        } else if constexpr (std::same_as<E, UserData>) {
            owner(process);
            data(Tag::user_data, {e.data});
        } else if constexpr (std::same_as<E, UserRaw>) {
            data(Tag::user_raw, {e.data});
        } else if constexpr (std::same_as<E, ContextEntry>) {
            owner(process);
        } else if constexpr (std::same_as<E, GapEntry>) {
            lost(lost_classes(mode_));
        } else {
            static_assert(std::same_as<E, Pad> || std::same_as<E, Closed>);  // nothing
        }
    };
    std::visit(map, entry);
}

Meaning Reader::branch(BranchType type, std::uint32_t i_cnt, std::uint32_t to) {
    Meaning meaning;
    meaning.kind = Meaning::Kind::branch;
    meaning.type = type;
    meaning.from_known = known_;
    if (known_) meaning.from = last_ + 2 * (more_ + i_cnt);
    meaning.to = to;
    last_ = to;
    more_ = 0;
    known_ = true;
    return meaning;
}

std::optional<Meaning> Reader::read(const Message& message) {
    Meaning meaning;
    const auto read = [&]<class M>(const M& m) -> std::optional<Meaning> {
        if constexpr (std::same_as<M, OwnershipTrace>) {
            meaning.kind = Meaning::Kind::owner;
            meaning.value = m.process;
        } else if constexpr (std::same_as<M, IndirectBranch>) {
            if (!known_) {
                meaning.kind = Meaning::Kind::unknown;
                return meaning;
            }
            return branch(m.b_type, m.i_cnt, last_ ^ m.u_addr << 1);
        } else if constexpr (std::same_as<M, IndirectBranchSync>) {
            return branch(m.b_type, m.i_cnt, m.f_addr << 1);
        } else if constexpr (std::same_as<M, ProgramTraceSync>) {
            last_ = m.pc << 1;
            more_ = 0;
            known_ = true;
            if (m.sync != Sync::watchpoint) return std::nullopt;
            meaning.kind = Meaning::Kind::pc;
            meaning.to = last_;
        } else if constexpr (std::same_as<M, DataAcquisition>) {
            meaning.tag = static_cast<Tag>(m.id_tag);
            meaning.kind = Meaning::Kind::unknown;
            const bool six = m.count == counter_count;
            if (six && (meaning.tag == Tag::change_counters || meaning.tag == Tag::first_counters ||
                        meaning.tag == Tag::sample_counters)) {
                meaning.kind = Meaning::Kind::counters;
                std::copy_n(m.data.begin(), counter_count, meaning.data.begin());
            } else if (m.count == 2 && meaning.tag == Tag::loop) {
                meaning.kind = Meaning::Kind::loop;
                meaning.from = m.data[0];
                meaning.value = m.data[1];
                known_ = false;
            } else if (m.count == 1 && (meaning.tag == Tag::user_data || meaning.tag == Tag::user_raw)) {
                meaning.kind = Meaning::Kind::user_data;
                meaning.value = m.data[0];
            }
        } else if constexpr (std::same_as<M, RepeatBranch>) {
            meaning.kind = Meaning::Kind::repeat;
            meaning.value = m.b_cnt;
        } else if constexpr (std::same_as<M, ErrorMessage>) {
            meaning.kind = Meaning::Kind::lost;
            meaning.value = m.e_code;
            known_ = false;
            more_ = 0;
        } else if constexpr (std::same_as<M, Watchpoint>) {
            meaning.kind = Meaning::Kind::watchpoint;
            meaning.value = m.wp_hit;
        } else if constexpr (std::same_as<M, ProgramCorrelation>) {
            if (m.ev_code == ProgramCorrelation::process_change && m.cdf == 1) {
                meaning.kind = Meaning::Kind::owner;
                meaning.value = m.c_data[0];
                more_ += m.i_cnt;
            } else {
                meaning.kind =
                    m.ev_code == ProgramCorrelation::trace_disabled ? Meaning::Kind::disabled : Meaning::Kind::unknown;
                known_ = false;
                more_ = 0;
            }
        } else if constexpr (std::same_as<M, ResourceFull>) {
            if (m.r_code != 0) {
                meaning.kind = Meaning::Kind::unknown;
                return meaning;
            }
            more_ += m.r_data;
            return std::nullopt;
        } else {
            static_assert(std::same_as<M, DirectBranch>);
            meaning.kind = Meaning::Kind::unknown;  // only the program's code has its target
            known_ = false;
        }
        return meaning;
    };
    return std::visit(read, message);
}

}  // namespace waymark::dpu::nexus
