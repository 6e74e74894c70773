//! A server of completions that knows the ground truth and fails on purpose.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rot_core::{Token, parse_tokens};
use rot_solve::{ContextId, Generator, Oracle, Span};
use serde_json::{Value, json};

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// 429, with a pause asked for.
    TooMany,
    /// 500.
    Broken,
    /// The connection ends without a word.
    Dropped,
    /// It ends in the middle of the reply.
    Truncated,
    /// The reply is no JSON.
    Nonsense,
    /// The reply comes too late.
    Slow,
    /// 400, for good.
    Refused,
    /// 401, for good, with the key in the message.
    Unauthorised,
    /// A word that is no token.
    WrongWord,
}

/// How a server says what has ended a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// It is in the text, and the model goes on after it.
    Untrimmed,
    /// In fields of their own.
    StopReason,
    MatchedStop,
    /// Not at all.
    Unsaid,
}

/// What a server does: for the prompt, and for how many times it was asked.
pub(crate) type Script = dyn Fn(&str, usize) -> (Option<Fault>, Ends) + Send + Sync;

/// A server that runs as long as the test.
pub(crate) struct Server {
    pub(crate) url: String,
    state: Arc<State>,
}

struct State {
    script: Box<Script>,
    /// Fields that make it refuse a request.
    unknown_fields: &'static [&'static str],
    asked: Mutex<HashMap<String, usize>>,
    answered: Mutex<HashMap<String, usize>>,
}

impl Server {
    pub(crate) fn start(
        unknown_fields: &'static [&'static str],
        script: impl Fn(&str, usize) -> (Option<Fault>, Ends) + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let state = Arc::new(State {
            script: Box::new(script),
            unknown_fields,
            asked: Mutex::default(),
            answered: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || serve(&state, stream));
            }
        });
        Server { url, state }
    }

    /// How often each prompt was asked.
    pub(crate) fn asked(&self) -> usize {
        self.state.asked.lock().unwrap().values().sum()
    }

    /// How often each prompt was answered.
    pub(crate) fn answered(&self) -> HashMap<String, usize> {
        self.state.answered.lock().unwrap().clone()
    }
}

/// Requests of one connection, until it ends.
fn serve(state: &State, stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let (mut line, mut length, mut key) = (String::new(), 0, String::new());
        reader.read_line(&mut line).ok().filter(|&bytes| bytes > 0)?;
        assert!(line.starts_with("POST /v1/completions "), "{line}");
        loop {
            line.clear();
            reader.read_line(&mut line).ok()?;
            let (name, value) = line.trim().split_once(':').unwrap_or((line.trim(), ""));
            match name.to_ascii_lowercase().as_str() {
                "" => break,
                "content-length" => length = value.trim().parse().ok()?,
                "authorization" => key = value.trim().to_owned(),
                _ => (),
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let request: Value = serde_json::from_slice(&body).unwrap();
        reply(state, &request, &key, &mut stream)?;
    }
}

/// Replies to a request; there is none where the connection ends.
fn reply(state: &State, request: &Value, key: &str, stream: &mut TcpStream) -> Option<()> {
    assert_eq!(request["temperature"], json!(0));
    let mut send = |status: u16, more: &str, body: &str, cut: usize| {
        let head = format!(
            "HTTP/1.1 {status} Any\r\nContent-Type: application/json\r\n{more}\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{}", &body[..body.len() - cut]).as_bytes()).ok()
    };
    if state.unknown_fields.iter().any(|field| request.get(field).is_some()) {
        return send(422, "", "{\"error\": \"unknown field\"}", 0);
    }
    let prompt = request["prompt"].as_str().unwrap().to_owned();
    let times = {
        let mut asked = state.asked.lock().unwrap();
        let times = asked.entry(prompt.clone()).or_default();
        *times += 1;
        *times - 1
    };
    let (fault, ends) = (state.script)(&prompt, times);
    let context = prompt.lines().last().unwrap_or_default();
    let mut said = say(context);
    if fault == Some(Fault::WrongWord) {
        said.insert_str(0, " seven");
    }
    // Where the ground truth is at a loss, it says nothing.
    let (text, end) = said.rsplit_once(' ').unwrap_or_default();
    let end = format!(" {end}");
    let choice = match ends {
        Ends::Untrimmed => json!({"text": format!("{said} and so on"), "finish_reason": "stop"}),
        Ends::StopReason => json!({"text": text, "finish_reason": "stop", "stop_reason": end}),
        Ends::MatchedStop => json!({"text": text, "finish_reason": "stop", "matched_stop": end}),
        Ends::Unsaid => json!({"text": text, "finish_reason": "stop"}),
    };
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 3});
    let body = json!({"choices": [choice], "usage": usage}).to_string();
    match fault {
        Some(Fault::TooMany) => send(429, "Retry-After-Ms: 20\r\n", "{}", 0),
        Some(Fault::Broken) => send(500, "", "{\"error\": {\"message\": \"on purpose\"}}", 0),
        Some(Fault::Dropped) => None,
        Some(Fault::Truncated) => {
            send(200, "", &body, 20)?;
            None
        }
        Some(Fault::Nonsense) => send(200, "", "<html>busy</html>", 0),
        Some(Fault::Slow) => {
            std::thread::sleep(Duration::from_millis(1500));
            None
        }
        Some(Fault::Refused) => send(400, "", "{\"error\": {\"message\": \"too long for me\"}}", 0),
        Some(Fault::Unauthorised) => {
            send(401, "", &json!({"error": {"message": format!("wrong: {key}")}}).to_string(), 0)
        }
        Some(Fault::WrongWord) | None => {
            *state.answered.lock().unwrap().entry(prompt).or_default() += 1;
            send(200, "", &body, 0)
        }
    }
}

/// What the ground truth says after a prompt, in words.
pub(crate) fn say(prompt: &str) -> String {
    let text: String = prompt.split_whitespace().map(spell).collect();
    let prompt = parse_tokens(&text).unwrap();
    let mut oracle = Oracle::new(rot_problems::PROBLEMS, 1 << 20);
    let end = prompt.iter().position(|&token| token == Token::EQUALS).unwrap() + 1;
    let (mut append, mut rest) = prompt.split_at(end);
    loop {
        oracle.submit(ContextId(0), append, 1 << 20);
        let mut ended = Vec::new();
        oracle.poll(&mut ended);
        let [Span { tokens, .. }] = ended.as_slice() else { panic!("{ended:?}") };
        if rest.is_empty() {
            let word = |token: &Token| {
                let text = token.text().replace('÷', "/").replace('×', "by");
                format!(" {}", text.trim_matches(['<', '>']).to_ascii_lowercase())
            };
            return tokens.iter().map(word).collect();
        }
        let (asked, after) = rest.split_at(tokens.len() - 1);
        assert_eq!(asked, &tokens[..tokens.len() - 1]);
        let end = after.iter().position(|&token| token == Token::STOP).unwrap() + 1;
        (append, rest) = after.split_at(end);
    }
}

fn spell(word: &str) -> String {
    match word {
        "/" => "÷".to_owned(),
        "by" => "×".to_owned(),
        word if word.starts_with(char::is_alphabetic) => format!("<{}>", word.to_ascii_uppercase()),
        word => word.to_owned(),
    }
}
