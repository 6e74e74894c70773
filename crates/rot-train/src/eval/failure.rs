//! What kind of mistake a model made, after the paper's failure analysis (appendix "Failure Case
//! Analysis"). [`Failure`] defines the kinds.

use std::ops::Range;

use rot_core::{Context, Token};

/// The kind of a mistake.
///
/// Predictions are teacher-forced: at every place the model has read the right tokens before it. So
/// what it produced is compared with what was expected place by place, and the *first* wrong place
/// decides. Let `e` be expected there and `p` produced. Its *span* is what the model generates in one
/// piece around it: places where it is not asked end a span, so do `<STOP>` and `<THINK>`, and `<GO>`
/// and `<TAIL>` begin a new one. Where two kinds fit, the first counts, as in the paper's examples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// A token is repeated a wrong number of times.
    ///
    /// Too often: what is expected in the span before the place ends in a token at least twice, `e`
    /// is another token, and `p` is that token once more (`0 0 0` for `0 0 +`). Or not often enough:
    /// `e` is the token before it in the span, and `p` is what follows the whole run (`6 1` for
    /// `6 6 1`).
    RepeatCount,
    /// Digits are counted wrongly.
    ///
    /// In the output: the token before in the span is a digit, and either `e` or `p` is a digit, but
    /// not both, so that the number has too few or too many digits. Or in the question of a
    /// comparison, if the place is right after it: either `e` or `p` is `<GO>`, and the other is
    /// `<LT>`, `<GT>` or `<EQ>`, as a comparison goes on to the digits only where both numbers have
    /// equally many.
    DigitCount,
    /// Anything else, such as a wrong digit.
    Other,
}

impl Failure {
    /// All kinds, in the order in which they are tried.
    pub const ALL: [Failure; 3] = [Failure::RepeatCount, Failure::DigitCount, Failure::Other];

    /// The name in words: `repeat count`, `digit count` or `other`.
    pub fn name(self) -> &'static str {
        match self {
            Failure::RepeatCount => "repeat count",
            Failure::DigitCount => "digit count",
            Failure::Other => "other",
        }
    }

    /// The kind of the first mistake in a context, if there is one. `produced` is as long as the
    /// context and is looked at where the context has a target.
    pub fn of(context: &Context, produced: &[Token]) -> Option<Failure> {
        let at = first_wrong(context, produced)?;
        let span = span(&context.y, at);
        let (before, from) = (&context.y[span.start..at], &context.y[at..span.end]);
        let (expected, produced) = (context.y[at], produced[at]);
        Some(if is_repeat_count(before, from, produced) {
            Failure::RepeatCount
        } else if is_number_length(before, expected, produced)
            || is_comparison_of_lengths(&context.x[..at], expected, produced)
        {
            Failure::DigitCount
        } else {
            Failure::Other
        })
    }
}

fn first_wrong(context: &Context, produced: &[Token]) -> Option<usize> {
    let mut pairs = context.y.iter().zip(produced);
    pairs.position(|(&expected, &produced)| expected != Token::PAD && expected != produced)
}

/// The part of the targets around a place that the model generates in one piece.
fn span(y: &[Token], at: usize) -> Range<usize> {
    let opens = |token: Token| token == Token::GO || token == Token::TAIL;
    let closes =
        |token: Token| token == Token::PAD || token == Token::STOP || token == Token::THINK;
    let start = (1..=at).rev().find(|&start| opens(y[start]) || closes(y[start - 1])).unwrap_or(0);
    let end =
        (at + 1..y.len()).find(|&end| opens(y[end]) || y[end] == Token::PAD || closes(y[end - 1]));
    start..end.unwrap_or(y.len())
}

/// `before` and `from` are the expected tokens of the span, cut at the first wrong place.
fn is_repeat_count(before: &[Token], from: &[Token], produced: Token) -> bool {
    let Some(&last) = before.last() else { return false };
    if from.first() == Some(&last) {
        let after_run = from.iter().find(|&&token| token != last);
        return after_run == Some(&produced);
    }
    produced == last && before.len() >= 2 && before[before.len() - 2] == last
}

fn is_number_length(before: &[Token], expected: Token, produced: Token) -> bool {
    before.last().is_some_and(|last| last.is_digit()) && expected.is_digit() != produced.is_digit()
}

/// `before` is everything in the context before the first wrong place.
fn is_comparison_of_lengths(before: &[Token], expected: Token, produced: Token) -> bool {
    let order = |token: Token| [Token::LT, Token::GT, Token::EQ].contains(&token);
    let one_opens =
        (expected == Token::GO && order(produced)) || (order(expected) && produced == Token::GO);
    let mut question = before.iter().rev().take_while(|token| !token.is_control());
    one_opens && before.last() == Some(&Token::EQUALS) && question.any(|&t| t == Token::VS)
}

#[cfg(test)]
mod tests {
    use rot_core::parse_tokens;

    use super::*;

