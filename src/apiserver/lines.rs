//! The body of a watch, cut into lines.
//!
//! Not for what a line means; that is `text`.

use bytes::{Bytes, BytesMut};
use kube::client::Body;

use super::call::frame;
use super::failure::Failure;

/// Longest line in bytes. The API server refuses requests above 3 MiB
/// (<https://github.com/kubernetes/kubernetes/blob/v1.34.0/staging/src/k8s.io/apiserver/pkg/server/config.go>,
/// `MaxRequestBodyBytes`); escapes can double it, and controllers add to the status afterwards.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Lines as they come in.
pub(crate) struct Lines {
    body: Body,
    buffer: BytesMut,
    /// This much of the buffer is known to hold no end of line.
    scanned: usize,
}

impl Lines {
    /// The lines of a body.
    pub(crate) fn of(body: Body) -> Self {
        Self { body, buffer: BytesMut::new(), scanned: 0 }
    }

    /// The next complete line, without its end; `None` when the body has ended. What follows the last end of line was
    /// cut off on its way and is dropped: it is sent again when the watch is resumed.
    ///
    /// # Errors
    /// When the connection fails, or a line is longer than any object can be.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            if let Some(line) = self.take_line() {
                return Ok(Some(line));
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                return Err(Failure::unanswered(format!("a watch line of more than {LINE_BYTES_MAX} bytes")));
            }
            match frame(&mut self.body).await? {
                Some(data) => self.buffer.extend_from_slice(&data),
                None => return Ok(None),
            }
        }
    }

    fn take_line(&mut self) -> Option<Bytes> {
        let found = self.buffer.get(self.scanned..)?.iter().position(|byte| *byte == b'\n');
        let Some(found) = found else {
            self.scanned = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.scanned + found + 1);
        self.scanned = 0;
        line.truncate(line.len().saturating_sub(1));
        Some(line.freeze())
    }
}
