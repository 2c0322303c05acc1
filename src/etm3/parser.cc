#include "waymark/etm3/parser.h"

namespace waymark::etm3 {

std::unique_ptr<wire::AnyParser<ParserRules>> ParserRules::any_parser(const Config& config,
                                                                      const wire::AnyHandler<Packets>& handler) {
    return std::make_unique<wire::AnyParserOf<ParserRules>>(config, handler);
}

}  // namespace waymark::etm3
