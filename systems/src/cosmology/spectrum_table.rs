//! Power spectra from text files.

use nestar_deck::{DeckError, TableFile};
use nestar_device::math::{exp, ln};
use std::path::Path;

/// A tabulated power spectrum. Between its rows, the logarithm of the power is linear in that of the wave number.
#[derive(Clone, Debug, PartialEq)]
pub struct SpectrumTable {
    /// Wave numbers, h/Mpc, ascending.
    k: Vec<f64>,
    /// Power at the wave numbers, (Mpc/h)^3.
    power: Vec<f64>,
}

impl SpectrumTable {
    /// Reads a file with the columns wave number in h/Mpc and power in (Mpc/h)^3.
    ///
    /// # Errors
    /// The file cannot be read; it does not have two columns or has one row only; wave numbers do not ascend, or a number is not above 0.
    pub fn read(path: &Path) -> Result<Self, DeckError> {
        Self::of(&TableFile::read(path)?)
    }

    /// Checks the columns of a file.
    fn of(file: &TableFile) -> Result<Self, DeckError> {
        let [k, power] = file.names() else {
            let why = format!(
                "a power spectrum has two columns, the wave number in h/Mpc and the power in (Mpc/h)^3, found {}",
                file.names().len()
            );
            let first = file.names().first().map_or("", String::as_str);
            return Err(file.error_at(first, 0, why));
        };
        let table = Self {
            k: file.ascending(k)?,
            power: file.column(power)?,
        };
        for (name, column) in [(k, &table.k), (power, &table.power)] {
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

    /// Returns the power at the wave number `k` in h/Mpc: exactly that of the file at its wave numbers. Outside its range, the power law
    /// between the nearest two rows continues.
    #[must_use]
    pub fn power(&self, k: f64) -> f64 {
        let below = self.k.partition_point(|own| *own <= k);
        let n = below.clamp(1, self.k.len() - 1) - 1;
        if let Some(row) = [n, n + 1].into_iter().find(|row| self.k[*row] == k) {
            return self.power[row];
        }
        let share = ln(k / self.k[n]) / ln(self.k[n + 1] / self.k[n]);
        self.power[n] * exp(share * ln(self.power[n + 1] / self.power[n]))
    }
}

#[cfg(test)]
mod tests {
    use super::SpectrumTable;
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
            assert_eq!(table.power(k), power);
        }
        let middle = table.power((0.1_f64 * 0.7).sqrt());
        assert!((middle / (3e3_f64 * 1.9e2).sqrt() - 1.0).abs() < 1e-14);
        for [k, power] in [rows[0], rows[3]] {
            for near in [k * (1.0 - 1e-12), k * (1.0 + 1e-12)] {
                assert!((table.power(near) / power - 1.0).abs() < 1e-10);
            }
        }
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
            ("0.1 2 3\n0.2 3 4\n", ["P.txt:1", "two columns"]),
            ("0.1 2\n", ["P.txt:1", "two rows"]),
            ("# k P\n", ["P.txt", "no numbers"]),
        ] {
            let why = table(text).expect_err(text);
            assert!(words.iter().all(|word| why.contains(word)), "{text}: {why}");
        }
    }
}
