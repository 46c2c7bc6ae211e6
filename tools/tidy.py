#!/usr/bin/env python3
"""Checks the rules of the house that a tool can check; ./dev check runs it.

Prints one line a finding, `file:line: what, and what is wanted`, and exits 1 if there is any.
Ceilings above a limit stand in tools/tidy_allow.txt, one line each: PATH LIMIT-NAME CEILING WHY.
"""

import ast
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Room -> rooms it may include (docs/architecture.md). A new arrow needs a decision record first.
BELOW_MODEL = ["base", "tensor", "io", "device", "kernels", "memory"]
ARROWS = {
    "base": [],
    "tensor": ["base"],
    "io": ["base", "tensor"],
    "device": ["base", "tensor"],
    "kernels": ["base", "tensor", "device"],
    "memory": ["base", "tensor", "device", "io"],
    "model": BELOW_MODEL,
    "text": ["base"],
    "engine": BELOW_MODEL + ["model", "text"],
    "server": ["base", "text", "engine"],
    "verify": BELOW_MODEL + ["model", "text", "engine"],
    "bench": BELOW_MODEL + ["model", "text", "engine", "server", "verify"],
    "cli": ["base", "text", "engine", "server", "verify", "bench"],
}
# Headers of a room that another room may not use although the arrow exists.
ONLY_HEADERS = {("engine", "kernels"): {"kernels/sampling.h", "kernels/isa.h", "kernels/policy.h"}}
SIBLINGS = [("kernels/ref", "kernels/cpu"), ("model/deepseek_v4/", "model/deepseek_v41/")]

LINE_WIDTH = 100
LIMITS = {"source-lines": 600, "header-lines": 600, "function-lines": 70}
CODE = {".h", ".cc", ".cu", ".cuh"}
TEXT = {".py", ".js", ".css", ".html", ".txt", ".md", ".json", ".sh", ""}
# Every command and program that reads or writes a machine's own paths does so at run time.
MACHINE_PATH = re.compile(r"(?<![\w.$}-])/(?:work|root|farm)/")


def tracked_files():
    """Files git tracks or would track, as paths relative to the root."""
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True,
                         capture_output=True, check=True).stdout
    return sorted(pathlib.Path(p) for p in out.splitlines() if (ROOT / p).is_file())


