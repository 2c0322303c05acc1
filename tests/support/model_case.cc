#include "support/model_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "support/damage.h"
#include "support/elements.h"
#include "support/paths.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/encoder.h"
#include "waymark/pft/reference_decoder.h"

namespace waymark::synthetic {

using pft::ModelChoices;
using pft::test::Collected;

namespace {

// ---- cases

using Change = void (*)(ModelCase&, Random&);
struct Named {
    std::string_view name;
    Change change;
};

constexpr std::uint32_t external_1 = 0x60, external_2 = 0x61, external_3 = 0x62, never = 0x406f;

void set_context_id(ModelCase& c, unsigned size) {
    c.model.registers.cr.context_id_size = static_cast<std::uint8_t>(size);
    c.walk.context_changes = 200;
}
void set_return_stack(ModelCase& c, unsigned depth) {
    c.model.registers.cr.return_stack = true;
    c.model.registers.cr.branch_broadcast = false;
    c.model.choices.return_stack_depth = static_cast<std::uint8_t>(depth);
    // Decoders keep an entry that was popped without a sign in the trace (4.5, rule 3): this is right for one entry
    // only.
    if (depth > 1) c.model.choices.matched_change = ModelChoices::MatchedChange::packet_keeps_entry;
}
void set_version(ModelCase& c, unsigned minor) {
    c.model.registers.idr = from_value<pft::Etmidr>(minor == 0 ? 0x411cf301 : 0x411cf312);
    if (minor == 0) {
        c.model.registers.cr.vmid_trace = false;
        c.walk.virtualization = false;
    }
}
void set_broadcast(ModelCase& c, ModelChoices::BroadcastBarrier barrier) {
    c.model.registers.cr.branch_broadcast = true;
    c.model.registers.cr.return_stack = false;
    c.model.choices.broadcast_barrier = barrier;
}
void set_prohibited(ModelCase& c) {
    // Only exceptions and indirect branches enter a prohibited region.
    c.walk.security_changes = 0;
    c.walk.trustzone = true;
}
void set_fifo(ModelCase& c, unsigned bytes, unsigned cycles) {
    c.model.choices.fifo_bytes = bytes;
    c.model.choices.drain_bytes = 1;
    c.model.choices.drain_cycles = cycles;
}
void set_sync(ModelCase& c, unsigned bytes) { c.model.registers.syncfr.value = bytes; }
void set_start_stop(ModelCase& c, ModelChoices::StartAndStop both, Random& random) {
    c.model.choices.start_and_stop = both;
    c.starts = c.stops = 1 + random.below(2);
    c.ranges = std::min(c.ranges, 6U);
}
void set_timestamps(ModelCase& c, bool all_bits, bool binary) {
    c.model.registers.cr.timestamps = true;
    c.model.registers.ccer.timestamp_64 = all_bits;
    c.model.registers.ccer.timestamp_binary = binary;
}
void set_virtualization(ModelCase& c) {
    set_version(c, 1);
    c.walk.trustzone = c.walk.virtualization = true;
}
void set_plain(ModelCase& c, unsigned minor) {
    const ModelCase was = c;
    c = {};
    c.steps = was.steps;
    c.program.seed = was.program.seed;
    c.program.blocks = was.program.blocks;
    c.walk.seed = was.walk.seed;
    c.driver.seed = was.driver.seed;
    c.model.registers.ccer = from_value<pft::Etmccer>(0x06c019ea);
    set_version(c, minor);
    set_sync(c, 1024);
}

constexpr Named classes[] = {
    {"everything", [](ModelCase&, Random&) {}},
    {"plain_v1_0", [](ModelCase& c, Random&) { set_plain(c, 0); }},
    {"plain_v1_1", [](ModelCase& c, Random&) { set_plain(c, 1); }},
    {"v1_0", [](ModelCase& c, Random&) { set_version(c, 0); }},
    {"v1_1", [](ModelCase& c, Random&) { set_version(c, 1); }},
    {"a32_only", [](ModelCase& c, Random&) { c.program.tee = false, c.program.t32_functions = 0; }},
    {"t32_only", [](ModelCase& c, Random&) { c.program.tee = false, c.program.t32_functions = 8; }},
    {"thumbee", [](ModelCase& c, Random&) { c.program.tee = true, c.program.t32_functions = 6; }},
    {"large_blocks", [](ModelCase& c, Random&) { c.program.large_block_chance = 1500; }},
    {"cycle_accurate_v1_0",
     [](ModelCase& c, Random&) { set_version(c, 0), c.model.registers.cr.cycle_accurate = true; }},
    {"cycle_accurate_v1_1",
     [](ModelCase& c, Random&) { set_version(c, 1), c.model.registers.cr.cycle_accurate = true; }},
    {"cycle_counts_overflow",
     [](ModelCase& c, Random&) {
         c.model.registers.cr.cycle_accurate = true;
         c.model.choices.cycle_overflow = ModelChoices::CycleOverflow::wrap;  // so that counts can be summed up
         c.walk.pauses = 300;
         c.walk.pause_bits = 36;
     }},
    {"timestamps_v1_0",
     [](ModelCase& c, Random& random) {
         set_version(c, 0), set_timestamps(c, false, false);
         c.model.choices.packet_delay_cycles = static_cast<std::uint8_t>(random.below(3));
     }},
    {"timestamps_48_binary", [](ModelCase& c, Random&) { set_version(c, 1), set_timestamps(c, false, true); }},
    {"timestamps_64_binary", [](ModelCase& c, Random&) { set_version(c, 1), set_timestamps(c, true, true); }},
    {"timestamps_64_gray", [](ModelCase& c, Random&) { set_version(c, 1), set_timestamps(c, true, false); }},
    {"timestamps_by_event",
     [](ModelCase& c, Random&) { c.model.registers.cr.timestamps = true, c.driver.input_changes = 1000; }},
    {"timestamps_at_trace_on",
     [](ModelCase& c, Random&) {
         c.model.registers.cr.timestamps = c.model.choices.trace_on_timestamp = true;
         c.walk.filter_changes = 100;
     }},
    {"timestamps_unfiltered",
     [](ModelCase& c, Random&) {
         c.model.registers.cr.timestamps = true;
         c.model.choices.timestamp_filter = ModelChoices::TimestampFilter::none;
         c.driver.clock_changes = 200;
     }},
    {"barrier_timestamps",
     [](ModelCase& c, Random&) {
         c.model.registers.cr.timestamps = c.model.registers.ccer.barrier_waypoints = true;
         c.model.registers.ccer.barrier_timestamps = true;
     }},
    {"barrier_waypoints", [](ModelCase& c, Random&) { c.model.registers.ccer.barrier_waypoints = true; }},
    {"return_stack_1", [](ModelCase& c, Random&) { set_return_stack(c, 1); }},
    {"return_stack_2", [](ModelCase& c, Random&) { set_return_stack(c, 2); }},
    {"return_stack_3", [](ModelCase& c, Random&) { set_return_stack(c, 3); }},
    {"return_stack_8", [](ModelCase& c, Random&) { set_return_stack(c, 8); }},
    {"return_stack_16", [](ModelCase& c, Random&) { set_return_stack(c, 16); }},
    {"return_stack_pops_at_change",
     [](ModelCase& c, Random&) {
         set_return_stack(c, 1);
         c.model.choices.matched_change = ModelChoices::MatchedChange::packet_pops_entry;
         c.walk.trustzone = true;
     }},
    {"branch_broadcast", [](ModelCase& c, Random&) { set_broadcast(c, ModelChoices::BroadcastBarrier::atom); }},
    {"branch_broadcast_barriers",
     [](ModelCase& c, Random&) { set_broadcast(c, ModelChoices::BroadcastBarrier::packet); }},
    {"context_id_1", [](ModelCase& c, Random&) { set_context_id(c, 1); }},
    {"context_id_2", [](ModelCase& c, Random&) { set_context_id(c, 2); }},
    {"context_id_4", [](ModelCase& c, Random&) { set_context_id(c, 3); }},
    {"vmid",
     [](ModelCase& c, Random&) {
         set_version(c, 1), c.model.registers.cr.vmid_trace = true;
         c.walk.vmid_changes = 200;
     }},
    {"virtualization", [](ModelCase& c, Random&) { set_virtualization(c); }},
    {"hyp_information_at_change",
     [](ModelCase& c, Random&) {
         set_virtualization(c), c.model.choices.hyp_information = ModelChoices::HypInformation::changed;
     }},
    {"hyp_entry_without_update",
     [](ModelCase& c, Random&) {
         set_virtualization(c), c.model.choices.hyp_entry_updates = false;
         c.walk.exceptions = 1000;
     }},
    {"security", [](ModelCase& c, Random&) { c.walk.trustzone = true, c.walk.exceptions = 1000; }},
    {"security_by_register",
     [](ModelCase& c, Random&) {
         c.walk.trustzone = true, c.walk.security_changes = 500;
         c.driver.authentication = {}, c.driver.authentication_changes = 0;
     }},
    {"no_security_extensions", [](ModelCase& c, Random&) { c.model.registers.idr.security = 0; }},
    {"exception_shows_interrupted_state",
     [](ModelCase& c, Random&) {
         c.model.choices.exception_state = ModelChoices::ExceptionState::interrupted;
         c.walk.trustzone = true, c.walk.exceptions = 1000;
     }},
    {"long_information",
     [](ModelCase& c, Random&) { c.model.choices.short_information = false, c.walk.trustzone = true; }},
    {"exceptions", [](ModelCase& c, Random&) { c.walk.exceptions = 3000; }},
    {"debug_state", [](ModelCase& c, Random&) { c.walk.debug = 500; }},
    {"jazelle", [](ModelCase& c, Random&) { c.walk.jazelle = 9000; }},
    {"prohibited",
     [](ModelCase& c, Random&) {
         set_prohibited(c), c.driver.authentication.secure_non_invasive = false;
         c.model.choices.prohibited_entry = ModelChoices::ProhibitedEntry::address_zero;
     }},
    {"prohibited_untold",
     [](ModelCase& c, Random&) {
         set_prohibited(c), c.driver.authentication.secure_non_invasive = false;
         c.model.choices.prohibited_entry = ModelChoices::ProhibitedEntry::nothing;
     }},
    {"authentication_changes", [](ModelCase& c, Random&) { set_prohibited(c), c.driver.authentication_changes = 300; }},
    {"include", [](ModelCase& c,
                   Random& random) { c.driver.exclude = false, c.ranges = 1 + random.below(c.starts == 0 ? 8 : 6); }},
    {"exclude",
     [](ModelCase& c, Random& random) { c.driver.exclude = true, c.ranges = 1 + random.below(c.starts == 0 ? 8 : 6); }},
    {"start_stop", [](ModelCase& c, Random& r) { set_start_stop(c, ModelChoices::StartAndStop::turns, r); }},
    {"start_and_stop_off", [](ModelCase& c, Random& r) { set_start_stop(c, ModelChoices::StartAndStop::off, r); }},
    {"start_and_stop_on", [](ModelCase& c, Random& r) { set_start_stop(c, ModelChoices::StartAndStop::on, r); }},
    {"enabled_by_event", [](ModelCase& c, Random&) { c.walk.filter_changes = 500; }},
    {"programming_bit", [](ModelCase& c, Random&) { c.driver.stops = 200; }},
    {"waits_and_flushes", [](ModelCase& c, Random&) { c.driver.waits = c.driver.flushes = 1000; }},
    {"triggers", [](ModelCase& c, Random&) { c.driver.input_changes = 1000; }},
    {"fifo_24", [](ModelCase& c, Random&) { set_fifo(c, 24, 20); }},
    {"fifo_60", [](ModelCase& c, Random&) { set_fifo(c, 60, 16); }},
    {"fifo_200", [](ModelCase& c, Random&) { set_fifo(c, 200, 30); }},
    {"overflow_async", [](ModelCase& c, Random&) { set_fifo(c, 40, 20), c.model.choices.overflow_async = true; }},
    {"forced_overflow",
     [](ModelCase& c, Random& random) {
         c.model.registers.auxcr.no_forced_overflow = false;
         c.model.choices.isync_delay_waypoints = static_cast<std::uint8_t>(1 + random.below(5));
         c.driver.sync_requests = 600;
         set_sync(c, 60);
     }},
    {"requests_without_overflow",
     [](ModelCase& c, Random&) {
         c.model.registers.auxcr.no_forced_overflow = true;
         c.model.choices.isync_delay_waypoints = 5;
         c.driver.sync_requests = 600;
     }},
    {"sync_never", [](ModelCase& c, Random&) { set_sync(c, 0), c.driver.sync_requests = 0; }},
    {"sync_16", [](ModelCase& c, Random&) { set_sync(c, 16); }},
    {"sync_100", [](ModelCase& c, Random&) { set_sync(c, 100); }},
    {"sync_256", [](ModelCase& c, Random&) { set_sync(c, 256); }},
    {"sync_1024", [](ModelCase& c, Random&) { set_sync(c, 1024); }},
    {"sync_4095", [](ModelCase& c, Random&) { set_sync(c, 4095); }},
    {"async_flushes_atoms",
     [](ModelCase& c, Random&) {
         c.model.choices.async_flushes_atoms = true, c.model.registers.cr.cycle_accurate = false;
         set_sync(c, 60);
     }},
    {"update_fits_both", [](ModelCase& c, Random&) { c.model.choices.update_base = ModelChoices::UpdateBase::either; }},
    {"update_is_base", [](ModelCase& c, Random&) { c.model.choices.update_base = ModelChoices::UpdateBase::is_base; }},
    {"update_is_not_base",
     [](ModelCase& c, Random&) { c.model.choices.update_base = ModelChoices::UpdateBase::is_not_base; }},
    {"large_block_names_waypoint",
     [](ModelCase& c, Random&) {
         c.model.choices.large_block_address = ModelChoices::LargeBlockAddress::waypoint;
         c.program.large_block_chance = 1500;
     }},
    {"large_block_by_length",
     [](ModelCase& c, Random&) {
         c.model.choices.large_block_test = ModelChoices::LargeBlockTest::length;
         c.program.large_block_chance = 1500;
     }},
};

constexpr Named simpler[] = {
    {"cycle_accurate", [](ModelCase& c, Random&) { c.model.registers.cr.cycle_accurate = false; }},
    {"timestamps", [](ModelCase& c, Random&) { c.model.registers.cr.timestamps = false; }},
    {"timestamp_64", [](ModelCase& c, Random&) { c.model.registers.ccer.timestamp_64 = false; }},
    {"timestamp_binary", [](ModelCase& c, Random&) { c.model.registers.ccer.timestamp_binary = false; }},
    {"return_stack", [](ModelCase& c, Random&) { c.model.registers.cr.return_stack = false; }},
    {"branch_broadcast", [](ModelCase& c, Random&) { c.model.registers.cr.branch_broadcast = false; }},
    {"context_id", [](ModelCase& c, Random&) { c.model.registers.cr.context_id_size = 0; }},
    {"vmid", [](ModelCase& c, Random&) { c.model.registers.cr.vmid_trace = false; }},
    {"barrier_waypoints", [](ModelCase& c, Random&) { c.model.registers.ccer.barrier_waypoints = false; }},
    {"barrier_timestamps", [](ModelCase& c, Random&) { c.model.registers.ccer.barrier_timestamps = false; }},
    {"sync", [](ModelCase& c, Random&) { set_sync(c, 0); }},
    {"fifo", [](ModelCase& c, Random&) { c.model.choices.fifo_bytes = 0; }},
    {"ranges", [](ModelCase& c, Random&) { c.ranges = 0; }},
    {"start_stop", [](ModelCase& c, Random&) { c.starts = c.stops = 0; }},
    {"filter", [](ModelCase& c, Random&) { c.walk.filter_changes = 0; }},
    {"exceptions", [](ModelCase& c, Random&) { c.walk.exceptions = 0; }},
    {"odd_exceptions", [](ModelCase& c, Random&) { c.walk.odd_exceptions = 0; }},
    {"debug", [](ModelCase& c, Random&) { c.walk.debug = 0; }},
    {"jazelle", [](ModelCase& c, Random&) { c.walk.jazelle = 0; }},
    {"context_changes", [](ModelCase& c, Random&) { c.walk.context_changes = 0; }},
    {"vmid_changes", [](ModelCase& c, Random&) { c.walk.vmid_changes = 0; }},
    {"security_changes", [](ModelCase& c, Random&) { c.walk.security_changes = 0; }},
    {"virtualization", [](ModelCase& c, Random&) { c.walk.virtualization = false; }},
    {"trustzone", [](ModelCase& c, Random&) { c.walk.trustzone = c.walk.virtualization = false; }},
    {"wrong_returns", [](ModelCase& c, Random&) { c.walk.wrong_returns = 0; }},
    {"pauses", [](ModelCase& c, Random&) { c.walk.pauses = 0; }},
    {"prohibited", [](ModelCase& c, Random&) { c.driver.authentication = {}; }},
    {"authentication_changes", [](ModelCase& c, Random&) { c.driver.authentication_changes = 0; }},
    {"sync_requests", [](ModelCase& c, Random&) { c.driver.sync_requests = 0; }},
    {"waits", [](ModelCase& c, Random&) { c.driver.waits = 0; }},
    {"flushes", [](ModelCase& c, Random&) { c.driver.flushes = 0; }},
    {"clock_changes", [](ModelCase& c, Random&) { c.driver.clock_changes = 0; }},
    {"stops", [](ModelCase& c, Random&) { c.driver.stops = 0; }},
    {"inputs", [](ModelCase& c, Random&) { c.driver.input_changes = 0; }},
    {"thumbee", [](ModelCase& c, Random&) { c.program.tee = false; }},
    {"t32", [](ModelCase& c, Random&) { c.program.t32_functions = 0; }},
    {"sections", [](ModelCase& c, Random&) { c.program.sections = 1; }},
    {"large_blocks", [](ModelCase& c, Random&) { c.program.large_block_chance = 0; }},
    {"update_base", [](ModelCase& c, Random&) { c.model.choices.update_base = {}; }},
    {"deep_stack", [](ModelCase& c, Random&) { c.model.choices.return_stack_depth = 1; }},
    {"matched_change", [](ModelCase& c, Random&) { c.model.choices.matched_change = {}; }},
    {"large_block_address", [](ModelCase& c, Random&) { c.model.choices.large_block_address = {}; }},
    {"large_block_test", [](ModelCase& c, Random&) { c.model.choices.large_block_test = {}; }},
    {"hyp_information", [](ModelCase& c, Random&) { c.model.choices.hyp_information = {}; }},
    {"broadcast_barrier", [](ModelCase& c, Random&) { c.model.choices.broadcast_barrier = {}; }},
    {"prohibited_entry", [](ModelCase& c, Random&) { c.model.choices.prohibited_entry = {}; }},
    {"long_information", [](ModelCase& c, Random&) { c.model.choices.short_information = true; }},
    {"overflow_async", [](ModelCase& c, Random&) { c.model.choices.overflow_async = false; }},
    {"hyp_entry", [](ModelCase& c, Random&) { c.model.choices.hyp_entry_updates = true; }},
    {"async_flushes_atoms", [](ModelCase& c, Random&) { c.model.choices.async_flushes_atoms = false; }},
    {"timestamp_filter", [](ModelCase& c, Random&) { c.model.choices.timestamp_filter = {}; }},
    {"exception_state", [](ModelCase& c, Random&) { c.model.choices.exception_state = {}; }},
    {"trace_on_timestamp", [](ModelCase& c, Random&) { c.model.choices.trace_on_timestamp = false; }},
    {"packet_delay", [](ModelCase& c, Random&) { c.model.choices.packet_delay_cycles = 0; }},
    {"isync_delay", [](ModelCase& c, Random&) { c.model.choices.isync_delay_waypoints = 0; }},
};

/// Sometimes gives an open question another choice than the default.
void random_choices(ModelChoices& c, Random& random) {
    c.update_base = pick(random, {ModelChoices::UpdateBase::either, ModelChoices::UpdateBase::is_base,
                                  ModelChoices::UpdateBase::is_not_base});
    c.return_stack_depth = static_cast<std::uint8_t>(random.half() ? 1 : random.below(17));
    if (c.return_stack_depth == 1 && random.half()) c.matched_change = ModelChoices::MatchedChange::packet_pops_entry;
    c.large_block_address =
        pick(random, {ModelChoices::LargeBlockAddress::instruction_before, ModelChoices::LargeBlockAddress::waypoint});
    c.large_block_test = pick(random, {ModelChoices::LargeBlockTest::distance, ModelChoices::LargeBlockTest::length});
    c.hyp_information =
        pick(random, {ModelChoices::HypInformation::set_or_changed, ModelChoices::HypInformation::changed});
    c.hyp_entry_updates = random.half();
    c.cycle_overflow = pick(random, {ModelChoices::CycleOverflow::wrap, ModelChoices::CycleOverflow::saturate,
                                     ModelChoices::CycleOverflow::saturate_zero_isync});
    c.start_and_stop = pick(
        random, {ModelChoices::StartAndStop::turns, ModelChoices::StartAndStop::off, ModelChoices::StartAndStop::on});
    c.broadcast_barrier = pick(random, {ModelChoices::BroadcastBarrier::atom, ModelChoices::BroadcastBarrier::packet});
    c.prohibited_entry =
        pick(random, {ModelChoices::ProhibitedEntry::address_zero, ModelChoices::ProhibitedEntry::nothing});
    c.exception_state =
        random.chance(2000) ? ModelChoices::ExceptionState::interrupted : ModelChoices::ExceptionState::handler;
    c.short_information = random.half();
    c.trace_on_timestamp = random.half();
    c.overflow_async = random.half();
    c.async_flushes_atoms = random.half();
    c.timestamp_filter =
        pick(random, {ModelChoices::TimestampFilter::traced_since, ModelChoices::TimestampFilter::none});
    c.isync_delay_waypoints = static_cast<std::uint8_t>(random.half() ? 0 : random.below(6));
    c.packet_delay_cycles = static_cast<std::uint8_t>(random.below(3));
    if (random.chance(3000)) {
        c.fifo_bytes = 8 + random.below(56);
        c.drain_bytes = 1;
        c.drain_cycles = 4 + random.below(40);
    }
    c.timestamp_first = random() >> random.below(40) & 0x7fffffffffffU;
    c.timestamp_numerator = 1 + random.below(3);
    c.timestamp_denominator = 1 + random.below(3);
}

ModelCase random_case(std::uint64_t seed) {
    Random random(seed * 0x20003 + 11);
    ModelCase c;
    pft::Registers& r = c.model.registers;
    r.idr = from_value<pft::Etmidr>(random.chance(2500) ? 0x411cf301 : 0x411cf312);
    if (random.chance(500)) r.idr.security = 0;
    r.ccer = from_value<pft::Etmccer>(0x06c019ea);
    r.ccer.timestamp_64 = random.half();
    r.ccer.timestamp_binary = random.half();
    r.ccer.barrier_waypoints = random.chance(3000);
    r.ccer.barrier_timestamps = random.half();
    r.cr.cycle_accurate = random.half();
    r.cr.return_stack = random.half();
    r.cr.branch_broadcast = !r.cr.return_stack && random.chance(3000);
    r.cr.timestamps = random.half();
    r.cr.vmid_trace = r.idr.minor == 1 && random.chance(3000);
    r.cr.context_id_size = static_cast<std::uint8_t>(random.half() ? 0 : random.below(4));
    r.syncfr.value = random.chance(2000) ? 0 : 60 + random.below(1000);
    r.auxcr.no_forced_overflow = random.half();
    r.auxcr.no_exception_timestamps = random.chance(2000);
    r.auxcr.no_barrier_timestamps = random.chance(2000);
    random_choices(c.model.choices, random);

    const bool is_long = seed <= long_cases;
    c.steps = is_long ? 1200 : 20 + random.below(200);
    c.program.seed = random();
    c.program.blocks = !is_long ? 8 + random.below(60) : random.chance(3000) ? 30 : 300;
    c.program.sections = 1 + random.below(is_long ? 6 : 3);
    c.program.tee = random.chance(3000);
    c.program.t32_functions = random.chance(7000) ? 4 : random.below(9);
    if (!is_long) c.program.large_block_chance = random.chance(1000) ? 300 : 0;

    c.walk.seed = random();
    c.walk.trustzone = random.chance(7000);
    c.walk.virtualization = r.idr.minor == 1 && c.walk.trustzone && random.half();
    if (random.chance(2000)) c.walk.exceptions = 2000;
    if (random.chance(1000)) c.walk.debug = 100;

    c.driver.seed = random();
    if (random.chance(2000)) {
        set_prohibited(c);
        c.driver.authentication.secure_non_invasive = false;
    }
    if (random.chance(1000)) {
        set_prohibited(c);
        c.driver.authentication_changes = 50;
    }
    if (random.half()) c.driver.sync_requests = c.driver.waits = c.driver.clock_changes = c.driver.flushes = 50;
    if (random.chance(2000)) c.driver.stops = 30;
    if (random.chance(3000)) c.driver.input_changes = 100;
    if (random.chance(1500)) c.starts = c.stops = 1 + random.below(2);
    if (random.chance(3000)) {
        c.driver.exclude = random.half();
        c.ranges = 1 + random.below(c.starts == 0 ? 8 : 6);
    }
    c.places = random();
    return c;
}

/// Values that follow from the rest, once it is settled.
void complete(ModelCase& c) {
    pft::Registers& r = c.model.registers;
    r.teevr = from_value<pft::Etmteevr>(external_1);
    r.tsevr = from_value<pft::Etmtsevr>(c.driver.input_changes != 0 ? external_2 : never);
    r.trigger = from_value<pft::Etmtrigger>(c.driver.input_changes != 0 ? external_3 : never);
    // Only counts that wrap can be summed up; with the other choices no count may overflow.
    if (c.model.choices.cycle_overflow != ModelChoices::CycleOverflow::wrap) c.walk.pause_bits = 24;
    c.program.barrier_waypoints = r.ccer.barrier_waypoints;
}

// ---- checks

template <class D>
std::vector<Element> decode(const pft::Config& config, const isa::CodeReader& code, Bytes bytes) {
    flow::BlockTable table;
    ElementSink sink;
    flow::BatchWriter out(table, sink);
    synthetic::vary_paths();
    D decoder(config, code, out);
    decoder.feed(bytes);
    decoder.finish();
    return sink.take();
}

/// A few packets before and after the packet at `offset`.
std::string packets_around(const Collected& packets, std::uint64_t offset) {
    const auto& items = packets.items;
    const auto at = std::find_if(items.begin(), items.end(), [&](const auto& i) { return i.first.value >= offset; });
    std::string out = "packets around:\n";
    const auto first = at - std::min<std::ptrdiff_t>(at - items.begin(), 6);
    for (auto i = first; i != items.end() && i - first < 12; ++i)
        out += fmt::format("{} {:>6}  {}\n", i == at ? '>' : ' ', i->first.value, i->text);
    return out;
}

/// 5.7, 4: every address is as short as possible.
std::string not_shortest(const Collected& packets, const pft::ModelConfig& model) {
    using namespace pft;
    Place base, other;
    bool alt_isa = false;
    const auto wrong = [&](const Target& target, bool information, bool alt, unsigned least, bool update) {
        const auto isa_of = [&](Isa isa) { return isa == Isa::t32 && (information ? alt : alt_isa) ? Isa::tee : isa; };
        Place to = complete(target, base);
        to.isa = isa_of(to.isa == Isa::tee ? Isa::t32 : to.isa);
        const unsigned needed = std::max(compress(to, base, least).bytes, compress(to, other, least).bytes);
        if (information) alt_isa = alt;
        if (!update || model.choices.update_base != ModelChoices::UpdateBase::is_not_base) base = to;
        if (!update || model.choices.update_base == ModelChoices::UpdateBase::is_base) other = to;
        return target.bytes != needed;
    };
    for (std::size_t i = 0; i < packets.packets.size(); ++i) {
        const Packet& packet = packets.packets[i];
        bool bad = false;
        if (const auto* isync = std::get_if<ISync>(&packet)) {
            base = other = {isync->address(), isync->isa()};
            alt_isa = isync->alt_isa;
        } else if (const auto* update = std::get_if<WaypointUpdate>(&packet)) {
            bad = wrong(update->target, update->target.information, update->alt_isa, 1, true);
        } else if (const auto* branch = std::get_if<BranchAddress>(&packet)) {
            const bool information = branch->target.information;
            unsigned least = information ? 2 : 1;
            if (information && branch->exception() == 0 && !model.choices.short_information) least = 5;
            if (branch->exception() == exceptions::debug_entry) least = 5;
            bad = wrong(branch->target, information, branch->alt_isa, least, false);
        }
        if (bad)
            return "an address is longer or shorter than it needs to be\n" +
                   packets_around(packets, packets.items[i].first.value);
    }
    return {};
}

template <class P>
bool is(const std::vector<pft::Packet>& packets, std::size_t i) {
    return i < packets.size() && std::holds_alternative<P>(packets[i]);
}

/// The order of packets in 5.3 to 5.5, and which packets may occur.
std::string wrong_order(const Collected& packets, const ModelCase& c) {
    using namespace pft;
    const Config config = c.model.packets();
    const ModelChoices& choices = c.model.choices;
    const auto& all = packets.packets;
    const auto at = [&](std::size_t i, const char* what) {
        return std::string(what) + "\n" + packets_around(packets, packets.items[i].first.value);
    };
    if (!all.empty() && !is<ASync>(all, 0)) return at(0, "the first packet is no A-sync");
    if (all.size() > 1 && (!is<ISync>(all, 1) || std::get<ISync>(all[1]).reason == ISyncReason::periodic))
        return at(1, "no I-sync that begins trace behind the first A-sync");
    std::uint64_t last_async = 0, triggers = 0;
    bool isync_due = false;
    unsigned since_async = 0;  // waypoints after an A-sync whose I-sync has not come
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::uint64_t offset = packets.items[i].first.value;
        if (is<Timestamp>(all, i) && !config.timestamps) return at(i, "a timestamp though they are off");
        if (is<ContextId>(all, i) && config.context_id_bytes == 0) return at(i, "a Context ID though they are off");
        if (is<Vmid>(all, i) && (!config.vmid_trace || config.minor_version == 0)) return at(i, "a VMID");
        if (is<Ignore>(all, i)) return at(i, "the model has no reason to send this");
        if (is<Trigger>(all, i) && c.driver.input_changes == 0) return at(i, "a trigger without its event");
        if (is<ExceptionReturn>(all, i) && (config.minor_version == 0 || !is<BranchAddress>(all, i - 1) ||
                                            std::get<BranchAddress>(all[i - 1]).exception() != 0))
            return at(i, "an exception return that is not behind its branch packet");
        // A full FIFO may lose packets that belong after this one.
        const bool whole = choices.fifo_bytes == 0 && i + 1 < all.size();
        if (is<ISync>(all, i) && whole && config.vmid_trace && !is<Vmid>(all, i + 1))
            return at(i, "no VMID behind an I-sync");
        if (is<ISync>(all, i) && whole && config.timestamps &&
            std::get<ISync>(all[i]).reason == ISyncReason::periodic &&
            !is<Timestamp>(all, i + (config.vmid_trace ? 2U : 1U)))
            return at(i, "no T-sync behind a periodic I-sync");
        // 5.4. Atoms sent because of waits and flushes are not full.
        if (is<Atom>(all, i) && is<Atom>(all, i + 1) && !config.cycle_accurate &&
            std::get<Atom>(all[i]).outcome.atoms.count != 5 && c.driver.waits + c.driver.flushes == 0)
            return at(i, "an atom packet of under five before another");
        // 5.5.
        if (is<Trigger>(all, i)) ++triggers;
        if (is<ASync>(all, i)) {
            const std::uint64_t apart = offset - last_async;
            const std::uint64_t asked = c.model.registers.syncfr.value;
            const bool only_periodic =
                c.driver.sync_requests + c.driver.stops == 0 &&
                !(choices.overflow_async && (choices.fifo_bytes != 0 || !c.model.registers.auxcr.no_forced_overflow));
            if (i != 0 && only_periodic && apart < asked) return at(i, "an A-sync before it is due");
            if (asked != 0 && apart - triggers > asked + 100) return at(i, "an A-sync long after it was due");
            last_async = offset;
            triggers = 0;
            since_async = 0;
            isync_due = true;
        }
        if (is<Atom>(all, i)) since_async += std::get<Atom>(all[i]).outcome.atoms.count;
        if (is<BranchAddress>(all, i)) ++since_async;
        if (is<ISync>(all, i)) {
            // Earlier atoms may have waited.
            if (isync_due && since_async > choices.isync_delay_waypoints + 5U)
                return at(i, "an I-sync long after its A-sync");
            isync_due = false;
        }
    }
    return {};
}

/// 5.7.
std::string wrong_packets(const ModelCase& c, Bytes bytes) {
    const pft::Config config = c.model.packets();
    const Collected packets = pft::test::collect(bytes, config);
    for (const auto& item : packets.items)
        if (item.text.starts_with("GAP"))
            return "bytes that are no packet\n" + packets_around(packets, item.first.value);
    std::vector<std::uint8_t> again;
    for (const pft::Packet& packet : packets.packets) encode(again, packet, config);
    if (const auto [a, b] = std::mismatch(again.begin(), again.end(), bytes.begin(), bytes.end());
        a != again.end() || b != bytes.end())
        return "packets that another encoding is shorter than\n" +
               packets_around(packets, static_cast<std::uint64_t>(b - bytes.begin()));
    if (longest_zeros(packets, bytes) >= 47) return "zeros that imitate an A-sync";
    if (std::string wrong = not_shortest(packets, c.model); !wrong.empty()) return wrong;
    return wrong_order(packets, c);
}

}  // namespace

