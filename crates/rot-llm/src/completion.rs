//! What a server is asked, and what is made of its reply.
//!
//! Servers stop where they are told to and then differ: some leave THINK or STOP in the text, some say
//! which it was in a field of their own, some say nothing. So the end is looked for in that order, and if it
//! is nowhere, it follows from how the text begins: what asks a sub-question ends in THINK, and everything
//! else in STOP. Whatever comes after the end is cut off, wherever a server has stopped.

use rot_core::{Token, shorten};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::spelling::{Reading, Spelling};

/// What decides a reply besides the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    pub(crate) model: &'a str,
    pub(crate) prompt: &'a str,
    pub(crate) spelling: Spelling,
    /// The most tokens to write, as the server counts them.
    pub(crate) most: usize,
    /// Whether to ask for what only some servers can do, and others refuse: to leave the end in the text.
    pub(crate) extras: bool,
}

impl Request<'_> {
    /// The body of the request.
    pub(crate) fn body(&self) -> Value {
        let mut body = json!({
            "model": self.model,
            "prompt": self.prompt,
            "max_tokens": self.most,
            "temperature": 0,
        });
        let stops = self.spelling.stops();
        if !stops.is_empty() {
            body["stop"] = json!(stops);
        }
        if self.extras {
            // vLLM's word for it, and SGLang's.
            body["include_stop_str_in_output"] = json!(true);
            body["no_stop_trim"] = json!(true);
        }
        body
    }
}

/// What a server has written, without what was wrapped around it. It is kept as it came, so that a
/// journal holds what was said and not what was made of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reply {
    pub(crate) text: String,
    /// What ended it, where the server says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<String>,
    /// Whether it has reached the most tokens.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) full: bool,
}

/// Tokens as a server counts them.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Usage {
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
}

/// The body of a reply, as far as it matters.
#[derive(Deserialize)]
struct Body {
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice {
    text: String,
    #[serde(default)]
    finish_reason: Value,
    /// vLLM: a text, or the number of a token.
    #[serde(default)]
    stop_reason: Value,
    /// SGLang.
    #[serde(default)]
    matched_stop: Value,
    /// llama.cpp.
    #[serde(default)]
    stopping_word: Value,
}

impl Reply {
    /// Takes a reply out of its wrapping.
    pub(crate) fn parse(body: &str) -> Result<(Reply, Usage), String> {
        let body: Body = serde_json::from_str(body)
            .map_err(|error| format!("the reply '{}' is no completion: {error}", shorten(body)))?;
        let usage = body.usage.unwrap_or_default();
        let Some(choice) = body.choices.into_iter().next() else {
            return Err("the reply has no choice in it".to_owned());
        };
        let stops = [choice.stop_reason, choice.matched_stop, choice.stopping_word];
        let stop = stops.into_iter().find_map(|stop| match stop {
            Value::String(stop) if !stop.is_empty() => Some(stop),
            _ => None,
        });
        let full = choice.finish_reason == "length";
        Ok((Reply { text: choice.text, stop, full }, usage))
    }

    /// What a context has said.
    pub(crate) fn read(&self, spelling: Spelling) -> Result<Said, String> {
        let Reading { mut tokens, unknown } = spelling.read(&self.text);
        let ends = |token: Option<&Token>| matches!(token, Some(&Token::THINK | &Token::STOP));
        if ends(tokens.last()) {
            return Ok(Said { tokens, inferred: false });
        }
        if let Some(unknown) = unknown {
            let unknown = shorten(&unknown);
            return Err(format!(
                "the model wrote '{unknown}', which is no {}",
                match spelling {
                    Spelling::Words => "word of the problems",
                    Spelling::Tokens => "token",
                }
            ));
        }
        if self.full {
            return Err(format!(
                "the model wrote {} tokens and neither think nor stop: raise --completion-tokens if \
                 that is too few",
                tokens.len()
            ));
        }
        let named = self.stop.as_deref().map(|stop| spelling.read(stop).tokens);
        if let Some(&[end @ (Token::THINK | Token::STOP)]) = named.as_deref() {
            tokens.push(end);
            return Ok(Said { tokens, inferred: false });
        }
        match tokens.first() {
            None => Err("the model wrote nothing".to_owned()),
            Some(&first) => {
                let asks = first == Token::GO || first == Token::TAIL;
                tokens.push(if asks { Token::THINK } else { Token::STOP });
                Ok(Said { tokens, inferred: true })
            }
        }
    }
}

/// What a context has said, with its THINK or STOP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) tokens: Vec<Token>,
    /// Whether the end follows from the beginning.
    pub(crate) inferred: bool,
}

