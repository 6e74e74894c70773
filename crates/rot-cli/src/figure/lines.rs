//! Lines over a common axis, on a logarithmic scale.

use std::error::Error;

use plotters::coord::combinators::IntoLogRange;
use plotters::prelude::*;

use super::{COLOURS, FONT, own, power_of_ten};

const SIZE: (u32, u32) = (640, 400);

/// A line and what it shows.
pub(crate) struct Line {
    pub(crate) name: &'static str,
    /// Positive values, by what they are drawn over.
    pub(crate) points: Vec<(f64, f64)>,
}

/// Draws lines.
pub(crate) fn draw(
    title: &str,
    over: &str,
    lines: &[Line],
) -> Result<String, Box<dyn Error + Send + Sync>> {
    let points = || lines.iter().flat_map(|line| line.points.iter());
    let least_of = |value: fn(&(f64, f64)) -> f64| points().map(value).fold(f64::MAX, f64::min);
    let most_of = |value: fn(&(f64, f64)) -> f64| points().map(value).fold(f64::MIN, f64::max);
    let across = least_of(|point| point.0)..most_of(|point| point.0);
    let up = (least_of(|point| point.1) / 2.0)..(most_of(|point| point.1) * 2.0);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(own)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(title, (FONT, 18))
            .margin(12)
            .x_label_area_size(36)
            .y_label_area_size(44)
            .build_cartesian_2d(across, up.log_scale())
            .map_err(own)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .x_desc(over)
            .label_style((FONT, 12))
            .x_label_formatter(&|value| format!("{value:.0}"))
            .y_label_formatter(&|value| power_of_ten(value.log10()))
            .draw()
            .map_err(own)?;
        for (line, colour) in lines.iter().zip(COLOURS) {
            let dots = line.points.iter().map(|&point| Circle::new(point, 3, colour.filled()));
            chart.draw_series(dots).map_err(own)?;
            let path = PathElement::new(line.points.clone(), colour);
            chart
                .draw_series(std::iter::once(path))
                .map_err(own)?
                .label(line.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .label_font((FONT, 12))
            .draw()
            .map_err(own)?;
        root.present().map_err(own)?;
    }
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_drawn_however_far_apart() {
        let line = |name, most: f64| Line { name, points: vec![(2.0, 1e-3), (32.0, most)] };
        let svg = draw("title", "size", &[line("one", 2.0), line("two", 1e18)]).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("1e15") && svg.contains("two"));
    }
}
