//! Random numbers by counter.
use nestar_device::random::{Stream, in_cell, normals, of_id, philox, uniforms};
use nestar_device::{Place, Real, device};

/// The words of the known answers of Random123.
#[device]
pub fn known<R: Real>(_: &[R; 1]) -> [R; 12] {
    let zeros = philox([0; 4], [0; 2]);
    let ones = philox([u32::MAX; 4], [u32::MAX; 2]);
    let pi = philox(
        [0x243f_6a88u32, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
        [0xa409_3822u32, 0x299f_31d0],
    );
    let mut o = [0.0; 12];
    for n in 0..4 {
        o[n] = R::from_u32(zeros[n]);
        o[n + 4] = R::from_u32(ones[n]);
        o[n + 8] = R::from_u32(pi[n]);
    }
    o
}

#[device]
pub fn deviates<R: Real>(x: &[R; 4]) -> [R; 8] {
    let stream = Stream {
        seed: x[0].to_i32() as u32,
        purpose: 513,
        step: x[1].to_i32() as u32,
    };
    let at = Place {
        centre: [x[0], x[1], x[2]],
        width: [x[3]; 3],
        index: [x[1].to_i32(), x[2].to_i32(), x[3].to_i32()],
        level: 3,
        time: 0.0f64,
        dt: x[0],
        numbers: [1.0f64; 2],
    };
    let [a, b] = uniforms::<R>(in_cell(&stream, &at, 0));
    let [c, d] = normals::<R>(in_cell(&stream, &at, 1));
    let [e, f] = uniforms::<R>(of_id(&stream, x[3].to_i32() as u64, 2));
    let [g, h] = normals::<R>(of_id(&stream, 1u64 << 40, 3));
    [a, b, c, d, e, f, g, h]
}
