//! Sub-steps: bounded calls, floors, heat, failure.
use super::super::species::{HD, HI, HII};
use super::sample::cells;
use super::*;
use crate::mesh::subcycle::{CONTINUE, FAILED};

/// Advances a cell by calls with a limited number of sub-steps.
fn by_calls<R: Real, const S: usize, const N: usize>(
    p: &Network<R>,
    cell: &CellConditions<R>,
    s: Abundances<R>,
    dt: f64,
    most: i32,
) -> (Abundances<R>, i32) {
    let (mut s, mut clock, mut substeps) = (s, SubstepClock::default(), 0);
    loop {
        let now = advance::<R, S, N>(p, cell, s, clock, R::lit(dt), most);
        (s, clock) = (now.state, now.clock);
        substeps += now.substeps;
        if now.status != CONTINUE {
            return (s, substeps);
        }
    }
}

#[test]
fn calls_that_are_bounded_give_the_same_bits() {
    let p = network(9, 1e-2, 1e-8);
    let single = p.precise::<f32>();
    for cell in cells::<6>(&p, 100) {
        let there = CellConditions {
            density: cell.density as f32,
            heating: 0.0,
            dust: 0.0,
        };
        let whole = by_calls::<f32, 6, 7>(&single, &there, to(&cell.state), cell.dt, 1000);
        for most in [1, 3] {
            assert_eq!(
                whole,
                by_calls::<f32, 6, 7>(&single, &there, to(&cell.state), cell.dt, most)
            );
        }
    }
}

#[test]
fn random_cells_need_few_sub_steps() {
    let p = network(6, 1e-2, 1e-8);
    let substeps: Vec<i32> = cells::<3>(&p, 1000)
        .iter()
        .map(|c| through::<f64, 3, 4>(&p, c.density, c.state, c.dt).1)
        .collect();
    let (sum, most) = (substeps.iter().sum::<i32>(), substeps.iter().max().unwrap());
    println!(
        "6 species: {} sub-steps a cell, at most {most}",
        f64::from(sum) / 1e3
    );
    assert!(sum < 20_000 && *most < 150);
}

/// Network of six species with a temperature floor of 1e4 K.
fn network_with_floor() -> Network<f64> {
    let tolerances = Tolerances {
        floor_k: 1e4,
        ..Tolerances::default()
    };
    Network::new(
        6,
        RateChoices::default(),
        [HELIUM, 0.0],
        &Background::default(),
        tolerances,
    )
}

#[test]
fn gas_at_the_floor_stays_there_and_its_energy_is_counted() {
    let p = network_with_floor();
    let mut s = at::<3>(&p, 1e3, 5e4);
    s.energy = 9e3 * heat_capacity::<f64, 3>(&s, charge::<3>(&s));
    let cell = CellConditions {
        density: 1e3,
        heating: 0.0,
        dust: 0.0,
    };
    let end = advance::<f64, 3, 4>(&p, &cell, s, SubstepClock::default(), 0.1, 200);
    assert_eq!(end.status, DONE);
    assert!(
        (kelvin::<3>(&end.state) - 1e4).abs() < 1.0,
        "{}",
        kelvin::<3>(&end.state)
    );
    assert!(end.clock.floored > 0.0 && end.state.y[HII] < s.y[HII]);
}

#[test]
fn heating_without_cooling_is_linear() {
    let p = network(6, 1e-2, 1e-8);
    let mut s = at::<3>(&p, 1e-8, 1e3);
    (s.y[HI], s.y[HII]) = (1.0, 1e-20);
    let cell = CellConditions {
        density: 1e-8,
        heating: 2.0,
        dust: 0.0,
    };
    let end = advance::<f64, 3, 4>(&p, &cell, s, SubstepClock::default(), 10.0, 100);
    assert!((end.state.energy / (s.energy + 20.0) - 1.0).abs() < 1e-9);
}