void place_comparators(ModelCase& c, const Program& program) {
    pft::Registers& r = c.model.registers;
    Random random(c.places);
    const auto somewhere = [&]() -> const flow::Block& {
        return program.blocks[random.below(static_cast<std::uint32_t>(program.blocks.size()))].block;
    };
    for (unsigned i = 0; i < c.ranges; ++i) {
        const std::uint64_t from = somewhere().start & ~std::uint64_t{0xff};
        c.driver.ranges.emplace_back(from, from + 0x100 + random.below(0x2000));
        r.acvr[2 * i].value = static_cast<std::uint32_t>(c.driver.ranges.back().first);
        r.acvr[2 * i + 1].value = static_cast<std::uint32_t>(c.driver.ranges.back().second);
    }
    r.tecr1.exclude = c.ranges == 0 || c.driver.exclude;
    r.tecr1.ranges = static_cast<std::uint8_t>((1U << c.ranges) - 1);
    unsigned comparator = 15;
    const auto at = [&](std::vector<std::uint64_t>& addresses, std::uint16_t& comparators) {
        const flow::Block& b = somewhere();
        addresses.push_back(b.start + random.below(b.bytes));
        r.acvr[comparator].value = static_cast<std::uint32_t>(addresses.back());
        comparators = static_cast<std::uint16_t>(comparators | 1U << comparator);
        --comparator;
    };
    r.tecr1.start_stop = c.starts + c.stops != 0;
    for (unsigned i = 0; i < c.starts; ++i) at(c.driver.start_at, r.tsscr.start);
    for (unsigned i = 0; i < c.stops; ++i) at(c.driver.stop_at, r.tsscr.stop);
    if (c.starts != 0 && random.half()) {  // both in one block, sometimes at one place
        c.driver.stop_at.front() = c.driver.start_at.front() + 4 * random.below(2);
        r.acvr[15U - c.starts].value = static_cast<std::uint32_t>(c.driver.stop_at.front());
    }
}

