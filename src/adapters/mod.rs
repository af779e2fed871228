//! One outside system per file, each behind a port. Adapters perform calls and report; none decides.

pub mod calendar;
pub mod clock;
pub mod cloudfront;
pub mod collector;
pub mod dry_objects;
pub mod dry_run;
pub mod dry_running;
pub mod edge;
pub mod forge_http;
pub mod heads;
pub mod http;
pub mod kubernetes;
pub mod ledger;
pub mod needs;
pub mod random;
pub mod redis;
pub mod source;
pub mod verdict;
pub mod webhook;

/// The account that an API server has refused, from its message (`User "jane" cannot list resource …`), for the advice.
pub(crate) fn whom(refusal: &str) -> String {
    let user = refusal.split_once("User \"").and_then(|(_, rest)| rest.split_once('"')).map(|(user, _)| user);
    let account = user.and_then(|user| user.strip_prefix("system:serviceaccount:")?.split_once(':'));
    match (user, account) {
        (_, Some((namespace, account))) => format!("the service account {account} of namespace {namespace}"),
        (Some(user), None) => format!("the user {user}"),
        (None, None) => "the owner of these credentials".to_owned(),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_to_give_a_right_is_in_the_words_of_the_refusal() {
        let refusal =
            |user: &str| format!("pods is forbidden: User \"{user}\" cannot list resource \"pods\" in API group \"\"");
        assert_eq!(whom(&refusal("jane@example.com")), "the user jane@example.com");
        let account = refusal("system:serviceaccount:allclear:watcher");
        assert_eq!(whom(&account), "the service account watcher of namespace allclear");
        assert_eq!(whom("Forbidden"), "the owner of these credentials");
    }
}
