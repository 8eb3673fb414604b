//! Tests of the device layer on the emulated device, and of messages on machines without a GPU.

mod growable;

use super::module::Cache;
use super::*;
use nestar_device::{Address, LAUNCH, device, program};
use std::path::{Path, PathBuf};

/// Kernels in the language of launch skeletons.
const KERNELS: &str = r"
namespace tests = ::nestar_engine_device::tests;
KERNEL(saxpy, tests::Saxpy) {
  const rs::i64 share = (p.n + launch::blocks() - 1) / launch::blocks();
  EACH(i, share) {
    const rs::i64 at = launch::block() * share + i;
    if (at < p.n) p.y[at] = p.a * p.x[at] + p.y[at];
  }
}
KERNEL(sums, tests::Sums) {
  SHARED double total[1];
  double* copy = launch::shared<double>();
  const double* values = p.values + launch::block() * p.length;
  EACH(i, (int)p.length) copy[i] = values[i];
  launch::barrier();
  if (launch::thread() == 0) {
    total[0] = 0.0;
    for (int i = 0; i < p.length; ++i) total[0] = total[0] + copy[i];
  }
  launch::barrier();
  EACH(i, 1) {
    p.sums[launch::block()] = total[i];
    launch::store_largest(p.largest, total[i]);
  }
}
";

#[device]
#[derive(Default)]
struct Saxpy {
    x: Address<f64>,
    y: Address<f64>,
    a: f64,
    n: i64,
}

#[device]
struct Sums {
    values: Address<f64>,
    sums: Address<f64>,
    /// Bits of a number.
    largest: Address<u64>,
    length: i64,
}

/// Returns the source that the tests compile.
fn source() -> String {
    format!("{}\n{LAUNCH}\n{KERNELS}", program(&[Saxpy, Sums]))
}

/// Opens the devices of this machine; an emulated one needs a C++ compiler.
fn devices() -> Vec<Device> {
    let mut devices = Vec::new();
    for kind in [DeviceKind::Emulated, DeviceKind::Cuda] {
        match Device::open(kind) {
            Ok(device) => devices.push(device),
            Err(why) => println!("skipped: {why}"),
        }
    }
    devices
}

/// Opens an emulated device with a cache in `folder`.
fn emulated(folder: &Path) -> Option<Device> {
    let backend = emulated::Emulated::with(Cache::at(folder.to_path_buf()));
    let backend = backend.inspect_err(|why| println!("skipped: {why}")).ok()?;
    Device::with(DeviceKind::Emulated, Arc::new(backend)).ok()
}

fn shape(blocks: u32, shared: u32) -> LaunchShape {
    LaunchShape {
        shared,
        ..LaunchShape::of(blocks as usize, 64)
    }
}

#[test]
fn blocks_have_shared_memory_and_atomics() {
    for device in devices() {
        let kernel = device.compile("tests", &source()).unwrap();
        let kernel = kernel.kernel("sums").unwrap();
        let (blocks, length) = (250usize, 3000usize);
        let values: Vec<f64> = (0..blocks * length).map(|i| (i % 977) as f64).collect();
        let memory = device.buffer::<f64>(values.len()).unwrap();
        let (sums, largest) = (device.buffer::<f64>(blocks), device.buffer::<f64>(1));
        let (sums, largest) = (sums.unwrap(), largest.unwrap());
        device.upload(&memory, 0, &values).unwrap();
        let parameters = Sums {
            values: memory.address().into(),
            sums: sums.address().into(),
            largest: largest.address().into(),
            length: length as i64,
        };
        let shared = (length * 8) as u32;
        device
            .launch(&kernel, shape(blocks as u32, shared), &parameters)
            .unwrap();
        let expected: Vec<f64> = values.chunks(length).map(|b| b.iter().sum()).collect();
        let (mut found, mut most) = (vec![0.0; blocks], [0.0]);
        device.download(&sums, 0, &mut found).unwrap();
        device.download(&largest, 0, &mut most).unwrap();
        assert_eq!(found, expected);
        assert_eq!(most[0], expected.iter().copied().fold(0.0, f64::max));
        assert!(kernel.resident_blocks(64, shared).unwrap() >= 1);
    }
}

