//! Parts of the work, for several machines.

use std::str::FromStr;

/// The `index`-th of `count` parts, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shard {
    index: usize,
    count: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let wrong = || format!("'{text}' is not a part such as 1/4: the first of four");
        let (index, count) = text.split_once('/').ok_or_else(wrong)?;
        let index: usize = index.parse().map_err(|_| wrong())?;
        let count: usize = count.parse().map_err(|_| wrong())?;
        if (1..=count).contains(&index) {
            Ok(Shard { index: index - 1, count })
        } else {
            Err(wrong())
        }
    }
}

impl Shard {
    /// The part that the variables of an array job name; everything where there are none.
    pub(super) fn of_environment(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Shard, String> {
        let number = |name: &str| -> Result<Option<usize>, String> {
            let read = |text: String| {
                text.parse().map_err(|_| format!("the variable {name} is '{text}', not a number"))
            };
            variable(name).map(read).transpose()
        };
        let of = |index: usize, count: Option<usize>, name: &str| match count {
            Some(count) if index < count => Ok(Shard { index, count }),
            Some(_) => Err(format!("this job is beyond the number of jobs in {name}")),
            None => {
                Err(format!("this is one of several jobs, but {name} does not say of how many"))
            }
        };
        if let Some(id) = number("SLURM_ARRAY_TASK_ID")? {
            let first = number("SLURM_ARRAY_TASK_MIN")?.unwrap_or(0);
            let name = "SLURM_ARRAY_TASK_COUNT";
            return of(id.saturating_sub(first), number(name)?, name);
        }
        if let Some(index) = number("JOB_COMPLETION_INDEX")? {
            let name = "JOB_COMPLETIONS";
            return of(index, number(name)?, name);
        }
        Ok(Shard { index: 0, count: 1 })
    }

    /// Every `count`-th of some things.
    pub(super) fn of<T>(self, all: Vec<T>) -> Vec<T> {
        all.into_iter().skip(self.index).step_by(self.count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_everything_once() {
        let all: Vec<u32> = (0..11).collect();
        let mut parts: Vec<u32> = (1..=4)
            .flat_map(|i| format!("{i}/4").parse::<Shard>().unwrap().of(all.clone()))
            .collect();
        parts.sort_unstable();
        assert_eq!(parts, all);
        for wrong in ["0/4", "5/4", "1", "a/b", "1/0", ""] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn array_jobs_know_their_part() {
        let of = |set: &'static [(&str, &str)]| {
            Shard::of_environment(move |name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[]), Ok(Shard { index: 0, count: 1 }));
        let slurm = of(&[
            ("SLURM_ARRAY_TASK_ID", "3"),
            ("SLURM_ARRAY_TASK_MIN", "1"),
            ("SLURM_ARRAY_TASK_COUNT", "4"),
        ]);
        assert_eq!(slurm, Ok(Shard { index: 2, count: 4 }));
        let kubernetes = of(&[("JOB_COMPLETION_INDEX", "0"), ("JOB_COMPLETIONS", "2")]);
        assert_eq!(kubernetes, Ok(Shard { index: 0, count: 2 }));
        assert!(of(&[("JOB_COMPLETION_INDEX", "0")]).is_err());
        assert!(of(&[("JOB_COMPLETION_INDEX", "2"), ("JOB_COMPLETIONS", "2")]).is_err());
        assert!(of(&[("SLURM_ARRAY_TASK_ID", "x")]).is_err());
    }
}
