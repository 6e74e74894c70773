//! Histograms as SVG.
