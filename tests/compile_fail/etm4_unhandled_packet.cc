// A handler that takes every packet but one.
#include <concepts>

#include "waymark/etm4/parser.h"

using namespace waymark;

struct Handler {
    template <class P>
#ifdef WM_MISTAKE
    requires(!std::same_as<P, etm4::TraceOn>)
#endif
        void
        operator()(const P&, etm4::Extent) {
    }
    void operator()(const Gap&) {}
};

int main() {
    const etm4::Config config;
    Handler handler;
    etm4::Parser<Handler> parser(config, handler);
    parser.finish();
}
