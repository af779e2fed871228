//! One rule for showing a text that may hold a secret.
//!
//! The rule goes by shape and not by where it stands, so a password in the wrong place is masked as well: what stands before an
//! `@`, and what looks like a token. A bare word is shown.
//!
//! Not for what is secret by nature; that is `Secret` of the configuration.

use crate::text::{first, visible};

/// What is shown instead of a secret.
pub const MASK: &str = "•••";

/// Characters of a value that are shown at most, so that a pasted file does not fill the terminal.
const SHOWN_CHARS_MAX: usize = 120;

/// Letters and digits in a row from which on they are taken for a token if both occur. Names in Kubernetes have shorter
/// runs (the hash of a ReplicaSet has 10), tokens longer ones.
const TOKEN_CHARS_MIN: usize = 20;

/// Characters of an AWS secret access key
/// (<https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_access-keys.html>); it may have `/` and `+` in it.
const AWS_KEY_CHARS: usize = 40;

/// What credentials begin with: AWS key ids, tokens of GitHub, GitLab, Slack, Stripe and Google, Standard Webhooks, JWT.
const PREFIXES: [&str; 16] = [
    "AKIA",
    "ASIA",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "sk_live_",
    "rk_live_",
    "AIza",
    "whsec_",
    "eyJ",
];

/// A value that is safe to show: what stands before an `@`, in a query or in a fragment is masked, control characters
/// are escaped, and the rest is cut to a line.
pub fn shown(text: &str) -> String {
    let masked = match text.split_once("://") {
        Some((scheme, rest)) if is_scheme(scheme) => format!("{scheme}://{}", masked_authority(rest)),
        _ => match text.rsplit_once('@') {
            Some((_, after)) => format!("{MASK}@{after}"),
            None => text.to_owned(),
        },
    };
    shortened(&without_tokens(&masked))
}

/// A text without what looks like a token: a known beginning, a PEM block, or a long run of letters and digits.
fn without_tokens(text: &str) -> String {
    if text.contains("-----BEGIN") {
        return MASK.to_owned();
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '_' | '-' | '.' | '~' | '/' | '%');
    let mut shown = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let (before, from) = rest.split_at(start);
        let (word, after) = from.split_at(from.find(|c| !is_word(c)).unwrap_or(from.len()));
        shown.push_str(before);
        shown.push_str(if looks_secret(word) { MASK } else { word });
        rest = after;
    }
    shown.push_str(rest);
    shown
}

fn looks_secret(word: &str) -> bool {
    let has = |part: &str, is: fn(&char) -> bool| part.chars().any(|c| is(&c));
    let is_mixed = |part: &str| has(part, char::is_ascii_digit) && has(part, char::is_ascii_alphabetic);
    let is_aws_key = |part: &str| {
        part.len() == AWS_KEY_CHARS
            && is_mixed(part)
            && has(part, char::is_ascii_uppercase)
            && has(part, char::is_ascii_lowercase)
    };
    // Eight characters after a known beginning are enough: no name of ours begins so.
    let is_known =
        |part: &str| PREFIXES.iter().any(|prefix| part.len() >= prefix.len() + 8 && part.starts_with(prefix));
    let mut runs = word.split(['-', '_', '.', '/', '~', '%']);
    is_known(word)
        || word.split(['/', '.']).any(is_known)
        || is_aws_key(word)
        || is_aws_key(word.trim_matches(['-', '_', '.', '~', '%', '/']))
        || word.split('/').any(is_uuid)
        || runs.any(|run| run.len() >= TOKEN_CHARS_MIN && is_mixed(run))
}

/// Many tokens are UUIDs, and nothing that is configured here is one.
fn is_uuid(word: &str) -> bool {
    let lengths = word.split('-').map(|part| (part.len(), part.chars().all(|c| c.is_ascii_hexdigit())));
    lengths.eq([8, 4, 4, 4, 12].map(|length| (length, true)))
}

/// What follows `://`. The last `@` counts, because people forget to escape one in a password.
fn masked_authority(rest: &str) -> String {
    let (secret, public) = match rest.rsplit_once('@') {
        Some((_, public)) => (format!("{MASK}@"), public),
        None => (String::new(), rest),
    };
    match public.find(['?', '#']) {
        Some(end) => format!("{secret}{}?{MASK}", public.get(..end).unwrap_or_default()),
        None => format!("{secret}{public}"),
    }
}

fn is_scheme(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

fn shortened(text: &str) -> String {
    let shown = first(text, SHOWN_CHARS_MAX);
    let more = if shown == text { "" } else { "…" };
    format!("{}{more}", visible(shown))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_before_the_last_at_sign_is_masked() {
        assert_eq!(shown("redis://user:pa@ss@cache:6379/2"), "redis://•••@cache:6379/2");
        assert_eq!(shown("user:pass@cache"), "•••@cache");
    }

    #[test]
    fn queries_and_fragments_are_masked() {
        assert_eq!(shown("https://hooks.example.com/a?token=t"), "https://hooks.example.com/a?•••");
        assert_eq!(shown("rediss://cache/#t"), "rediss://cache/?•••");
    }

    #[test]
    fn what_looks_like_a_token_is_masked_wherever_it_stands() {
        for secret in [
            "AKIAIOSFODNN7EXAMPLE",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
            "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
        ] {
            for text in [secret.to_owned(), format!("/{secret}"), format!("a={secret}, b"), format!("cache:{secret}")] {
                let shown = shown(&text);
                assert!(shown.contains(MASK) && !shown.contains(&secret[..secret.len() / 2]), "{text}: {shown}");
            }
        }
    }

    #[test]
    fn names_and_paths_are_not_taken_for_tokens() {
        for plain in [
            "allclear-7d9f8b6c5d-x2x4z",
            "/var/run/secrets/kubernetes.io/serviceaccount/namespace",
            "master.my-redis.abc123.use1.cache.amazonaws.com:6379",
            "arn:aws:iam::123456789012:role/allclear",
            "info,allclear::adapters=debug",
            "0s, 5s, 5m, 30m",
        ] {
            assert_eq!(shown(plain), plain);
        }
    }

    #[test]
    fn plain_text_is_shown_on_one_line_and_cut() {
        assert_eq!(shown("15m"), "15m");
        assert_eq!(shown("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
        assert_eq!(shown(&"x".repeat(500)).chars().count(), SHOWN_CHARS_MAX + 1);
    }
}
