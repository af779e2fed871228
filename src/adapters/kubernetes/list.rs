//! Reads a collection once, page by page, from the API server's present state. Not for following it; that is `watch`.

use std::time::Duration;

use kube::Client;
use kube::api::ListParams;

use super::call::{Collection, Failure, read};
use super::text::{self, Decoder, Reading};

/// Longest wait for one answer.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(15);

/// Objects in one page, and pages of one list: more than 50,000 Services in one namespace are not read.
const PAGE: u32 = 500;
const PAGES_MAX: usize = 100;

/// Most bytes of one answer.
pub(super) const BYTES_MAX: usize = 64 * 1024 * 1024;

/// Reads all pages, of the objects with these labels only if some are given. An object that cannot be read is left out: it
/// must not hide the others.
pub(super) async fn all<T>(
    client: &Client,
    collection: &Collection,
    labels: Option<&str>,
    decode: Decoder<T>,
) -> Result<Vec<T>, Failure> {
    let mut items = Vec::new();
    let mut token = None;
    for _ in 0..PAGES_MAX {
        let label_selector = labels.map(str::to_owned);
        // Without a resourceVersion the API server answers with its present state, not with whatever it remembers.
        let params = ListParams { limit: Some(PAGE), continue_token: token, label_selector, ..ListParams::default() };
        let request = kube::core::Request::new(collection.path()).list(&params).map_err(Failure::unanswered)?;
        let page = text::page(&read(client, request, ANSWER_MAX, BYTES_MAX).await?, decode)?;
        for reading in page.items {
            match reading {
                Reading::Read(item) => items.push(item),
                Reading::Unreadable(name, why) => {
                    let resource = collection.resource.plural;
                    tracing::warn!(resource, namespace = %name.namespace, name = %name.name, why, "object left out");
                }
            }
        }
        token = page.next;
        if token.is_none() {
            return Ok(items);
        }
    }
    Err(Failure::unanswered(format!("more than {PAGES_MAX} pages of {PAGE} objects")))
}
