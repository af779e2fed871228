//! The base of every other room: time, ids, words, retries, promises. No product is known here.

pub mod answer;
pub mod budget;
pub mod call;
pub mod floor;
pub mod id;
pub mod machine;
pub(crate) mod parsed;
pub mod promise;
pub mod refusal;
pub mod remark;
pub mod reported;
pub mod retry;
pub mod shares;
pub mod text;
pub mod trace;
pub mod unreadable;
