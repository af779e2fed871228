//! What the kinds of ours have in common: an object with a status that is ours to write, and gates that others judge. A kind adds what it
//! decides.

pub mod asked;
pub(crate) mod form;
pub mod gates;
pub mod groups;
pub mod kept;
pub(crate) mod own_status;
pub mod owned;
pub mod status;
