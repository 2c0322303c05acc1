/// Forked children: each continues as a process of its own in the recording, or unrecorded.
#pragma once

namespace waymark::record::plugin {

/// From now on, handles forks of this process.
void watch_forks();

}  // namespace waymark::record::plugin
