//! Reads a collection once, page by page, from the API server's present state. Not for following it; that is `watch`.
//!
//! Objects are decoded as their bytes come in, and nothing else of an answer is kept: tenants who may write big objects must not fill
//! our memory with them (T2).

use kube::api::ListParams;
use kube::core::Request;

use super::LINES;
use super::call::{Api, CallError, bound, frame, open};
use super::failure::{Collection, Failure};
use super::pieces::Pieces;
use super::text::{self, Decoder, Name, Reading};
use kernel::unreadable::Unreadable;

/// Objects in one page, and pages of one list: more than 50,000 Services in one namespace are not read.
const PAGE: u32 = 500;
const PAGES_MAX: usize = 100;

/// Most bytes of one list, all pages together: 10 KiB for each object. They take some seconds, and are not kept.
pub const LIST_BYTES_MAX: usize = 512 * 1024 * 1024;

impl Api {
    /// Reads all pages, of the objects with these labels only if some are given. An object that cannot be read is left out: it
    /// must not hide the others.
    ///
    /// # Errors
    /// When it is refused, not answered in time, or more than is read of one list.
    pub async fn all<T>(
        &self,
        of: &Collection,
        labels: Option<&str>,
        decode: impl Fn(&str) -> Result<T, Unreadable>,
    ) -> Result<Vec<T>, CallError> {
        self.whole(of, labels, decode, |_| {}).await
    }

    /// The same, and the names of objects that cannot be read.
    ///
    /// # Errors
    /// The same.
    pub async fn sorted<T>(
        &self,
        of: &Collection,
        decode: impl Fn(&str) -> Result<T, Unreadable>,
        unread: impl FnMut(Name),
    ) -> Result<Vec<T>, CallError> {
        self.whole(of, None, decode, unread).await
    }

    async fn whole<T>(
        &self,
        of: &Collection,
        labels: Option<&str>,
        decode: impl Fn(&str) -> Result<T, Unreadable>,
        unread: impl FnMut(Name),
    ) -> Result<Vec<T>, CallError> {
        let mut items = Vec::new();
        match self.pages(of, labels, decode, |item| items.push(item), unread).await {
            Ok(None) => Ok(items),
            Ok(Some(why)) => Err(CallError::of(&of.attempt("list"), Failure::unanswered(why))),
            Err(failure) => Err(CallError::of(&of.attempt("list"), failure)),
        }
    }

    /// Like [`Self::all`], but hands on each object as soon as it is read. If there is more than is read of one list, says so.
    ///
    /// # Errors
    /// When it is refused, or not answered in time.
    pub async fn each<T>(
        &self,
        of: &Collection,
        decode: Decoder<T>,
        keep: impl FnMut(T),
    ) -> Result<Option<String>, CallError> {
        self.pages(of, None, decode, keep, |_| {}).await.map_err(|failure| CallError::of(&of.attempt("list"), failure))
    }

    async fn pages<T>(
        &self,
        of: &Collection,
        labels: Option<&str>,
        decode: impl Fn(&str) -> Result<T, Unreadable>,
        mut keep: impl FnMut(T),
        mut unread: impl FnMut(Name),
    ) -> Result<Option<String>, Failure> {
        let mut token = None;
        let mut left = LIST_BYTES_MAX;
        for _ in 0..PAGES_MAX {
            let label_selector = labels.map(str::to_owned);
            // Without a resourceVersion the API server answers with its present state, not with whatever it remembers.
            let params =
                ListParams { limit: Some(PAGE), continue_token: token, label_selector, ..ListParams::default() };
            let found = |item: &[u8]| match text::item(item, &decode) {
                Reading::Read(item) => keep(item),
                Reading::Unreadable(Name { namespace, name }, why) => {
                    let (resource, why) = (&*of.resource.plural, why.to_string());
                    tracing::warn!(target: LINES, resource, %namespace, %name, why, "object left out");
                    unread(Name { namespace, name });
                }
            };
            let Some(next) = self.page(of, &params, &mut left, found).await? else {
                return Ok(Some(format!("more than {LIST_BYTES_MAX} bytes")));
            };
            token = next;
            if token.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(format!("more than {PAGES_MAX} pages of {PAGE} objects")))
    }

    /// Reads one page, and says the token of the next one; `None` if it has more than the bytes that are `left`.
    async fn page(
        &self,
        of: &Collection,
        params: &ListParams,
        left: &mut usize,
        mut found: impl FnMut(&[u8]),
    ) -> Result<Option<Option<String>>, Failure> {
        let request = Request::new(of.path()).list(params).map_err(Failure::unanswered)?;
        bound(self.within, async {
            let mut body = open(&self.client, request, self.within).await?;
            let mut pieces = Pieces::default();
            while let Some(data) = frame(&mut body).await? {
                let Some(rest) = left.checked_sub(data.len()) else { return Ok(None) };
                *left = rest;
                pieces.feed(&data, &mut found)?;
            }
            Ok(Some(text::page(pieces.rest(), |_| Ok(()))?.next))
        })
        .await
    }
}
