/// Forked children: each goes on as a process of its own in the recording, or unrecorded.
#pragma once

namespace waymark::record::plugin {

/// From now on, forks of this process are dealt with.
void watch_forks();

}  // namespace waymark::record::plugin
