//! Parts of a lattice that a file lists.

use nestar_deck::{Deck, DeckError, TableFile};
use std::path::Path;

/// Cells of a box, from a text file. A lattice whose points divide into these cells has particles only inside of them, or only outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Region {
    /// Cells of the box along x, y, z.
    cells: [u64; 3],
    /// Numbers of the cells of the region, ascending; they count along x first.
    numbers: Vec<u64>,
}

/// Largest number of cells along an axis.
const MOST: f64 = 1e6;

impl Region {
    /// Reads the file at the key `key` of the deck, relative to the deck.
    ///
    /// # Errors
    /// The file cannot be read or is invalid.
    pub fn read(deck: &Deck, key: &str, file: &str) -> Result<Self, DeckError> {
        let path = deck.directory().unwrap_or(Path::new("")).join(file);
        let read = TableFile::read(&path).and_then(|file| Self::of(&file));
        read.map_err(|why| {
            let more = format!("`{key}`: {} is no list of cells", path.display());
            why.and(deck.error_at(key, more))
        })
    }

    /// Checks the rows of a file: the numbers of cells of the box, then a row for each cell of the region.
    fn of(file: &TableFile) -> Result<Self, DeckError> {
        let names = file.names();
        if names.len() != 3 {
            let why = format!(
                "a list of cells has three columns, the numbers along x, y and z, found {}",
                names.len()
            );
            return Err(file.error_at(&names[0], 0, why));
        }
        let columns = [0, 1, 2].map(|a| file.column(&names[a]));
        let [x, y, z] = columns;
        let columns = [x?, y?, z?];
        let row = |n: usize| [0, 1, 2].map(|a: usize| columns[a][n]);
        let is_count = |number: f64| number.fract() == 0.0 && (1.0..=MOST).contains(&number);
        let counts = row(0);
        if let Some(a) = (0..3).find(|&a| !is_count(counts[a])) {
            let why = format!(
                "the first row has the numbers of cells of the box along x, y and z, from 1 to {MOST}, found {:?}",
                counts[a]
            );
            return Err(file.error_at(&names[a], 0, why));
        }
        let cells = counts.map(|count| count as u64);
        let mut listed = Vec::with_capacity(columns[0].len());
        for n in 1..columns[0].len() {
            let at = row(n);
            let is_inside = |a: usize| at[a].fract() == 0.0 && (0.0..counts[a]).contains(&at[a]);
            if let Some(a) = (0..3).find(|&a| !is_inside(a)) {
                let last = cells[a] - 1;
                let why = format!(
                    "expected the number of a cell, from 0 to {last}, found {:?}",
                    at[a]
                );
                return Err(file.error_at(&names[a], n, why));
            }
            listed.push((number(at.map(|x| x as u64), cells), n));
        }
        listed.sort_unstable();
        if let Some(twice) = listed.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let why = "the cell is listed twice: remove one of the rows";
            return Err(file.error_at(&names[0], twice[1].1, why));
        }
        if listed.is_empty() {
            let why = "the file lists no cells after the numbers of cells of the box: add a row for each cell of the region";
            return Err(file.error_at(&names[0], 0, why));
        }
        let numbers = listed.into_iter().map(|(number, _)| number).collect();
        Ok(Self { cells, numbers })
    }

    /// Returns the number of lattice points in a cell along each axis.
    ///
    /// # Errors
    /// The points of the lattice, given by the table `path`, do not divide into the cells.
    pub fn points_per_cell(
        &self,
        deck: &Deck,
        key: &str,
        points: [u64; 3],
    ) -> Result<[u64; 3], DeckError> {
        if (0..3).all(|a| points[a].is_multiple_of(self.cells[a])) {
            return Ok([0, 1, 2].map(|a| points[a] / self.cells[a]));
        }
        let near = [0, 1, 2].map(|a| points[a].div_ceil(self.cells[a]) * self.cells[a]);
        let why = format!(
            "`{key}`: the {points:?} points of the lattice do not divide into the {:?} cells of the file: give multiples of these numbers \
             as `points`, such as {near:?}, or write the region with other cells",
            self.cells
        );
        Err(deck.error_at(key, why))
    }

    /// Returns the number of cells in the region.
    pub fn len(&self) -> u64 {
        self.numbers.len() as u64
    }

    /// Returns the place of a cell of the region, given by its position in the ascending list.
    pub fn cell(&self, position: u64) -> [u64; 3] {
        let number = self.numbers[position as usize];
        let [x, y, _] = self.cells;
        [number % x, number / x % y, number / (x * y)]
    }

    /// Returns `true` if a cell is in the region.
    pub fn contains(&self, cell: [u64; 3]) -> bool {
        let number = number(cell, self.cells);
        self.numbers.binary_search(&number).is_ok()
    }
}

/// Returns the number of a cell.
fn number([x, y, z]: [u64; 3], cells: [u64; 3]) -> u64 {
    x + cells[0] * (y + cells[1] * z)
}

#[cfg(test)]
mod tests {
    use super::Region;
    use nestar_deck::TableFile;

    fn region(text: &str) -> Result<Region, String> {
        let file = TableFile::parse("R.csv", text).map_err(|why| why.to_string())?;
        Region::of(&file).map_err(|why| why.to_string())
    }

    #[test]
    fn cells_of_a_file_are_found_in_any_order() {
        let found = region("x,y,z\n4,3,2\n3,2,1 # the last one\n0,0,0\n1,2,0\n");
        let found = found.unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(found.len(), 3);
        let cells = [0, 1, 2].map(|n| found.cell(n));
        assert_eq!(cells, [[0, 0, 0], [1, 2, 0], [3, 2, 1]]);
        assert!(cells.into_iter().all(|cell| found.contains(cell)));
        let all = (0..24).map(|n| [n % 4, n / 4 % 3, n / 12]);
        assert_eq!(all.filter(|cell| found.contains(*cell)).count(), 3);
    }

    #[test]
    fn damaged_regions_are_refused_with_their_line() {
        for (text, words) in [
            ("4 4\n1 1\n", ["R.csv:1", "three columns"]),
            ("4 4 0\n1 1 1\n", ["R.csv:1:5", "from 1"]),
            ("4 4.5 4\n1 1 1\n", ["R.csv:1:3", "found 4.5"]),
            ("4 4 4\n1 1 4\n", ["R.csv:2:5", "from 0 to 3"]),
            ("4 4 4\n1 -1 0\n", ["R.csv:2:3", "found -1"]),
            ("4 4 4\n1 0.5 0\n", ["R.csv:2:3", "found 0.5"]),
            ("4 4 4\n1 0 0\n2 0 0\n1 0 0\n", ["R.csv:4", "twice"]),
            ("4 4 4\n", ["R.csv:1", "no cells"]),
        ] {
            let why = region(text).expect_err(text);
            assert!(words.iter().all(|word| why.contains(word)), "{text}: {why}");
        }
    }
}
