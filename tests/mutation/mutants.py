"""Finds the mutants of C++ sources and writes sources that contain all of them, each guarded by `wm_mutant(number)`.

It does not parse C++: it uses a tokenizer, matching brackets, and properties that clang-format guarantees in this tree (a
binary operator has blanks on both sides, a template's bracket has none before it). The compiler finds mutants that do not
compile, and the campaign drops them.
"""
import bisect
import dataclasses
import hashlib
import re

OPERATORS = ("condition", "constant", "off_by_one", "deleted_statement", "swapped_field", "arithmetic")

TOKEN = re.compile(r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<directive>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
  | (?P<string>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]*)\(.*?\)(?P=delimiter)"|(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*")
  | (?P<char>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+')
  | (?P<number>\.?[0-9](?:'?[0-9A-Za-z_.]|[eEpP][+-])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<mark><<=|>>=|<=>|\.\.\.|->\*|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%&|^!~<>=?:;,.(){}\[\]])
""", re.VERBOSE | re.DOTALL | re.MULTILINE)

# Precedence of binary operators; assignment and all other marks have a lower one.
BINDS = {"*": 10, "/": 10, "%": 10, "+": 9, "-": 9, "<<": 8, ">>": 8, "<=>": 7, "<": 6, ">": 6, "<=": 6, ">=": 6,
         "==": 5, "!=": 5, "&": 4, "^": 3, "|": 2, "&&": 1, "||": 0}
ENDS_OPERAND = {"return", "co_return", "co_yield", "throw", "else", "do", "case", "const", "auto", "new", "delete",
                "goto", "if", "while", "for", "switch"}
NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "&&": "||", "||": "&&"}
BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
ARITHMETIC = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "&": "|", "|": "&", "^": "|", "<<": ">>", ">>": "<<",
              "+=": "-=", "-=": "+=", "|=": "&=", "&=": "|=", "<<=": ">>=", ">>=": "<<=", "++": "--", "--": "++"}


@dataclasses.dataclass
class Token:
    kind: str
    text: str
    start: int
    end: int


@dataclasses.dataclass
class Mutant:
    """One change of one place. `parts` are the rewritten text: strings, and ranges of the source kept as they are."""
    file: str
    operator: str
    change: str  # the change, and its index among equal ones on the line
    line: int
    text: str  # of the line, without blanks around it
    start: int
    end: int
    parts: tuple
    repeat: int = 0  # index among equal lines
    key: str = ""
    rank: str = ""
    number: int = -1
    needs: tuple = ()  # a `constexpr` to remove: (start, end, start and end of the initialiser)

    def identify(self):
        words = "\0".join([self.file, self.operator, self.text, self.change, str(self.repeat)])
        self.key = hashlib.sha256(words.encode()).hexdigest()[:12]


class Source:
    """A file's tokens, whether each may be mutated, and its mutants."""

    def __init__(self, file, text, fields, enumerators):
        self.file, self.text, self.fields, self.enumerators = file, text, fields, enumerators
        self.tokens = [Token(m.lastgroup if m.lastgroup != "delimiter" else "string", m.group(), m.start(), m.end())
                       for m in TOKEN.finditer(text)]
        self.tokens = [t for t in self.tokens if t.kind not in ("comment", "directive")]
        self.lines = [0] + [m.end() for m in re.finditer("\n", text)]
        self.match_brackets()
        self.classify_braces()
        self.fixed = [False] * len(self.tokens)  # a constant expression: not to be mutated
        self.table = [()] * len(self.tokens)
        self.mark_fixed()
        self.mutants = []
        self.find()
        self.tell_apart()

    # ---- structure

    def is_(self, i, *texts):
        return 0 <= i < len(self.tokens) and self.tokens[i].text in texts

    def match_brackets(self):
        self.match, self.parent = {}, [-1] * len(self.tokens)
        open_ones = []
        for i, t in enumerate(self.tokens):
            if t.kind == "mark" and t.text in ")]}" and open_ones:
                begin = open_ones.pop()
                self.match[begin], self.match[i] = i, begin
            self.parent[i] = open_ones[-1] if open_ones else -1
            if t.kind == "mark" and t.text in "([{":
                open_ones.append(i)

    def classify_braces(self):
        self.braces = {}
        for i, t in enumerate(self.tokens):
            if t.kind == "mark" and t.text == "{":
                self.braces[i] = self.kind_of_brace(i)

    def kind_of_brace(self, i):
        begin = i - 1
        words = []
        while begin >= 0 and not self.is_(begin, ";", "{", "}", "(", "=", ","):
            if self.is_(begin, ")", "]"):
                words.append("()")
                begin = self.match[begin]
            else:
                words.append(self.tokens[begin].text)
            begin -= 1
        outside = self.braces.get(self.parent[i])
        if "requires" in words:
            return "requires"
        if "()" not in words or outside in (None, "namespace", "class"):
            if "enum" in words and "()" not in words:
                return "enum"
            if {"struct", "class", "union"} & set(words) and "()" not in words and "->" not in words:
                return "class"
            if "namespace" in words or "extern" in words:
                return "namespace"
        if self.is_(i - 1, ")", "const", "noexcept", "override", "final", "mutable", "else", "do", "try"):
            return "body"
        if self.is_(i - 1, "]"):
            return "body"
        if "->" in words and "()" in words:
            return "body"
        if self.is_(i - 1, ";", "{", "}", ":") and (outside in ("body", None) or self.is_(i - 1, "}")):
            # After a case's colon, or a constructor's initialisers; else part of a list.
            return "body" if outside in ("body", "class", None, "namespace") else "list"
        return "list"

    def within(self, i, kind):
        """Whether the innermost brace around token i that is not a list is of this kind."""
        p = self.parent[i]
        while p >= 0:
            found = self.braces.get(p)
            if found not in (None, "list"):
                return found == kind
            p = self.parent[p]
        return False

    def statement_end(self, i):
        """The `;` that ends the statement of token i, or the brace after a head."""
        while i < len(self.tokens) and not self.is_(i, ";"):
            if self.is_(i, "(", "[", "{"):
                i = self.match.get(i, i)
            elif self.is_(i, ")", "]", "}"):
                return i - 1
            i += 1
        return min(i, len(self.tokens) - 1)

    def angle_end(self, i):
        depth = 0
        while i < len(self.tokens):
            text = self.tokens[i].text
            if text in ("(", "[", "{"):
                i = self.match.get(i, i)
            elif text == "<":
                depth += 1
            elif text in (">", ">>"):
                depth -= len(text)
                if depth <= 0:
                    return i
            elif text in (";", ")", "]", "}"):
                return None
            i += 1
        return None

    def blank(self, i):
        """Blanks on both sides of token i."""
        t = self.tokens[i]
        return self.text[t.start - 1].isspace() and self.text[t.end:t.end + 1].isspace()

    def mark_fixed(self):
        def fix(begin, end):
            for k in range(begin, min(end + 1, len(self.tokens))):
                self.fixed[k] = True

        for i, t in enumerate(self.tokens):
            if t.kind == "name":
                if t.text in ("static_assert", "using", "typedef", "friend", "concept", "extern"):
                    fix(i, self.statement_end(i))
                elif t.text == "template" and self.is_(i + 1, "<"):
                    fix(i, self.angle_end(i + 1) or i)
                elif t.text in ("sizeof", "decltype", "noexcept", "alignas", "alignof", "requires") and self.is_(i + 1, "("):
                    fix(i, self.match[i + 1])
                elif t.text == "constexpr" and self.is_(i - 1, "if"):
                    fix(i, self.match[i + 1])
                elif t.text == "consteval":
                    body = i
                    while body < len(self.tokens) and self.braces.get(body) != "body":
                        body += 1
                    fix(i, self.match.get(body, body))
                elif t.text in ("constexpr", "constinit"):
                    self.mark_constant(i, fix)
                elif t.text == "case":
                    end = i
                    while not self.is_(end, ":"):
                        end += 1
                    fix(i, end)
                elif t.text.isupper() and self.is_(i + 1, "(") and not self.within(i, "body"):
                    fix(i, self.match[i + 1])  # a macro that declares something
                elif t.text == "operator":
                    fix(i, i + 2)
                elif t.text == "random" and self.is_(i + 1, "(") and (self.within(i, "class") or self.is_(i - 1, "::")):
                    # Generates packets for tests, so it is part of the tests.
                    body = self.match[i + 1] + 1
                    while self.is_(body, "const"):
                        body += 1
                    if self.is_(body, "{"):
                        fix(i, self.match[body])
            elif t.text == "<" and i > 0 and self.tokens[i - 1].kind == "name" and not self.blank(i):
                end = self.angle_end(i)
                if end is not None:
                    fix(i, end)
            elif t.text == "[" and self.is_(i + 1, "["):
                fix(i, self.match[i])
            elif t.text == "[" and i >= 2 and self.tokens[i - 1].kind == "name" and (
                    self.tokens[i - 2].kind == "name" and not self.is_(i - 2, "return") or self.is_(i - 2, ">", ">>")):
                fix(i, self.match[i])  # the size of a declared array
            elif t.text == "[" and self.is_(i - 1, ")") and self.is_(i - 3, "&") and self.is_(i - 4, "("):
                fix(i, self.match[i])  # the size of an array that is passed by reference
            elif t.text == "{" and self.braces[i] in ("enum", "requires"):
                fix(i, self.match[i])
            elif t.text == ":" and self.tokens[i + 1].kind == "number" and self.within(i, "class") and \
                    self.parent[i] in self.braces:
                fix(i, i + 1)  # the width of a bit field

    def mark_constant(self, i, fix):
        """A constexpr variable cannot be switched at run time. Where it is defined in a source it may become `const`."""
        k = i + 1
        while k < len(self.tokens) and not self.is_(k, "(", "=", "{", ";"):
            if self.is_(k, "["):
                k = self.match[k]
            if self.is_(k, "<") and not self.blank(k):
                k = self.angle_end(k) or k
            k += 1
        if not self.is_(k, "=", "{"):
            return
        end = self.statement_end(k)
        first = k + 1 if self.is_(k, "=") else k
        static = self.is_(i - 1, "static") or self.is_(i - 1, "inline")
        outside = self.braces.get(self.parent[i])
        static = static or outside != "body"
        if self.file.endswith(".cc") and self.is_(end, ";") and self.is_(k, "=") and outside != "class" and not (
                static and self.is_(first, "[", "{")):
            at = (self.tokens[i].start, self.tokens[i].end, self.tokens[first].start, self.tokens[end].start,
                  not static and self.braces.get(self.parent[i]) == "body")
            for j in range(first, end):
                self.table[j] = at
        else:
            fix(i, end)

    # ---- possible changes

    def add(self, operator, change, first, last, parts):
        """A mutant of tokens first to last."""
        if any(self.fixed[first:last + 1]):
            return
        start, end = self.tokens[first].start, self.tokens[last].end
        line = bisect.bisect_right(self.lines, start) - 1
        text = self.text[self.lines[line]:self.text.find("\n", self.lines[line])].strip()
        self.mutants.append(Mutant(self.file, operator, change, line + 1, text, start, end, tuple(parts),
                                   needs=self.table[first]))

    def tell_apart(self):
        lines, changes = {}, {}
        for m in self.mutants:
            numbers = lines.setdefault(m.text, [])
            if m.line not in numbers:
                numbers.append(m.line)
            m.repeat = sorted(numbers).index(m.line)
            where = (m.line, m.operator, m.change)
            changes[where] = changes.get(where, 0) + 1
            if changes[where] > 1:
                m.change += f" #{changes[where]}"
            m.identify()

    def span(self, first, last):
        return (self.tokens[first].start, self.tokens[last].end)

    def operands(self, i):
        """First and last token of the whole expression of the binary operator at i."""
        binds = BINDS[self.tokens[i].text]
        left = i - 1
        begin = None
        while left >= 0:
            t = self.tokens[left]
            right = self.tokens[left + 1]
            if t.text in (")", "]", "}"):
                if t.text == ")" and (right.kind in ("name", "number", "string", "char") or right.text in ("!", "~", "*")) \
                        and left + 1 != i:
                    break
                if t.text == "}" and self.braces.get(self.match[left]) != "list":
                    break
                begin = left = self.match[left]
            elif t.kind == "mark" and t.text in BINDS and self.blank(left):
                if BINDS[t.text] < binds:
                    break
            elif t.kind == "mark" and (t.text in "([{,;?:" or t.text.endswith("=") and t.text not in BINDS):
                break
            elif t.kind == "name" and t.text in ENDS_OPERAND:
                break
            begin = left
            left -= 1
        right = i + 1
        last = None
        while right < len(self.tokens):
            t = self.tokens[right]
            if t.text in ("(", "[", "{"):
                if t.text == "{" and self.braces.get(right) != "list":
                    break
                last = right = self.match[right]
            elif t.kind == "mark" and t.text in BINDS and self.blank(right):
                if BINDS[t.text] <= binds:
                    break
            elif t.kind == "mark" and (t.text in ")]},;?:" or t.text.endswith("=") and t.text not in BINDS):
                break
            last = right
            right += 1
        return begin, last

    def find(self):
        for i, t in enumerate(self.tokens):
            if self.fixed[i]:
                continue
            body = self.within(i, "body")
            if t.kind == "number":
                self.literal(i)
            elif t.kind == "name" and t.text in ("true", "false"):
                other = "false" if t.text == "true" else "true"
                self.choice("constant", f"{t.text} -> {other}", i, i, [other])
            elif t.kind == "name" and t.text in self.enumerators and self.is_(i + 1, "::"):
                self.enumerator(i)
            elif t.kind == "name" and t.text in ("if", "while") and self.is_(i + 1, "(") and body:
                self.head(i)
            elif t.kind == "name" and self.is_(i - 1, ".", "->") and t.text in self.fields and not self.is_(i + 1, "("):
                self.field(i)
            elif t.kind == "mark" and t.text in BINDS and self.blank(i):
                self.binary(i)
            elif t.kind == "mark" and t.text == "!" and not self.is_(i - 1, "operator"):
                self.negation(i)
            elif t.kind == "mark" and t.text in ARITHMETIC and t.text.endswith("=") and body:
                other = ARITHMETIC[t.text]
                self.statement(i, "arithmetic", f"{t.text} -> {other}", other)
            elif t.kind == "mark" and t.text in ("++", "--") and body:
                self.step(i)
            if body and self.begins_statement(i):
                self.deletion(i)

    def choice(self, operator, change, first, last, parts):
        """`(mutant ? parts : source)`."""
        self.add(operator, change, first, last, ["(%s ? ", *parts, " : ", self.span(first, last), ")"])

    def literal(self, i):
        t = self.tokens[i]
        match = re.fullmatch(r"(0x[0-9a-fA-F']+|0b[01']+|[0-9][0-9']*)([uUlLzZ]*)", t.text)
        if not match or self.is_(i - 1, "<") and not self.blank(i - 1):
            return
        digits = match.group(1).replace("'", "")
        value = int(digits, 0) if not re.fullmatch(r"0[0-9]+", digits) else int(digits, 8)
        suffix = match.group(2)
        def write(number):
            form = hex(number) if digits.startswith("0x") else str(number)
            return form + suffix
        others = {"constant": [1 if value == 0 else 0] + ([value ^ (value & -value)] if value & (value - 1) else []),
                  "off_by_one": [value + 1] + ([value - 1] if value > 0 else [])}
        # If adding one equals changing to another value, it counts as a constant.
        if value in (0, 1):
            others["off_by_one"] = [value + 1] if value == 1 else []
        if digits.startswith("0x") and value > 255:
            others["off_by_one"] = []
            others["constant"].append(value ^ (1 << (value.bit_length() // 2)))
        for operator, numbers in others.items():
            for number in dict.fromkeys(numbers):
                if number != value:
                    self.choice(operator, f"{t.text} -> {write(number)}", i, i, [write(number)])

    def enumerator(self, i):
        if self.tokens[i + 2].kind != "name" or self.is_(i + 3, "::", "("):
            return
        names = self.enumerators[self.tokens[i].text]
        if names is None or self.tokens[i + 2].text not in names or len(names) < 2:
            return
        other = names[(names.index(self.tokens[i + 2].text) + 1) % len(names)]
        first = i
        while self.is_(first - 1, "::"):
            first -= 2
        head = self.text[self.tokens[first].start:self.tokens[i + 2].start]
        self.choice("constant", f"{self.tokens[i + 2].text} -> {other}", first, i + 2, [head + other])

    def field(self, i):
        if self.is_(i + 1, "=") and self.is_(i + 2, "{"):
            return  # g++ 12 loses conditional operands in the braces behind a conditional object
        for other in self.fields[self.tokens[i].text]:
            first = i - 1
            # The object: names, member accesses, calls and indices before it.
            k = i - 2
            while k >= 0:
                t = self.tokens[k]
                if t.text in (")", "]"):
                    k = self.match[k] - 1
                    continue
                if t.kind == "name" and t.text not in ENDS_OPERAND:
                    first = k
                    if self.is_(k - 1, ".", "->", "::"):
                        k -= 2
                        continue
                break
            else:
                return
            if first == i - 1:
                return  # a designator, or an object of a form unknown here
            head = self.span(first, i - 1)
            self.choice("swapped_field", f"{self.tokens[i].text} -> {other}", first, i, [head, other])

    def head(self, i):
        close = self.match[i + 1]
        first = i + 2
        k = first
        while k < close:
            if self.is_(k, "(", "[", "{"):
                k = self.match[k]
            elif self.is_(k, ";"):
                first = k + 1
            k += 1
        k = first
        while k < close:
            if self.is_(k, "(", "[", "{"):
                k = self.match[k]
            elif self.is_(k, "="):
                return  # declares the variable that it tests
            k += 1
        if first >= close:
            return
        span = self.span(first, close - 1)
        self.add("condition", "never", first, close - 1, ["(!%s && (", span, "))"])
        if self.is_(i, "if"):
            self.add("condition", "always", first, close - 1, ["(%s || (", span, "))"])

    def binary(self, i):
        t = self.tokens[i]
        first, last = self.operands(i)
        if first is None or last is None:
            return
        left, right = self.span(first, i - 1), self.span(i + 1, last)
        for operator, others in (("condition", NEGATED), ("off_by_one", BOUNDARY), ("arithmetic", ARITHMETIC)):
            if t.text in others:
                other = others[t.text]
                self.choice(operator, f"{t.text} -> {other}", first, last, ["(", left, f" {other} ", right, ")"])

    def negation(self, i):
        last = i + 1
        while last < len(self.tokens):
            if self.is_(last, "(", "["):
                last = self.match[last]
            elif self.tokens[last].kind != "name" and not self.is_(last, "::", ".", "->", "*"):
                return
            if not self.is_(last + 1, "(", "[", ".", "->", "::") and not self.is_(last, "::", ".", "->", "*"):
                break
            last += 1
        span = self.span(i + 1, last)
        self.add("condition", "! dropped", i, last, ["(%s ? static_cast<bool>(", span, ") : !", span, ")"])

    def begins_statement(self, i):
        if not (self.is_(i - 1, ";", "{", "}", "else", ":") or self.is_(i - 1, ")")):
            return False
        if self.parent[i] not in self.braces or self.braces[self.parent[i]] != "body":
            return False
        if self.is_(i - 1, "}") and self.braces.get(self.match[i - 1]) == "list":
            return False
        if self.is_(i - 1, ")"):
            before = self.match[i - 1] - 1
            return self.is_(before, "if", "for", "while")
        if self.is_(i - 1, ":"):
            return self.fixed[i - 1] or self.is_(i - 2, "default")
        return True

    def statement_bounds(self, i):
        first = i
        while first >= 0 and not self.begins_statement(first):
            if self.is_(first - 1, ")", "]", "}") and not self.begins_statement(first):
                first = self.match[first - 1]
            else:
                first -= 1
            if self.is_(first, "(", "{", "return", ",", "?"):
                if not self.begins_statement(first) and not self.is_(first, "("):
                    return None
                if self.is_(first, "(") and self.parent[i] == first:
                    return None
        last = self.statement_end(i)
        return (first, last) if first >= 0 and self.is_(last, ";") else None

    def statement(self, i, operator, change, other):
        """`a += b;` with another operator."""
        bounds = self.statement_bounds(i)
        if not bounds or self.parent[bounds[0]] != self.parent[i]:
            return
        first, last = bounds
        left, right = self.span(first, i - 1), self.span(i + 1, last)
        self.add(operator, change, first, last,
                 ["{ if (%s) ", left, f" {other} ", right, " else ", self.span(first, last), " }"])

    def step(self, i):
        other = ARITHMETIC[self.tokens[i].text]
        if not self.begins_statement(i):
            return
        last = self.statement_end(i)
        if self.is_(last, ";"):
            self.add("arithmetic", f"{self.tokens[i].text} -> {other}", i, last,
                     ["{ if (%s) ", other, self.span(i + 1, last), " else ", self.span(i, last), " }"])

    def deletion(self, i):
        t = self.tokens[i]
        last = self.statement_end(i)
        if not self.is_(last, ";") or last == i:
            return
        if t.kind == "name" and t.text in ("return", "break", "continue"):
            if last != i + 1:
                return
        elif t.kind == "name" and t.text in ("if", "for", "while", "do", "switch", "case", "default", "goto", "const",
                                             "auto", "static", "constexpr", "struct", "else", "try", "catch", "enum",
                                             "class", "unsigned", "bool", "int", "char", "double", "throw", "co_return"):
            return
        elif t.kind != "name" and t.text not in ("++", "--", "*") and not (t.text == "(" and not self.is_(i - 1, "}")):
            return
        else:
            # A declaration: a name, at the same depth, directly after a name, `>`, `&` or `*`.
            k = i + 1
            while k < last and not self.is_(k, "="):
                if self.is_(k, "(", "[", "{"):
                    if self.is_(k, "{"):
                        return
                    k = self.match[k]
                elif self.tokens[k].kind == "name":
                    p = self.tokens[k - 1]
                    if p.kind == "name" or p.text in (">", "&", "*", "&&") and not self.blank(k - 1):
                        return
                k += 1
        self.add("deleted_statement", "deleted", i, last, ["{ if (!%s) ", self.span(i, last), " }"])

    # ---- writing

    def write(self, mutants):
        """The source that contains these mutants."""
        tables = sorted({m.needs for m in mutants if m.needs})
        edits = list(mutants)
        for start, end, first, last, local in tables:
            line = bisect.bisect_right(self.lines, start)
            # A local `const` integer with a constant initialiser would still be a constant expression.
            edits.append(Mutant(self.file, "", "", line, "", start, end, ("" if local else "const",)))
            if not local:
                edits.append(Mutant(self.file, "", "", line, "", first, last, ("wm_dynamic(", (first, last), ")")))
        return self.render(0, len(self.text), edits)

    def render(self, start, end, edits):
        inside = [e for e in edits if start <= e.start and e.end <= end]
        # The outermost first; at one place, first the mutants that keep it in one piece, since the others leave no room
        # for them.
        inside.sort(key=lambda e: (e.start, -e.end, (e.start, e.end) not in e.parts))
        out, at = [], start
        for index, edit in enumerate(inside):
            if edit.start < at:
                continue
            out.append(self.text[at:edit.start])
            rest = inside[:index] + inside[index + 1:]
            lines = self.text.count("\n", edit.start, edit.end)
            made = []
            for part in edit.parts:
                if isinstance(part, str):
                    made.append(part.replace("%s", f"wm_mutant({edit.number})"))
                else:
                    made.append(self.render(part[0], part[1], rest))
            # Line numbers are kept: a message about line n refers to line n of the original.
            text = "".join(made)
            extra = text.count("\n") - lines
            if extra > 0:
                pieces = text.split("\n")
                text = " ".join(pieces[:extra + 1]) + ("\n" + "\n".join(pieces[extra + 1:]) if lines else "")
            out.append(text)
            at = edit.end
        out.append(self.text[at:end])
        return "".join(out)


def read_names(texts, others):
    """What each field may be swapped with, and the enumerators of each enum.

    The texts are a folder's, `others` those of all that it may include. A field is swapped with the next of its struct that
    has the same type, if every struct with a field of this name has the other one too: then it does not matter whose it is.
    """
    def plain(text):
        return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', " ", text, flags=re.DOTALL)

    enumerators, structs = {}, []
    for own, text in [(True, plain(t)) for t in texts] + [(False, plain(t)) for t in others]:
        for match in re.finditer(r"\benum\s+(?:class|struct)\s+(\w+)[^{;]*\{([^}]*)\}", text):
            names = [n.split("=")[0].strip() for n in match.group(2).split(",")]
            names = [n for n in names if re.fullmatch(r"\w+", n)]
            if own:
                enumerators[match.group(1)] = names if enumerators.get(match.group(1), names) == names else None
        for match in re.finditer(r"\b(?:struct|class)\s+(\w+)[^;{}()]*\{", text):
            structs.append((own, members(text, match.end())))
    fields = {}
    for own, types in structs:
        for kind in set(types.values()) if own else ():
            names = [n for n, t in types.items() if t == kind]
            for index, name in enumerate(names):
                for other in names[index + 1:] + names[:index]:
                    if all(t[name] == t.get(other) for _, t in structs if name in t):
                        fields.setdefault(name, [])
                        if other not in fields[name]:
                            fields[name].append(other)
                        break
    return fields, enumerators


def members(text, begin):
    """The fields, with their types, of the struct whose text begins there."""
    depth, k, found = 1, begin, []
    while k < len(text) and depth:
        if text[k] == "{":
            depth += 1
        elif text[k] == "}":
            depth -= 1
        found.append(text[k] if depth == 1 and text[k] != "}" else " ")
        k += 1
    types = {}
    for line in re.split(r";|(?<!:):(?!:)", "".join(found)):
        match = re.fullmatch(r"\s*([\w:]+(?:<[^()]*>)?)\s+(\w+(?:\s*(?:=[^,]*)?\s*,\s*\w+)*)\s*(?:=.*)?\s*", line, re.DOTALL)
        if match and match.group(1) not in ("return", "using", "static", "friend", "struct", "enum", "class"):
            for name in match.group(2).split(","):
                types[name.split("=")[0].strip()] = match.group(1)
    return types


def draw(mutants, count, seed):
    """Draws `count` of them, with each operator in turn, in an order that depends only on each mutant and the seed."""
    for m in mutants:
        m.rank = hashlib.sha256(f"{seed}\0{m.key}".encode()).hexdigest()
    queues = {name: sorted((m for m in mutants if m.operator == name), key=lambda m: m.rank) for name in OPERATORS}
    drawn = []
    while len(drawn) < count and any(queues.values()):
        for name in OPERATORS:
            if queues[name] and len(drawn) < count:
                drawn.append(queues[name].pop(0))
    return drawn