def load_allowances():
    """{(path, limit name): ceiling} from tools/tidy_allow.txt."""
    allowed = {}
    for line in (ROOT / "tools/tidy_allow.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            path, name, ceiling, _why = line.split(maxsplit=3)
            allowed[path, name] = int(ceiling)
    return allowed


class Findings:
    """Collects findings and knows which allowances were needed."""

    def __init__(self, allowed):
        self.allowed = allowed
        self.used = set()
        self.lines = []

    def add(self, path, line, text):
        self.lines.append(f"{path}:{line}: {text}")

    def limit(self, path, line, name, found, what):
        """Reports `found` above the limit `name`, unless tools/tidy_allow.txt gives a ceiling."""
        if found <= LIMITS[name]:
            return
        key = (str(path), name)
        if key in self.allowed and found <= self.allowed[key]:
            self.used.add(key)
            return
        most = self.allowed.get(key, LIMITS[name])
        self.add(path, line, f"{what} has {found} lines, at most {most} ({name})")


def room_of(path):
    parts = path.parts
    return parts[1] if len(parts) > 2 and parts[0] == "src" else None


def check_includes(path, lines, findings):
    """Room arrows, private headers, sibling backends."""
    room = room_of(path)
    if room is None:
        return
    if room not in ARROWS:
        findings.add(path, 1, f"room {room} is not in tools/tidy.py")
        return
    inside = str(path)[len("src/"):]
    for number, line in enumerate(lines, 1):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not match:
            continue
        header = match.group(1)
        other = header.split("/")[0]
        if other not in ARROWS:
            findings.add(path, number, f'include "{header}" does not start with a room')
        elif other != room and other not in ARROWS[room]:
            findings.add(path, number, f"{room} may not include {other} ({header})")
        elif other != room and "/internal/" in header:
            findings.add(path, number, f"{header} is private to {other}")
        elif header not in ONLY_HEADERS.get((room, other), {header}):
            findings.add(path, number, f"{room} may include only "
                                       f"{sorted(ONLY_HEADERS[room, other])} of {other}")
        for one, two in SIBLINGS:
            for here, there in ((one, two), (two, one)):
                if inside.startswith(here) and header.startswith(there):
                    findings.add(path, number, f"{here} and {there} never include each other")


CONTROL = re.compile(r"^(namespace|class|struct|enum|union|extern|using|typedef|if|for|while|"
                     r"switch|else|do|case|default|return|static_assert|try|catch)\b")


def cpp_functions(lines):
    """Yields (first line, length, name) of functions in clang-formatted code, lambdas not apart."""
    index, count = 0, len(lines)
    while index < count:
        line = lines[index]
        indent = len(line) - len(line.lstrip(" "))
        text = line.strip()
        if text.startswith("#"):
            while lines[index].endswith("\\") and index + 1 < count:
                index += 1
        if not text or indent > 4 or text.startswith(("#", "//", "}")) or CONTROL.match(text):
            index += 1
            continue
        end = index
        head = text
        while end + 1 < count and end - index < 25 and not re.search(r"[{;}]\s*(//.*)?$", head):
            end += 1
            head += " " + lines[end].strip()
        opens = re.search(r"\{\s*(//.*)?$", head) and "(" in head
        if not opens or re.search(r"=\s*\{|=\s*\[", head):
            index = end + 1
            continue
        close = next((i for i in range(end + 1, count)
                      if lines[i].startswith(" " * indent + "}") and lines[i].strip()[0] == "}"),
                     None)
        if close is None:
            index = end + 1
            continue
        name = re.search(r"([~\w:]+)\s*\(", head)
        if not head.startswith("INSTANTIATE_TEST_SUITE_P"):  # a table of cases, long and flat
            yield index + 1, close - index + 1, name.group(1) if name else "?"
        index = close + 1


def check_length(path, lines, findings):
    if lines and any("Table: generated by" in line for line in lines[:3]):
        return
    kind = "header-lines" if path.suffix in (".h", ".cuh") else "source-lines"
    findings.limit(path, 1, kind, len(lines), "file")
    if path.suffix in CODE:
        functions = cpp_functions(lines)
    else:
        functions = [(n.lineno, n.end_lineno - n.lineno + 1, n.name)
                     for n in ast.walk(ast.parse("\n".join(lines)))
                     if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    for first, length, name in functions:
        findings.limit(path, first, "function-lines", length, f"function {name}")


def check_test_names(path, findings, files):
    """tests/ROOM/.../X_test.cc tests src/ROOM/.../X.{h,cc}, or a folder or topic of that room."""
    parts = path.parts
    if parts[0] != "tests" or path.suffix != ".cc" or len(parts) < 3 or parts[1] not in ARROWS:
        return
    if path.name.endswith("_test.cc"):
        source = pathlib.Path("src", *parts[1:-1], path.name[:-len("_test.cc")])
        room_has = any(str(f).startswith(str(source)) for f in files)
        topical = (ROOT / path).read_text().startswith("// Topic:")
        if not room_has and not topical:
            findings.add(path, 1, f"no {source}.h or .cc; a test of more than one file says so in "
                                  f"its first line: // Topic: what is promised")
    elif "TEST(" in (ROOT / path).read_text():
        findings.add(path, 1, "a file with tests is named *_test.cc")


def check_lines(path, lines, findings):
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_WIDTH and not re.search(r"https?://\S{40,}", line):
            findings.add(path, number, f"line of {len(line)} characters, at most {LINE_WIDTH}")
        if "FIX" "ME" in line:
            findings.add(path, number, "FIX" "ME never lands")
        if re.search(r"\bTODO\b(?!\(#\d+\):)", line) and path.name != "tidy.py":
            findings.add(path, number, "write TODO(#issue): what, and what happens until then")
        if line != line.rstrip():
            findings.add(path, number, "white space at the end of the line")


def check_walks(findings):
    """Every `name()` in docs/architecture.md is a function that exists in src/ or web/."""
    page = ROOT / "docs/architecture.md"
    if not page.exists():
        findings.add("docs/architecture.md", 1, "the page is missing")
        return
    code = "\n".join(p.read_text() for p in list((ROOT / "src").rglob("*")) +
                     list((ROOT / "web").rglob("*.js")) if p.suffix in CODE | {".js"})
    for number, line in enumerate(page.read_text().splitlines(), 1):
        for name in re.findall(r"`(?:[\w:]+::)?(\w+)\(\)`", line):
            if not re.search(rf"\b{name}\(", code):
                findings.add("docs/architecture.md", number, f"function {name}() does not exist")


def check_cmake(findings):
    """A room links only rooms that it may include."""
    for path in [ROOT / "src/CMakeLists.txt", *(ROOT / "src").glob("*/CMakeLists.txt")]:
        for match in re.finditer(r"^\s*room\((\w+)([^)]*)\)", path.read_text(), re.M):
            room, links = match.group(1), match.group(2).split()
            for other in links:
                if other in ARROWS and other not in ARROWS.get(room, []):
                    findings.add(path.relative_to(ROOT), 1, f"{room} may not link {other}")


def main():
    files = tracked_files()
    findings = Findings(load_allowances())
    for path in files:
        is_code = path.suffix in CODE
        if not is_code and path.suffix not in TEXT:
            continue
        if path.parts[:2] in (("models", "demo"), ("tests", "data")) or "corpus" in path.parts:
            continue
        if path.parts[:2] == ("tests", "golden") and path.suffix != ".py":
            continue
        text = (ROOT / path).read_text(errors="replace")
        lines = text.splitlines()
        if path.name != "tidy.py":
            for number, line in enumerate(lines, 1):
                if MACHINE_PATH.search(line):
                    findings.add(path, number, "a path of one machine")
        if is_code or path.suffix in (".py", ".js", ".css"):
            check_lines(path, lines, findings)
        if is_code:
            check_includes(path, lines, findings)
            check_test_names(path, findings, files)
        if is_code or path.suffix == ".py":
            check_length(path, lines, findings)
    check_walks(findings)
    check_cmake(findings)
    for path, name in sorted(set(findings.allowed) - findings.used):
        findings.add("tools/tidy_allow.txt", 1, f"{path} {name} is not needed any more: delete it")
    print("\n".join(findings.lines) if findings.lines else f"tidy: {len(files)} files, no finding")
    return 1 if findings.lines else 0


if __name__ == "__main__":
    sys.exit(main())
