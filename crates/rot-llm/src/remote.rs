//! A server of completions as a generator.
//!
//! A context is sent as a text, and what comes back is cut, checked and read on this side. Requests are
//! made by threads of their own, as many as may be open at the same time. Servers that work on many
//! requests together do not always say the same to the same prompt; so each prompt is asked once, and its
//! reply kept in a journal.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use foldhash::fast::FixedState;
use rot_core::Token;
use rot_solve::{ContextId, End, Generator, Span};

use crate::client::{Client, Server, shown_url};
use crate::completion::Reply;
use crate::few_shot::FewShot;
use crate::journal::{Header, Journal, JournalError};
use crate::traffic::Traffic;

/// How long to wait for a reply before whoever asks can look at the clock.
const POLL: Duration = Duration::from_millis(100);

/// A model on a server.
pub struct Remote {
    server: Server,
    few_shot: FewShot,
    header: Header,
    journal: Arc<Mutex<Journal>>,
    /// The most tokens of a context.
    limit: usize,
    contexts: HashMap<ContextId, Open, FixedState>,
    /// Which request is meant: a context can be released and its number used again.
    requests: u64,
    /// Contexts whose prompt was asked before.
    known: VecDeque<(ContextId, Reply)>,
    jobs: Sender<Job>,
    replies: Receiver<Answered>,
    waiting: usize,
    traffic: Arc<Traffic>,
}

/// An open context.
struct Open {
    tokens: Vec<Token>,
    request: u64,
    most: usize,
}

/// A prompt to be sent after its examples.
struct Job {
    id: ContextId,
    request: u64,
    before: String,
    prompt: String,
}

struct Answered {
    id: ContextId,
    request: u64,
    reply: Result<Reply, String>,
}

impl Remote {
    /// A model on a server, for contexts of up to `limit` tokens, with so many worked contexts in front of
    /// each. Replies are kept in a journal if there is one.
    pub fn new(
        server: Server,
        few_shot: usize,
        limit: usize,
        journal: Option<&Path>,
    ) -> Result<Remote, JournalError> {
        let Server { spelling, max_tokens, .. } = server;
        let header = Header::new(&server.model, spelling.name(), few_shot, max_tokens);
        let journal = match journal {
            Some(path) => Journal::open(path, &header)?,
            None => Journal::in_memory(),
        };
        let journal = Arc::new(Mutex::new(journal));
        let client = Arc::new(Client::new(server.clone()));
        let traffic = Arc::clone(&client.traffic);
        let (jobs, queue) = channel::<Job>();
        let (answers, replies) = channel();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..server.concurrency.max(1) {
            let (client, queue, answers) =
                (Arc::clone(&client), Arc::clone(&queue), answers.clone());
            let journal = Arc::clone(&journal);
            std::thread::spawn(move || work(&client, &queue, &journal, &answers));
        }
        Ok(Remote {
            few_shot: FewShot::new(few_shot, spelling),
            server,
            header,
            journal,
            limit,
            contexts: HashMap::default(),
            requests: 0,
            known: VecDeque::new(),
            jobs,
            replies,
            waiting: 0,
            traffic,
        })
    }

