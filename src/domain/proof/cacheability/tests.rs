use super::*;
use crate::asked::Body;
use kernel::machine::Timestamp;

/// The page that people read. What it says is what is tested.
const PAGE: &str = include_str!("../../../../docs/cacheability.md");

/// The cells of the rows that begin with one of these.
fn rows(first: &[&str]) -> Vec<Vec<&'static str>> {
    let cells = |line: &'static str| line.split(" | ").map(|cell| cell.trim_matches(['|', ' '])).collect::<Vec<_>>();
    PAGE.lines()
        .filter(|line| line.starts_with("| "))
        .map(cells)
        .filter(|row| first.iter().any(|one| row[0].starts_with(one)))
        .collect()
}

fn answer(through: &str, status: u16, headers: &str) -> Answer {
    let mut lines: Vec<(&str, &str)> = headers.split("; ").filter_map(|line| line.split_once(": ")).collect();
    if through.starts_with("CloudFront") {
        lines.push(("X-Amz-Cf-Id", "an-id"));
    }
    let (started, ended) = (Timestamp::from_millis(0), Timestamp::from_millis(1));
    let headers = Headers::of(lines, Some("cache-tag"));
    let path = through.split_once(", ").map(|(_, path)| path).filter(|path| path.starts_with('/')).unwrap_or("/");
    Answer { path: path.to_owned(), started, ended, status, headers, body: Body::Unread }
}

#[test]
fn each_row_of_the_page_is_what_is_found() {
    let rows = rows(&["CloudFront", "others"]);
    assert!(rows.len() >= 40, "{}", rows.len());
    for row in rows {
        let [through, status, headers, expected] = row.as_slice() else { panic!("{row:?}") };
        let tags = through.ends_with("tags").then_some("cache-tag");
        let found = found(&answer(through, status.parse().unwrap(), headers), tags);
        let ids: Vec<&str> = found.iter().map(Found::id).collect();
        let ids = if ids.is_empty() { "nothing".to_owned() } else { ids.join(" ") };
        assert_eq!(ids, *expected, "{row:?}");
    }
}

#[test]
fn the_page_says_why_and_what_to_do_in_the_programs_words() {
    let all = [
        Found::NotCloudFront,
        Found::BrowserKeeps(1),
        Found::ErrorKept(404),
        Found::CookieKept,
        Found::Untagged("x".to_owned()),
        Found::NeverChanges,
        Found::StaleServed(1),
        Found::NeverKept,
        Found::Private,
        Found::KeptAllTheSame,
        Found::VariesByAll,
        Found::VariesBy("cookie".to_owned()),
    ];
    let expected: Vec<[String; 3]> =
        all.iter().map(|one| [format!("`{}`", one.id()), one.why().to_owned(), one.cure().to_owned()]).collect();
    let rows: Vec<Vec<&str>> = rows(&["`"]);
    assert_eq!(rows, expected);
}

#[test]
fn what_is_seen_is_said_with_its_numbers_and_a_cookie_is_never_kept() {
    let words = |through: &str, status, headers: &str| {
        found(&answer(through, status, headers), None).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        words("CloudFront", 200, "content-type: text/html; cache-control: max-age=5400"),
        ["browsers keep the page for 1h 30m"]
    );
    assert_eq!(words("CloudFront", 503, "age: 2"), ["the edge keeps an answer of 503"]);
    assert_eq!(words("CloudFront", 200, "vary: Cookie"), ["the answer is another one for each value of cookie (Vary)"]);
    let kept = answer("CloudFront", 200, "set-cookie: session=hunter2; age: 1");
    assert!(!format!("{kept:?}").contains("hunter2"), "{kept:?}");
}

#[test]
fn what_pages_load_from_their_own_host_is_found_and_nothing_else() {
    let html = r#"<!doctype html><LINK rel=stylesheet HREF="/app.3f2a.css"><script src='/js/app.js?v=1#x'></script>
        <img src="//other.example/x.png"><img src="https://other.example/y.png"><a href="/shop">shop</a><img src=/bare.png>
        <img src="/app.3f2a.css"><img src="relative.png"><img src="/a*b.png"><img src="/~u/p.png"><img data-src="/lazy.webp">"#;
    let found: Vec<String> = linked(html).iter().map(ToString::to_string).collect();
    assert_eq!(found, ["/app.3f2a.css", "/js/app.js?v=1", "/lazy.webp"]);
    let many: String = (0..9).map(|n| format!("<img src=\"/{n}.png\">")).collect();
    assert_eq!(linked(&many).len(), LINKED_MAX);
    for odd in ["src=", "src=\"", "href='/x.css", "s", "\u{e9}src=\"/\u{e9}.png\""] {
        assert!(linked(odd).len() <= 1, "{odd}");
    }
}
