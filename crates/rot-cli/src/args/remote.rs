//! What the command line can say of models on servers.

use std::path::PathBuf;
use std::time::Duration;

use rot_llm::{Server, Spelling};

use super::{one_of, time};

/// A model on a server.
#[derive(clap::Args)]
#[command(next_help_heading = "A model on a server")]
pub(crate) struct RemoteArgs {
    /// Ask a server that completes texts as OpenAI's does, such as vLLM, SGLang or llama.cpp; the model is
    /// its name there. A key is taken from the variable OPENAI_API_KEY.
    #[arg(long, value_name = "URL", value_parser = base_url)]
    pub(crate) base_url: Option<String>,
    /// How the model writes tokens: as words, as the paper fine-tuned, or as they are, as models of
    /// rot export do.
    #[arg(long, default_value = "words", requires = "base_url", value_parser = one_of(&Spelling::ALL, Spelling::name))]
    spelling: Spelling,
    /// Put so many worked contexts in front of each, for a model that was not fine-tuned.
    #[arg(long, value_name = "K", default_value_t = 0, requires = "base_url", value_parser = clap::value_parser!(u16).range(..=64))]
    pub(crate) few_shot: u16,
    /// Requests that may be open at the same time.
    #[arg(long, value_name = "N", default_value_t = 8, requires = "base_url", value_parser = clap::value_parser!(u16).range(1..=1024))]
    concurrency: u16,
    /// How often a request is tried again.
    #[arg(long, value_name = "N", default_value_t = 5, requires = "base_url", value_parser = clap::value_parser!(u32).range(..=100))]
    max_retries: u32,
    /// Seconds that a request may take.
    #[arg(long, value_name = "S", default_value = "120", requires = "base_url", value_parser = time)]
    timeout: Duration,
    /// Requests in a minute, where a server allows no more.
    #[arg(long, value_name = "N", requires = "base_url", value_parser = clap::value_parser!(u32).range(1..))]
    requests_per_minute: Option<u32>,
    /// Tokens of one completion, as the server counts them.
    #[arg(long, value_name = "N", default_value_t = 1024, requires = "base_url", value_parser = clap::value_parser!(u32).range(1..))]
    completion_tokens: u32,
    /// Keep every reply in this file; whatever is in it is not asked again.
    #[arg(long, value_name = "FILE", requires = "base_url")]
    pub(crate) journal: Option<PathBuf>,
}

impl RemoteArgs {
    /// The server, if there is one.
    pub(crate) fn server(&self, model: &str) -> Option<Server> {
        let base_url = self.base_url.clone()?;
        Some(Server {
            base_url,
            model: model.to_owned(),
            key: std::env::var("OPENAI_API_KEY").ok().filter(|key| !key.is_empty()),
            spelling: self.spelling,
            max_tokens: self.completion_tokens as usize,
            concurrency: self.concurrency.into(),
            retries: self.max_retries,
            pause: Duration::from_millis(500),
            timeout: self.timeout,
            per_minute: self.requests_per_minute,
        })
    }
}

fn base_url(text: &str) -> Result<String, String> {
    match text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")) {
        Some(host) if !host.is_empty() && !text.contains(char::is_whitespace) => {
            Ok(text.to_owned())
        }
        _ => Err("it must be like http://localhost:8000/v1".to_owned()),
    }
}

/// Prices of a million tokens: of prompts, of completions.
pub(super) fn price(text: &str) -> Result<[f64; 2], String> {
    let number = |text: &str| text.trim().parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0);
    let parts = text.split_once(',').map(|(prompt, completion)| [prompt, completion].map(number));
    match parts {
        Some([Some(prompt), Some(completion)]) => Ok([prompt, completion]),
        _ => Err("it must be two prices, like 0.15,0.60".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_or_price_is_wrong_usage() {
        assert!(base_url("http://localhost:8000/v1").is_ok());
        assert!(base_url("localhost:8000").is_err());
        assert!(base_url("https://").is_err());
        assert_eq!(price("0.15, 0.6"), Ok([0.15, 0.6]));
        assert!(price("1").is_err() && price("1,-2").is_err() && price("a,b").is_err());
    }
}
