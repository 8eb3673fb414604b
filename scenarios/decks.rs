//! The decks of this folder, inside the program.

/// A deck inside the program.
pub struct ShippedDeck {
    /// Name: that of the file without its ending.
    pub name: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        [$(ShippedDeck { name: $name, text: include_str!(concat!($name, ".toml")) }),*]
    };
}

/// All decks, sorted by name.
pub const DECKS: [ShippedDeck; 78] = shipped![
    "acoustic-wave",
    "alfven-wave",
    "blast-adaptive",
    "blast-uniform",
    "bondi",
    "brio-wu",
    "cloud-collapse",
    "cloud-crushing",
    "cloud-crushing-6",
    "cloud-fragments",
    "cluster-merger",
    "cold-collapse",
    "cold-disc-patch",
    "cold-patch",
    "cooling-blast",
    "cooling-box",
    "cooling-slab",
    "current-sheet",
    "dam-break",
    "disc-galaxy",
    "disc-of-particles",
    "double-mach",
    "empty-universe",
    "equilibrium",
    "evrard",
    "formula",
    "gresho",
    "halo",
    "heat-pulse",
    "hernquist",
    "implosion",
    "infall",
    "isentropic-vortex",
    "isothermal-shock",
    "isothermal-sphere",
    "jeans",
    "kelvin-helmholtz",
    "koyama-inutsuka",
    "lcdm",
    "lss-baryons",
    "lyman-alpha",
    "magnetic-cloud",
    "magnetic-collapse",
    "magnetic-loop",
    "magnetic-rotor",
    "magnetic-turbulence",
    "mhd-blast",
    "nfw",
    "noh",
    "odd-even",
    "orszag-tang",
    "pancake",
    "plummer",
    "point-masses",
    "primordial-cooling",
    "radiative-shock",
    "rayleigh-taylor",
    "ryu-jones",
    "sedov",
    "shear-wave",
    "shu-osher",
    "sod",
    "sod-diagonal",
    "sod-y",
    "sod-z",
    "spherical-collapse",
    "star-box",
    "supernova",
    "thermal-instability",
    "top-hat",
    "toro",
    "tracers",
    "tracers-turbulence",
    "two-body",
    "wind-patch",
    "zarr",
    "zoom-halo",
    "zoom-parent",
];

impl ShippedDeck {
    /// Returns the deck of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        DECKS.iter().find(|deck| deck.name == name)
    }

    /// Returns the first line of its description.
    #[must_use]
    pub fn title(&self) -> &'static str {
        let line = self.text.lines().next().unwrap_or_default();
        line.trim_start_matches('#').trim()
    }
}

#[cfg(test)]
mod tests {
    use super::DECKS;
    use std::path::Path;

    #[test]
    fn all_decks_of_the_folder_are_in_the_program() {
        let entries = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")));
        let names = entries.expect("the folder").filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            let deck = name.strip_suffix(".toml")?.to_string();
            (deck != "Cargo").then_some(deck)
        });
        let mut names: Vec<String> = names.collect();
        names.sort();
        assert_eq!(names, DECKS.map(|deck| deck.name.to_string()));
        assert!(DECKS.iter().all(|deck| deck.title().len() > 10));
    }
}
