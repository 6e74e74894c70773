//! Figures, as SVG.

use std::error::Error;

use plotters::style::RGBColor;

pub(crate) mod histograms;
pub(crate) mod lines;
pub(crate) mod panels;

const COLOURS: [RGBColor; 3] =
    [RGBColor(31, 119, 180), RGBColor(255, 127, 14), RGBColor(44, 160, 44)];
const FONT: &str = "sans-serif";

/// `1`, `10`, `100`, then `1e3` and so on; nothing between the powers.
fn power_of_ten(exponent: f64) -> String {
    let whole = exponent.round();
    if (exponent - whole).abs() > 1e-6 {
        return String::new();
    }
    match whole as i64 {
        0 => "1".into(),
        1 => "10".into(),
        2 => "100".into(),
        whole => format!("1e{whole}"),
    }
}

/// Drawing errors borrow from the drawing; what they say does not.
fn own(error: impl std::fmt::Display) -> Box<dyn Error + Send + Sync> {
    error.to_string().into()
}
