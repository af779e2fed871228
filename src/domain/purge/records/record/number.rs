//! The number of a record's rollout, and what makes it one of its own.

use super::Record;
use kernel::id::{Component, Nonces, Origin, Seq};

impl Record {
    /// Its place in a vector.
    pub fn component(&self, origin: &Origin) -> Component {
        Component { origin: origin.clone(), seq: self.seq, nonce: self.nonce }
    }

    /// Whether this is the rollout that a component of its ledger means.
    pub fn is(&self, component: &Component) -> bool {
        (self.seq, self.nonce) == (component.seq, component.nonce)
    }

    /// Gives the rollout a number that no other has, and the nonce that comes with each.
    pub(crate) fn raise(&mut self, seq: Seq, nonces: &mut Nonces) {
        self.seq = seq;
        self.nonce = nonces.draw();
    }
}
