#include "waymark/serve/server.h"

#include <dlfcn.h>

#include "http_module.h"
#include "listening_address.h"
#include "waymark/core/beside_program.h"

namespace waymark::serve {

bool is_of_this_machine_alone(const std::string& address) { return is_loopback(address_of(address)); }

Status serve(Replies& replies, const ServerOptions& options, const std::function<bool()>& stop,
             const std::function<void(const std::string& url)>& listening) {
    WM_ASSIGN_OR_RETURN(const auto path, find_beside_program("libwaymark-serve.so"));
    // The library stays loaded.
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const function = library == nullptr ? nullptr : dlsym(library, "waymark_serve");
    if (function == nullptr) return Error{Errc::unreadable, std::string("cannot be loaded: ") + dlerror()};
    Status result = Nothing{};
    reinterpret_cast<decltype(&waymark_serve)>(function)({replies, options, stop, listening, result});
    return result;
}

}  // namespace waymark::serve
