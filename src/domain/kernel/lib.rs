//! What every product stands on: time, ids, names, words, retries, promises, watches. None of them is known here.
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        clippy::disallowed_methods,
        clippy::string_slice,
        reason = "clippy.toml cannot let tests off these two; the build without tests is held to them"
    )
)]

pub mod answer;
pub mod budget;
pub mod call;
pub mod expression;
pub mod floor;
pub mod id;
pub mod machine;
pub mod mask;
pub mod names;
pub(crate) mod parsed;
pub mod promise;
pub mod refusal;
pub mod remark;
pub mod replica;
pub mod retry;
pub mod shares;
pub mod template;
pub mod text;
pub mod trace;
pub mod unreadable;
pub mod watches;
