//! Evaluation by running: the model solves the problems of a test set on its own, with nobody feeding
//! it the ground truth.
//!
//! A run is *exact* if every context in it is the ground truth's, token by token. As the model is
//! deterministic and a context gives the same bits however it is read, a problem's run is exact if and
//! only if the problem is right in the teacher-forced evaluation. An answer can be right without that.

use std::collections::HashMap;

use rot_core::{Context, ContextId, ThoughtGraph, Token};
use rot_solve::{Event, Generator, Limits, Memo, Outcome, Solver, Stats, Tokens};

use super::{EvalError, TestSet, deep_right};

/// How to run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Whether a question is solved once for all that ask it.
    pub memo: bool,
    /// How many problems are solved at the same time.
    pub at_once: usize,
    /// What a problem may use.
    pub limits: Limits,
    /// About how many bytes the recursion may take.
    pub memory: usize,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions { memo: true, at_once: 1000, limits: Limits::default(), memory: 1 << 30 }
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct FreeRun {
    /// Whether the run of each problem is exact, in the order of the test set.
    pub exact: Vec<bool>,
    /// Whether the answer to each problem is right.
    pub answered: Vec<bool>,
    /// How clear the least clear decision below each problem was, of those in contexts of its ground
    /// truth: how much more likely the likeliest token was than the next, as a difference of logits.
    pub margins: Vec<f32>,
    /// How many problems ended without an answer.
    pub failed: usize,
    /// What all of them cost together; the deepest and the longest of all.
    pub stats: Stats,
    /// For the first problems with a wrong answer: the shortest context that went wrong below it.
    pub wrong: Vec<WrongRun>,
}

/// A context that went wrong in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct WrongRun {
    /// The problem whose answer is wrong.
    pub problem: Vec<Token>,
    /// What came instead of its answer: an answer, or why there is none.
    pub answer: Result<Tokens, String>,
    /// The context as it should be.
    pub context: Context,
    /// What was said in it.
    pub said: Vec<Token>,
    /// How clear the least clear decision in it was.
    pub margin: f32,
}

/// A context of the test set while it is being run.
struct Said {
    id: ContextId,
    tokens: Vec<Token>,
    margin: f32,
}

/// What is seen of a run.
struct Watch<'a> {
    graph: &'a ThoughtGraph,
    open: HashMap<u64, Said>,
    /// Contexts of the test set that were run and right.
    right: Vec<bool>,
    /// The least clear decision in each.
    margins: Vec<f32>,
    /// Those that were run and wrong.
    wrong: HashMap<ContextId, (Vec<Token>, f32)>,
}

impl Watch<'_> {
    fn see(&mut self, event: &Event<'_>) {
        match *event {
            Event::Open { context, question, .. } => {
                // What is not in the graph is asked below something that is wrong already.
                if let Some(id) = self.graph.find(question) {
                    let said = Said { id, tokens: Vec::new(), margin: f32::INFINITY };
                    self.open.insert(context, said);
                }
            }
            Event::Say { context, tokens, margin } => {
                let Some(said) = self.open.get_mut(&context) else { return };
                said.tokens.extend_from_slice(tokens);
                said.margin = said.margin.min(margin);
                // After a THINK it goes on, but not after its last sub-question.
                if tokens.last() != Some(&Token::THINK) || tokens.contains(&Token::TAIL) {
                    self.close(context);
                }
            }
            _ => (),
        }
    }

    /// A context has said all it will say.
    fn close(&mut self, context: u64) {
        let Some(Said { id, tokens, margin }) = self.open.remove(&context) else { return };
        let least = &mut self.margins[id.index()];
        *least = least.min(margin);
        if tokens == expected(self.graph, id) {
            self.right[id.index()] = true;
        } else {
            self.wrong.insert(id, (tokens, margin));
        }
    }

    /// Whatever is still open did not come to its end.
    fn finish(&mut self) {
        let open: Vec<u64> = self.open.keys().copied().collect();
        open.into_iter().for_each(|context| self.close(context));
    }

    /// The shortest wrong context below a problem.
    fn shortest_wrong(&self, problem: ContextId) -> Option<ContextId> {
        let (mut seen, mut open) = (vec![false; self.graph.len()], vec![problem]);
        let mut shortest: Option<ContextId> = None;
        let length = |id: ContextId| self.graph.rot_lengths(id).context;
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            open.extend(self.graph.thoughts(id).map(|thought| thought.context));
            let is_wrong = self.wrong.contains_key(&id);
            if is_wrong && shortest.is_none_or(|other| length(id) < length(other)) {
                shortest = Some(id);
            }
        }
        shortest
    }
}

