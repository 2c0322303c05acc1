/// The function that libwaymark-serve.so exports. The library belongs to the program of the same build.
#pragma once

#include <functional>
#include <string>

#include "waymark/serve/server.h"

namespace waymark::serve {

/// The parameters of `serve`, and where its result goes.
struct HttpCall {
    Replies& replies;
    const ServerOptions& options;
    const std::function<bool()>& stop;
    const std::function<void(const std::string& url)>& listening;
    Status& result;
};

extern "C" void waymark_serve(const HttpCall& call);

}  // namespace waymark::serve