std::uint64_t longest_zeros(const Collected& packets, Bytes bytes) {
    std::uint64_t longest = 0, run = 0;
    for (const auto& item : packets.items) {
        if (item.text.starts_with("A-SYNC")) {
            run = 0;
            continue;
        }
        for (std::uint64_t i = item.first.value; i < item.first.value + item.bytes; ++i)
            for (unsigned bit = 0; bit < 8; ++bit) {
                run = (bytes[i] >> bit & 1) != 0 ? 0 : run + 1;
                longest = std::max(longest, run);
            }
    }
    return longest;
}

pft::Config reading(const pft::ModelConfig& model, bool other) {
    pft::Config c = model.packets();
    const ModelChoices& choices = model.choices;
    c.update_is_compression_base = choices.update_base == ModelChoices::UpdateBase::either
                                       ? !other
                                       : choices.update_base == ModelChoices::UpdateBase::is_base;
    c.hyp_kept_without_info_1 = choices.hyp_information == ModelChoices::HypInformation::changed || !other;
    return c;
}

std::vector<std::string_view> case_classes() {
    std::vector<std::string_view> out;
    for (const Named& n : classes) out.push_back(n.name);
    return out;
}
std::vector<std::string_view> simplifications() {
    std::vector<std::string_view> out;
    for (const Named& n : simpler) out.push_back(n.name);
    return out;
}

