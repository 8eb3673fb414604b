//! Open faces of the domain: a particle leaves when it crosses one, and until then feels the gravity of the isolated box.

use super::forces::{SPACE, bodies, size};
use super::{bits, particles};
use nestar::engine::step::Remarks;
use nestar_tests::Stepper;
use nestar_tests::random::Random;

/// Positions and velocities beyond or before the middles of all faces, `distance` from the centre.
fn before_all_faces(distance: f64, speed: f64) -> Vec<([f64; 3], [f64; 3])> {
    let body = |n: usize| {
        let (axis, side) = (n / 2, [-1.0, 1.0][n % 2]);
        let (mut position, mut velocity) = ([0.03; 3], [0.0; 3]);
        (position[axis], velocity[axis]) = (side * distance, side * speed);
        (position, velocity)
    };
    (0..6).map(body).collect()
}

#[test]
fn a_particle_leaves_when_it_crosses_an_open_face() {
    let fine = "mesh.refine=[{ criterion = \"box\", left = [-1, -0.2, -0.2], right = [-0.7, 0.2, 0.2] }, \
        { criterion = \"box\", left = [-0.2, -0.2, 0.7], right = [0.2, 0.2, 1] }]";
    let cases = [
        ["mesh.max_level=0", "particles.species.star.mass=1e-6"],
        ["mesh.max_level=0", "particles.species.star.mass=0"],
        ["mesh.max_level=1", "particles.species.star.mass=1e-6"],
        ["mesh.max_level=1", "particles.species.star.mass=0"],
    ];
    for (case, cloud) in cases.iter().zip(["cic", "tsc", "tsc", "ngp"]) {
        let mut all = before_all_faces(0.999, 0.0);
        all.extend(before_all_faces(0.95, 0.4));
        let own = [&*bodies(&all), fine, "time.max_step=0.05", "run.audit=true"];
        let cloud = format!("particles.cloud=\"{cloud}\"");
        let mut run = Stepper::new(SPACE, &[&own[..], case, &[&*cloud]].concat());
        // after two steps the moving ones are at 0.99
        run.steps(2);
        assert_eq!(particles(&mut run, "star").len(), 12, "{case:?}");
        assert_eq!(run.columns(["star_lost"]), [0.0], "{case:?}");
        run.steps(1);
        let kept = particles(&mut run, "star");
        assert!(kept.iter().all(|star| star.id < 6), "{case:?}");
        assert_eq!(kept.len(), 6, "{case:?}");
        assert_eq!(run.columns(["star_lost"]), [6.0], "{case:?}");
        let remarks = &run.0.engine().world.resource::<Remarks>().0;
        assert!(
            remarks
                .iter()
                .any(|text| text.contains("have left the domain")),
            "{remarks:?}"
        );
    }
}

/// Largest error, relative to Newton's law, of the force of a distant body on particles within half a cell of an open face.
fn error_beside_faces(cells: usize, cloud: &str) -> f64 {
    let cells_of = format!("domain.cells=[{cells}, {cells}, {cells}]");
    let cloud = format!("particles.cloud=\"{cloud}\"");
    let mut random = Random::new(5);
    let error = |n: usize| {
        let far = [0.06, -0.04, 0.11];
        let mut place = [(); 3].map(|()| random.between(-0.9, 0.9));
        for axis in 0..1 + n % 3 {
            let side = random.between(-1.0, 1.0).signum();
            place[axis] = side * (1.0 - random.between(0.001, 0.9) / cells as f64);
        }
        let all = bodies(&[(far, [0.0; 3]), (place, [0.0; 3])]);
        let settings = ["mesh.max_level=0", &*cells_of, &*cloud, &*all];
        let mut run = Stepper::new(SPACE, &settings);
        let all = particles(&mut run, "star");
        let to = [0, 1, 2].map(|a| far[a] - place[a]);
        let exact = to.map(|along| all[0].mass * along / size(to).powi(3));
        let error = [0, 1, 2].map(|a| all[1].acceleration[a] - exact[a]);
        size(error) / size(exact)
    };
    (0..6).map(error).fold(0.0, f64::max)
}

#[test]
fn the_force_beside_an_open_face_is_of_second_order() {
    for cloud in ["cic", "tsc"] {
        let [coarse, fine] = [16, 32].map(|cells| error_beside_faces(cells, cloud));
        assert!(
            fine < 0.35 * coarse && fine < 0.01,
            "{cloud}: {coarse:e}, {fine:e}"
        );
    }
}

#[test]
fn a_particle_beside_an_open_face_has_no_self_force_on_the_root_level() {
    for cloud in ["ngp", "cic", "tsc"] {
        let cloud = format!("particles.cloud=\"{cloud}\"");
        for (place, speed) in before_all_faces(0.993, 0.0) {
            let settings = ["mesh.max_level=0", &*cloud, &*bodies(&[(place, speed)])];
            let star = particles(&mut Stepper::new(SPACE, &settings), "star").swap_remove(0);
            // a neighbour at two cells
            let most = 1e-10 * star.mass / 0.125_f64.powi(2);
            assert!(
                size(star.acceleration) < most,
                "{cloud} {place:?}: {:e}",
                size(star.acceleration) / most
            );
        }
    }
}

#[test]
fn a_massless_particle_has_no_boundary_zone() {
    let state = |zone: &str| {
        let orbit = bodies(&[([0.55, 0.02, 0.01], [-0.3, 0.6, 0.1])]);
        let settings = [
            "particles.species.star.mass=0",
            "external.potential=\"-1/sqrt(x^2 + y^2 + z^2 + 0.01)\"",
            &*orbit,
            zone,
        ];
        let mut run = Stepper::new(SPACE, &settings);
        run.steps(4);
        let all = particles(&mut run, "star");
        all.iter().map(bits).collect::<Vec<_>>()
    };
    assert_eq!(state("particles.zone=0"), state("particles.zone=2"));
}

#[test]
fn a_remark_says_that_steps_are_too_short_for_single_precision() {
    let told = |precision: &str| {
        let slow = bodies(&[([0.2, 0.02, 0.01], [1e-3, 0.0, 0.0])]);
        let precision = format!("run.precision=\"{precision}\"");
        let settings = [
            "mesh.max_level=0",
            "initial.density=\"1e-6\"",
            "initial.pressure=\"1e-6\"",
            "time.max_step=1e-7",
            &*slow,
            &*precision,
        ];
        let mut run = Stepper::new(SPACE, &settings);
        run.steps(2);
        let remarks = &run.0.engine().world.resource::<Remarks>().0;
        let of_units = remarks
            .iter()
            .filter(|text| text.contains("units of their positions"));
        of_units.count()
    };
    assert_eq!(["single", "double"].map(told), [1, 0]);
}
