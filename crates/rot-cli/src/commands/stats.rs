//! `rot stats`

pub(crate) fn run(_: &crate::args::StatsArgs) -> anyhow::Result<()> {
    Ok(())
}
