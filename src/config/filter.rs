//! Which lines of libraries may be written at all, whatever `log.level` asks for.
//!
//! Libraries show what they send and receive: the AWS SDK a whole answer in a warning (`DisplayErrorContext`) and the string it
//! signs in a debug line, kube the output of a credential plugin in an error, h2 and hyper headers. Our own adapters say what
//! such lines would have said, without what is secret in them.
//!
//! Not for our own lines; those hold no secrets, which `strangers` tests prove at every level.

use tracing_subscriber::filter::LevelFilter;

use kernel::mask::MASK;

/// Libraries that quote answers, requests or credentials even in warnings and errors: nothing of them is written.
const SILENT: [&str; 3] = ["aws", "kube", "serde_saphyr"];

/// The prefixes of the libraries that are named when they ask for too much. Any other part of a filter may be a
/// password in the wrong place.
const KNOWN: [&str; 13] = [
    "actix",
    "aws_",
    "h2",
    "hyper",
    "kube",
    "log",
    "redis",
    "reqwest",
    "rustls",
    "serde_saphyr",
    "tokio",
    "tower",
    "tracing",
];

/// The most verbose level of lines with this target.
pub fn cap(target: &str) -> LevelFilter {
    let library = target.split([':', '-']).next().unwrap_or_default();
    let is_of = |name: &str| library.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
    match library {
        "allclear" => LevelFilter::TRACE,
        _ if SILENT.iter().any(|name| is_of(name)) => LevelFilter::OFF,
        // What others say of failures; details of requests begin below.
        _ => LevelFilter::WARN,
    }
}

/// The parts of a filter that ask for more than they get, as they may be shown.
pub(super) fn capped(filter: &str) -> Vec<String> {
    let parts =
        filter.split(',').map(str::trim).filter(|part| !part.is_empty() && part.parse::<LevelFilter>().is_err());
    let asks_too_much = |part: &&str| {
        let (target, level) = part.rsplit_once('=').unwrap_or((part, "trace"));
        let target = target.split_once('[').map_or(target, |(target, _)| target);
        level.parse::<LevelFilter>().is_ok_and(|level| level > cap(target))
    };
    parts.filter(asks_too_much).map(|part| if is_known(part) { part.to_owned() } else { MASK.to_owned() }).collect()
}

fn is_known(part: &str) -> bool {
    const CHARS_MAX: usize = 60;
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | ':' | '=');
    part.len() <= CHARS_MAX && part.chars().all(is_plain) && KNOWN.iter().any(|name| part.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_that_quote_secrets_are_silent_and_others_warn() {
        for (target, level) in [
            ("allclear::adapters::webhook", LevelFilter::TRACE),
            ("aws_smithy_runtime::client::orchestrator", LevelFilter::OFF),
            ("aws_sigv4", LevelFilter::OFF),
            ("kube_client::client::builder", LevelFilter::OFF),
            ("kube", LevelFilter::OFF),
            ("hyper::proto::h1", LevelFilter::WARN),
            ("h2", LevelFilter::WARN),
            ("redis", LevelFilter::WARN),
            ("allclear_like", LevelFilter::WARN),
            ("", LevelFilter::WARN),
        ] {
            assert_eq!(cap(target), level, "{target}");
        }
    }

    #[test]
    fn what_is_asked_for_in_vain_is_told() {
        assert_eq!(capped("trace"), Vec::<String>::new());
        assert_eq!(capped("debug,allclear::adapters=trace,h2=warn"), Vec::<String>::new());
        assert_eq!(capped("info,kube=debug, hyper=trace"), ["kube=debug", "hyper=trace"]);
        assert_eq!(capped("h2,[request]=debug,hunter2=trace"), ["h2", MASK, MASK]);
        // A filter could be made of these: the last one is an address with a comma in its password.
        assert_eq!(capped("hunter2,redis://:hun#@ter,2@cache"), [MASK, MASK, MASK]);
    }
}
