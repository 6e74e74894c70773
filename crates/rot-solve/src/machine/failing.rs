//! How the machine gives up: a context that cannot go on takes all with it that wait for it; a root that
//! has used up what it may leaves to others what they wait for as well.

use std::sync::Arc;
use std::time::Instant;

use rot_core::Token;

use super::{Outcome, Root, Solver, Waiter};
use crate::failure::{Cause, Failure, Rule};
use crate::generator::{ContextId, Generator};
use crate::limits::Limit;
use crate::memo::{Known, Memo, Tokens};
use crate::trace::{Event, RootId};

/// What a frame takes beside its question.
const FRAME: usize = 256;

impl<G: Generator> Solver<'_, G> {
    pub(super) fn malformed(&mut self, id: ContextId, rule: Rule, said: &[Token]) {
        let said = said[said.len().saturating_sub(32)..].to_vec();
        self.fail(id, &Cause::Malformed { rule, said }, None);
    }

    /// A waiter cannot have the answer to `question`, for a cause that is known.
    pub(super) fn fail_waiter(&mut self, waiter: Waiter, cause: &Cause, question: Tokens) {
        match waiter {
            Waiter::Context(id) => self.fail(id, cause, Some(question)),
            Waiter::Root(root) => {
                let path = self.known_path(question);
                self.end_root(root, Failure { cause: cause.clone(), path });
            }
        }
    }

    /// A context has no answer, nor has whatever waits for it. `below` is the question that it cannot
    /// get an answer to, if that is why.
    pub(super) fn fail(&mut self, id: ContextId, cause: &Cause, below: Option<Tokens>) {
        let lasts = matches!(
            cause,
            Cause::Cycle | Cause::Malformed { .. } | Cause::Limit(Limit::Context(_))
        );
        let rest = match (cause, &below) {
            (_, None) => Vec::new(),
            (Cause::Cycle, Some(question)) if !self.is_failed(question) => {
                vec![Arc::clone(question)]
            }
            (_, Some(question)) => self.known_path(Arc::clone(question)),
        };
        let mut roots = Vec::new();
        let mut above = vec![(id, below)];
        let mut frames = Vec::new();
        while let Some((id, below)) = above.pop() {
            let Some(frame) = self.contexts.get(&id) else { continue };
            for &waiter in &frame.waiters {
                match waiter {
                    Waiter::Root(root) => roots.push(root),
                    Waiter::Context(waiter) => {
                        above.push((waiter, Some(Arc::clone(&frame.question))));
                    }
                }
            }
            frames.push((id, below));
        }
        let failures: Vec<(RootId, Failure)> = roots
            .into_iter()
            .map(|root| {
                let mut path = self.path(root);
                path.extend(rest.iter().cloned());
                (root, Failure { cause: cause.clone(), path })
            })
            .collect();
        for (id, below) in frames {
            let Some(frame) = self.close(id) else { continue };
            let Some(memo) = &mut self.memo else { continue };
            for question in frame.replaced.into_iter().chain([frame.question]) {
                if lasts {
                    let (cause, below) = (cause.clone(), below.clone());
                    memo.insert(question, Known::Failed { cause, below });
                } else {
                    memo.abandon(&question);
                }
            }
        }
        for (root, failure) in failures {
            self.end_root(root, failure);
        }
    }

    fn is_failed(&self, question: &[Token]) -> bool {
        let known = self.memo.as_ref().and_then(|memo| memo.get(question));
        matches!(known, Some(Known::Failed { .. }))
    }

    /// A root gives up. What others wait for as well goes on for them.
    pub(super) fn fail_root(&mut self, root: RootId, cause: Cause) {
        let path = self.path(root);
        let mut waiter = Waiter::Root(root);
        let mut next = self.roots.get(&root).map(|root| root.waits);
        while let Some(id) = next {
            let Some(frame) = self.contexts.get_mut(&id) else { break };
            frame.waiters.retain(|&other| other != waiter);
            next = frame.waits;
            if frame.waiters.is_empty() {
                if let Some(frame) = self.close(id)
                    && let Some(memo) = &mut self.memo
                {
                    for question in frame.replaced.iter().chain([&frame.question]) {
                        memo.abandon(question);
                    }
                }
                waiter = Waiter::Context(id);
                continue;
            }
            self.inherit(id, root);
            break;
        }
        self.end_root(root, Failure { cause, path });
    }

    /// What a root paid for, from a context downwards, is for another one that waits for it.
    fn inherit(&mut self, id: ContextId, from: RootId) {
        let Some(heir) = self.root_above(id) else { return };
        let above = self.contexts.get(&id).and_then(|frame| frame.waiters.first()).copied();
        let mut depth = match above {
            Some(Waiter::Context(above)) => self.contexts.get(&above).map_or(0, |f| f.depth + 1),
            _ => 0,
        };
        let mut next = Some(id);
        while let Some(frame) = next.and_then(|id| self.contexts.get_mut(&id)) {
            if frame.owner == from {
                frame.owner = heir;
            }
            frame.depth = depth;
            depth += 1;
            next = frame.waits;
        }
    }

    fn end_root(&mut self, root: RootId, failure: Failure) {
        if let Some(Root { stats, .. }) = self.roots.remove(&root) {
            (self.observer)(&Event::Failed { root, failure: &failure });
            self.outcomes.push(Outcome { root, answer: Err(failure), stats });
        }
    }

    /// A root that waits for a context, through any number of others.
    fn root_above(&self, id: ContextId) -> Option<RootId> {
        let mut id = id;
        loop {
            match *self.contexts.get(&id)?.waiters.first()? {
                Waiter::Root(root) => return Some(root),
                Waiter::Context(above) => id = above,
            }
        }
    }

    /// The question of a root, and those of the contexts that it waits for, from the first to the last.
    fn path(&self, root: RootId) -> Vec<Tokens> {
        let Some(root) = self.roots.get(&root) else { return Vec::new() };
        let mut path = vec![Arc::clone(&root.question)];
        let mut next = self.contexts.get(&root.waits);
        while let Some(frame) = next {
            // The first context has the question of the root, unless a tail call has replaced it.
            if path.len() > 1 || frame.question != root.question {
                path.push(Arc::clone(&frame.question));
            }
            next = frame.waits.and_then(|id| self.contexts.get(&id));
        }
        path
    }

    /// The questions from one that is known to have no answer to the one that is the reason.
    fn known_path(&self, question: Tokens) -> Vec<Tokens> {
        let mut path = vec![question];
        while let Some(last) = path.last()
            && let Some(memo) = &self.memo
            && let Some(Known::Failed { below: Some(below), .. }) = memo.get(last)
            // A cycle comes back to where it began.
            && !path.contains(below)
        {
            path.push(Arc::clone(below));
        }
        path
    }

    /// Gives up what takes too long. The oldest roots come first.
    pub(super) fn check_time(&mut self) {
        let now = Instant::now();
        while let Some((&root, first)) = self.roots.first_key_value()
            && now.duration_since(first.since) > self.limits.time
        {
            self.fail_root(root, Cause::Limit(Limit::Time(self.limits.time)));
        }
    }

    /// Forgets answers when memory runs short, and gives roots up when that is not enough.
    pub(super) fn check_memory(&mut self) {
        let frames = |solver: &Self| solver.contexts.len() * FRAME;
        let memo = |solver: &Self| solver.memo.as_ref().map_or(0, Memo::bytes);
        if frames(self) + memo(self) <= self.memory_limit {
            return;
        }
        if let Some(memo) = &mut self.memo {
            memo.forget();
        }
        while frames(self) + memo(self) > self.memory_limit
            && let Some((&root, _)) = self.roots.last_key_value()
        {
            self.fail_root(root, Cause::Limit(Limit::Memory(self.memory_limit)));
        }
    }
}
