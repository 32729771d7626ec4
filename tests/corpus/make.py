"""The corpus: PTX as nvcc, Triton, numba-cuda and people write it.

`cuda/*.cu`, `triton_kernels.py` and `numba_kernels.py` are compiled where their compiler is installed, and skipped
elsewhere. `ptx/*.ptx` are written by hand, for shapes that compilers seldom print.
"""

import hashlib
import importlib.metadata
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


class Unavailable(Exception):
    """Why a file of the corpus cannot be made here."""


class Nvcc:
    """CUDA C++: the first line of a source has the flags of each build, `// nvcc: -arch=sm_80; -arch=sm_90 -G`."""

    def builds(self):
        """name: (source, flags)"""
        found = {}
        for source in sorted(HERE.glob("cuda/*.cu")):
            first_line = source.read_text().partition("\n")[0]
            for flags in first_line.removeprefix("// nvcc:").split(";"):
                variant = re.sub(r"\W+", "-", flags.replace("-arch=", "")).strip("-")
                found[f"cuda-{source.stem}-{variant}"] = (source, flags.split())
        return found

    def version(self):
        if shutil.which("nvcc") is None:
            raise Unavailable("nvcc is not installed")
        return run(["nvcc", "--version"])

    def source(self, name):
        return self.builds()[name][0]

    def compile(self, name, folder):
        source, flags = self.builds()[name]
        run(["nvcc", "-ptx", "--std=c++17", *flags, source.name, "-o", f"{name}.ptx"], folder)


class Script:
    """A Python file that writes the PTX of all its kernels, which its first lines name, with a compiler from PyPI."""

    def __init__(self, family, file, distribution):
        self.family, self.file, self.distribution = family, file, distribution

    def builds(self):
        """The names of the files that it writes."""
        lines = itertools.takewhile(lambda line: line.startswith("#"), (HERE / self.file).read_text().splitlines())
        listed = " ".join(line.lstrip("# ") for line in lines).removeprefix("makes:")
        return [f"{self.family}-{name.strip()}" for name in listed.split(";")]

    def version(self):
        try:
            return importlib.metadata.version(self.distribution)
        except importlib.metadata.PackageNotFoundError:
            raise Unavailable(f"{self.distribution} is not installed") from None

    def source(self, name):
        return HERE / self.file

    def compile(self, name, folder):
        run([sys.executable, self.file, "."], folder)


COMPILERS = {
    "cuda": Nvcc(),
    "triton": Script("triton", "triton_kernels.py", "triton"),
    "numba": Script("numba", "numba_kernels.py", "numba-cuda"),
}


def run(command, folder=HERE):
    """The output of a command. Raises Unavailable where the compiler is too old or too new for an architecture."""
    environment = os.environ | {"TRITON_CACHE_DIR": str(folder), "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        kind = Unavailable if "gpu architecture" in done.stderr else RuntimeError
        raise kind(f"{' '.join(command)} failed: {done.stderr}")
    return done.stdout


def names():
    """Every file of the corpus, whether or not it can be made here."""
    written = {f"written-{path.stem}" for path in HERE.glob("ptx/*.ptx")}
    return sorted(written.union(*(compiler.builds() for compiler in COMPILERS.values())))


def compile_in(folder, name):
    """Compile in `folder`, from a copy of the source, because line tables name the source's place."""
    compiler = COMPILERS[name.partition("-")[0]]
    shutil.copy(compiler.source(name), folder)
    compiler.compile(name, folder)


def made(name, directory):
    """The PTX that a compiler gives, or gave in an earlier run for the same source. Raises Unavailable."""
    compiler = COMPILERS[name.partition("-")[0]]
    source = compiler.source(name)
    key = hashlib.sha256(compiler.version().encode() + source.read_bytes()).hexdigest()[:16]
    home = Path(directory) / f"{source.stem}-{key}"
    if not (home / f"{name}.ptx").exists():
        with tempfile.TemporaryDirectory(dir=directory) as folder:
            compile_in(folder, name)
            home.mkdir(exist_ok=True)
            for file in Path(folder).glob("*.ptx"):
                os.replace(file, home / file.name)  # atomic: another process may do the same
    return (home / f"{name}.ptx").read_text()


def ptx_text(name, directory):
    """The PTX called `name`: written, or made in `directory` and kept there. Raises Unavailable."""
    family, _, stem = name.partition("-")
    return (HERE / "ptx" / f"{stem}.ptx").read_text() if family == "written" else made(name, directory)


def ptx_files(directory):
    """The whole corpus as files in `directory`; what is not available is left out, with its reason on stderr."""
    paths = []
    for name in names():
        path = Path(directory) / f"{name}.ptx"
        try:
            path.write_text(ptx_text(name, directory))
        except Unavailable as reason:
            print(f"{name}: {reason}", file=sys.stderr)
        else:
            paths.append(path)
    return paths
