//! Histograms with logarithmic axes, as SVG: one panel a problem and size, two series in each.

use std::error::Error;

use plotters::coord::combinators::IntoLogRange;
use plotters::prelude::*;

use super::{COLOURS, FONT, own, power_of_ten};

/// Bins for each factor of ten.
const BINS_PER_DECADE: i32 = 10;
const PANEL: (u32, u32) = (210, 150);
const HEADER: u32 = 60;

/// Counts of values by their decimal logarithm.
pub(crate) struct Histogram {
    /// The number of the first bin.
    first: i32,
    counts: Vec<u32>,
}

/// One bin of a histogram: values with logarithms from `from` up to `to`.
pub(crate) struct Bin {
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) count: u32,
}

impl Histogram {
    pub(crate) fn of_logarithms(values: &[f64]) -> Histogram {
        // A logarithm that is off by its last bit stays on its side of an edge.
        let bin = |log: f64| (log * f64::from(BINS_PER_DECADE) + 1e-9).floor() as i32;
        let first = values.iter().map(|&log| bin(log)).min().unwrap_or(0);
        let last = values.iter().map(|&log| bin(log)).max().unwrap_or(0);
        let mut counts = vec![0; (last - first + 1) as usize];
        for &log in values {
            counts[(bin(log) - first) as usize] += 1;
        }
        Histogram { first, counts }
    }

    /// The bins that are not empty.
    pub(crate) fn bins(&self) -> impl Iterator<Item = Bin> + '_ {
        let edge = |bin: i32| f64::from(bin) / f64::from(BINS_PER_DECADE);
        self.counts
            .iter()
            .zip(self.first..)
            .filter(|&(&count, _)| count > 0)
            .map(move |(&count, bin)| Bin { from: edge(bin), to: edge(bin + 1), count })
    }

    /// The upper edge of the last bin.
    fn end(&self) -> f64 {
        self.bins().last().map_or(0.0, |bin| bin.to)
    }
}

/// A panel: its title and a histogram for each series.
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) series: [Histogram; 2],
}

/// Draws rows of panels. The panels of a row share their axes.
pub(crate) fn draw(
    title: &str,
    series: [&str; 2],
    rows: &[Vec<Panel>],
) -> Result<String, Box<dyn Error + Send + Sync>> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0).max(2) as u32;
    let size = (columns * PANEL.0, HEADER + rows.len() as u32 * PANEL.1);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE).map_err(own)?;
        let (header, body) = root.split_vertically(HEADER);
        draw_header(&header, title, series)?;
        let panels = body.split_evenly((rows.len().max(1), columns as usize));
        for (place, row) in rows.iter().enumerate() {
            let ends = row.iter().flat_map(|panel| panel.series.iter().map(Histogram::end));
            let end = ends.fold(1.0, f64::max);
            for (area, panel) in panels[place * columns as usize..].iter().zip(row) {
                draw_panel(area, panel, end)?;
            }
        }
        root.present().map_err(own)?;
    }
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw_header(
    area: &Area<'_>,
    title: &str,
    series: [&str; 2],
) -> Result<(), Box<dyn Error + Send + Sync>> {
    area.draw(&Text::new(title.to_owned(), (12, 10), (FONT, 18))).map_err(own)?;
    let mut x = 14;
    for (name, colour) in series.into_iter().zip(COLOURS) {
        area.draw(&Rectangle::new([(x, 38), (x + 12, 50)], colour.mix(0.6).filled()))
            .map_err(own)?;
        area.draw(&Text::new(name.to_owned(), (x + 18, 37), (FONT, 13))).map_err(own)?;
        x += 40 + 8 * name.len() as i32;
    }
    Ok(())
}

fn draw_panel(
    area: &Area<'_>,
    panel: &Panel,
    end: f64,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let most = panel.series.iter().flat_map(Histogram::bins).map(|bin| bin.count).max();
    let most = f64::from(most.unwrap_or(1).max(10)) * 1.2;
    // A bin with one problem must still be seen on a logarithmic axis.
    let least = 0.5;
    // Lengths are drawn by their logarithms: they may be too large for a float.
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, (FONT, 13))
        .margin(4)
        .x_label_area_size(18)
        .y_label_area_size(34)
        .build_cartesian_2d(0.0..end, (least..most).log_scale())
        .map_err(own)?;
    chart
        .configure_mesh()
        .disable_mesh()
        .x_labels(6)
        .y_labels(5)
        .label_style((FONT, 10))
        .x_label_formatter(&|exponent| power_of_ten(*exponent))
        .y_label_formatter(&|count| power_of_ten(count.log10()))
        .draw()
        .map_err(own)?;
    // Where a bin is narrower than a pixel, only an outline is seen.
    let narrow = end * f64::from(BINS_PER_DECADE) > f64::from(PANEL.0);
    for (histogram, colour) in panel.series.iter().zip(COLOURS) {
        let colour = colour.mix(0.6);
        let style = if narrow { colour.stroke_width(1) } else { colour.filled() };
        let bars = histogram.bins().map(|bin| {
            let corners = [(bin.from, least), (bin.to.min(end), f64::from(bin.count))];
            Rectangle::new(corners, style)
        });
        chart.draw_series(bars).map_err(own)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_into_their_bins() {
        let histogram = Histogram::of_logarithms(&[0.0, 0.05, 1.0, 1.0, 18.25]);
        let bins: Vec<Bin> = histogram.bins().collect();
        assert_eq!(bins.iter().map(|bin| bin.count).collect::<Vec<_>>(), [2, 2, 1]);
        assert_eq!((bins[0].from, bins[1].from, bins[2].from), (0.0, 1.0, 18.2));
    }

    #[test]
    fn rounding_does_not_move_a_value_to_the_bin_below() {
        let histogram = Histogram::of_logarithms(&[2.9999999999999996]);
        assert_eq!(histogram.bins().map(|bin| bin.from).collect::<Vec<_>>(), [3.0]);
    }

    #[test]
    fn a_figure_is_drawn_from_any_values() {
        let panel = |values: &[f64]| Panel {
            title: "mul-8 <&>".into(),
            series: [Histogram::of_logarithms(values), Histogram::of_logarithms(&[0.0])],
        };
        for rows in [vec![], vec![vec![panel(&[0.0])], vec![panel(&[3000.0]), panel(&[1.5])]]] {
            let svg = draw("title", ["one", "two"], &rows).unwrap();
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        }
    }
}
