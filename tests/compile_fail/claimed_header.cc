// Two packets of one protocol that start with the same byte.
#include "waymark/pft/packet.h"

using namespace waymark;

struct Flush {
    static constexpr wire::PacketInfo info{.name = "FLUSH",
                                           .section = "2.8",
#ifdef WM_MISTAKE
                                           .value = 0x0c,  // the trigger's
#else
                                           .value = 0x0e,
#endif
                                           .mask = 0xff,
                                           .max_bytes = 1};
};

constexpr auto headers = wire::header_table<wire::PacketList<pft::Trigger, Flush>>();

int main() { return headers[0x0c]; }