#[cfg(test)]
mod tests {
    use rot_core::parse_tokens;

    use super::*;

    /// What is made of a choice.
    fn said(choice: &Value) -> Result<(String, bool), String> {
        let body = json!({ "choices": [choice] }).to_string();
        let (reply, _) = Reply::parse(&body)?;
        let Said { tokens, inferred } = reply.read(Spelling::Words)?;
        Ok((rot_core::Text(&tokens).to_string(), inferred))
    }

    #[test]
    fn the_end_is_found_wherever_a_server_says_it() {
        let think = Ok(("<GO>0+5=<THINK>".to_owned(), false));
        // In the text, cut or not.
        assert_eq!(said(&json!({"text": " go 0 + 5 = think"})), think);
        assert_eq!(said(&json!({"text": " go 0 + 5 = think 7 stop"})), think);
        let text = " go 0 + 5 =";
        // vLLM, SGLang, llama.cpp.
        assert_eq!(said(&json!({"text": text, "stop_reason": " think"})), think);
        assert_eq!(said(&json!({"text": text, "matched_stop": " think"})), think);
        assert_eq!(said(&json!({"text": text, "stopping_word": " think"})), think);
        // Nowhere.
        let inferred = Ok(("<GO>0+5=<THINK>".to_owned(), true));
        assert_eq!(said(&json!({"text": text, "finish_reason": "stop"})), inferred);
        assert_eq!(said(&json!({"text": text, "stop_reason": 1234})), inferred);
        assert_eq!(said(&json!({"text": text, "stop_reason": "\n"})), inferred);
        let tail = json!({"text": " tail 1 + 5 =", "stop_reason": null});
        assert_eq!(said(&tail), Ok(("<TAIL>1+5=<THINK>".to_owned(), true)));
        assert_eq!(said(&json!({"text": " 7 5"})), Ok(("75<STOP>".to_owned(), true)));
        // What the server says counts more than how the text begins.
        let stop = json!({"text": text, "stop_reason": " stop"});
        assert_eq!(said(&stop), Ok(("<GO>0+5=<STOP>".to_owned(), false)));
    }

    #[test]
    fn what_is_no_completion_is_an_error() {
        assert!(said(&json!({"text": " seven"})).unwrap_err().contains("'seven'"));
        assert!(said(&json!({"text": " 7 5 maybe stop"})).unwrap_err().contains("'maybe'"));
        assert!(said(&json!({"text": ""})).unwrap_err().contains("nothing"));
        let full = json!({"text": " 1 1 1 1", "finish_reason": "length"});
        assert!(said(&full).unwrap_err().contains("--completion-tokens"));
        assert!(said(&json!({"message": "hello"})).unwrap_err().contains("no completion"));
        assert!(Reply::parse("{\"choices\": []}").unwrap_err().contains("no choice"));
        assert!(Reply::parse("{\"choices\": [{\"te").unwrap_err().contains("no completion"));
        assert!(Reply::parse("<html>").unwrap_err().contains("<html>"));
    }

    #[test]
    fn our_own_models_end_by_themselves() {
        let request = |spelling, extras| {
            let request = Request { model: "m", prompt: "p", spelling, most: 9, extras };
            request.body()
        };
        assert_eq!(
            request(Spelling::Tokens, false),
            json!({"model": "m", "prompt": "p", "max_tokens": 9, "temperature": 0})
        );
        let body = request(Spelling::Words, true);
        assert_eq!(body["stop"], json!([" think", " stop", "\n"]));
        assert_eq!(body["include_stop_str_in_output"], json!(true));
        let reply = Reply { text: "75<STOP>".to_owned(), ..Reply::default() };
        let tokens = parse_tokens("75<STOP>").unwrap();
        assert_eq!(reply.read(Spelling::Tokens), Ok(Said { tokens, inferred: false }));
    }
}
