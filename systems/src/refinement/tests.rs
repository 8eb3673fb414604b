//! The text of every criterion is accepted, in both precisions, with and without walls.

use super::MeshConfig;
use super::systems::Criteria;
use super::text::CriteriaText;
use crate::fields::GasModel;
use nestar_deck::Deck;
use nestar_device::{LAUNCH, program};
use nestar_engine::device::{Device, DeviceKind};
use nestar_engine::time::FaultBox;
use nestar_kernels::criteria::device::{CELL, FLAGS};
use nestar_kernels::hydro::eos;
use nestar_kernels::mesh::device::{FaceText, FieldText, GATHER, VIEW};
use nestar_kernels::mesh::prolong::SlopeLimiter;

const DECK: &str = r#"
    [mesh]
    max_level = 3
    refine = [
        { criterion = "threshold", field = "density", threshold = [1.5, 2.5] },
        { criterion = "threshold", field = "fraction_dye + 0.1*sin(x)", threshold = 0.4, below = true },
        { criterion = "threshold", field = "entropy", threshold = 9 },
        { criterion = "gradient", field = "pressure", threshold = 0.3 },
        { criterion = "gradient", field = "mach^2 + r", threshold = [0.3, 0.4, 0.5] },
        { criterion = "lohner", field = "density", threshold = 0.6, filter = 0.02 },
        { criterion = "lohner", field = "pressure", threshold = 0.5 },
        { criterion = "vorticity", threshold = 0.1 },
        { criterion = "jeans", threshold = 4, gravity = 0.5 },
        { criterion = "box", left = [0, 0, 0], right = [0.1, 1, 1], level = 2 },
        { criterion = "sphere", centre = [0.5, 0.5, 0.5], radius = 0.1 },
        { criterion = "formula", when = "speed > 1 && level < 2 || t*width > y" },
    ]
"#;

fn field(double: bool, wall: bool) -> FieldText {
    let face = || {
        if wall {
            FaceText::Reflecting
        } else {
            FaceText::Periodic
        }
    };
    FieldText {
        double,
        components: 6,
        faces: std::array::from_fn(|_| [face(), face()]),
        normal: [2, 4, 8],
        limiter: SlopeLimiter::VanLeer,
        physical: eos::is_physical::ITEM,
        leading: 5,
    }
}

#[test]
fn every_criterion_has_its_text() {
    let mut deck = Deck::parse("criteria.toml", DECK).unwrap();
    let config: MeshConfig = deck.table("mesh").unwrap();
    let model = GasModel {
        gamma: 1.4,
        scalars: vec!["dye".into()],
    };
    let criteria = Criteria::compile(&config, &deck, &model, FaultBox::default()).unwrap();
    let text = CriteriaText::new(criteria.list(), model.gamma);
    // pressure twice, mach^2 + r, density, three velocities
    assert_eq!(text.fields, 6);
    let device = Device::open(DeviceKind::Emulated).unwrap();
    for (double, wall, in_shared) in [
        (true, true, true),
        (false, true, false),
        (false, false, true),
    ] {
        let field = field(double, wall);
        let mut items = field.items();
        items.extend(&text.items);
        let parts = [
            &program(&items),
            LAUNCH,
            &field.text(),
            VIEW,
            GATHER,
            CELL,
            &text.text(in_shared),
            FLAGS,
        ];
        let module = device.compile("criteria", &parts.concat()).unwrap();
        assert_eq!(module.kernel("flag").unwrap().name(), "flag");
    }
}