std::string CaseName::text() const {
    std::string out = fmt::format("{} seed={}", class_name, seed);
    if (steps) out += fmt::format(" steps={}", *steps);
    if (blocks) out += fmt::format(" blocks={}", *blocks);
    for (std::size_t i = 0; i < without.size(); ++i) out += (i == 0 ? " without=" : ",") + without[i];
    return out;
}

std::optional<CaseName> CaseName::from_text(std::string_view text) {
    const auto next = [](std::string_view& rest, char end) {
        const std::string_view word = rest.substr(0, rest.find(end));
        rest.remove_prefix(std::min(rest.size(), word.size() + 1));
        return word;
    };
    CaseName out;
    out.class_name = next(text, ' ');
    if (std::none_of(std::begin(classes), std::end(classes), [&](const Named& n) { return n.name == out.class_name; }))
        return {};
    while (!text.empty()) {
        std::string_view value = next(text, ' ');
        const std::string_view key = next(value, '=');
        if (key == "without") {
            while (!value.empty()) out.without.emplace_back(next(value, ','));
            continue;
        }
        std::uint64_t number = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        if (error != std::errc{} || end != value.data() + value.size()) return {};
        if (key == "seed")
            out.seed = number;
        else if (key == "steps")
            out.steps = number;
        else if (key == "blocks")
            out.blocks = static_cast<unsigned>(number);
        else
            return {};
    }
    for (const std::string& name : out.without)
        if (std::none_of(std::begin(simpler), std::end(simpler), [&](const Named& n) { return n.name == name; }))
            return {};
    return out;
}

