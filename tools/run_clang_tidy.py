#!/usr/bin/env python3
"""Runs clang-tidy on the sources of src/ that changed since they last passed.

usage: run_clang_tidy.py BUILD_DIR

A source counts as unchanged when its own text, every project header that the build says it reads,
and .clang-tidy are the same as when it passed; BUILD_DIR/tidy-cache holds one empty file a pass.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def project_dependencies(build):
    """{object: [project files]} from ninja's own record of what each compile read."""
    text = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], capture_output=True, text=True,
                          check=True).stdout
    deps, current = {}, None
    for line in text.splitlines():
        if line and not line.startswith(" "):
            current = line.split(":")[0]
            deps[current] = []
        elif line.strip():
            path = pathlib.Path(os.path.normpath(build / line.strip()))
            if path.is_relative_to(ROOT):
                deps[current].append(path)
    return deps


def key_of(entry, deps, hashes):
    """What decides the outcome for one compile, as a hex name."""
    def digest(path):
        if path not in hashes:
            hashes[path] = hashlib.sha256(path.read_bytes()).hexdigest()
        return hashes[path]
    parts = [digest(ROOT / ".clang-tidy"), entry["file"].removeprefix(str(ROOT))]
    output = shlex.split(entry["command"])
    output = output[output.index("-o") + 1]
    parts += [digest(p) for p in sorted(set(deps.get(output, []))) if p.exists()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    cache = build / "tidy-cache"
    cache.mkdir(exist_ok=True)
    deps = project_dependencies(build)
    hashes, seen, work = {}, set(), []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        name = entry["file"]
        # A file built for several ISAs is read once; generated files are nobody's prose.
        if not name.startswith(str(ROOT / "src")) or name in seen:
            continue
        seen.add(name)
        key = key_of(entry, deps, hashes)
        if not (cache / key).exists():
            work.append((name, key))

    def run(job):
        name, key = job
        done = subprocess.run(["clang-tidy", "--quiet", "-p", str(build),
                               "--extra-arg=-Wno-unknown-warning-option", name],
                              capture_output=True, text=True)
        if done.returncode == 0:
            (cache / key).touch()
        return name, done

    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, done in pool.map(run, work):
            if done.returncode != 0:
                bad += 1
                print(f"{name}\n{done.stdout}{done.stderr}")
    print(f"clang-tidy: {len(seen)} sources, {len(work)} run, {bad} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
