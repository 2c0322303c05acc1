#include "waymark/syst/collateral.h"

#include <expat.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "waymark/core/wire.h"

namespace waymark::syst {

void Items::add(Item item) {
    if (item.mask == all)
        whole_.try_emplace(item.id, items_.size());
    else
        masked_.push_back(items_.size());
    items_.push_back(std::move(item));
}

const Item* Items::find(std::uint64_t key) const {
    const auto at = whole_.find(key);
    const std::size_t first = at == whole_.end() ? items_.size() : at->second;
    for (const std::size_t i : masked_) {
        if (i > first) break;
        if (((items_[i].id ^ key) & items_[i].mask) == 0) return &items_[i];
    }
    return first == items_.size() ? nullptr : &items_[first];
}

const Client::Id* Client::match(const Guid& guid) const {
    for (const Id& id : guids) {
        bool same = true;
        for (std::size_t i = 0; i < guid.bytes.size(); ++i)
            same = same && ((guid.bytes[i] ^ id.guid.bytes[i]) & id.mask.bytes[i]) == 0;
        if (same) return &id;
    }
    return nullptr;
}

namespace {

constexpr std::size_t most_text = 65536;
constexpr unsigned most_depth = 16;
constexpr std::size_t most_clients = 65536;

/// The parser of one file. expat calls the handlers; the first error stops it.
class Loader {
public:
    Loader(std::vector<Client>& clients, std::size_t& items) : clients_(clients), items_(items) {
        XML_SetUserData(parser_.get(), this);
        XML_SetElementHandler(
            parser_.get(),
            [](void* self, const char* name, const char** attributes) {
                static_cast<Loader*>(self)->begin(name, attributes);
            },
            [](void* self, const char*) { static_cast<Loader*>(self)->end(); });
        XML_SetCharacterDataHandler(parser_.get(), [](void* self, const char* text, int size) {
            static_cast<Loader*>(self)->text({text, static_cast<std::size_t>(size)});
        });
        // Entities are never defined, so none can expand or name a file.
        XML_SetStartDoctypeDeclHandler(parser_.get(), [](void* self, const char*, const char*, const char*, int) {
            static_cast<Loader*>(self)->fail("a DOCTYPE, which is not read");
        });
    }
    std::optional<Error> run(std::string_view xml, const std::string& name) {
        const XML_Status status = XML_Parse(parser_.get(), xml.data(), static_cast<int>(xml.size()), 1);
        if (error_.empty() && status != XML_STATUS_OK) error_ = XML_ErrorString(XML_GetErrorCode(parser_.get()));
        if (error_.empty() && !root_) error_ = "no element Collateral of http://www.mipi.org/1.0/sys-t";
        if (error_.empty()) return {};
        return Error{code_, fmt::format("{}: line {}: {}", name, XML_GetCurrentLineNumber(parser_.get()), error_)};
    }

private:
    void fail(std::string why, Errc code = Errc::bad_format) {
        if (!error_.empty()) return;
        error_ = std::move(why);
        code_ = code;
        XML_StopParser(parser_.get(), XML_FALSE);
    }
    /// The local name of an element of SyS-T; empty: another element.
    static std::string_view own(std::string_view name) {
        const std::size_t bar = name.find('|');
        if (bar == std::string_view::npos) return {};
        const std::string_view space = name.substr(0, bar);
        return space.starts_with("http://www.mipi.org/") && space.ends_with("/sys-t") ? name.substr(bar + 1)
                                                                                      : std::string_view();
    }
    void begin(const char* name, const char** attributes) {
        if (!error_.empty()) return;
        const std::string_view element = own(name);
        path_.emplace_back(element);
        if (path_.size() > most_depth) return fail("elements are nested too deeply", Errc::unsupported);
        if (path_.size() <= 4) {  // an element inside an item does not change the item
            text_.clear();
            item_ = {.id = 0, .mask = ~std::uint64_t{0}};
            id_ = {};
        }
        if (path_.size() == 1 && element == "Collateral") root_ = true;
        if (path_.size() == 2 && element == "Client") {
            if (clients_.size() == most_clients) return fail("more than 65,536 clients", Errc::unsupported);
            clients_.emplace_back();
            for (const char** a = attributes; *a != nullptr; a += 2)
                if (std::string_view(*a) == "Name") clients_.back().name = a[1];
        }
        if (!in_item()) return;
        if (++items_ > Collateral::most_items) return fail("more than a million items", Errc::unsupported);
        id_.mask.bytes.fill(0xff);
        bool has_id = false;
        for (const char** a = attributes; *a != nullptr; a += 2) {
            const std::string_view key = *a, value = a[1];
            if (key == "File") item_.file = value;
            if (key == "Line") item_.line = value;
            if (key != "ID" && key != "Mask") continue;
            has_id = has_id || key == "ID";
            if (path_[2] == "Guids") {
                const auto guid = guid_from_text(value);
                if (!guid) return fail(fmt::format("'{}' is no GUID", value));
                (key == "ID" ? id_.guid : id_.mask) = *guid;
            } else if (!wire::scan_number(value, key == "ID" ? item_.id : item_.mask)) {
                return fail(fmt::format("'{}' is not a number", value));
            }
        }
        if (!has_id) fail(fmt::format("an element {} without ID", element));
    }
    void end() {
        if (!error_.empty()) return;
        if (in_item()) {
            Client& client = clients_.back();
            item_.text = std::move(text_);
            if (path_[2] == "Guids") {
                id_.name = std::move(item_.text);
                client.guids.push_back(std::move(id_));
            } else if (Items* const items = items_of(client)) {
                items->add(std::move(item_));
            }
        }
        if (path_.size() <= 4) text_.clear();
        path_.pop_back();
    }
    void text(std::string_view more) {
        if (!in_item()) return;
        if (text_.size() + more.size() > most_text) return fail("a text of more than 65,536 bytes", Errc::unsupported);
        text_ += more;
    }
    /// Whether the parser is in Collateral, Client, a list, and one of its items.
    [[nodiscard]] bool in_item() const {
        if (path_.size() != 4 || !root_ || path_[1] != "Client" || path_[3].empty()) return false;
        return path_[2] == "Guids" || items_of(clients_.back()) != nullptr;
    }
    [[nodiscard]] Items* items_of(Client& client) const {
        const std::string& list = path_[2];
        return list == "Builds"        ? &client.builds
               : list == "Modules"     ? &client.modules
               : list == "SourceFiles" ? &client.files
               : list == "Catalog32"   ? &client.catalog32
               : list == "Catalog64"   ? &client.catalog64
               : list == "Short32"     ? &client.short32
               : list == "Short64"     ? &client.short64
               : list == "Write"       ? &client.protocols
                                       : nullptr;
    }

