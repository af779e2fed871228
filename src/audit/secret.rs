//! What looks like a secret, wherever it stands in a line.

/// How each begins, how many characters of a key follow at least, and what it is.
const KEYS: [(&str, usize, &str); 11] = [
    ("AKIA", 16, "an AWS access key"),
    ("ASIA", 16, "a temporary AWS access key"),
    ("whsec_", 16, "a key that signs webhooks"),
    ("ghp_", 20, "a token of GitHub"),
    ("ghs_", 20, "a token of GitHub"),
    ("github_pat_", 20, "a token of GitHub"),
    ("glpat-", 16, "a token of GitLab"),
    ("xoxb-", 16, "a token of Slack"),
    ("Bearer ", 16, "a bearer token"),
    ("Basic ", 12, "a user and password"),
    ("eyJhbGciOi", 20, "a JSON Web Token"),
];

fn is_of_key(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '/' | '=' | '.')
}

/// What a line shows, if it shows something.
pub fn shown(line: &str) -> Option<&'static str> {
    if line.contains("PRIVATE KEY-----") {
        return Some("a private key");
    }
    let key = KEYS.into_iter().find(|(begin, least, _)| {
        let mut rest = line.split(begin).skip(1);
        // A key is no end of a longer word: what is before it is told by `split` alone, so only what follows is counted.
        rest.any(|after| {
            let key: String = after.chars().take_while(|c| is_of_key(*c)).collect();
            // A word of prose has no digit: "Basic authentication".
            key.len() >= *least && key.contains(|c: char| c.is_ascii_digit() || c == '=')
        })
    });
    key.map(|(_, _, what)| what).or_else(|| has_password(line).then_some("a password in an address"))
}

/// `scheme://user:password@host`, where the password is not masked.
fn has_password(line: &str) -> bool {
    line.split("://").skip(1).any(|after| {
        let authority = after.split(['/', '"', ' ', '\\', '?']).next().unwrap_or_default();
        // An image by its digest is no address with a user.
        let user = authority.rsplit_once('@').filter(|(_, host)| !host.starts_with("sha256:")).map(|(user, _)| user);
        let password = user.and_then(|user| user.split_once(':')).map(|(_, password)| password);
        password.is_some_and(|password| password.chars().any(char::is_alphanumeric))
    })
}
