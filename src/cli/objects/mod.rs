//! `allclear pipeline`, `allclear repo`, and `allclear explain` of one of them: objects of our own for people, with their own rights
//! (decision 21), also when no allclear runs. Each command stands here once, for any kind.
//!
//! What is shown is the domain's view of an object: nothing is judged here. What is written is an annotation, which the running
//! allclear acts on. Not for what one kind shows or asks: that is in `pipeline` and `repo`.

mod approve;
pub(super) mod command;
mod error;
mod history;
mod keep;
mod kind;
mod look;
mod mark;
mod pipeline;
mod repo;
mod words;

pub use approve::{Question, Yes, approve, question};
pub use error::Error;
pub use history::history;
pub use keep::keep;
pub use kind::ShownKind;
pub use look::{Asked, explain, list};
pub use mark::{Change, Which, change};
pub use pipeline::About;
pub use repo::{Asker, logs};
