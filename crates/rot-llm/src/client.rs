//! Requests to a server that completes texts as OpenAI's does: `POST BASE/completions`.
//!
//! What can pass is tried again, as OpenAI's own client does it: after a pause that doubles, or as long as
//! the server asks for. What cannot pass, such as a wrong key, stops all requests.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use foldhash::fast::FixedState;
use rot_core::shorten;
use serde_json::Value;
use ureq::Agent;
use ureq::http::HeaderMap;

use crate::completion::{Reply, Request, Usage};
use crate::spelling::Spelling;
use crate::traffic::Traffic;

/// How long after a pause another one can be.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// The longest pause that a server can ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(600);
/// The most bytes of a reply.
const LARGEST_REPLY: u64 = 16 << 20;

/// A server, and how to ask it.
#[derive(Clone)]
pub struct Server {
    /// Where it is, with the version: `http://localhost:8000/v1`.
    pub base_url: String,
    /// The name of the model.
    pub model: String,
    /// The key, if it wants one. It is sent and never shown.
    pub key: Option<String>,
    /// How the model writes tokens.
    pub spelling: Spelling,
    /// The most tokens of one completion, as the server counts them.
    pub max_tokens: usize,
    /// How many requests may be open at the same time.
    pub concurrency: usize,
    /// How often a request is tried again.
    pub retries: u32,
    /// The pause before a request is tried again; it doubles each time.
    pub pause: Duration,
    /// How long a request may take.
    pub timeout: Duration,
    /// The most requests in a minute, if there is such a limit.
    pub per_minute: Option<u32>,
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RequestError {
    /// The server does not take this request.
    #[error("the server refused with status {status}: {message}")]
    Refused {
        /// The status of HTTP.
        status: u16,
        /// What the server says.
        message: String,
    },
    /// It was tried as often as may be.
    #[error("no reply after {tries} tries, the last time because {last}")]
    GaveUp {
        /// How often.
        tries: u32,
        /// What went wrong last.
        last: String,
    },
    /// Nothing is asked any more, because of an earlier error.
    #[error("not asked, because before: {0}")]
    Stopped(String),
}

/// Asks a server.
pub(crate) struct Client {
    server: Server,
    url: String,
    agent: Agent,
    /// Whether the server has refused what only some can do.
    plain: AtomicBool,
    pace: Pace,
    pub(crate) traffic: Arc<Traffic>,
}

/// What came of one try.
enum Try {
    Reply(Reply, Usage),
    /// It may work later; the server may have said when.
    Again(String, Option<Duration>),
    Refused {
        status: u16,
        message: String,
    },
}

impl Client {
    pub(crate) fn new(server: Server) -> Client {
        let agent = Agent::config_builder()
            .timeout_global(Some(server.timeout))
            .http_status_as_error(false)
            .max_idle_connections_per_host(server.concurrency)
            .max_idle_connections(server.concurrency)
            .build()
            .into();
        let gap = server.per_minute.map_or(Duration::ZERO, |n| Duration::from_secs(60) / n.max(1));
        Client {
            url: format!("{}/completions", server.base_url.trim_end_matches('/')),
            agent,
            plain: AtomicBool::new(false),
            pace: Pace { gap, next: Mutex::new(Instant::now()) },
            traffic: Arc::default(),
            server,
        }
    }

    /// Has a prompt completed.
    pub(crate) fn complete(&self, prompt: &str) -> Result<Reply, RequestError> {
        let result = self.try_often(prompt);
        match &result {
            Ok(_) => self.traffic.reply(),
            // Wrong key, no such model: it is the same for all.
            Err(error @ RequestError::Refused { status: 401 | 403 | 404, .. }) => {
                self.traffic.stop(&error.to_string());
            }
            Err(RequestError::Refused { .. } | RequestError::Stopped(_)) => (),
            Err(error @ RequestError::GaveUp { .. }) => self.traffic.give_up(&error.to_string()),
        }
        result
    }

    fn try_often(&self, prompt: &str) -> Result<Reply, RequestError> {
        let mut tries = 0;
        loop {
            self.pace.wait();
            if let Some(why) = self.traffic.stopped() {
                return Err(RequestError::Stopped(why));
            }
            tries += 1;
            let (why, asked) = match self.try_both_ways(prompt) {
                Try::Reply(reply, usage) => {
                    self.traffic.count(|counts| {
                        counts.prompt_tokens += usage.prompt_tokens;
                        counts.completion_tokens += usage.completion_tokens;
                    });
                    return Ok(reply);
                }
                Try::Refused { status, message } => {
                    return Err(RequestError::Refused { status, message });
                }
                Try::Again(why, asked) => (why, asked),
            };
            if tries > self.server.retries {
                return Err(RequestError::GaveUp { tries, last: why });
            }
            self.traffic.count(|counts| counts.retries += 1);
            match asked {
                // It holds for all requests: the server has too many of them.
                Some(asked) => self.pace.hold(asked.min(LONGEST_ASKED)),
                None => std::thread::sleep(self.pause(prompt, tries)),
            }
        }
    }

