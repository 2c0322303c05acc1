#include "selected_session.h"

namespace waymark::cli {

Result<SelectedSession> open_selected(const InputOptions& options) {
    WM_ASSIGN_OR_RETURN(pipeline::Session session, open_session(options));
    warn(session);
    SelectedSession out{std::move(session), {}};
    WM_ASSIGN_OR_RETURN(out.selected, out.session.select(options.sources));
    return out;
}

}  // namespace waymark::cli
