//! What a person's browser and terminal bring: the query of the status page, and the state of another allclear that `status --server`
//! prints.

use allclear::cli::answer::Output;
use allclear::cli::status::printed;
use allclear::http::search;
use kernel::text::{visible_json, visible_lines};
use purge::rollouts::browse::TEXT_CHARS_MAX;

use crate::{Target, target, text};

pub const TARGETS: &[Target] = &[target("page_query", page_query), target("status_state", status_state)];

/// A search is bounded, and an address made from it asks for the same.
fn page_query(bytes: &[u8]) -> bool {
    let found = search(&text(bytes));
    assert!(found.text.chars().count() <= TEXT_CHARS_MAX);
    let page = found.page.saturating_add(1).to_string();
    let pairs = [("q", found.text.as_str()), ("only", found.only.name()), ("page", &page)];
    let again: String = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    assert_eq!(search(&again), found);
    found != search("")
}

/// Nothing that another program says moves the cursor, or colours what follows; and one namespace is never more than all of them.
fn status_state(bytes: &[u8]) -> bool {
    let Some(table) = printed(bytes, None, Output::Table) else { return false };
    assert_eq!(visible_lines(&table.out), table.out);
    let one = printed(bytes, Some("shop"), Output::Json).expect("it is JSON");
    assert_eq!(visible_json(&one.out), one.out);
    let all = printed(bytes, None, Output::Json).expect("it is JSON");
    assert!(one.out.len() <= all.out.len());
    assert!(
        printed(one.out.as_bytes(), Some("shop"), Output::Json).is_some_and(|again| again.out == one.out),
        "{}",
        one.out
    );
    table.code == 0
}
