// A handler that has no overload for one of the packets.
#include "waymark/pft/parser.h"

using namespace waymark;

struct Handler {
    void operator()(const pft::Atom&, pft::Extent) {}
    void operator()(const pft::BranchAddress&, pft::Extent) {}
    void operator()(const pft::ISync&, pft::Extent) {}
    void operator()(const pft::Timestamp&, pft::Extent) {}
    void operator()(const pft::WaypointUpdate&, pft::Extent) {}
    void operator()(const pft::ContextId&, pft::Extent) {}
    void operator()(const pft::Vmid&, pft::Extent) {}
    void operator()(const pft::ExceptionReturn&, pft::Extent) {}
#ifndef WM_MISTAKE
    void operator()(const pft::Trigger&, pft::Extent) {}
#endif
    void operator()(const pft::Ignore&, pft::Extent) {}
    void operator()(const pft::ASync&, pft::Extent) {}
    void operator()(const Gap&) {}
};

int main() {
    const pft::Config config;
    Handler handler;
    pft::Parser<Handler> parser(config, handler);
    parser.finish();
}