ModelCase make_case(const CaseName& name) {
    ModelCase c = random_case(name.seed);
    Random random(name.seed * 0x30005 + 3);
    for (const Named& n : classes)
        if (n.name == name.class_name) n.change(c, random);
    for (const Named& n : simpler)
        if (std::find(name.without.begin(), name.without.end(), n.name) != name.without.end()) n.change(c, random);
    if (name.steps) c.steps = *name.steps;
    if (name.blocks) c.program.blocks = *name.blocks;
    complete(c);
    return c;
}

std::string check_case(const ModelCase& made, CaseTotals& totals, const Spoil& spoil) {
    const Program program = make_program(made.program);
    ModelCase c = made;
    place_comparators(c, program);
    ByteCollector trace;
    ModelDriver driver(c.model, c.driver, trace);
    Walk(program, c.walk).run(driver, c.steps);
    driver.finish();
    const pft::ModelCounts& counts = driver.model().counts();
    if (!driver.wrong().empty()) return "the model did something else: " + driver.wrong();
    if (counts.bytes != trace.bytes().size()) return "the model counts its bytes wrongly";
    std::vector<std::uint8_t> bytes = trace.bytes();
    if (spoil) spoil(c, bytes);

    for (const bool other : {false, true}) {
        const pft::Config config = reading(c.model, other);
        const auto around = [&](std::uint64_t offset) {
            return packets_around(pft::test::collect(bytes, config), offset);
        };
        const auto reference = decode<pft::ReferenceDecoder>(config, program.memory, bytes);
        std::string wrong;
        std::vector<std::uint64_t> offsets;
        const std::vector<Element> found = normalise(reference, driver, wrong, &offsets), truth = driver.truth();
        if (std::string differs = difference(found, truth, "reference", "truth"); !differs.empty()) {
            const auto at = static_cast<std::size_t>(
                std::mismatch(found.begin(), found.end(), truth.begin(), truth.end()).first - found.begin());
            return differs + around(at < offsets.size() ? offsets[at] : bytes.size());
        }
        if (!wrong.empty()) return "decoded, but never traced: " + wrong;
        const auto fast = decode<pft::Decoder>(config, program.memory, bytes);
        if (std::string differs = difference(fast, reference, "fast", "reference"); !differs.empty()) {
            const auto at = std::mismatch(fast.begin(), fast.end(), reference.begin(), reference.end()).second;
            return differs + around(at == reference.end() ? bytes.size() : at->offset);
        }
        totals.elements += reference.size();
        for (const Element& e : reference) totals.timestamps += e.kind == Kind::timestamp;
    }
    totals.counts.waypoints += counts.waypoints;
    totals.counts.untraced += counts.untraced;
    totals.counts.overflowed += counts.overflowed;
    totals.counts.overflows += counts.overflows;
    totals.counts.bytes += counts.bytes;
    return wrong_packets(c, bytes);
}

