//! Compares inflow rules on the emulated device with the host, bit for bit, faults included.

use super::super::boundary::Inflow;
use crate::fields::GasModel;
use bytemuck::Pod;
use nestar_deck::Deck;
use nestar_device::{Address, Real, device};
use nestar_engine::data::FaultBox;
use nestar_engine::device::{Device, DeviceKind, LaunchShape};
use nestar_kernels::mesh::rule::GHOST_QUERY;
use nestar_kernels::mesh::{CellRule, FAULT_WORDS, GhostCell, InnerStates, RuleFault, RuleText};

const DECK: &str = r#"
    [inflow.z_upper]
    where      = "x < 1 + 0.1*sin(9*y)"
    density    = "8 + t*exp(-r)"
    velocity_x = "0.5*cos(x)"
    velocity_z = "-1 - y^3"
    pressure   = "0.4 + 0.01*x*y"
    scalars    = { dye = "if(y > 0, 1/3, 0.1*r)" }

    [inflow.x_lower]
    where      = "sqrt(2 - x) - 0.1"
    density    = "if(y > 1, -1, 1)"
    pressure   = "1"
    scalars    = { dye = "if(x > 1, 0/0, 1)" }
"#;
const COMPONENTS: usize = 7;
const CELLS: usize = 400;
const TIME: f64 = 0.7;

fn inflow(table: &str) -> Inflow {
    let mut deck = Deck::parse("inflow.toml", DECK).unwrap();
    let model = GasModel::plain(1.4, &["dust", "dye"]);
    Inflow::from_deck(&mut deck, table, &model, FaultBox::default()).unwrap()
}

/// Parameters of the kernel.
#[device]
struct Probe<R> {
    centres: Address<f64>,
    states: Address<R>,
    walls: Address<i32>,
    fault: Address<u32>,
    time: f64,
    cells: i32,
}

/// Calls both functions of a face for many cells.
const KERNEL: &str = r"
KERNEL(probe, PROBE<field::REAL>) {
  EACH(n, p.cells) {
    p.walls[n] = field::WALL(p.centres + 3 * n, p.time, p.fault);
    field::GhostQuery at{};
    at.centre = p.centres + 3 * n;
    at.time = p.time;
    if (!p.walls[n]) field::BEYOND(at, p.states + field::COMPONENTS * n, p.fault);
  }
}
";

fn program<R: Real>(rule: &RuleText, axis: usize, side: usize) -> String {
    let real = if size_of::<R>() == 4 {
        "float"
    } else {
        "double"
    };
    format!(
        "{}{}namespace field {{\ntypedef {real} REAL;\nconstexpr int COMPONENTS = {COMPONENTS};\n{GHOST_QUERY}{}}}\n{}",
        nestar_device::program(&[&rule.items[..], &[Probe]].concat()),
        nestar_device::LAUNCH,
        rule.functions,
        KERNEL
            .replace("PROBE", &Probe.path())
            .replace("WALL", &format!("wall_{axis}_{side}"))
            .replace("BEYOND", &format!("ghost_{axis}_{side}"))
    )
}

fn numbers(count: usize) -> Vec<f64> {
    let mut state = 3u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 51) as f64 - 2.0
    };
    (0..count).map(|_| next()).collect()
}

/// Evaluates walls, ghost states and faults at the given centres on the device.
fn on_device<R: Real + Pod>(
    rule: &dyn CellRule<R>,
    [axis, side]: [usize; 2],
    centres: &[f64],
    states: &mut [R],
) -> (Vec<i32>, [u32; FAULT_WORDS]) {
    let text = rule.device(axis, side).expect("a rule for the device");
    let device = Device::open(DeviceKind::Emulated).unwrap();
    let module = device
        .compile("rule-test", &program::<R>(&text, axis, side))
        .unwrap();
    let cells = centres.len() / 3;
    let (places, walls) = (
        device.buffer(3 * cells).unwrap(),
        device.buffer(cells).unwrap(),
    );
    let (values, fault) = (
        device.buffer(states.len()).unwrap(),
        device.buffer(FAULT_WORDS).unwrap(),
    );
    device.upload(&places, 0, centres).unwrap();
    device.upload(&values, 0, states).unwrap();
    let parameters = Probe::<R> {
        centres: places.address().into(),
        states: values.address().into(),
        walls: walls.address().into(),
        fault: fault.address().into(),
        time: TIME,
        cells: cells as i32,
    };
    let shape = LaunchShape::of(1, 1);
    let kernel = module.kernel("probe").unwrap();
    device.launch(&kernel, shape, &parameters).unwrap();
    let (mut is_wall, mut words) = (vec![0; cells], [0; FAULT_WORDS]);
    device.download(&values, 0, states).unwrap();
    device.download(&walls, 0, &mut is_wall).unwrap();
    device.download(&fault, 0, &mut words).unwrap();
    (is_wall, words)
}

/// Compares the rule on host and device, cell by cell.
fn agree<R: Real + Pod>(rule: &dyn CellRule<R>, face: [usize; 2]) {
    let centres = numbers(3 * CELLS);
    let before: Vec<R> = numbers(COMPONENTS * CELLS)
        .into_iter()
        .map(R::lit)
        .collect();
    let mut found = before.clone();
    let (walls, fault) = on_device(rule, face, &centres, &mut found);
    assert_eq!(fault, [0; FAULT_WORDS]);
    for (n, centre) in centres.as_chunks::<3>().0.iter().enumerate() {
        let cell = GhostCell {
            axis: face[0],
            side: face[1],
            centre: *centre,
            time: TIME,
            ..GhostCell::default()
        };
        assert_eq!(walls[n] != 0, rule.is_wall(&cell), "{cell:?}");
        let at = n * COMPONENTS..(n + 1) * COMPONENTS;
        let mut wanted = before[at.clone()].to_vec();
        if walls[n] == 0 {
            rule.apply(&cell, &InnerStates::default(), &mut wanted);
        }
        let same = wanted
            .iter()
            .zip(&found[at.clone()])
            .all(|(a, b)| a.bits() == b.bits());
        assert!(same, "{cell:?}: {wanted:?}, on the device {:?}", &found[at]);
    }
}

#[test]
fn rules_have_the_same_bits_on_the_device() {
    agree::<f32>(&inflow("inflow.z_upper"), [2, 1]);
    agree::<f64>(&inflow("inflow.z_upper"), [2, 1]);
}

/// If the state, a scalar or `where` is invalid, the device reports the place and the rule gives the message of the
/// host.
#[test]
fn faults_of_formulas_keep_their_place_and_message() {
    for (centre, message) in [
        ([0.5, 1.5, 0.25], "unphysical state"),
        ([1.5, 0.5, 0.25], "the scalar dye is NaN"),
        ([3.0, 0.5, 0.25], "`where` of"),
    ] {
        let rule = inflow("inflow.x_lower");
        let mut state = [1.0f64; 2 * COMPONENTS];
        let sound = [0.5, 0.5, 0.25];
        let centres = [sound, centre].concat();
        let (_, fault) = on_device::<f64>(&rule, [0, 0], &centres, &mut state);
        let fault = RuleFault::of_words(&fault).expect("a fault of a face");
        assert_eq!(
            (fault.axis, fault.side, fault.centre, fault.time),
            (0, 0, centre, TIME)
        );
        let found = CellRule::<f64>::fault_message(&rule, &fault).expect("a message");
        assert!(found.contains(message), "{found}");
        let fault = RuleFault {
            centre: sound,
            ..fault
        };
        assert_eq!(CellRule::<f64>::fault_message(&rule, &fault), None);
    }
}