    /// A context from what is given and what is generated in turn; a THINK at the end of a generated
    /// part stands where the sub-answer begins. Produced are the same tokens with other ones at the
    /// end of the prompt.
    fn kind(given: &[&str], expected: &str, produced: &str) -> Option<Failure> {
        let mut context = Context::default();
        for (place, text) in given.iter().enumerate() {
            let tokens = parse_tokens(text).unwrap();
            match tokens.split_last() {
                Some((&Token::THINK, question)) => context.push_generated(question),
                _ if place == 0 => context.push_given(&tokens),
                _ => context.push_sub_answer(&tokens),
            }
        }
        let (expected, produced) =
            (parse_tokens(expected).unwrap(), parse_tokens(produced).unwrap());
        assert_eq!(expected.len(), produced.len(), "teacher-forced");
        let mut said = context.y.clone();
        said.extend(produced);
        context.push_generated(&expected);
        Failure::of(&context, &said)
    }

    #[test]
    fn no_mistake_is_no_failure() {
        assert_eq!(kind(&["<GO>1+2="], "3<STOP>", "3<STOP>"), None);
    }

    /// The paper's examples, teacher-forced: after the wrong token the right one is read.
    #[test]
    fn a_wrong_number_of_repeats_is_seen_as_in_the_paper() {
        let given = ["<GO>16434<VS>10116=", "<GO>1<VS>1=<THINK>", "<EQ><STOP>"];
        let expected = "<GO>6434<VS>116=<THINK>";
        assert_eq!(kind(&given, expected, "<GO>6434<VS>111=<THINK>"), Some(Failure::RepeatCount));
        let given = ["<GO>1054620*15="];
        let expected = "<TAIL>10546200+5273100=<THINK>";
        let produced = "<TAIL>1054620005273100=<THINK>";
        assert_eq!(kind(&given, expected, produced), Some(Failure::RepeatCount));
        let expected = "<TAIL>10+3366614=<THINK>";
        assert_eq!(kind(&given, expected, "<TAIL>10+3366664=<THINK>"), Some(Failure::RepeatCount));
    }

    #[test]
    fn too_few_repeats_leave_the_run_early() {
        let kind = |expected, produced| kind(&["<GO>5000*2="], expected, produced);
        assert_eq!(kind("10000<STOP>", "100<STOP>0<STOP>"), Some(Failure::RepeatCount));
        assert_eq!(kind("16661<STOP>", "16611<STOP>"), Some(Failure::RepeatCount));
        // Neither the run nor what follows it.
        assert_eq!(kind("16661<STOP>", "16671<STOP>"), Some(Failure::Other));
    }

    #[test]
    fn one_token_is_no_run() {
        let kind = |expected, produced| kind(&["<GO>5*2="], expected, produced);
        assert_eq!(kind("12<STOP>", "11<STOP>"), Some(Failure::Other));
        assert_eq!(kind("112<STOP>", "111<STOP>"), Some(Failure::RepeatCount));
        // A run does not reach into the given tokens, nor into the span before.
        assert_eq!(kind("5<STOP>", "=<STOP>"), Some(Failure::Other));
    }

    #[test]
    fn a_number_of_another_length_is_a_digit_count() {
        let kind = |expected, produced| kind(&["<GO>51*2="], expected, produced);
        assert_eq!(kind("102<STOP>", "10<STOP><STOP>"), Some(Failure::DigitCount));
        assert_eq!(kind("102<STOP>", "1024"), Some(Failure::DigitCount));
        assert_eq!(kind("<GO>1*2=<THINK>", "<GO>172=<THINK>"), Some(Failure::DigitCount));
        // No number had begun.
        assert_eq!(kind("102<STOP>", "<GO>02<STOP>"), Some(Failure::Other));
        assert_eq!(kind("102<STOP>", "107<STOP>"), Some(Failure::Other));
    }

    #[test]
    fn a_comparison_that_counts_digits_wrongly_is_seen_as_in_the_paper() {
        let given = ["<GO>1069034<VS>891506="];
        assert_eq!(kind(&given, "<GT><STOP>", "<GO><STOP>"), Some(Failure::DigitCount));
        assert_eq!(kind(&given, "<GT><STOP>", "<LT><STOP>"), Some(Failure::Other));
        let given = ["<GO>12<VS>31="];
        let expected = "<GO>1<VS>3=<THINK>";
        assert_eq!(kind(&given, expected, "<LT>1<VS>3=<THINK>"), Some(Failure::DigitCount));
        // Not a comparison.
        assert_eq!(
            kind(&["<GO>12+31="], "<GO>2+1=<THINK>", "<LT>2+1=<THINK>"),
            Some(Failure::Other)
        );
    }

    #[test]
    fn the_first_mistake_decides() {
        let kind = |expected, produced| kind(&["<GO>51*2="], expected, produced);
        assert_eq!(kind("102<STOP>", "2024"), Some(Failure::Other));
        assert_eq!(kind("1002<STOP>", "1000<STOP>"), Some(Failure::RepeatCount));
    }

    #[test]
    fn spans_are_cut_where_thoughts_begin_and_end() {
        let y = parse_tokens("<PAD><PAD><GO>1+2=3<STOP>15<STOP>").unwrap();
        assert_eq!(span(&y, 4), 2..9);
        assert_eq!(span(&y, 8), 2..9);
        assert_eq!(span(&y, 9), 9..12);
        let y = parse_tokens("<PAD><GO>1=<THINK><PAD><PAD><GO>2=<THINK><GO>3=<THINK>7").unwrap();
        assert_eq!(span(&y, 1), 1..5);
        assert_eq!(span(&y, 9), 7..11);
        assert_eq!(span(&y, 11), 11..15);
        assert_eq!(span(&y, 15), 15..16);
    }
}
