//! Writes the state functions of the namespace `field`.

use crate::mesh::{ShareSets, StateItems};
use nestar_device::Item;
use std::fmt::Write as _;

/// Returns the text. Without `states` all states are physical and interpolated as they are.
pub(super) fn text(states: Option<&StateItems>) -> String {
    let Some(states) = states else {
        return sets_text(&ShareSets::default())
            + "constexpr int LEADING = 0;\n\
               RS_FN bool physical(const REAL*) { return true; }\n\
               RS_FN void to_primitive(REAL*) {}\n\
               RS_FN void to_conserved(REAL*) {}\n\
               RS_FN void repair(REAL*, const REAL*) {}\n"
            + NO_DEPENDENTS;
    };
    let n = states.leading;
    let [physical, primitive, conserved, repaired] = states.items.map(Item::path);
    let (u, w) = (leading(n, "u"), leading(n, "w"));
    format!(
        "{}\
         constexpr int LEADING = {n};\n\
         typedef rs::arr<REAL, {n}> Leading;\n\
         RS_FN bool physical(const REAL* u) {{\n\
         \x20 bool finite = true;\n\
         \x20 for (int c = {n}; c < COMPONENTS; ++c) finite = finite && rs::is_finite(u[c]);\n\
         \x20 return finite && ::{physical}<REAL>({u});\n\
         }}\n\
         RS_FN void put(REAL* u, const Leading& from) {{ for (int c = 0; c < {n}; ++c) u[c] = from.d[c]; }}\n\
         RS_FN void to_primitive(REAL* u) {{\n\
         \x20 for (int c = {n}; c < COMPONENTS; ++c) u[c] = u[c] / u[0];\n\
         \x20 put(u, ::{primitive}<REAL>({u}));\n\
         }}\n\
         RS_FN void to_conserved(REAL* w) {{\n\
         \x20 put(w, ::{conserved}<REAL>({w}));\n\
         \x20 for (int c = {n}; c < COMPONENTS; ++c) w[c] = w[c] * w[0];\n\
         }}\n\
         RS_FN void repair(REAL* u, const REAL* w) {{ put(u, ::{repaired}<REAL>({u}, {w})); }}\n\
         {}",
        sets_text(&states.sets),
        dependents_text(states),
    )
}

const NO_DEPENDENTS: &str = "constexpr bool HAS_DEPENDENTS = false;\n\
    RS_FN void update_dependents(const REAL*, REAL*) {}\n\
    RS_FN void reconcile(REAL*) {}\n";

/// Returns an expression for the leading components at `name` as one value.
fn leading(n: usize, name: &str) -> String {
    let values: Vec<String> = (0..n).map(|c| format!("{name}[{c}]")).collect();
    format!("rs::arr<REAL, {n}>{{{{{}}}}}", values.join(", "))
}

/// Returns the text of the functions that update dependent components.
fn dependents_text(states: &StateItems) -> String {
    let Some(items) = states.dependents else {
        return NO_DEPENDENTS.into();
    };
    let [with_dependents, reconciled] = items.map(Item::path);
    let (before, u) = (
        leading(states.leading, "before"),
        leading(states.leading, "u"),
    );
    format!(
        "constexpr bool HAS_DEPENDENTS = true;\n\
         RS_FN void update_dependents(const REAL* before, REAL* u) {{ put(u, ::{with_dependents}<REAL>({before}, {u})); }}\n\
         RS_FN void reconcile(REAL* u) {{ put(u, ::{reconciled}<REAL>({u}, (REAL){:.17e})); }}\n",
        states.threshold,
    )
}

/// Returns the text that maps components to their sets.
fn sets_text(sets: &ShareSets) -> String {
    let members = (1..=sets.count()).flat_map(|set| sets.members(set).map(move |c| (c, set)));
    let mut of = String::new();
    members.for_each(|(c, set)| {
        let _ = write!(of, "c == {c} ? {set} : ");
    });
    format!(
        "constexpr int SETS = {};\n\
         RS_FN constexpr int set_of(int c) {{ return {of}0; }}\n",
        sets.count()
    )
}
