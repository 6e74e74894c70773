//! Accuracy against size, a panel for each problem, as in the paper.

use std::error::Error;

use plotters::prelude::*;

use super::{COLOURS, FONT, own};

/// The size of a panel.
const SIZE: (u32, u32) = (320, 262);
/// The line under the panels that says what is what: its height, and its length, which one panel has to be as wide as.
const LEGEND: u32 = 26;
const LEGEND_WIDTH: u32 = 480;

/// A problem.
pub(crate) struct Panel {
    pub(crate) title: &'static str,
    /// What its sizes count.
    pub(crate) unit: &'static str,
    /// The smallest and the largest.
    pub(crate) sizes: [f64; 2],
    pub(crate) curves: [Curve; 3],
    /// The smallest size at which CoT does not fit.
    pub(crate) cot_ends: Option<f64>,
}

/// Accuracies of a paradigm by size.
pub(crate) struct Curve {
    pub(crate) name: &'static str,
    pub(crate) paper: Vec<(f64, f64)>,
    pub(crate) ours: Vec<(f64, f64)>,
}

/// Draws panels side by side: the paper's curves thin, ours with dots, and where CoT ends.
pub(crate) fn draw(panels: &[Panel]) -> Result<String, Box<dyn Error + Send + Sync>> {
    let mut svg = String::new();
    {
        let size = ((SIZE.0 * panels.len() as u32).max(LEGEND_WIDTH), SIZE.1 + LEGEND);
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE).map_err(own)?;
        let (above, below) = root.split_vertically(SIZE.1);
        let areas = above.split_evenly((1, panels.len().max(1)));
        for (place, (area, panel)) in areas.iter().zip(panels).enumerate() {
            let margin = ((panel.sizes[1] - panel.sizes[0]) / 20.0).max(0.1);
            let across = panel.sizes[0] - margin..panel.sizes[1] + margin;
            let mut chart = ChartBuilder::on(area)
                .caption(panel.title, (FONT, 16))
                .margin(8)
                .x_label_area_size(40)
                .y_label_area_size(44)
                .build_cartesian_2d(across, -0.03..1.03)
                .map_err(own)?;
            chart
                .configure_mesh()
                .disable_mesh()
                .label_style((FONT, 11))
                .axis_desc_style((FONT, 12))
                .x_desc(panel.unit)
                .y_desc(if place == 0 { "accuracy" } else { "" })
                .x_label_formatter(&|size| format!("{size:.0}"))
                .y_label_formatter(&|accuracy| format!("{accuracy:.1}"))
                .draw()
                .map_err(own)?;
            if let Some(end) = panel.cot_ends {
                let line = PathElement::new([(end, -0.03), (end, 1.03)], BLACK.mix(0.3));
                chart.draw_series(std::iter::once(line)).map_err(own)?;
                let label = Text::new("CoT too long", (end, 0.5), (FONT, 10));
                chart.draw_series(std::iter::once(label)).map_err(own)?;
            }
            for (curve, colour) in panel.curves.iter().zip(COLOURS) {
                let paper = PathElement::new(curve.paper.clone(), colour.mix(0.45));
                chart.draw_series(std::iter::once(paper)).map_err(own)?;
                let dots = curve.ours.iter().map(|&point| Circle::new(point, 3, colour.filled()));
                chart.draw_series(dots).map_err(own)?;
                let ours = PathElement::new(curve.ours.clone(), colour.stroke_width(2));
                chart.draw_series(std::iter::once(ours)).map_err(own)?;
            }
        }
        let mut across = 44;
        for (curve, colour) in panels.first().iter().flat_map(|panel| &panel.curves).zip(COLOURS) {
            let line = [(across, 8), (across + 20, 8)];
            below.draw(&PathElement::new(line, colour.stroke_width(2))).map_err(own)?;
            below.draw(&Circle::new((across + 10, 8), 3, colour.filled())).map_err(own)?;
            below.draw(&Text::new(curve.name, (across + 26, 2), (FONT, 12))).map_err(own)?;
            across += 70;
        }
        if panels.iter().flat_map(|panel| &panel.curves).any(|curve| !curve.paper.is_empty()) {
            let note = "with dots: ours; thin: the paper's";
            below.draw(&Text::new(note, (across, 2), (FONT, 12))).map_err(own)?;
        }
        root.present().map_err(own)?;
    }
    Ok(svg)
}
