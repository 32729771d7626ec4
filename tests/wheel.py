"""Looks at built packages: `python -m tests.wheel DIST`, after `python -m build`; part of `make wheel`.

What the wheel must hold is in it and nothing else; installed alone it reads, emulates and shows its demo.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
SNIPPET = """
import numpy as np, ptxdsl as pd
pd.parse('.version 7.0\\n.target sm_80\\n.address_size 64\\n.visible .entry k() { ret; }')['k'][1, 32]()
assert pd.__file__.startswith(__import__('sys').prefix), pd.__file__
"""


def wheel_problems(names):
    """What is missing in a wheel, or should not be in it."""
    here = {str(path.relative_to(ROOT)) for path in (ROOT / "ptxdsl").rglob("*") if path.is_file()}
    wanted = {name for name in here if "__pycache__" not in name}
    held = {name for name in names if ".dist-info/" not in name}
    licensed = any(name.endswith("licenses/LICENSE") for name in names)
    return sorted(wanted ^ held) + ["LICENSE"] * (not licensed)


def sdist_problems(names):
    """What one needs to build and test, and an sdist lacks."""
    held = {name.partition("/")[2] for name in names}
    wanted = (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "Makefile",
        "CITATION.cff",
        "tests/conftest.py",
        "ptxdsl/py.typed",
    )
    return [name for name in wanted if name not in held]


def check_installed(wheel):
    """Installs a wheel in an empty environment and uses it there."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "bin", "python")
        alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(Path(wheel).resolve())]
        for command in (install, ["-c", SNIPPET], ["-m", "ptxdsl", "demo"]):
            subprocess.run([python, *command], check=True, cwd=folder, env=alone)


def main(dist):
    (wheel,), (sdist,) = Path(dist).glob("*.whl"), Path(dist).glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as packed, tarfile.open(sdist) as source:
        problems = wheel_problems(packed.namelist()) + sdist_problems(source.getnames())
    if problems:
        sys.exit(f"missing in the packages, or too much: {', '.join(problems)}")
    check_installed(wheel)
    print(f"{wheel.name}: {wheel.stat().st_size >> 10} KiB, whole, and works in an empty environment")


if __name__ == "__main__":
    main(*sys.argv[1:])