    /// What is asked of the server, while it is.
    pub fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(&self.traffic)
    }

    /// Replies that the journal has.
    pub fn journalled(&self) -> usize {
        self.journal.lock().map_or(0, |journal| journal.len())
    }

    /// How many contexts there is use in having open at once.
    pub fn at_once(&self) -> usize {
        2 * self.server.concurrency
    }

    /// How many tokens of worked contexts stand in front of a context with that question.
    pub fn tokens_before(&mut self, question: &[Token]) -> usize {
        self.few_shot.tokens_before(question)
    }

    /// A hash of what decides its answers, as far as that can be known from here.
    pub fn fingerprint(&self) -> [u8; 32] {
        *blake3::hash(format!("{:?}", self.header).as_bytes()).as_bytes()
    }

    fn hear(&mut self, answered: Answered, ended: &mut Vec<Span>) {
        let Answered { id, request, reply } = answered;
        self.waiting -= 1;
        // Nobody may wait for it any more.
        if self.contexts.get(&id).is_some_and(|open| open.request == request) {
            match reply {
                Ok(reply) => self.say(id, &reply, ended),
                Err(why) => self.fail(id, &why, ended),
            }
        }
    }

    /// What a reply makes a context say.
    fn say(&mut self, id: ContextId, reply: &Reply, ended: &mut Vec<Span>) {
        let Some(open) = self.contexts.get_mut(&id) else { return };
        let span = |tokens, end| Span { id, tokens, margin: f32::INFINITY, end };
        match reply.read(self.server.spelling) {
            Err(why) => ended.push(span(Vec::new(), End::Failed(why))),
            Ok(said) => {
                self.traffic.count(|counts| counts.inferred_ends += u64::from(said.inferred));
                let mut tokens = said.tokens;
                if tokens.len() > open.most {
                    tokens.truncate(open.most);
                    ended.push(span(tokens, End::Full));
                    return;
                }
                open.tokens.extend_from_slice(&tokens[..tokens.len() - 1]);
                ended.push(span(tokens, End::Whole));
            }
        }
    }

    fn fail(&mut self, id: ContextId, why: &str, ended: &mut Vec<Span>) {
        self.traffic.lose(why);
        let why = format!("{}: {why}", shown_url(&self.server.base_url));
        let end = End::Failed(why);
        ended.push(Span { id, tokens: Vec::new(), margin: f32::INFINITY, end });
    }
}

/// Sends prompts until there are no more, and keeps what comes before anybody hears of it.
fn work(
    client: &Client,
    queue: &Mutex<Receiver<Job>>,
    journal: &Mutex<Journal>,
    answers: &Sender<Answered>,
) {
    loop {
        let job = queue.lock().map(|queue| queue.recv());
        let Ok(Ok(Job { id, request, before, prompt })) = job else { return };
        let reply = client.complete(&(before + &prompt)).map_err(|error| error.to_string());
        let reply = reply.and_then(|reply| {
            let mut journal = journal.lock().map_err(|_| "the journal is lost".to_owned())?;
            journal.insert(&prompt, reply.clone()).map_err(|error| error.to_string())?;
            Ok(reply)
        });
        if answers.send(Answered { id, request, reply }).is_err() {
            return;
        }
    }
}

impl Generator for Remote {
    fn limit(&self) -> usize {
        self.limit
    }

    fn unknown(&self, _: &[Token]) -> Option<Token> {
        None
    }

    fn submit(&mut self, id: ContextId, append: &[Token], most: usize) {
        let request = self.requests;
        self.requests += 1;
        let new = || Open { tokens: Vec::new(), request, most };
        let open = self.contexts.entry(id).or_insert_with(new);
        open.tokens.extend_from_slice(append);
        (open.request, open.most) = (request, most);
        let mut prompt = String::new();
        self.server.spelling.write(&open.tokens, &mut prompt);
        let known = self.journal.lock().ok().and_then(|journal| journal.get(&prompt).cloned());
        if let Some(reply) = known {
            self.traffic.count(|counts| counts.known += 1);
            self.known.push_back((id, reply));
            return;
        }
        let end = open.tokens.iter().position(|&token| token == Token::EQUALS);
        let question = &open.tokens[..end.map_or(open.tokens.len(), |end| end + 1)];
        let before = self.few_shot.before(question);
        self.waiting += 1;
        // The threads are there for as long as this is.
        let _ = self.jobs.send(Job { id, request, before, prompt });
    }

    fn poll(&mut self, ended: &mut Vec<Span>) {
        while let Some((id, reply)) = self.known.pop_front() {
            self.say(id, &reply, ended);
        }
        let mut wait = if ended.is_empty() && self.waiting > 0 { POLL } else { Duration::ZERO };
        while let Ok(answered) = self.replies.recv_timeout(wait) {
            self.hear(answered, ended);
            wait = Duration::ZERO;
        }
    }

    fn release(&mut self, id: ContextId) {
        self.contexts.remove(&id);
        self.known.retain(|&(known, _)| known != id);
    }
}
