//! Detects the launcher of this process from the environment, before MPI is started.

/// Environment variables of launchers: number of processes, and rank of this one.
const LAUNCHERS: [(&str, &str); 5] = [
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("PMI_SIZE", "PMI_RANK"),
    ("PALS_SIZE", "PALS_RANKID"),
    ("FLUX_JOB_SIZE", "FLUX_TASK_RANK"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
];
/// Environment variable of all launchers with PMIx, which do not publish the number of processes.
const PMIX: &str = "PMIX_RANK";
/// Environment variable for unknown launchers: `1` always starts MPI, `0` never.
const CHOICE: &str = "NESTAR_MPI";

/// How this process was started, according to the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchKind {
    /// By hand, as the only process.
    Single,
    /// By a launcher, as one of `size` processes; 0 if their number is unknown.
    Launched {
        /// Number of processes.
        size: usize,
        /// Rank of this process.
        rank: usize,
    },
}

impl LaunchKind {
    /// Reads environment variables through `variable`.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name: &str| variable(name).and_then(|text| text.trim().parse().ok());
        match variable(CHOICE).as_deref() {
            Some("0") => return Self::Single,
            Some("1") => return Self::Launched { size: 0, rank: 0 },
            _ => {}
        }
        let known = LAUNCHERS.iter().find_map(|(size, rank)| {
            let (size, rank) = (number(size)?, number(rank)?);
            // A batch script is a step with one task of its own.
            (size > 1).then_some(Self::Launched { size, rank })
        });
        let unsized_rank = || number(PMIX).map(|rank| Self::Launched { size: 0, rank });
        known.or_else(unsized_rank).unwrap_or(Self::Single)
    }
}

#[cfg(test)]
mod tests {
    use super::LaunchKind;

    fn read(variables: &[(&str, &str)]) -> LaunchKind {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name);
        LaunchKind::read(|name| find(name).map(|(_, value)| (*value).to_string()))
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        let two = LaunchKind::Launched { size: 2, rank: 1 };
        assert_eq!(read(&[]), LaunchKind::Single);
        assert_eq!(read(&[("PMI_SIZE", "2"), ("PMI_RANK", "1")]), two);
        let open = [("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "1")];
        assert_eq!(read(&open), two);
        let slurm = [("SLURM_STEP_NUM_TASKS", "2"), ("SLURM_PROCID", "1")];
        assert_eq!(read(&slurm), two);
        assert_eq!(
            read(&[("PMIX_RANK", "3")]),
            LaunchKind::Launched { size: 0, rank: 3 }
        );
    }

    #[test]
    fn a_batch_script_and_a_single_process_have_one_rank() {
        let script = [("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_PROCID", "0")];
        assert_eq!(read(&script), LaunchKind::Single);
        assert_eq!(
            read(&[("PMI_SIZE", "1"), ("PMI_RANK", "0")]),
            LaunchKind::Single
        );
    }

    #[test]
    fn the_environment_may_decide() {
        let unknown = LaunchKind::Launched { size: 0, rank: 0 };
        assert_eq!(read(&[("NESTAR_MPI", "1")]), unknown);
        let off = [("NESTAR_MPI", "0"), ("PMI_SIZE", "2"), ("PMI_RANK", "1")];
        assert_eq!(read(&off), LaunchKind::Single);
    }
}
