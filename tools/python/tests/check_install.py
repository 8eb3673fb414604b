"""The files of the installation page agree with each other: check_install.py ROOT, the root of the repository."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml

import nestar


def toml(path):
    return tomllib.loads(path.read_text())


def metadata(root):
    """The wheel with the program and the package alone have the same metadata and version."""
    whole, package = toml(root / "pyproject.toml"), toml(root / "tools/python/pyproject.toml")
    for key in ("name", "version", "requires-python", "license", "dependencies", "optional-dependencies", "entry-points"):
        assert whole["project"][key] == package["project"][key], key
    maturin = whole["tool"]["maturin"]
    assert (root / maturin["python-source"] / maturin["module-name"] / "__init__.py").is_file()
    program = toml(root / maturin["manifest-path"])
    assert [own["name"] for own in program["bin"]] == ["nestar"]
    for name in whole["project"]["license-files"]:
        assert (root / name).is_file(), name
    workspace = toml(root / "Cargo.toml")["workspace"]["package"]
    version = workspace["version"]
    assert whole["project"]["version"] == version == nestar.__version__
    assert workspace["license"] == whole["project"]["license"]
    return version, workspace, whole["project"]


def citation(root, version):
    entry = yaml.safe_load((root / "CITATION.cff").read_text())
    assert entry["cff-version"] == "1.2.0" and entry["version"] == version
    # what the format requires
    assert entry["message"] and entry["title"] and entry["authors"][0]["name"]
    assert entry["type"] == "software" and entry["license"] == ["MIT", "Apache-2.0"]


def conda(root, version, project):
    recipe = yaml.safe_load((root / "tools/packaging/conda/recipe.yaml").read_text())
    assert recipe["package"] == {"name": "nestar", "version": version}
    assert (root / "tools/packaging/conda" / recipe["source"]["path"]).resolve() == root
    names = lambda lines: {re.split("[ >=]", line)[0] for line in lines}
    assert names(project["dependencies"]) <= names(recipe["requirements"]["run"])
    backend = toml(root / "tools/python/pyproject.toml")["build-system"]["requires"]
    assert names(backend) <= names(recipe["requirements"]["host"])
    for name in recipe["about"]["license_file"]:
        assert (root / name).is_file(), name


def spack(root, version, workspace):
    tree = ast.parse((root / "tools/packaging/spack/nestar/package.py").read_text())
    (package,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    assert package.name == "Nestar" and package.bases[0].id == "Package"
    calls = [node.value for node in package.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    given = [(call.func.id, ast.literal_eval(call.args[0])) for call in calls]
    assert ("version", version) in given
    assert ("depends_on", f"rust@{workspace['rust-version']}:") in given, given


def container(root, workspace):
    text = (root / "tools/container/Containerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    words = {"FROM", "WORKDIR", "COPY", "RUN", "ARG", "ENV", "ENTRYPOINT", "CMD"}
    assert all(line.split()[0] in words for line in lines), lines
    assert lines[0].startswith(f"FROM docker.io/library/rust:{workspace['rust-version']}")
    for line in lines:
        if line.startswith("COPY") and "--from" not in line:
            assert (root / line.split()[1]).exists(), line
    python = re.search(r"python:(3\.\d+)", text)[1]
    assert f"python{python}/site-packages" in text
    assert {".git", "target"} <= set((root / "tools/container/Containerfile.dockerignore").read_text().split())


def module(root, version):
    path = root / "tools/packaging/modulefiles/nestar" / version
    text = path.read_text()
    assert text.startswith("#%Module") and f"set version {version}" in text
    shell = shutil.which("tclsh")
    if shell is None:
        print("skipped: there is no tclsh for the module file")
        return
    words = ["module-whatis", "conflict", "prepend-path"]
    script = "".join(f"proc {word} {{args}} {{ puts [list {word} {{*}}$args] }}\n" for word in words)
    done = subprocess.run([shell], input=f"{script}source {path}\n", capture_output=True, text=True, check=True)
    assert f"prepend-path PATH /opt/nestar/{version}/bin" in done.stdout, done


def page(root):
    """The page names only files and extras that exist, and its commands are those that the files build on."""
    text = (root / "docs/install.md").read_text()
    for name in re.findall(r"`(tools/[^` ]+|CITATION\.cff)`", text):
        assert (root / name).exists(), name
    extras = toml(root / "pyproject.toml")["project"]["optional-dependencies"]
    for group in re.findall(r"\[([a-z0-9,]+)\]'", text):
        assert set(group.split(",")) <= set(extras), group
    row = text.split("Extras are ")[1].split(":")[0]
    assert set(re.findall("`([a-z0-9]+)`", row)) == set(extras)
    for package in re.findall(r"--path (\S+)", text):
        assert (root / package / "Cargo.toml").is_file(), package
    assert "[Installation](install.md)" in (root / "docs/SUMMARY.md").read_text()


def versions(version):
    """A run has the version and the commit that the program prints."""
    program = os.environ["NESTAR_PROGRAM"]
    printed = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert printed.startswith(f"nestar {version} ("), printed
    run = nestar.run({"scenario": "sod", "time": {"end": 1e-6}}, watch=False, set={"output.directory": "run"})
    commit = printed.split("(")[1].split(")")[0]
    found = json.loads((run.path / "provenance.json").read_text())
    assert (found["version"], found["commit"]) == (version, commit), found


def main(root):
    version, workspace, project = metadata(root)
    citation(root, version)
    conda(root, version, project)
    spack(root, version, workspace)
    container(root, workspace)
    module(root, version)
    page(root)
    versions(version)
    print("python: ok")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