    struct Free {
        void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
    };
    std::unique_ptr<std::remove_pointer_t<XML_Parser>, Free> parser_{XML_ParserCreateNS(nullptr, '|')};
    std::vector<Client>& clients_;
    std::size_t& items_;
    std::vector<std::string> path_;
    std::string text_, error_;
    Errc code_ = Errc::bad_format;
    Item item_;
    Client::Id id_;
    bool root_ = false;
};

}  // namespace

std::optional<Error> Collateral::add(std::string_view xml, const std::string& name) {
    if (xml.size() > most_bytes)
        return Error{Errc::unsupported, fmt::format("{}: more than {} bytes", name, most_bytes)};
    std::vector<Client> clients;
    std::size_t items = items_;
    Loader loader(clients, items);
    if (auto error = loader.run(xml, name)) return error;
    items_ = items;
    for (Client& client : clients) clients_.push_back(std::move(client));
    return {};
}

const Client* Collateral::find(const Guid& guid, std::optional<std::uint64_t> build) const {
    for (const Client& client : clients_)
        if (client.match(guid) != nullptr && (!build || client.builds.empty() || client.builds.find(*build) != nullptr))
            return &client;
    return nullptr;
}

const Client* Collateral::named(std::string_view name) const {
    const auto at = std::find_if(clients_.begin(), clients_.end(), [&](const Client& c) { return c.name == name; });
    return at == clients_.end() ? nullptr : &*at;
}

}  // namespace waymark::syst
