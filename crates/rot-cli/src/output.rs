//! Standard output, in colour where the terminal can.

use std::fmt::Display;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::time::SystemTime;

use anstyle::{AnsiColor, Style};
use rot_core::Token;

/// What tokens stand for in a context.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The question, which is given.
    Question,
    /// A sub-question that the model asks.
    SubQuestion,
    /// The answer that comes back.
    SubAnswer,
    /// The answer.
    Answer,
}

impl Role {
    fn style(self) -> Style {
        match self {
            Role::Question => Style::new().bold(),
            Role::SubQuestion => Style::new(),
            Role::SubAnswer => AnsiColor::Green.on_default(),
            Role::Answer => AnsiColor::Green.on_default().bold(),
        }
    }
}

/// The colours of the paper's illustration: GO, STOP and TAIL in cyan, THINK in magenta.
fn style(token: Token, role: Role) -> Style {
    match token {
        Token::THINK => AnsiColor::Magenta.on_default(),
        Token::PAD => Style::new().dimmed(),
        token if token.is_control() => AnsiColor::Cyan.on_default(),
        _ => role.style(),
    }
}

/// Buffered standard output.
pub(crate) struct Output {
    writer: BufWriter<StdoutLock<'static>>,
    colour: bool,
}

impl Output {
    pub(crate) fn new() -> Output {
        let choice = anstream::AutoStream::choice(&io::stdout());
        let colour = choice != anstream::ColorChoice::Never;
        Output { writer: BufWriter::with_capacity(1 << 16, io::stdout().lock()), colour }
    }

    pub(crate) fn tokens(&mut self, tokens: &[Token], role: Role) -> io::Result<()> {
        tokens.iter().try_for_each(|&token| self.styled(style(token, role), token.text()))
    }

    /// A token in a column of the given width.
    pub(crate) fn column(&mut self, token: Token, role: Role, width: usize) -> io::Result<()> {
        let text = if token == Token::PAD { "·" } else { token.text() };
        self.styled(style(token, role), text)?;
        write!(self.writer, "{:1$}", "", width.saturating_sub(text.chars().count()))
    }

    pub(crate) fn dimmed(&mut self, text: impl Display) -> io::Result<()> {
        self.styled(Style::new().dimmed(), text)
    }

    fn styled(&mut self, style: Style, text: impl Display) -> io::Result<()> {
        if self.colour && style != Style::new() {
            write!(self.writer, "{style}{text}{style:#}")
        } else {
            write!(self.writer, "{text}")
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Says something on standard error. Whether anybody listens does not matter.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// The day, as `2026-01-31`.
pub(crate) fn today() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    now.split('T').next().unwrap_or_default().to_owned()
}

/// A whole number with commas between groups of three digits, shortened where it is very long.
pub(crate) fn grouped(number: impl Display) -> String {
    let digits = number.to_string();
    if digits.len() > 30 {
        return format!("{}.{}e{}", &digits[..1], &digits[1..4], digits.len() - 1);
    }
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A number of things: `1 context`, `1,089 tokens`.
pub(crate) fn counted(number: impl Display, thing: &str) -> String {
    match grouped(number).as_str() {
        "1" => format!("1 {thing}"),
        number => format!("{number} {thing}s"),
    }
}

/// A table: the first column to the left, numbers to the right.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, &width))| match column {
                0 => format!("{cell:width$}"),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        cells.join("  ") + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_are_readable() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped("1".repeat(40)), "1.111e39");
        assert_eq!(counted(1, "context"), "1 context");
        assert_eq!(counted(1000, "token"), "1,000 tokens");
    }
}