#[test]
fn copies_write_the_right_elements() {
    for device in devices() {
        // More than the staging buffers of a copy.
        let length = (100 << 20) / 8 + 13;
        let value = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let values: Vec<u64> = (0..length as u64).map(value).collect();
        let memory = device.buffer::<u64>(length).unwrap();
        let other = device.buffer::<u64>(length).unwrap();
        for (source, offset) in [(&values[..], 0), (&values[..length - 5], 5)] {
            device.upload(&memory, offset, source).unwrap();
            device
                .copy(&memory, offset, &other, 0, source.len())
                .unwrap();
            let mut found = vec![1; source.len()];
            device.download(&other, 0, &mut found).unwrap();
            assert!(found == source);
        }
        let mut found = vec![1; length];
        device.fill_zero(&other, 2..length - 3).unwrap();
        device.download(&other, 0, &mut found).unwrap();
        assert_eq!(found[..2], values[..2]);
        assert!(found[2..length - 3].iter().all(|&x| x == 0));
        // Large copies use few buffers.
        assert!(device.staging_bytes() <= 48 << 20);
        // Many small copies share buffers.
        for i in 0..3000 {
            device.upload(&memory, 5 * i, &[i as u64; 5]).unwrap();
        }
        let mut found = vec![0; 15_000];
        device.download(&memory, 0, &mut found).unwrap();
        assert!(found.iter().enumerate().all(|(i, &x)| x == i as u64 / 5));
    }
}

#[test]
fn counters_count_launches_and_traffic() {
    for device in devices() {
        let module = device.compile("tests", &source()).unwrap();
        let kernel = module.kernel("saxpy").unwrap();
        let memory = device.buffer::<f64>(100).unwrap();
        let parameters = Saxpy {
            x: memory.address().into(),
            y: memory.address().into(),
            a: 1.0,
            n: 100,
        };
        device.upload(&memory, 0, &[1.0; 100]).unwrap();
        device.launch(&kernel, shape(0, 0), &parameters).unwrap();
        device.launch(&kernel, shape(3, 0), &parameters).unwrap();
        device.profile(true);
        let again = module.kernel("saxpy").unwrap();
        device.launch(&again, shape(3, 0), &parameters).unwrap();
        device.synchronise().unwrap();
        let mut values = [0.0; 100];
        device.download(&memory, 0, &mut values).unwrap();
        assert_eq!(values, [4.0; 100]);
        let counters = device.counters();
        assert_eq!((counters.launches, counters.synchronisations), (2, 2));
        assert_eq!((counters.bytes_up, counters.bytes_down), (800, 800));
        let [kernel] = &counters.kernels[..] else {
            panic!("{counters:?}")
        };
        assert_eq!(
            (&*kernel.name, kernel.launches, kernel.timed),
            ("saxpy", 2, 1)
        );
        assert!(kernel.seconds > 0.0 && kernel.seconds < 1.0, "{kernel:?}");
    }
}

#[test]
fn invalid_accesses_and_launches_are_refused() {
    for device in devices() {
        let module = device.compile("tests", &source()).unwrap();
        let kernel = module.kernel("saxpy").unwrap();
        assert_eq!(kernel.info().unwrap().parameters, Some(32));
        let memory = device.buffer::<f64>(10).unwrap();
        let refusals = [
            device.upload(&memory, 9, &[0.0; 2]).unwrap_err(),
            device
                .download(&memory, usize::MAX, &mut [0.0; 2])
                .unwrap_err(),
            device.copy(&memory, 0, &memory, 5, 6).unwrap_err(),
            device.fill_zero(&memory, 0..11).unwrap_err(),
            device
                .buffer::<f64>(usize::MAX / 8)
                .map(|_| ())
                .unwrap_err(),
            device
                .launch(&kernel, shape(1, 1 << 20), &Saxpy::default())
                .unwrap_err(),
            module.kernel("nothing").unwrap().info().unwrap_err(),
            device.launch(&kernel, shape(1, 0), &[0u64; 3]).unwrap_err(),
        ];
        let words = [
            "exceed the 10",
            "exceed the",
            "exceed the",
            "exceed the",
            "exceed the address space",
            "shared memory",
            "no kernel nothing",
            "takes 32 bytes of parameters, not 24",
        ];
        for (refusal, words) in refusals.iter().zip(words) {
            assert!(refusal.to_string().contains(words), "{refusal}");
        }
    }
}

#[test]
fn compilations_of_several_sources_overlap() {
    for device in devices() {
        // sources that no cache contains
        let salt = std::process::id();
        let modules: Vec<_> = (0..3)
            .map(|n| device.compile("tests", &format!("// {salt} {n}\n{}", source())))
            .collect();
        assert!(
            device.running_compilations() > 1,
            "they wait for each other"
        );
        device.finish_compilations().unwrap();
        assert_eq!(device.running_compilations(), 0);
        for module in modules {
            module.unwrap().kernel("saxpy").unwrap().info().unwrap();
        }
    }
}

