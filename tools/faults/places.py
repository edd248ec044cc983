"""Where small faults can be made in a C file, and what they are: found in the syntax tree, so that each compiles."""

import re
from dataclasses import dataclass

import clang.cindex as clang

OTHER = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "&&": "||", "||": "&&",
    "+": "-", "-": "+", "*": "/", "/": "*",
}  # fmt: skip
KIND = clang.CursorKind
ARRAYS = (clang.TypeKind.CONSTANTARRAY, clang.TypeKind.INCOMPLETEARRAY)
LONGEST = 400  # of a text that is written twice


@dataclass
class Fault:
    """Bytes begin to end of the file become `text`; an empty one leaves the statement out."""

    file: str
    begin: int
    end: int
    text: str
    line: int
    function: str
    number: int = 0
    old: str = ""


class Finder:
    """Walks the syntax tree of one file. Leaves alone what stands in macros of several words, in headers, in case
    labels, in declarations of static variables, and in lengths of arrays: there a choice is no constant."""

    def __init__(self, file, path, arguments):
        options = clang.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD
        self.file, self.path = file, path
        self.unit = clang.Index.create().parse(path, args=arguments, options=options)
        worst = [str(d) for d in self.unit.diagnostics if d.severity >= clang.Diagnostic.Error]
        if worst:
            raise ValueError(f"{path}: {worst[0]}")
        with open(path, "rb") as stream:
            self.text = stream.read()
        self.macros = [
            (c.extent.start.offset, c.extent.end.offset)
            for c in self.unit.cursor.get_children()
            if c.kind in (KIND.MACRO_INSTANTIATION, KIND.MACRO_DEFINITION) and self.is_here(c)
        ]
        self.found = []

    def is_here(self, cursor):
        return cursor.location.file is not None and cursor.location.file.name == self.path

    def clear(self, begin, end, whole=False):
        """Whether the text meets no macro but names of constants inside it, and, if `whole`, calls inside it."""
        for first, last in self.macros:
            inside = begin <= first and last <= end
            name = re.fullmatch(rb"\w+", self.text[first:last])
            if first < end and last > begin and not (inside and (whole or name)):
                return False
        return True

    def add(self, cursor_extent, text, function, whole=False):
        begin, end = cursor_extent.start.offset, cursor_extent.end.offset
        if begin < end < begin + LONGEST and self.clear(begin, end, whole):
            old = self.text[begin:end].decode()
            self.found.append(Fault(self.file, begin, end, text, cursor_extent.start.line, function, 0, old))

    def operator(self, cursor, function):
        """Another operator in the place of one; not of pointers, whose sums would not compile."""
        left, right = list(cursor.get_children())
        between = self.text[left.extent.end.offset : right.extent.start.offset]
        match = re.fullmatch(rb"[\s)]*([-+*/<>=!&|]+)[\s(]*", between)
        old = match.group(1).decode() if match else None
        pointers = any(c.type.get_canonical().kind == clang.TypeKind.POINTER for c in (left, right))
        if old not in OTHER or old in "+-*/" and pointers:
            return
        begin, at = cursor.extent.start.offset, left.extent.end.offset + match.start(1)
        text = self.text[begin:at] + OTHER[old].encode() + self.text[at + len(old) : cursor.extent.end.offset]
        self.add(cursor.extent, text.decode(), function)

    def returned(self, cursor, function):
        """A failure that is not returned, or the opposite of a truth."""
        for value in list(cursor.get_children())[:1]:
            text = self.text[value.extent.start.offset : value.extent.end.offset].decode()
            if text.startswith("TR_TRY"):  # a macro with a return inside
                self.add(value.extent, "", function, True)
            elif value.type.spelling == "tr_status" and text != "TR_OK" or text.startswith("tr_fail"):
                self.add(value.extent, "TR_OK", function, True)
            elif value.type.get_canonical().spelling in ("_Bool", "bool") or text in ("true", "false"):
                self.add(value.extent, f"!({text})", function, True)

    def visit(self, cursor, parent, function):
        kind, children = cursor.kind, list(cursor.get_children())
        if kind == KIND.FUNCTION_DECL:
            function = cursor.spelling
        if kind == KIND.ENUM_DECL or kind == KIND.VAR_DECL and cursor.storage_class == clang.StorageClass.STATIC:
            return
        if function and kind == KIND.BINARY_OPERATOR and len(children) == 2:
            self.operator(cursor, function)
        elif function and kind == KIND.INTEGER_LITERAL and not (parent.kind == KIND.VAR_DECL and parent.type.kind in ARRAYS):
            old = self.text[cursor.extent.start.offset : cursor.extent.end.offset]
            if re.fullmatch(rb"[0-9]+[ul]*", old):
                self.add(cursor.extent, f"{old.decode()} + 1", function)
        elif function and kind == KIND.IF_STMT:
            for truth in "01":
                self.add(children[0].extent, truth, function)
        elif function and kind == KIND.RETURN_STMT:
            self.returned(cursor, function)
        statements = (KIND.CALL_EXPR, KIND.BINARY_OPERATOR, KIND.COMPOUND_ASSIGNMENT_OPERATOR, KIND.UNARY_OPERATOR)
        end = cursor.extent.end.offset
        if function and kind in statements and parent.kind == KIND.COMPOUND_STMT and self.text[end : end + 1] == b";":
            self.add(cursor.extent, "", function, True)
        for child in children[1:] if kind == KIND.CASE_STMT else children:
            self.visit(child, cursor, function)

    def faults(self):
        for cursor in self.unit.cursor.get_children():
            if self.is_here(cursor):
                self.visit(cursor, self.unit.cursor, None)
        return self.found


def faults_of(job):
    """All faults of a file: job is (name in the tree, path, arguments of the compiler). For a pool of processes."""
    return Finder(*job).faults()
