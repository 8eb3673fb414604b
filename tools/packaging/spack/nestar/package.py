"""Recipe of Spack 1.0 or later. In the root of a checkout:

    mkdir -p recipes/packages && cp -r tools/packaging/spack/nestar recipes/packages/
    printf "repo:\\n  namespace: nestar\\n  api: v2.0\\n" > recipes/repo.yaml
    spack repo add recipes
    spack dev-build --source-path . nestar@0.1.0
"""

from spack.package import *
from spack_repo.builtin.build_systems.generic import Package


class Nestar(Package):
    """Adaptive mesh refinement for astrophysical fluids and particles."""

    license("MIT OR Apache-2.0")

    version("0.1.0")

    variant("mpi", default=False, description="Runs over many processes")

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")
    depends_on("mpi", when="+mpi")
    depends_on("llvm+clang", type="build", when="+mpi")

    def install(self, spec, prefix):
        features = ["--features", "mpi"] if spec.satisfies("+mpi") else []
        cargo = which("cargo", required=True)
        cargo("install", "--locked", "--no-track", "--root", prefix, "--path", "tools/nestar", *features)

    @run_after("install")
    @on_package_attributes(run_tests=True)
    def check_program(self):
        Executable(self.prefix.bin.nestar)("check", "sedov")
