#include "waymark/sink/cti.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace waymark::sink {

namespace {

struct CtiRegister {
    std::uint32_t offset;
    std::string_view name;
};
constexpr CtiRegister cti_registers[] = {{Cti::control, "CTICONTROL"},
                                         {Cti::intack, "CTIINTACK"},
                                         {Cti::appset, "CTIAPPSET"},
                                         {Cti::appclear, "CTIAPPCLEAR"},
                                         {Cti::apppulse, "CTIAPPPULSE"},
                                         {Cti::triginstatus, "CTITRIGINSTATUS"},
                                         {Cti::trigoutstatus, "CTITRIGOUTSTATUS"},
                                         {Cti::chinstatus, "CTICHINSTATUS"},
                                         {Cti::choutstatus, "CTICHOUTSTATUS"},
                                         {Cti::gate, "CTIGATE"}};

/// The number of the trigger for a register in such a row; nullopt: it is in another row.
bool in_row(std::uint32_t offset, std::uint32_t first, unsigned& number) {
    number = (offset - first) / 4;
    return offset >= first && offset % 4 == 0 && number < Cti::most;
}

}  // namespace

Status CtiConfig::check() const {
    if (triggers == 0 || triggers > Cti::most || channels == 0 || channels > Cti::most)
        return Error{Errc::usage,
                     fmt::format("a cross-trigger interface with {} triggers and {} channels: each is from 1 to {}",
                                 triggers, channels, Cti::most)};
    return Nothing{};
}

std::string Cti::register_name(std::uint32_t offset) {
    for (const CtiRegister& r : cti_registers)
        if (r.offset == offset) return std::string(r.name);
    unsigned number = 0;
    if (in_row(offset, inen, number)) return fmt::format("CTIINEN{}", number);
    if (in_row(offset, outen, number)) return fmt::format("CTIOUTEN{}", number);
    return {};
}

Cti::Cti(const CtiConfig& config) : config_(config), gate_(bits(config.channels)) { WM_CHECK(config.check()); }

std::string Cti::write_register(std::uint32_t offset, std::uint32_t value) {
    unsigned number = 0;
    switch (offset) {
        case control: enabled_ = (value & 1U) != 0; break;
        case intack:
            acknowledge_ = value;
            settle();
            acknowledge_ = 0;
            return {};
        case appset: application_ |= value & channel_bits(); break;
        case appclear: application_ &= ~value; break;
        case apppulse:
            if (!enabled_) return "CTIAPPPULSE while CTICONTROL.GLBEN is 0: it makes no pulse; write 1 to GLBEN first";
            pulse_ = value & channel_bits();
            settle();
            pulse_ = 0;
            break;  // the channel is inactive again
        case gate: gate_ = value & channel_bits(); break;
        default:
            if (in_row(offset, inen, number) && number < config_.triggers) {
                in_enables_[number] = value & channel_bits();
            } else if (in_row(offset, outen, number) && number < config_.triggers) {
                out_enables_[number] = value & channel_bits();
            } else if (const std::string name = register_name(offset); name.empty()) {
                return fmt::format("offset {:#x} is not a register of a cross-trigger interface", offset);
            } else if (name.ends_with("STATUS")) {
                return name + " is read-only";
            } else {
                return fmt::format("{}: this interface has {} triggers", name, config_.triggers);
            }
    }
    settle();
    return {};
}

std::uint32_t Cti::read_register(std::uint32_t offset) const {
    unsigned number = 0;
    switch (offset) {
        case control: return enabled_ ? 1 : 0;
        case appset: return application_;
        case triginstatus: return inputs_;
        case trigoutstatus: return outputs_;
        case chinstatus: return channels_in_;
        case choutstatus: return channels_out();
        case gate: return gate_;
        default:
            if (in_row(offset, inen, number)) return in_enables_[number];
            if (in_row(offset, outen, number)) return out_enables_[number];
            return 0;
    }
}

std::vector<RegisterValue> Cti::registers() const {
    std::vector<RegisterValue> out;
    const auto add = [&](std::uint32_t offset) {
        out.push_back({register_name(offset), read_register(offset), {}, 32});
    };
    add(control);
    add(appset);
    for (unsigned n = 0; n < config_.triggers; ++n) add(inen + 4 * n);
    for (unsigned n = 0; n < config_.triggers; ++n) add(outen + 4 * n);
    for (const std::uint32_t offset : {triginstatus, trigoutstatus, chinstatus, choutstatus, gate}) add(offset);
    return out;
}

void Cti::set_trigger_in(unsigned number, bool active) {
    WM_CHECK(number < config_.triggers);
    const std::uint32_t bit = 1U << number;
    inputs_ = active ? inputs_ | bit : inputs_ & ~bit;
    settle();
}

std::uint32_t Cti::own_channels() const {
    if (!enabled_) return 0;
    std::uint32_t channels = application_ | pulse_;
    for (unsigned n = 0; n < config_.triggers; ++n)
        if ((inputs_ >> n & 1U) != 0) channels |= in_enables_[n];
    return channels;
}

void Cti::settle() {
    if (matrix_ != nullptr)
        matrix_->settle();
    else
        map_outputs();
}

void Cti::map_outputs() {
    const std::uint32_t active = enabled_ ? own_channels() | channels_in_ : 0, before = outputs_;
    for (unsigned n = 0; n < config_.triggers; ++n) {
        const std::uint32_t bit = 1U << n;
        if ((active & out_enables_[n]) != 0)
            outputs_ |= bit;
        else if (((config_.acknowledged | acknowledge_) & bit) != 0)
            outputs_ &= ~bit;
    }
    if (!called_) return;
    for (std::uint32_t changed = before ^ outputs_, n = 0; changed != 0; changed >>= 1, ++n)
        if ((changed & 1U) != 0) called_(n, trigger_out(n));
}

void Ctm::connect(Cti& cti) {
    WM_CHECK(cti.matrix_ == nullptr);
    cti.matrix_ = this;
    interfaces_.push_back(&cti);
    settle();
}

void Ctm::settle() {
    for (Cti* const to : interfaces_) {
        to->channels_in_ = 0;
        for (const Cti* const from : interfaces_)
            if (from != to) to->channels_in_ |= from->channels_out() & to->channel_bits();
    }
    for (Cti* const cti : interfaces_) cti->map_outputs();
}

}  // namespace waymark::sink
