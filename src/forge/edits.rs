//! What a promotion changes in the files of its base.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use kernel::id::PipelineId;
use objects::pipeline::marker::{self, Refused};
use objects::pipeline::proposal::Order;
use purge::ports::PortError;

use crate::git::File;
use crate::session::attempted;

/// What an order changes in its base.
#[derive(Default)]
pub(crate) struct Edits {
    pub(crate) changes: BTreeMap<String, Bytes>,
    /// Files that may have markers and cannot be read, with the reason.
    pub(crate) left: Vec<String>,
    /// What markers were found of: the Pipeline, or apps of its set.
    pub(crate) marked: BTreeSet<PipelineId>,
}

impl Edits {
    /// Sets the markers of one file.
    pub(crate) fn add(&mut self, order: &Order, file: &File, content: Option<&[u8]>) -> Result<(), PortError> {
        let path = &file.path;
        let content =
            content.ok_or_else(|| PortError::passing(attempted(order), format!("the server did not send {path}")))?;
        let edited = match std::str::from_utf8(content) {
            Ok(text) => order.marked().into_iter().try_fold(text.to_owned(), |text, (name, revision)| {
                let edited = marker::edit(&text, &name, &order.environment, &revision)?;
                self.marked.extend((edited.markers > 0).then_some(name));
                Ok(edited.text)
            }),
            Err(_not_text) => Err(Refused::Unreadable { line: 1, reason: "it is no UTF-8".to_owned() }),
        };
        match edited {
            Ok(edited) => {
                if edited.as_bytes() != content {
                    self.changes.insert(path.clone(), edited.into());
                }
                Ok(())
            }
            Err(refused @ Refused::Unreadable { .. }) => {
                self.left.push(format!("{path}, {refused}"));
                Ok(())
            }
            Err(refused @ Refused::Marker { .. }) => {
                Err(PortError::lasting(attempted(order), format!("the marker in {path}, {refused}")))
            }
        }
    }
}