    /// Tries with what only some servers can do, unless that has been refused before.
    fn try_both_ways(&self, prompt: &str) -> Try {
        let plain = self.plain.load(Ordering::Relaxed) || self.server.spelling.stops().is_empty();
        let first = self.try_once(prompt, !plain);
        if plain || !matches!(first, Try::Refused { status: 400 | 422, .. }) {
            return first;
        }
        // It may have been refused for something else.
        let second = self.try_once(prompt, false);
        if matches!(second, Try::Reply(..)) {
            self.plain.store(true, Ordering::Relaxed);
        }
        second
    }

    fn try_once(&self, prompt: &str, extras: bool) -> Try {
        let Server { model, spelling, max_tokens: most, key, .. } = &self.server;
        let request = Request { model, prompt, spelling: *spelling, most: *most, extras };
        let mut post = self.agent.post(&self.url).content_type("application/json");
        if let Some(key) = key {
            post = post.header("Authorization", format!("Bearer {key}"));
        }
        let mut response = match post.send(request.body().to_string()) {
            Ok(response) => response,
            Err(error) => return Try::Again(self.without_key(&error.to_string()), None),
        };
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(LARGEST_REPLY).read_to_string();
        match (status, body) {
            (200..300, Ok(body)) => match Reply::parse(&body) {
                Ok((reply, usage)) => Try::Reply(reply, usage),
                Err(why) => Try::Again(self.without_key(&why), None),
            },
            (200..300, Err(error)) => Try::Again(format!("the reply broke off: {error}"), None),
            (408 | 409 | 429 | 500.., body) => {
                let message = self.message(&body.unwrap_or_default());
                Try::Again(format!("of status {status}: {message}"), asked(response.headers()))
            }
            (status, body) => {
                let message = self.message(&body.unwrap_or_default());
                Try::Refused { status, message }
            }
        }
    }

    /// What a server says in an error.
    fn message(&self, body: &str) -> String {
        let json: Value = serde_json::from_str(body).unwrap_or_default();
        let places = [json.pointer("/error/message"), json.get("message"), json.get("error")];
        let message = places.into_iter().flatten().find_map(Value::as_str).unwrap_or(body).trim();
        let message = self.without_key(message);
        match message.is_empty() {
            true => "no reason given".to_owned(),
            false => message.chars().take(300).flat_map(char::escape_debug).collect(),
        }
    }

    /// Some servers show the key that they refuse.
    fn without_key(&self, text: &str) -> String {
        match &self.server.key {
            Some(key) if !key.is_empty() => text.replace(key.as_str(), "[key]"),
            _ => text.to_owned(),
        }
    }

    /// A pause that is not the same for all requests, so that they do not come back together.
    fn pause(&self, prompt: &str, tries: u32) -> Duration {
        let pause = self.server.pause * 2u32.saturating_pow(tries - 1).min(1 << 16);
        let part = FixedState::default().hash_one((prompt, tries)) % 256;
        pause.min(LONGEST_PAUSE).mul_f64(1.0 - part as f64 / 1024.0)
    }
}

/// The pause that a server asks for.
fn asked(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok();
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| *n >= 0.0 && *n < 1e9);
    if let Some(ms) = text("retry-after-ms").and_then(number) {
        return Some(Duration::from_secs_f64(ms / 1000.0));
    }
    let after = text("retry-after")?;
    match number(after) {
        Some(seconds) => Some(Duration::from_secs_f64(seconds)),
        None => httpdate::parse_http_date(after).ok()?.duration_since(SystemTime::now()).ok(),
    }
}

/// Requests one after another, with a gap between them.
struct Pace {
    gap: Duration,
    next: Mutex<Instant>,
}

impl Pace {
    /// Waits for the next turn.
    fn wait(&self) {
        let turn = self.next.lock().map_or_else(
            |_| Instant::now(),
            |mut next| {
                let turn = (*next).max(Instant::now());
                *next = turn + self.gap;
                turn
            },
        );
        std::thread::sleep(turn.saturating_duration_since(Instant::now()));
    }

    /// Nobody's turn comes before the pause is over.
    fn hold(&self, pause: Duration) {
        if let Ok(mut next) = self.next.lock() {
            *next = (*next).max(Instant::now() + pause);
        }
    }
}

/// Where a server is, without what may be secret in it.
pub(crate) fn shown_url(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = host.rsplit('@').next().unwrap_or(host);
            let path = path.split('?').next().unwrap_or_default();
            format!("{scheme}://{host}/{path}")
        }
        None => shorten(url),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_can_say_when() {
        let asked_with = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            asked(&headers)
        };
        assert_eq!(asked_with("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(asked_with("retry-after", "1.5"), Some(Duration::from_millis(1500)));
        let later = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(90));
        let pause = asked_with("retry-after", &later).unwrap();
        assert!(pause > Duration::from_secs(80) && pause <= Duration::from_secs(90));
        assert_eq!(asked_with("retry-after", "soon"), None);
        assert_eq!(asked_with("retry-after", "-1"), None);
        assert_eq!(asked_with("retry-after", "1e300"), None);
        assert_eq!(asked(&HeaderMap::new()), None);
    }

    #[test]
    fn no_secret_is_shown() {
        assert_eq!(shown_url("http://me:secret@host:8000/v1?key=abc"), "http://host:8000/v1");
        assert_eq!(shown_url("https://host"), "https://host/");
    }
}
