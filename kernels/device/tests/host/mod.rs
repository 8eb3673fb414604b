//! Runs the generated text on the host: one program, compiled by g++ without contraction.
use crate::cases;
use nestar_device::{Real, program};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Reads numbers from the file named third, applies the function named first in the type named second and writes the
/// results to the file named fourth.
const MAIN: &str = r#"
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
template<class T, unsigned long N, unsigned long M, class F> int run(char** a, F f) {
  std::vector<T> x, y;
  FILE* in = fopen(a[3], "rb");
  fseek(in, 0, SEEK_END); x.resize(ftell(in) / sizeof(T)); rewind(in);
  if (fread(x.data(), sizeof(T), x.size(), in) != x.size()) return 2;
  for (unsigned long i = 0; i < x.size(); i += N) {
    rs::arr<T, N> u; for (unsigned long k = 0; k < N; ++k) u.d[k] = x[i + k];
    rs::arr<T, M> v = f(u); for (unsigned long k = 0; k < M; ++k) y.push_back(v.d[k]);
  }
  FILE* out = fopen(a[4], "wb");
  return fwrite(y.data(), sizeof(T), y.size(), out) == y.size() && fclose(out) == 0 ? 0 : 3;
}
int main(int, char** a) {
  std::string name = a[1], type = a[2];
"#;

fn source() -> String {
    let cases = cases::all::<f64>();
    let items: Vec<_> = cases.iter().map(|c| c.item).collect();
    let mut text = program(&items) + MAIN;
    for case in &cases {
        for ty in ["float", "double"] {
            let (name, n, m, path) = (case.name, case.inputs, case.outputs, case.item.path());
            let _ = writeln!(
                text,
                "  if (name == \"{name}\" && type == \"{ty}\") \
                 return run<{ty}, {n}, {m}>(a, [](auto& x) {{ return ::{path}<{ty}>(x); }});"
            );
        }
    }
    text + "  return 1;\n}\n"
}

/// The compiled program in its own folder, which is removed when this is dropped.
pub struct Program {
    folder: PathBuf,
}

impl Program {
    /// Compiles all cases; returns `None` and prints a reason if there is no g++.
    pub fn compile() -> Option<Program> {
        if Command::new("g++").arg("--version").output().is_err() {
            println!("skipped: there is no g++ on this machine");
            return None;
        }
        let folder = std::env::temp_dir().join(format!("nestar-device-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let program = Program { folder };
        program.build(&source(), &["-o", "cases"]);
        Some(program)
    }

    /// Compiles a text; panics with the compiler's messages if it has errors.
    pub fn build(&self, text: &str, options: &[&str]) {
        std::fs::write(self.path("cases.cpp"), text).unwrap();
        let output = Command::new("g++")
            .args(["-std=c++17", "-O2", "-ffp-contract=off", "cases.cpp"])
            .args(options)
            .current_dir(&self.folder)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the results of the C++ function.
    pub fn run<R: Real>(&self, name: &str, x: &[R]) -> Vec<R> {
        let single = size_of::<R>() == 4;
        let width = size_of::<R>();
        let (input, output) = (self.path("input"), self.path("output"));
        let bytes: Vec<u8> = x
            .iter()
            .flat_map(|x| x.bits().to_le_bytes()[..width].to_vec())
            .collect();
        std::fs::write(&input, bytes).unwrap();
        let run = |input: &Path, output: &Path| {
            Command::new(self.path("cases"))
                .args([name, if single { "float" } else { "double" }])
                .args([input, output])
                .status()
                .unwrap()
        };
        assert!(run(&input, &output).success(), "{name}");
        let bytes = std::fs::read(&output).unwrap();
        let number = |b: &[u8]| {
            let mut bits = [0; 8];
            bits[..width].copy_from_slice(b);
            R::from_bits64(u64::from_le_bytes(bits))
        };
        bytes.chunks(width).map(number).collect()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