std::string check_damage(const ModelCase& made, std::uint64_t seed, DamageTotals& totals) {
    const Program program = make_program(made.program);
    ModelCase c = made;
    place_comparators(c, program);
    ByteCollector trace;
    ModelDriver driver(c.model, c.driver, trace);
    Walk(program, c.walk).run(driver, c.steps);
    driver.finish();
    const std::vector<std::uint8_t>& bytes = trace.bytes();
    if (bytes.empty()) return {};
    const pft::Config config = reading(c.model, false);
    const auto whole = decode<pft::ReferenceDecoder>(config, program.memory, bytes);
    struct Sync {
        std::uint64_t async, isync;
    };
    std::vector<Sync> syncs;
    bool waits = false;
    for (const auto& item : pft::test::collect(bytes, config).items) {
        if (item.text.starts_with("A-SYNC")) {
            // If there is no I-sync between two A-syncs, the later A-sync counts.
            if (waits) syncs.pop_back();
            syncs.push_back({item.first.value, bytes.size()});
            waits = true;
        } else if (waits && item.text.starts_with("I-SYNC")) {
            syncs.back().isync = item.first.value;
            waits = false;
        }
    }
    Random random(seed);
    for (unsigned i = 0; i < 8; ++i) {
        const Damage d = damage(bytes, random);
        const auto found = decode<pft::ReferenceDecoder>(config, program.memory, d.bytes);
        const Collected packets = pft::test::collect(d.bytes, config);
        const auto where = [&] { return fmt::format("damage {} at {}: ", i, d.first); };
        if (std::string differs =
                difference(decode<pft::Decoder>(config, program.memory, d.bytes), found, "fast", "reference");
            !differs.empty())
            return where() + differs + packets_around(packets, d.first);
        ++totals.damaged;
        bool first = true;
        for (const Sync& s : syncs) {
            if (s.async < d.end) continue;
            // Damage before it may lengthen its run of zeros, so its end is compared.
            const std::uint64_t end = s.async + 6 + d.added - d.dropped;
            if (std::none_of(packets.items.begin(), packets.items.end(), [&](const auto& item) {
                    return item.text.starts_with("A-SYNC") && item.first.value + item.bytes == end;
                })) {
                totals.late += first;
                first = false;
                continue;
            }
            const std::string differs = difference(flow_after(found, s.isync + d.added - d.dropped, 0, 0),
                                                   flow_after(whole, s.isync, d.added, d.dropped), "damaged", "whole");
            if (!differs.empty()) return where() + differs + packets_around(packets, s.isync + d.added - d.dropped);
            ++totals.recovered;
            break;
        }
    }
    return {};
}

CaseName minimised(CaseName name, const std::function<bool(const CaseName&)>& fails) {
    const ModelCase whole = make_case(name);
    name.steps = whole.steps;
    name.blocks = whole.program.blocks;
    const auto shrink = [&](auto member, auto least) {
        for (auto by = (*(name.*member) + 1) / 2; by != 0;) {
            CaseName smaller = name;
            if (*(name.*member) >= by + least) {
                smaller.*member = *(name.*member) - by;
                if (fails(smaller)) {
                    name = smaller;
                    continue;
                }
            }
            by /= 2;
        }
    };
    for (bool again = true; again;) {
        const std::string before = name.text();
        shrink(&CaseName::steps, std::uint64_t{1});
        shrink(&CaseName::blocks, 1U);
        for (const Named& n : simpler) {
            if (std::find(name.without.begin(), name.without.end(), n.name) != name.without.end()) continue;
            CaseName smaller = name;
            smaller.without.emplace_back(n.name);
            if (!fails(smaller))
                smaller.steps = whole.steps;  // the execution is different: it may need more steps to fail
            if (fails(smaller)) name = smaller;
        }
        again = name.text() != before;
    }
    return name;
}

}  // namespace waymark::synthetic
