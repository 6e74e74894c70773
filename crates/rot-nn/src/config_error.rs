//! Settings of a model that cannot be.

/// Settings that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// Heads and width do not fit.
    #[error(
        "width = {width} cannot be split over heads = {heads}: each head needs a multiple of 16 channels"
    )]
    Heads {
        /// The width.
        width: usize,
        /// The heads.
        heads: usize,
    },
    /// A setting is out of its range.
    #[error("{name} = {value} is not between {least} and {most}")]
    Range {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: usize,
        /// The least it may be.
        least: usize,
        /// The most it may be.
        most: usize,
    },
    /// Neighbours would not be told apart, or not by their order.
    #[error("turn = {value} is not above 0 and below pi")]
    Turn {
        /// The setting.
        value: f64,
    },
}

impl ConfigError {
    /// Checks that a setting is in its range.
    pub(crate) fn check(
        name: &'static str,
        value: usize,
        range: std::ops::RangeInclusive<usize>,
    ) -> Result<(), ConfigError> {
        let (least, most) = range.clone().into_inner();
        if range.contains(&value) {
            Ok(())
        } else {
            Err(ConfigError::Range { name, value, least, most })
        }
    }
}
