//! Structures are passed to kernels in the layout of the C++ compiler, and converted to the precision of a field.
use nestar_device::{Address, Number, Parameter, Precise, device, program};
use std::process::Command;

#[device]
#[derive(Clone, Copy)]
struct Inner<R> {
    flag: bool,
    value: R,
    count: u32,
}

/// Members of all sizes in an order that leaves gaps.
#[device]
#[derive(Clone, Copy)]
struct Outer<R> {
    small: i32,
    inner: [Inner<R>; 2],
    at: Address<R>,
    bytes: Address<u8>,
    three: [R; 3],
    pair: (u32, f64),
    last: bool,
}

#[device]
#[derive(Clone, Copy)]
struct Empty {}

/// Returns a structure whose members have different values.
fn outer() -> Outer<f64> {
    let inner = |n: f64| Inner {
        flag: n > 1.0,
        value: n / 3.0,
        count: 7,
    };
    Outer {
        small: -5,
        inner: [inner(1.0), inner(2.0)],
        at: Address::from(0x1234_5678_9abc),
        bytes: Address::NONE,
        three: [0.1, 0.2, 0.3],
        pair: (9, 0.7),
        last: true,
    }
}

fn bytes<T: Parameter>(value: &T) -> Vec<u8> {
    let mut bytes = vec![0; T::BYTES];
    value.write(&mut bytes);
    bytes
}

/// Reads every member at its C++ offset; the status tells which is wrong.
const READ: &str = "
template<class R> static int wrong(const unsigned char* bytes) {
  const ::parameter::Outer<R>& o = *(const ::parameter::Outer<R>*)bytes;
  const R third[2] = {(R)(1.0 / 3.0), (R)(2.0 / 3.0)}, three[3] = {(R)0.1, (R)0.2, (R)0.3};
  if (o.small != -5 || o.at != (R*)0x123456789abcull || o.bytes || !o.last) return 1;
  for (int n = 0; n < 2; ++n)
    if (o.inner[n].flag != (n == 1) || o.inner[n].value != third[n] || o.inner[n].count != 7) return 2;
  for (int n = 0; n < 3; ++n)
    if (o.three[n] != three[n]) return 3;
  return o.pair._0 != 9 || o.pair._1 != 0.7 ? 4 : 0;
}
";

fn array(name: &str, bytes: &[u8]) -> String {
    let list: Vec<String> = bytes.iter().map(u8::to_string).collect();
    format!(
        "alignas(16) static const unsigned char {name}[] = {{{}}};\n",
        list.join(",")
    )
}

#[test]
fn the_compiler_of_c_finds_every_member() {
    let text = [
        program(&[Outer, Empty]),
        READ.into(),
        array("single", &bytes(&outer().precise::<f32>())),
        array("twice", &bytes(&outer())),
        "int main() { return wrong<float>(single) + 10 * wrong<double>(twice); }\n".into(),
    ];
    let folder = std::env::temp_dir().join(format!("nestar-parameter-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("main.cpp"), text.concat()).unwrap();
    let compiler = Command::new("g++")
        .args(["-std=c++17", "main.cpp", "-o", "main"])
        .current_dir(&folder)
        .output();
    match compiler {
        Err(_) => println!("skipped: there is no g++ on this machine"),
        Ok(output) => {
            let messages = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{messages}");
            let status = Command::new(folder.join("main")).status().unwrap();
            assert_eq!(status.code(), Some(0), "a member is not where it belongs");
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn sizes_are_those_of_c() {
    assert_eq!([Inner::<f32>::BYTES, Inner::<f32>::ALIGNMENT], [12, 4]);
    assert_eq!([Inner::<f64>::BYTES, Inner::<f64>::ALIGNMENT], [24, 8]);
    assert_eq!(Inner::<Address<Number>>::BYTES, Inner::<f64>::BYTES);
    assert_eq!([Empty::BYTES, Empty::ALIGNMENT], [1, 1]);
    let text = program(&[Inner]);
    assert!(text.contains("sizeof(Inner<float>) == 12"), "{text}");
    assert!(text.contains("sizeof(Inner<double>) == 24"), "{text}");
}

#[test]
fn only_members_of_the_type_parameter_change_their_precision() {
    let single = outer().precise::<f32>();
    assert_eq!(single.three, [0.1f32, 0.2, 0.3]);
    assert_eq!(single.inner[1].value, 2.0f32 / 3.0);
    assert_eq!(single.pair, (9, 0.7f64));
    assert_eq!(single.at.number(), outer().at.number());
    let _: Empty = Empty {}.precise::<f32>();
}
