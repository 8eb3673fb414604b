//! Tests of growable memory.

use super::{Saxpy, devices, shape, source};

#[test]
fn growable_memory_keeps_its_address_and_values() {
    for device in devices() {
        let kernel = device.compile("tests", &source()).unwrap();
        let kernel = kernel.kernel("saxpy").unwrap();
        let mut x = device.growable::<f64>(1 << 32).unwrap();
        let mut y = device.growable::<f64>(1 << 32).unwrap();
        let (address, mut expected) = (y.address(), Vec::new());
        for length in [1000, 1001, 700_000] {
            x.grow(length).unwrap();
            y.grow(length).unwrap();
            let values: Vec<f64> = (0..length).map(|i| i as f64 / 7.0).collect();
            device.upload(&x, 0, &values).unwrap();
            expected.resize(length, 0.0);
            for (y, x) in expected.iter_mut().zip(&values) {
                *y += 1.25 * x;
            }
            let parameters = Saxpy {
                x: x.address().into(),
                y: y.address().into(),
                a: 1.25,
                n: length as i64,
            };
            device.launch(&kernel, shape(37, 0), &parameters).unwrap();
            let mut found = vec![f64::NAN; length];
            device.download(&y, 0, &mut found).unwrap();
            assert_eq!(found, expected);
        }
        assert_eq!(
            (y.address(), y.len(), y.most()),
            (address, 700_000, 1 << 32)
        );
        assert!(y.bytes() >= 700_000 * 8);
        let refusal = y.grow((1 << 32) + 1).unwrap_err();
        assert!(refusal.to_string().contains("reserved"), "{refusal}");
    }
}

#[test]
fn growable_memory_is_freed_by_shrinking() {
    for device in devices() {
        let mut x = device.growable::<u64>(1 << 32).unwrap();
        let (few, many, address) = (1000, 80 << 20, x.address());
        x.grow(few).unwrap();
        let values: Vec<u64> = (0..few as u64).map(|i| 3 * i).collect();
        device.upload(&x, 0, &values).unwrap();
        for _ in 0..2 {
            x.grow(many).unwrap();
            let (all, mut last) = (x.bytes(), [7]);
            device.download(&x, many - 1, &mut last).unwrap();
            assert_eq!((x.len(), last), (many, [0]));
            device.upload(&x, many - 1, &[9]).unwrap();
            x.shrink(few).unwrap();
            assert!(x.bytes() <= all / 2, "{} of {all}", x.bytes());
            assert_eq!((x.len(), x.address()), (few, address));
            let mut found = vec![0; few];
            device.download(&x, 0, &mut found).unwrap();
            assert_eq!(found, values);
        }
    }
}
