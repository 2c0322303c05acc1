#include "waymark/etm4/parser.h"

namespace waymark::etm4 {

std::unique_ptr<wire::AnyParser<ParserRules>> ParserRules::any_parser(const Config& config,
                                                                      const wire::AnyHandler<Packets>& handler) {
    return std::make_unique<wire::AnyParserOf<ParserRules>>(config, handler);
}

}  // namespace waymark::etm4