#[test]
fn a_source_in_use_is_compiled_once() {
    for device in devices() {
        let before = device.counters().compilations;
        let kernel = || {
            let module = device.compile("tests", &source()).unwrap();
            module.kernel("saxpy").unwrap()
        };
        let (first, second) = (kernel(), kernel());
        assert_eq!(first.info().unwrap(), second.info().unwrap());
        assert_eq!(device.counters().compilations - before, 1);
        drop((first, second));
        device.finish_compilations().unwrap();
        kernel().info().unwrap();
        assert_eq!(device.counters().compilations - before, 2);
    }
}

#[test]
fn a_compilation_error_names_its_line() {
    for device in devices() {
        let source = source().replace("p.y[at] = ", "p.y[at] = missing + ");
        let line = 1 + source
            .lines()
            .take_while(|l| !l.contains("missing"))
            .count();
        let module = device.compile("broken", &source).unwrap();
        let refusal = device.finish_compilations().unwrap_err();
        assert_eq!(module.kernel("saxpy").map(|_| ()), Err(refusal.clone()));
        let text = refusal.to_string();
        assert!(
            text.contains("\"broken\"") && text.contains("missing"),
            "{text}"
        );
        assert!(text.contains(&line.to_string()), "{line}: {text}");
    }
}

#[test]
fn a_damaged_or_unwritable_cache_does_no_harm() {
    let folder = std::env::temp_dir().join(format!("nestar-cache-test-{}", std::process::id()));
    let Some(device) = emulated(&folder) else {
        return;
    };
    let compile = || {
        let module = device.compile("cached", &source()).unwrap();
        device.finish_compilations()?;
        module.kernel("saxpy").and_then(|kernel| kernel.info())
    };
    let files = || -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&folder).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    compile().unwrap();
    let [file] = &files()[..] else {
        panic!("{:?}", files())
    };
    let whole = std::fs::read(file).unwrap();
    for damaged in [&whole[..whole.len() / 2], &[0; 10], &[]] {
        // A new file: the old one may be in use.
        std::fs::remove_file(file).unwrap();
        std::fs::write(file, damaged).unwrap();
        compile().unwrap();
        assert_eq!(files(), std::slice::from_ref(file));
        assert_eq!(std::fs::read(file).unwrap().len(), whole.len());
    }
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "a file where the folder should be").unwrap();
    compile().unwrap();
    std::fs::remove_file(&folder).unwrap();
}

#[cfg(unix)]
#[test]
fn a_cache_writable_by_others_is_not_used_and_links_are_not_followed() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let place = std::env::temp_dir().join(format!("nestar-trust-test-{}", std::process::id()));
    let allow = |mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&place, permissions).unwrap();
    };
    std::fs::create_dir(&place).unwrap();
    for mode in [0o720, 0o702] {
        allow(mode);
        let cache = Cache::at(place.clone());
        cache.store("file", b"contents");
        assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
        let text = cache.described();
        assert!(text.contains("others may write"), "{text}");
        assert!(text.contains(place.to_str().unwrap()), "{text}");
    }
    allow(0o755);
    let cache = Cache::at(place.clone());
    assert_eq!(cache.described(), "");
    let elsewhere = place.with_extension("elsewhere");
    std::fs::write(&elsewhere, "kept").unwrap();
    symlink(&elsewhere, place.join("file")).unwrap();
    cache.store("file", b"contents");
    assert_eq!(cache.load("file").unwrap(), b"contents");
    assert_eq!(std::fs::read(&elsewhere).unwrap(), b"kept");
    std::fs::remove_dir_all(&place).unwrap();
    std::fs::remove_file(&elsewhere).unwrap();
}

#[test]
fn a_missing_gpu_is_reported() {
    match Device::open(DeviceKind::Cuda) {
        Ok(device) => assert!(device.describe().contains("multiprocessors")),
        Err(why) => {
            let text = why.to_string();
            assert!(text.contains("CUDA") || text.contains("GPU"), "{text}");
        }
    }
}

#[test]
fn an_emulated_device_reports_its_limits() {
    let Ok(device) = Device::open(DeviceKind::Emulated) else {
        return;
    };
    let memory = device.memory().unwrap();
    assert!(memory.free > 0 && memory.free <= memory.total);
    assert_eq!(device.limits().shared_per_block, 227 << 10);
    assert_eq!(device.kind(), DeviceKind::Emulated);
    assert!(device.describe().starts_with("emulated device ("));
}

#[test]
fn insufficient_memory_is_reported_in_numbers() {
    let error = DeviceError::Memory {
        asked: 3 << 30,
        free: (1 << 30) + (1 << 29),
        total: 139 << 30,
    };
    let text =
        "the memory of the device does not suffice: 3.0 GiB requested, 1.5 GiB of 139.0 GiB free";
    assert_eq!(error.to_string(), text);
}
