//! Power spectra from text files.

use crate::fields::PerturbedMatter;
use nestar_deck::{DeckError, TableFile};
use nestar_device::math::{exp, ln, sqrt};
use std::path::Path;

/// A tabulated power spectrum of all matter, or one of gas and one of dark matter, whose modes are in phase. Between its rows, the logarithm of the
/// power is linear in that of the wave number.
#[derive(Clone, Debug, PartialEq)]
pub struct SpectrumTable {
    /// Wave numbers, h/Mpc, ascending.
    k: Vec<f64>,
    /// Powers at the wave numbers, (Mpc/h)^3: those of all matter, or those of gas and of dark matter.
    powers: Vec<Vec<f64>>,
}

impl SpectrumTable {
    /// Reads a file with the columns wave number in h/Mpc and power in (Mpc/h)^3, or powers of gas and of dark matter.
    ///
    /// # Errors
    /// The file cannot be read; it does not have two or three columns or has one row only; wave numbers do not ascend, or a number is not above 0.
    pub fn read(path: &Path) -> Result<Self, DeckError> {
        Self::of(&TableFile::read(path)?)
    }

    /// Checks the columns of a file.
    fn of(file: &TableFile) -> Result<Self, DeckError> {
        let (Some(k), 2..=3) = (file.names().first(), file.names().len()) else {
            let why = format!(
                "a power spectrum has two columns, the wave number in h/Mpc and the power in (Mpc/h)^3, or three with the powers of gas and of dark \
                 matter, found {}",
                file.names().len()
            );
            let first = file.names().first().map_or("", String::as_str);
            return Err(file.error_at(first, 0, why));
        };
        let powers = file.names()[1..].iter().map(|name| file.column(name));
        let table = Self {
            k: file.ascending(k)?,
            powers: powers.collect::<Result<_, _>>()?,
        };
        let columns = [&table.k].into_iter().chain(&table.powers);
        for (name, column) in file.names().iter().zip(columns) {
            if let Some(row) = column.iter().position(|number| *number <= 0.0) {
                let why = format!(
                    "wave numbers and powers must be above 0, found {:?}",
                    column[row]
                );
                return Err(file.error_at(name, row, why));
            }
        }
        if table.k.len() < 2 {
            let why = "a power spectrum needs two rows or more";
            return Err(file.error_at(k, 0, why));
        }
        Ok(table)
    }

    /// Returns the smallest and the largest wave number, h/Mpc.
    #[must_use]
    pub fn range(&self) -> [f64; 2] {
        [self.k[0], self.k[self.k.len() - 1]]
    }

    /// Returns `true` if gas and dark matter have powers of their own.
    #[must_use]
    pub fn is_by_species(&self) -> bool {
        self.powers.len() == 2
    }

    /// Returns the power of gas or of dark matter at the wave number `k` in h/Mpc: exactly that of the file at its wave numbers. Outside its
    /// range, the power law between the nearest two rows continues.
    #[must_use]
    pub fn power(&self, k: f64, of: PerturbedMatter) -> f64 {
        let power = match of {
            PerturbedMatter::Gas => &self.powers[0],
            PerturbedMatter::Particles => &self.powers[self.powers.len() - 1],
        };
        let below = self.k.partition_point(|own| *own <= k);
        let n = below.clamp(1, self.k.len() - 1) - 1;
        if let Some(row) = [n, n + 1].into_iter().find(|row| self.k[*row] == k) {
            return power[row];
        }
        let share = ln(k / self.k[n]) / ln(self.k[n + 1] / self.k[n]);
        power[n] * exp(share * ln(power[n + 1] / power[n]))
    }

    /// Returns the power of all matter; `gas` is the mass fraction of gas.
    #[must_use]
    pub fn total(&self, k: f64, gas: f64) -> f64 {
        if !self.is_by_species() {
            return self.power(k, PerturbedMatter::Gas);
        }
        let [of_gas, of_dark] =
            [PerturbedMatter::Gas, PerturbedMatter::Particles].map(|of| sqrt(self.power(k, of)));
        let mode = gas * of_gas + (1.0 - gas) * of_dark;
        mode * mode
    }
}

#[cfg(test)]
mod tests {
    use super::{PerturbedMatter, SpectrumTable};
    use nestar_deck::TableFile;

    fn table(text: &str) -> Result<SpectrumTable, String> {
        let file = TableFile::parse("P.txt", text).map_err(|why| why.to_string())?;
        SpectrumTable::of(&file).map_err(|why| why.to_string())
    }

    #[test]
    fn powers_are_exact_in_rows_and_power_laws_between_them() {
        let rows = [[0.013, 7.1], [0.1, 3e3], [0.7, 1.9e2], [31.0, 1e-3]];
        let text: Vec<String> = rows.iter().map(|[k, p]| format!("{k} {p}")).collect();
        let table = table(&format!("# k/h P\n{}\n", text.join("\n"))).expect("a spectrum");
        for [k, power] in rows {
            assert_eq!(table.total(k, 0.3), power);
        }
        let middle = table.total((0.1_f64 * 0.7).sqrt(), 0.3);
        assert!((middle / (3e3_f64 * 1.9e2).sqrt() - 1.0).abs() < 1e-14);
        for [k, power] in [rows[0], rows[3]] {
            for near in [k * (1.0 - 1e-12), k * (1.0 + 1e-12)] {
                assert!((table.total(near, 0.3) / power - 1.0).abs() < 1e-10);
            }
        }
    }

    #[test]
    fn gas_and_dark_matter_may_have_powers_of_their_own() {
        let table = table("0.1 4 9\n1 1 4\n").expect("two spectra");
        assert!(table.is_by_species());
        let of = [PerturbedMatter::Gas, PerturbedMatter::Particles];
        assert_eq!(of.map(|of| table.power(1.0, of)), [1.0, 4.0]);
        // a quarter of the mass has modes of 2, the rest of 3
        assert_eq!(table.total(0.1, 0.25), 2.75 * 2.75);
    }

    #[test]
    fn damaged_tables_are_refused_with_their_line() {
        for (text, words) in [
            ("0.1 2\n0.1 3\n", ["P.txt:2", "ascend"]),
            ("0.2 2\n0.1 3\n", ["P.txt:2", "ascend"]),
            ("0.1 2\n0.2 -3\n", ["P.txt:2:5", "above 0"]),
            ("0 2\n0.2 3\n", ["P.txt:1:1", "above 0"]),
            ("0.1 2\n0.2 nan\n", ["P.txt:2:5", "number"]),
            ("0.1 2\n0.2\n", ["P.txt:2", "expected 2"]),
            ("0.1\n0.2\n", ["P.txt:1", "two columns"]),
            ("0.1 2 3\n0.2 3 -4\n", ["P.txt:2:7", "above 0"]),
            ("0.1 2 3 4\n0.2 3 4 5\n", ["P.txt:1", "two columns"]),
            ("0.1 2\n", ["P.txt:1", "two rows"]),
            ("# k P\n", ["P.txt", "no numbers"]),
        ] {
            let why = table(text).expect_err(text);
            assert!(words.iter().all(|word| why.contains(word)), "{text}: {why}");
        }
    }
}
