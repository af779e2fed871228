//! The status page: one page, rendered here, that reloads itself. No script, nothing loaded from anywhere.

use maud::{DOCTYPE, html};

use super::About;
use crate::actors::message::Observation;

/// The page's style sheet. Its hash is in the content security policy, so it must be put into the page as it is.
pub const STYLE: &str = include_str!("page.css");

/// The whole page.
pub fn render(about: &About, draining: bool, seen: Result<&Observation, &String>) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head { title { "allclear " (about.member) } style { (maud::PreEscaped(STYLE)) } }
            body { @if draining { p { "shutting down" } } @match seen { Ok(seen) => p { (seen.workloads) }, Err(reason) => p { (reason) } } }
        }
    }
    .into_string()
}
