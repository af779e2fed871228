//! One outside system per file, each behind a port. Adapters do what they are told and report; none decides.

pub mod clock;
pub mod cloudfront;
pub mod dry_run;
pub mod http;
pub mod kubernetes;
pub mod ledger;
pub mod redis;
pub mod webhook;

/// The error with the whole chain of its causes: the innermost ("connection refused") is the one that helps. A cause that
/// the words before it quote is not said again.
pub(crate) fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let text = inner.to_string();
        if !words.contains(&text) {
            words = format!("{words}: {text}");
        }
        cause = inner.source();
    }
    words
}