#[test]
fn compton_cooling_is_exponential() {
    let radiation = Background {
        redshift: Some(20.0),
        ..Background::default()
    };
    let precision = Tolerances {
        relative: 1e-5,
        ..Tolerances::default()
    };
    let p = Network::new(
        6,
        RateChoices::default(),
        [HELIUM, 0.0],
        &radiation,
        precision,
    );
    let mut s = at::<3>(&p, 1e-12, 1e7);
    let capacity = heat_capacity::<f64, 3>(&s, charge::<3>(&s));
    s.energy = 1e6 * capacity;
    let (end, _) = through::<f64, 3, 4>(&p, 1e-12, s, 3.0);
    let rate = 5.65e-36 * nestar_device::math::pow(21.0, 4.0) * 3.15576e13 / 1.380649e-16
        * charge::<3>(&s)
        / capacity;
    let exact = 57.225 + (1e6 - 57.225) * nestar_device::math::exp(-3.0 * rate);
    assert!(
        (kelvin::<3>(&end) / exact - 1.0).abs() < 1e-4,
        "{} {exact}",
        kelvin::<3>(&end)
    );
}

#[test]
fn cells_that_are_no_numbers_fail_and_do_not_hang() {
    let p = network(9, 1e-2, 1e-8);
    let cell = CellConditions {
        density: 1.0,
        heating: 0.0,
        dust: 0.0,
    };
    for wrong in [f64::NAN, f64::INFINITY, -1.0] {
        let mut s = at::<6>(&p, 1.0, 1e4);
        s.energy = wrong;
        let end = advance::<f64, 6, 7>(&p, &cell, s, SubstepClock::default(), 1.0, 1000);
        assert_eq!(end.status, FAILED, "{wrong}");
        let mut s = at::<6>(&p, 1.0, 1e4);
        s.y[HII] = wrong;
        let end = advance::<f64, 6, 7>(&p, &cell, s, SubstepClock::default(), 1.0, 1000);
        assert!(end.status == FAILED || wrong == -1.0, "{wrong}");
    }
}

/// D follows H: HD forms from H2 and cools below what H2 alone reaches.
#[test]
fn twelve_species_form_hd_in_recombining_gas() {
    let p = network(12, 1e-3, 1e-12);
    let mut s = at::<8>(&p, 10.0, 2e4);
    (s.y[HI], s.y[HII]) = (1e-10, 1.0);
    s.energy = 1e4 * heat_capacity::<f64, 8>(&s, charge::<8>(&s));
    let s = super::super::renormalised::<f64, 8>(&s, HELIUM, DEUTERIUM);
    let (end, substeps) = through::<f64, 8, 9>(&p, 10.0, s, 100.0);
    let nine = network(9, 1e-3, 1e-12);
    let (without, _) = through::<f64, 6, 7>(&nine, 10.0, s, 100.0);
    let (cold, warm) = (kelvin::<8>(&end), kelvin::<6>(&without));
    println!(
        "12 species: {cold} K against {warm} K, HD/D {:e}, {substeps} sub-steps",
        end.y[HD] / DEUTERIUM
    );
    assert!(end.y[HD] / DEUTERIUM > 0.1 && cold < 0.8 * warm);
}

/// Electrons after cooling from 5e5 K to the floor and staying there, in steps of `dt` Myr.
fn electrons_at_the_floor(p: &Network<f64>, dt: f64, steps: usize) -> f64 {
    let mut s = at::<3>(p, 1e3, 5e5);
    let cell = CellConditions {
        density: 1e4,
        heating: 0.0,
        dust: 0.0,
    };
    for _ in 0..steps {
        let end = advance::<f64, 3, 4>(p, &cell, s, SubstepClock::default(), dt, 5000);
        assert_eq!(end.status, DONE);
        s = end.state;
    }
    assert!((kelvin::<3>(&s) - 1e4).abs() < 1.0, "{}", kelvin::<3>(&s));
    charge::<3>(&s)
}

#[test]
fn ionisation_at_the_floor_does_not_depend_on_the_length_of_steps() {
    let p = network_with_floor();
    let fine = electrons_at_the_floor(&p, 1e-2 / 2000.0, 2000);
    for steps in [1, 20, 200] {
        let found = electrons_at_the_floor(&p, 1e-2 / steps as f64, steps);
        assert!(
            (found / fine - 1.0).abs() < 0.01,
            "{steps} steps: {found:e} for {fine:e}"
        );
    }
}