/// What the ground truth says in a context.
fn expected(graph: &ThoughtGraph, id: ContextId) -> Vec<Token> {
    let mut context = Context::default();
    graph.write_rot(id, &mut context);
    context.y.into_iter().filter(|&token| token != Token::PAD).collect()
}

/// Has a generator solve a test set on its own. For the first `most_wrong` wrong answers, what went wrong
/// is kept. `solved` is called with their number whenever problems have ended.
pub fn free_run(
    generator: impl Generator,
    test: &TestSet,
    options: &RunOptions,
    most_wrong: usize,
    mut solved: impl FnMut(usize),
) -> Result<FreeRun, EvalError> {
    let graph = &test.graph;
    let memo = options.memo.then(Memo::default);
    let mut watch = Watch {
        graph,
        open: HashMap::new(),
        right: vec![false; graph.len()],
        margins: vec![f32::INFINITY; graph.len()],
        wrong: HashMap::new(),
    };
    let mut outcomes: Vec<Outcome> = Vec::with_capacity(test.problems.len());
    {
        let mut solver = Solver::new(generator, options.limits.clone(), memo, options.memory);
        solver.observe(|event| watch.see(event));
        let mut questions = test.problems.iter().map(|&id| graph.question(id));
        loop {
            while solver.pending() < options.at_once
                && let Some(question) = questions.next()
            {
                solver.ask(question).map_err(|unknown| EvalError::UnknownToken {
                    token: unknown.0,
                    question: rot_core::Excerpt(question).to_string(),
                })?;
            }
            let ended = solver.step();
            if !ended.is_empty() {
                solved(ended.len());
            }
            outcomes.extend(ended);
            if outcomes.len() == test.problems.len() {
                break;
            }
        }
    }
    watch.finish();
    outcomes.sort_by_key(|outcome| outcome.root);

    let exact = deep_right(graph, &watch.right);
    let mut margins = std::mem::take(&mut watch.margins);
    for &id in graph.solved_order() {
        let below = graph.thoughts(id).map(|thought| margins[thought.context.index()]);
        margins[id.index()] = below.fold(margins[id.index()], f32::min);
    }
    let mut run = FreeRun {
        exact: test.problems.iter().map(|id| exact[id.index()]).collect(),
        margins: test.problems.iter().map(|id| margins[id.index()]).collect(),
        answered: Vec::with_capacity(outcomes.len()),
        failed: outcomes.iter().filter(|outcome| outcome.answer.is_err()).count(),
        stats: Stats::default(),
        wrong: Vec::new(),
    };
    for (&problem, Outcome { answer, stats, .. }) in test.problems.iter().zip(outcomes) {
        run.stats.contexts += stats.contexts;
        run.stats.generated += stats.generated;
        run.stats.memo_hits += stats.memo_hits;
        run.stats.deepest = run.stats.deepest.max(stats.deepest);
        run.stats.longest = run.stats.longest.max(stats.longest);
        let right = answer.as_ref().is_ok_and(|answer| **answer == *graph.answer(problem));
        run.answered.push(right);
        if !right
            && run.wrong.len() < most_wrong
            && let Some(id) = watch.shortest_wrong(problem)
        {
            let mut context = Context::default();
            graph.write_rot(id, &mut context);
            let (said, margin) = watch.wrong[&id].clone();
            run.wrong.push(WrongRun {
                problem: graph.question(problem).to_vec(),
                answer: answer.map_err(|failure| failure.to_string()),
                context,
                said,
                margin,
            });
        }
    }
    Ok(run)
}
