//! Writes CUDA programs in which every device item of the kernels is instantiated, into the folder given as argument:
//! `NAME_float.cu` and `NAME_double.cu`. `cargo xtask kernels` compiles them.
use nestar_device::{Item, instantiate_with, math};
use nestar_kernels::{criteria, hydro, mesh};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: device_text FOLDER");
        return ExitCode::from(2);
    };
    let programs = [
        (
            "math",
            plain(vec![
                math::exp::ITEM,
                math::exp_m1::ITEM,
                math::ln::ITEM,
                math::log10::ITEM,
                math::pow::ITEM,
                math::sqrt::ITEM,
                math::sin::ITEM,
                math::cos::ITEM,
                math::tan::ITEM,
                math::atan::ITEM,
                math::atan2::ITEM,
                math::sinh::ITEM,
                math::cosh::ITEM,
                math::tanh::ITEM,
                math::erf::ITEM,
                math::sum3::ITEM,
                math::sum4::ITEM,
            ]),
        ),
        ("criteria", plain(criteria::device_items())),
        ("hydro", hydro::device_instances()),
        ("mesh", plain(mesh::device_items())),
    ];
    for (name, items) in programs {
        for real in ["float", "double"] {
            let path = folder.join(format!("{name}_{real}.cu"));
            if let Err(e) = std::fs::write(&path, instantiate_with(&items, real)) {
                eprintln!("error: {}: {e}", path.display());
                return ExitCode::FAILURE;
            }
        }
        println!("{name}: {} items", items.len());
    }
    ExitCode::SUCCESS
}

/// Items without const parameters.
fn plain(items: Vec<&'static Item>) -> Vec<(&'static Item, &'static [&'static str])> {
    items.into_iter().map(|item| (item, &[][..])).collect()
}
