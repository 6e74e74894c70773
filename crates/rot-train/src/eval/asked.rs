//! Evaluation of whatever continues contexts, by asking: one request for every THINK or STOP, after the right
//! tokens before it, as the paper evaluated GPT-3.
//!
//! It finds the same contexts right as reading them does, where a model can be read.

use std::collections::{BTreeMap, HashMap};

use rot_core::{Context, ContextId, Paradigm, Token};
use rot_solve::{ContextId as RequestId, Generator, Span};

use super::forced::Tally;
use super::{EvalError, Evaluation, Failure, Progress, TestSet, WrongContext};

/// A context of which something is still to be said.
struct Open {
    id: ContextId,
    context: Context,
    produced: Vec<Token>,
    /// How many requests have no reply yet.
    left: usize,
}

/// Evaluates a generator on a test set, in the paradigm RoT or WT. Up to `at_once` requests are open at
/// the same time. The first `most_wrong` wrong contexts are kept in detail; `progress` hears of tokens that
/// have been said.
pub fn evaluate_by_asking(
    generator: &mut impl Generator,
    test: &TestSet,
    paradigm: Paradigm,
    at_once: usize,
    most_wrong: usize,
    mut progress: impl FnMut(Progress),
) -> Result<Evaluation, EvalError> {
    let ids = test.tested(paradigm);
    let (mut tally, mut tokens, mut longest, mut of) = (Tally::default(), 0, 0, 0);
    let mut context = Context::default();
    for &id in &ids {
        write(test, paradigm, id, &mut context);
        of += context.examples().map(|example| example.completion.len()).sum::<usize>();
        tokens += context.len();
        longest = longest.max(context.len());
        check(generator, &context, longest, test.graph.class(id), paradigm)?;
    }
    let mut open: HashMap<usize, Open> = HashMap::new();
    // For each request its context, and where in it something is to be said.
    let mut requests: HashMap<RequestId, (usize, usize)> = HashMap::new();
    let mut wrong: BTreeMap<usize, WrongContext> = BTreeMap::new();
    let (mut places, mut asked, mut ended) = (ids.iter().enumerate(), 0, Vec::new());
    loop {
        while requests.len() < at_once.max(1)
            && let Some((place, &id)) = places.next()
        {
            let mut context = Context::default();
            write(test, paradigm, id, &mut context);
            let (mut left, limit) = (0, generator.limit());
            for example in context.examples() {
                generator.submit(RequestId(asked), example.prompt, limit - example.prompt.len());
                requests.insert(RequestId(asked), (place, example.prompt.len()));
                asked += 1;
                left += 1;
            }
            let produced = vec![Token::PAD; context.len()];
            open.insert(place, Open { id, context, produced, left });
        }
        if requests.is_empty() {
            break;
        }
        generator.poll(&mut ended);
        for Span { id: request, tokens, .. } in ended.drain(..) {
            generator.release(request);
            let Some((place, at)) = requests.remove(&request) else { continue };
            let Some(context) = open.get_mut(&place) else { continue };
            let whole = context.hear(at, &tokens);
            progress(Progress { tokens: whole, of });
            if context.left == 0
                && let Some(done) = open.remove(&place)
            {
                done.count(test.graph.class(done.id), place, &mut tally, &mut wrong);
                while wrong.len() > most_wrong {
                    wrong.pop_last();
                }
            }
        }
    }
    tally.details = wrong.into_values().collect();
    Ok(Evaluation::new(test, paradigm, tally, tokens, longest))
}

/// Writes a context in place of another.
fn write(test: &TestSet, paradigm: Paradigm, id: ContextId, context: &mut Context) {
    context.clear();
    match paradigm {
        Paradigm::Rot => test.graph.write_rot(id, context),
        Paradigm::Wt | Paradigm::Cot => test.graph.write_wt(id, context),
    }
}

/// Whether a context can be asked about at all.
fn check(
    generator: &impl Generator,
    context: &Context,
    longest: usize,
    class: &'static str,
    paradigm: Paradigm,
) -> Result<(), EvalError> {
    let question = || {
        let end = context.y.iter().position(|&token| token != Token::PAD).unwrap_or(context.len());
        rot_core::Excerpt(&context.x[..end]).to_string()
    };
    if let Some(token) = generator.unknown(&context.x) {
        return Err(EvalError::UnknownToken { token, question: question() });
    }
    if longest > generator.limit() {
        return Err(EvalError::TooLong {
            paradigm: paradigm.name(),
            class,
            question: question(),
            tokens: longest.into(),
            limit: generator.limit(),
        });
    }
    Ok(())
}

impl Open {
    /// Something was said at a place. Returns how many tokens were to be said.
    fn hear(&mut self, at: usize, said: &[Token]) -> usize {
        let ends = |token: &Token| matches!(*token, Token::THINK | Token::STOP);
        let expected = self.context.y[at..].iter().position(ends).map_or(0, |end| end + 1);
        let places = self.produced[at..at + expected].iter_mut();
        places.zip(said).for_each(|(place, &token)| *place = token);
        self.left -= 1;
        expected
    }

    /// Counts a context about which everything is said.
    fn count(
        &self,
        class: &'static str,
        place: usize,
        tally: &mut Tally,
        wrong: &mut BTreeMap<usize, WrongContext>,
    ) {
        let Open { id, context, produced, .. } = self;
        let said = context.y.iter().zip(produced).filter(|(y, _)| **y != Token::PAD);
        for (y, produced) in said {
            tally.score.supervised += 1;
            tally.score.right += usize::from(y == produced);
        }
        if context.y == *produced {
            return;
        }
        tally.wrong.push(*id);
        let failure = Failure::of(context, produced).unwrap_or(Failure::Other);
        let kinds = Failure::ALL.iter().zip(&mut tally.failures);
        kinds.for_each(|(&kind, count)| *count += usize::from(kind == failure));
        let (context, produced) = (context.clone(), produced.clone());
        wrong.insert(place, WrongContext { class, context, produced, failure });
    }
}
